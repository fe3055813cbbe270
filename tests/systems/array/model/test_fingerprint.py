"""The fingerprint notation: what it means, and every way in which a text is not one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.systems.array.model.fingerprint import FingerprintError, parse
from oracles.networks import fingerprints

FIG_2 = "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1"


def test_fig_2_is_read_as_the_paper_draws_it():
    t = parse(FIG_2)
    assert (t.n_cells, t.n_masses, t.layers) == (14, 8, (1, 3, 3, 1))
    # Eq. (6): mass 6 has cells 7 and 8 on its left, 12 and 13 on its right.
    assert np.flatnonzero(t.right == 5).tolist() == [6, 7]
    assert np.flatnonzero(t.left == 5).tolist() == [11, 12]
    # Second layer: [&1, &E, &10] joins cell 1; cells 2, 3, 4; cell 5.
    assert t.right[:5].tolist() == [1, 2, 2, 2, 3]


def test_nobody_changes_the_topology_of_a_text_for_others():
    for cells in (parse(FIG_2).left, parse(FIG_2).right):
        with pytest.raises(ValueError, match="read-only"):
            cells[0] = 5


def test_G_and_H_have_one_mass_for_each_end_of_every_cell():
    t = parse(FIG_2)
    assert t.G.shape == (8, 14)
    assert t.H.shape == (14, 8)
    np.testing.assert_array_equal(t.G.toarray().sum(axis=0), np.ones(14))
    np.testing.assert_array_equal(t.H.toarray().sum(axis=1), np.ones(14))
    np.testing.assert_array_equal(t.E.toarray(), t.H.toarray() - t.G.toarray().T)


@given(fingerprints(max_layers=5, max_per_layer=5, max_cells=5))
def test_a_topology_written_out_reads_back_the_same(text):
    t = parse(text)
    again = parse(t.text)
    assert again.text == t.text == text
    assert again.layers == t.layers
    np.testing.assert_array_equal(again.left, t.left)
    np.testing.assert_array_equal(again.right, t.right)


def test_blanks_and_small_letters_make_no_difference():
    assert parse("  -:5|&1:1  &e:1 &10:3 | &1:1 &6:2 &18:1 | &f:-1 ").text == FIG_2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least two layers"),
        ("-:1", "at least two layers"),
        ("-:1 |  | &1:-1", "layer 2 is empty"),
        ("-:1 | &0:-1", r"layer 2, node 1 \('&0:-1'\): the mask is empty"),
        ("-:2 | &1:1 &3:1 | &3:-1", r"layer 2, node 2 .*cell 1 of layer 1 is already claimed"),
        ("-:2 | &4:-1", r"layer 2, node 1 .*claims cell 3, but 2 leave"),
        ("-:3 | &1:1 &4:1 | &3:-1", "layer 2: no node claims cell 2 of the 3"),
        ("-:2 | &1:-1", "layer 2: no node claims cell 2"),
        ("-:1 | &1:0 | &1:-1", r"layer 2, node 1 .*count must be at least 1"),
        ("-:0 | &1:-1", r"layer 1, node 1 .*count must be at least 1"),
        ("-:1 | &1:1", "layer 2, node 1 .*must be -1"),
        ("-:1 | &1:-1 | &1:-1", "layer 2, node 1 .*-1 is allowed only at the right end"),
        ("-:-1 | &1:-1", "layer 1, node 1 .*-1 is allowed only at the right end"),
        ("-:1 | &G:-1", "layer 2, node 1 .*'&G' is not a mask"),
        ("-:1 | 1:-1", "layer 2, node 1 .*'1' is not a mask"),
        ("-:1 | &:-1", "layer 2, node 1 .*'&' is not a mask"),
        ("-:1 | -:-1", "layer 2, node 1 .*'-' is allowed only at the left end"),
        ("&1:1 | &1:-1", "layer 1, node 1 .*nothing arrives at the left end"),
        ("-:1 | &1", "layer 2, node 1 .*'mask:cells'"),
        ("-:1 | &1:1:1 | &1:-1", "layer 2, node 1"),
        ("-:x | &1:-1", "layer 1, node 1 .*'x' is not a cell count"),
        ("-:1.0 | &1:-1", "layer 1, node 1 .*not a cell count"),
        ("-:99999999 | &1:-1", "layer 1, node 1 .*not a cell count"),
        ("-:1 -:1 | &3:-1", "layer 1 has 2 nodes"),
        ("-:2 | &1:-1 &2:-1", "layer 2 has 2 nodes"),
    ],
)
def test_what_is_no_fingerprint_is_refused_with_layer_and_node(text, message):
    with pytest.raises(FingerprintError, match=message):
        parse(text)


@settings(max_examples=500)
@given(st.text(alphabet="-&:| 0123456789aFg", max_size=40))
def test_garbage_is_read_or_refused_but_never_breaks_the_parser(text):
    try:
        topology = parse(text)
    except FingerprintError:
        return
    assert parse(topology.text).text == topology.text
