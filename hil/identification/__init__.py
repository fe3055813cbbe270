"""Array parameters from recorded force, and what the data say of the model that was fitted."""
