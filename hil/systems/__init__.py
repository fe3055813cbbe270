"""One folder a kind of system; `hil.experiment.registry` lists them."""
