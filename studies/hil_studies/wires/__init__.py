"""Laws of wires against measured loops."""
