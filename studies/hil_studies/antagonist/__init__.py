"""Antagonist arrays."""
