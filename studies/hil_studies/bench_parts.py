"""The parts of `hil bench` that compare systems with other programs; entry points name them."""

from hil.experiment.kind import BenchPart, Extent

PACKAGE = "hil_studies"


def _part(module: str, measure: str, extent: Extent) -> BenchPart:
    return BenchPart(f"{PACKAGE}.{module}:{measure}", f"{PACKAGE}.{module}:as_text", extent)


STEP = _part("array_speed.step", "measure", "quick")
RECRUITMENT = _part("array_speed.recruitment", "compare", "usual")
MODELS = _part("array_speed.models", "compare", "full")
IMPACT = _part("pantograph.speed", "measure_in_turn", "usual")
LEG = _part("leg.speed", "compare", "usual")
ARM = _part("arm.speed", "compare", "full")
BODIES = _part("bodies.speed", "cost", "full")
SOFT_LINKS = _part("soft_chain.speed", "cost_over_segments", "full")
