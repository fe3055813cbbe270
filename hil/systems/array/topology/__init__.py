"""Every topology of N cells: figures, ranking, drawings."""
