"""Tests lie where what they test lies."""

TREES = ("hil", "gui", "firmware", "simdaq", "examples", "configs")
PACKAGES = {"studies": "hil_studies"}  # folder and the package in it
ACROSS = {
    "architecture": "the arrows between modules and the places of files",
    "commands": "whole programs, from the command line",
    "documentation": "what docs/, README.md and their like say to type",
    "extensions": "an installed package that brings kinds of its own",
}


def test_every_test_lies_in_a_folder_of_the_name_of_what_it_tests(pytestconfig):
    root = pytestconfig.rootpath
    tests = {path.parent.relative_to(root / "tests") for path in root.glob("tests/**/test_*.py")}
    astray = [
        folder.as_posix()
        for folder in sorted(tests)
        if folder.as_posix() not in ACROSS and not mirrors(folder, root)
    ]
    assert astray == []


def mirrors(folder, root):
    """Whether the project has this folder, in `hil/` or beside it; `tests/` itself mirrors none."""
    if not folder.parts:
        return False
    top, *below = folder.parts
    return (
        (root / "hil" / folder).is_dir()
        or (top in TREES and (root / folder).is_dir())
        or (top in PACKAGES and root.joinpath(top, PACKAGES[top], *below).is_dir())
    )
