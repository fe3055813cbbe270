"""Rows to disk in another process; reading them back; recovery."""
