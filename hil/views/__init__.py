"""What people read: reports, tables, verdicts."""
