"""Studies: results of the source papers and comparisons with other programs, one folder each.

Nothing in `hil` imports this package: `hil study` and `hil bench` find it by entry points.
"""
