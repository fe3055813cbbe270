"""Rigid bodies and the 18-link body."""
