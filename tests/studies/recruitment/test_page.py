"""docs/recruitment.md and the pages beside it show what docs/recruitment/*.json holds."""

import json

import numpy as np
import pytest
from scipy.stats import sem
from scipy.stats import t as student

from hil.bundled_configs import root
from hil_studies.recruitment.study import BEST

DOCS = root() / "docs"
PAGES = [DOCS / "recruitment.md", *(DOCS / "recruitment").glob("*.md")]
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
MADE = sorted((DOCS / "recruitment").glob("*.json"))


@pytest.fixture(params=MADE, ids=lambda path: path.stem)
def made(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_every_row_of_the_study_is_on_the_page(made):
    assert MADE
    for table in made["tables"]:
        assert table["title"] in PAGE
        for row in table["rows"]:
            assert "| " + " | ".join(row) + " |" in PAGE


def test_the_planners_interval_is_students_over_plants(made):
    for n_cells, trials in made["trials"].items() if "full_N" in made else ():
        of = [row for row in trials if row["controller"] == BEST]
        by_plant = [
            np.mean([row["error_N"] for row in of if row["plant"] == plant])
            for plant in {row["plant"] for row in of}
        ]
        low, high = student.interval(0.95, len(by_plant) - 1, np.mean(by_plant), sem(by_plant))
        share = 100.0 / made["full_N"][n_cells]
        shown = f"{share * np.mean(by_plant):.2f} ± {share * 0.5 * (high - low):.2f}"
        assert f"| {BEST} | {shown} |" in PAGE


def test_the_page_names_the_commit_and_the_date(made):
    assert made["made_by"]["commit"][:7] in PAGE
    assert made["date"][:10] in PAGE
