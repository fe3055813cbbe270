"""The driver of an NI card, on the `nidaqmx` package and NI's own library."""
