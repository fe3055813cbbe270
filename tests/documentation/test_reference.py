"""The generated reference is committed, current and complete."""

import re
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

import hil
from hil import models
from hil.config.table import Pair, Positive

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import reference_pages  # noqa: E402

GENERATED = DOCS / "reference" / "generated"


@pytest.fixture(scope="module")
def pages():
    return reference_pages.pages()


def rows(pages):
    """Key and description of every row of the tables of keys."""
    text = "\n".join(
        pages[name] for name in pages if name.startswith(("configuration", "campaign"))
    )
    found = re.findall(r"^\| `(.+?)` \| .* \| (.*) \|$", text, re.M)
    assert len(found) > 20
    return found


def test_every_public_name_is_on_the_page_of_python(pages):
    for module in (hil, models):
        for name in module.__all__:
            assert f"### `{module.__name__}.{name}" in pages["python.md"]


def test_the_committed_reference_is_current(pages):
    committed = {path.name: path.read_text(encoding="utf-8") for path in GENERATED.glob("*.md")}
    compared = {*pages, *committed}
    if sys.version_info[:2] != (3, 11):  # argparse's help differs by version
        compared.remove("command-line.md")
    stale = sorted(name for name in compared if pages.get(name) != committed.get(name))
    assert not stale, "run: python docs/reference_pages.py"


def test_every_key_has_a_description(pages):
    assert sorted({key for key, text in rows(pages) if not text.strip()}) == []


def test_every_description_of_keys_is_of_a_key(pages):
    told = set(rows(pages))
    for name, text in reference_pages.known_keys().items():
        entries = text.items() if isinstance(text, dict) else [(name, text)]
        for key, about in entries:
            assert (key, about.replace("|", "\\|")) in told, (name, key)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Positive, "number, above 0"),
        (list[Positive], "list of numbers, each above 0"),
        (Pair, "2 numbers"),
        (list[list[float]], "list of lists of numbers"),
        (dict[str, int], "whole numbers, by name"),
        (Literal["a", "b", "c"], '`"a"`, `"b"` or `"c"`'),
        (float | str | None, "number or text"),
        (Annotated[float, Field(ge=1e-6, le=1e8)], "number, 1e-6 to 1e8"),
    ],
)
def test_types_and_ranges_are_said_in_words(annotation, said):
    assert reference_pages._type(annotation) == said


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("period_s", "s"), ("b_N_s_per_m", "N s/m"), ("rate_max_per_s", "1/s"), ("k_p", ""),
        ("C_A_MPa_per_K", "MPa/K"), ("A_s_C", "°C"), ("conductivity_W_per_m_K", "W/(m K)"),
        ("disturbance_N_per_sqrt_s", "N/√s"), ("C", ""), ("I_1_kg_m2", "kg m²"),
        ("newtons_per_V", "N/V"), ("k_i_N_m_per_rad_s", "N m/(rad s)"),
    ],
)  # fmt: skip
def test_the_unit_of_a_key_is_the_end_of_its_name(name, unit):
    assert reference_pages._unit(name) == unit


def test_every_link_between_pages_leads_to_a_file():
    """As a file browser follows it, without a build."""
    broken = []
    for page in [*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md")]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            elsewhere = "://" in link or link.startswith("mailto:")
            if not elsewhere and not (page.parent / link).exists():
                broken.append((str(page.relative_to(DOCS.parent)), link))
    assert not broken


def test_every_page_is_on_the_front_page(pages):
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {(DOCS / link).resolve() for link in re.findall(r"^- \[.*?\]\((.*?)\)", front, re.M)}
    below = pages["configuration.md"]
    listed |= {
        (GENERATED / link).resolve() for link in re.findall(r"^- \[.*?\]\((.*?)\)", below, re.M)
    }
    apart = ("decisions", "paper", "slow-tests")
    written = {
        page.resolve() for page in DOCS.rglob("*.md")
        if page.name != "index.md" and not set(page.parts) & set(apart)
    }  # fmt: skip
    included = {p for p in written if p.read_text(encoding="utf-8").startswith("```{include}")}
    assert written - included <= listed
