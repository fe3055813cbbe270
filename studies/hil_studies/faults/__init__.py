"""Injected faults and the time until the interlocks act."""
