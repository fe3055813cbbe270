"""Measured loops of wires, laws fitted to them, and `hil study wires`."""
