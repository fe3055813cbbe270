"""NI's own examples and tests of the `nidaqmx` package, run on simulated cards.

`python -m simdaq.conformance CHECKOUT` takes the path of a checkout of
https://github.com/ni/nidaqmx-python, leaves it unmodified, downloads nothing and prints a table.
"""
