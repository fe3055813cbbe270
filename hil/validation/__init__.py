"""Is a model good enough: measured over simulated, with the uncertainty of both."""
