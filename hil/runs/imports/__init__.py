"""Recordings from other programs: `hil import`."""
