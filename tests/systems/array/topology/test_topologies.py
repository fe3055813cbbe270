"""Printed counts, and an enumeration that relabels everything."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.systems.array.model import fingerprint
from hil.systems.array.topology.topologies import (
    canonical,
    count,
    mirrored,
    stands_for_its_mirror_image,
    topologies,
)
from oracles import relabelling
from oracles.networks import fingerprints


def text(topology):
    return topology.text


def shuffled(topology, draw):
    """The same topology, the masses of every layer and all cells in another order."""
    move = np.arange(topology.n_masses)
    starts = np.concatenate(([0], np.cumsum(topology.layers)))
    for a, b in itertools.pairwise(starts):
        move[a:b] = a + draw.permutation(b - a)
    left, right = move[topology.left], move[topology.right]
    # A fingerprint numbers the cells by the mass they leave.
    order = np.lexsort((draw.random(len(left)), left))
    return fingerprint.Topology(topology.layers, left[order], right[order])


@pytest.mark.parametrize(
    ("n_cells", "printed", "printed_mirror"),
    [(1, 1, 1), (2, 2, 2), (3, 4, 3), (4, 9, 7), (5, 20, 12), (6, 49, 31)],
)
def test_counts_are_the_printed_ones(n_cells, printed, printed_mirror):
    found = list(topologies(n_cells))
    assert len(found) == count(n_cells) == printed
    assert sum(map(stands_for_its_mirror_image, found)) == printed_mirror


@pytest.mark.parametrize("n_cells", range(1, 10))
def test_every_relabelling_class_comes_exactly_once(n_cells):
    classes = {
        relabelling.least(tables)
        for layers in relabelling.layer_sizes(n_cells)
        for tables in relabelling.labelled(layers, n_cells)
    }
    found = [relabelling.least(relabelling.tables_of(t)) for t in topologies(n_cells)]
    assert Counter(found) == Counter(classes)


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("n_cells", [8, 10, 12])
def test_labelled_topologies_are_all_accounted_for(n_cells):
    # Orbit and stabiliser: a class of layers n_j has prod(n_j!) / |Aut| labelled members.
    members = dict.fromkeys(relabelling.n_labelled(n_cells), Fraction(0))
    for topology in topologies(n_cells):
        tables = relabelling.tables_of(topology)
        members[topology.layers] += Fraction(1, relabelling.n_automorphisms(tables))
    expected = {
        layers: Fraction(chains, relabellings)
        for layers, (chains, relabellings) in relabelling.n_labelled(n_cells).items()
    }
    assert members == expected


def test_mirror_images_are_paired_as_brute_force_pairs_them():
    pairs = set()
    for topology in topologies(7):
        tables = relabelling.tables_of(topology)
        image = relabelling.least(relabelling.mirror_image(tables))
        pairs.add(frozenset((relabelling.least(tables), image)))
        found = relabelling.least(relabelling.tables_of(mirrored(topology)))
        assert found == image
    kept = [t for t in topologies(7) if stands_for_its_mirror_image(t)]
    assert len(kept) == len(pairs)
    assert {
        frozenset(relabelling.least(relabelling.tables_of(x)) for x in (t, mirrored(t)))
        for t in kept
    } == pairs


def test_every_topology_is_a_canonical_fingerprint_of_its_own():
    found = list(topologies(9))
    assert len({t.text for t in found}) == len(found)
    for topology in found:
        assert fingerprint.parse(topology.text).text == topology.text
        assert canonical(topology).text == topology.text
        assert topology.n_cells == 9


@settings(max_examples=100, deadline=None)
@given(fingerprints(), st.integers(0, 2**32 - 1))
def test_names_of_masses_and_cells_do_not_change_the_canonical_form(written, seed):
    topology = fingerprint.parse(written)
    draw = np.random.default_rng(seed)
    assert canonical(topology).text == canonical(shuffled(topology, draw)).text
    assert mirrored(mirrored(topology)).text == canonical(topology).text


def test_the_projects_six_cell_array_is_in_its_canonical_form():
    miga6 = "-:1 | &1:2 | &1:1 &2:2 | &7:-1"
    assert canonical(fingerprint.parse(miga6)).text == miga6
    assert miga6 in map(text, topologies(6))


def test_any_slice_is_that_of_the_whole():
    whole = list(map(text, topologies(8)))
    for start, stop in [(0, 5), (37, 101), (300, 400), (302, None), (9, 9), (11, 3), (290, None)]:
        assert list(map(text, topologies(8, start, stop))) == whole[start:stop]


def test_a_far_slice_is_reached_without_those_before_it():
    n_cells = 15
    last = count(n_cells) - 1
    (chain,) = topologies(n_cells, last)
    assert chain.text == "-:1 | " + "&1:1 | " * 14 + "&1:-1"


def test_a_mass_has_cells_on_both_sides_in_every_topology():
    for topology in topologies(8):
        arriving = np.bincount(topology.right, minlength=topology.n_masses)
        leaving = np.bincount(topology.left, minlength=topology.n_masses)
        assert np.all(arriving[1:] > 0)
        assert np.all(leaving[:-1] > 0)
        assert arriving[0] == leaving[-1] == 0


@pytest.mark.parametrize("n_cells", [0, -3])
def test_no_cells_make_no_topology(n_cells):
    with pytest.raises(ValueError, match="an array has at least 1"):
        count(n_cells)
    with pytest.raises(ValueError, match="an array has at least 1"):
        next(topologies(n_cells))


def test_a_negative_start_is_refused():
    with pytest.raises(ValueError, match="start = -1"):
        next(topologies(4, -1))
