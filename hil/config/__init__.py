"""Configuration: files and `--set` merged to one table, value types, one-line errors."""
