"""The three-link arm."""
