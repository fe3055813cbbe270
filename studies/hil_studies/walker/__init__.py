"""The compass walker."""
