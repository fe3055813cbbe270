"""Coverage of identified parameters."""
