"""The muscle-driven leg."""
