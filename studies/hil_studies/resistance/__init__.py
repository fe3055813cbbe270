"""Strain of a wire from its resistance."""
