"""The cells' wires during a run: their law, filtered and learned from the force."""
