"""Soft links with viscoelastic joints."""
