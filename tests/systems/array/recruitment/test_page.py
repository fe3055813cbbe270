"""docs/recruitment.md shows what docs/recruitment/*.json holds."""

import json

import numpy as np
import pytest
from scipy.stats import sem
from scipy.stats import t as student

from hil.bundled_configs import root

PAGE = (root() / "docs" / "recruitment.md").read_text(encoding="utf-8")
MADE = sorted((root() / "docs" / "recruitment").glob("*.json"))


@pytest.fixture(params=MADE, ids=lambda path: path.stem)
def made(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_every_row_of_the_study_is_on_the_page(made):
    assert MADE
    for table in made["tables"]:
        assert table["title"] in PAGE
        for row in table["rows"]:
            assert "| " + " | ".join(cell or " " for cell in row).replace("  ", " ") + " |" in PAGE


def test_a_row_has_at_least_50_plants_and_its_interval_is_students(made):
    for key, rows in made["judged"].items():
        errors = np.array(rows)[:, made["judged_columns"].index("error")]
        assert len(errors) >= 50
        if not key.endswith(" 0 % dead, optimal, with lead-in"):
            continue
        low, high = student.interval(0.95, len(errors) - 1, errors.mean(), sem(errors))
        shown = f"{100 * errors.mean():.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        assert f"| {shown} |" in PAGE


def test_the_page_names_the_commit_and_the_date(made):
    assert made["made_by"]["commit"][:7] in PAGE
    assert made["date"][:10] in PAGE
    assert made["made_by"]["dirty"] is False
