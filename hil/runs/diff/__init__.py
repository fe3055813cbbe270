"""Why two recordings differ."""
