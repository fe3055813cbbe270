"""Files and `--set` merged to one table, value types, and errors of one line."""
