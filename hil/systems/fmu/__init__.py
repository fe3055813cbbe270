"""A functional mock-up unit of another program as plant or twin.

The descriptor is in `kind`: the process of a unit does not import what it needs.
"""
