"""Measured loops of wires, and laws fitted to them."""
