"""The physics of systems is arithmetic: it reads no table, file, device or clock."""

import re

import grimp
import pytest

# What ties a system's physics to tables, rigs, files and pages. Every other module is physics.
TIES = re.compile(
    r"(build|tables)(_\w+)?|page|kind"
    r"|controllers|checks|observer|twin|report|figures?|schematic|description|cases|cell_file|cell_kinds|sweep"
)
FORBIDDEN = (
    "hil.config",
    "hil.devices",
    "hil.experiment",
    "hil.record",
    "hil.rig",
    "hil.runs",
    "h5py",
    "pydantic",
    "time",
)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("hil", include_external_packages=True, cache_dir=None)


def physics(graph):
    return [
        module
        for module in sorted(graph.find_descendants("hil.systems"))
        if not graph.find_children(module) and not TIES.fullmatch(module.rpartition(".")[2])
    ]


def test_every_system_of_the_project_has_physics(graph, pytestconfig):
    folders = (pytestconfig.rootpath / "hil/systems").glob("*/__init__.py")
    kinds = {folder.parent.name for folder in folders} - {"plugin"}
    assert {module.split(".")[2] for module in physics(graph)} == kinds


def test_the_physics_of_systems_imports_no_table_file_device_or_clock(graph):
    chains = [
        " -> ".join(graph.find_shortest_chain(module, upstream))
        for module in physics(graph)
        for upstream in sorted(graph.find_upstream_modules(module))
        if any(upstream == name or upstream.startswith(f"{name}.") for name in FORBIDDEN)
    ]
    assert chains == []
