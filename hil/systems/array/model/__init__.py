"""The array's model: topology to linear dynamics, statics, activation and the steps of a run."""
