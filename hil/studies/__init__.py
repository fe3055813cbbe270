"""The published experiments, rerun: tables, figures, comparison with print."""
