"""The fingerprint method."""
