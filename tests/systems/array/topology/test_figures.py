"""Every figure of every topology of five cells, one array at a time; closed forms; print."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest

from hil.systems.array.model import cells, fingerprint
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.topology.figures import MIGA, LikeCells, figures
from hil.systems.array.topology.topologies import mirrored, topologies

K = 20.0 + 386.52 * 1000.0 / 1386.52
PHI = 386.52 / 1386.52
FIG_2 = "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1"
OUTPUT = "array.right_N"


def blocked_N(text, on, **options):
    model = CellArray.from_fingerprint(text, cell=MIGA, mass_kg=0.01583, **options)
    return model.force_at(OUTPUT, model.solve_statics(on).tension_N)


def of(text, **options):
    return figures([fingerprint.parse(text)], **options)[0]


@pytest.mark.slow
def test_figures_are_those_of_each_array_built_and_solved():
    for found in figures(topologies(5)):
        text, n = found.fingerprint, 5
        all_on = blocked_N(text, np.ones(n))
        assert found.n_masses == fingerprint.parse(text).n_masses
        assert found.blocked_force_N == pytest.approx(all_on, rel=1e-12)

        free = CellArray.from_fingerprint(text, cell=MIGA, mass_kg=0.01583, right="free")
        moved_m = free.solve_statics(np.ones(n)).position_m[free.node_names.index("right")]
        assert found.stroke_m == pytest.approx(-moved_m, rel=1e-12)

        forces = [blocked_N(text, np.array(on)) for on in itertools.product((0, 1), repeat=n)]
        levels = np.unique(np.round(forces, 11))
        assert found.n_force_levels == len(levels)
        assert found.smallest_step_N == pytest.approx(np.diff(levels).min(), abs=2e-11)
        assert found.variance_N2 == pytest.approx(np.var(forces), rel=1e-12)

        left = [blocked_N(text, np.ones(n), broken_cells=[c]) for c in range(1, n + 1)]
        assert found.robustness == pytest.approx(np.mean(left) / all_on, abs=1e-12)
        assert found.broken_worst == pytest.approx(min(left) / all_on, abs=1e-12)
        pairs = list(itertools.combinations(range(1, n + 1), 2))
        left = [blocked_N(text, np.ones(n), broken_cells=list(pair)) for pair in pairs]
        assert found.two_broken_worst == pytest.approx(min(left) / all_on, abs=1e-12)
        for k, worst in ((1, found.dead_worst), (2, found.two_dead_worst)):
            off = [np.isin(range(n), dead) for dead in itertools.combinations(range(n), k)]
            left = [blocked_N(text, 1.0 - dead) for dead in off]
            assert worst == pytest.approx(min(left) / all_on, abs=1e-12)
            # every cell is in a share k/n of the sets, whatever the topology
            assert np.mean(left) / all_on == pytest.approx(1.0 - k / n, abs=1e-12)


def test_figures_of_the_papers_fig_2_are_the_printed_ones():
    found = of(FIG_2)
    assert round(found.blocked_force_N, 9) == 1.115079480
    assert found.stroke_m == pytest.approx(1.115079480 / 398.359827, rel=1e-8)
    assert found.n_force_levels == 25
    assert found.smallest_step_N == pytest.approx(PHI / 6.0, rel=1e-12)


@pytest.mark.parametrize("n_cells", [1, 3, 8])
def test_parallel_cells_add_force_and_a_chain_adds_stroke(n_cells):
    parallel = of(f"-:{n_cells} | &{2**n_cells - 1:X}:-1")
    assert parallel.blocked_force_N == pytest.approx(n_cells * PHI, rel=1e-12)
    assert parallel.stroke_m == pytest.approx(PHI / K, rel=1e-12)
    assert parallel.n_force_levels == n_cells + 1
    assert parallel.smallest_step_N == pytest.approx(PHI, rel=1e-12)
    assert parallel.variance_N2 == pytest.approx(n_cells * PHI**2 / 4.0, rel=1e-12)
    assert parallel.robustness == pytest.approx(1.0 - 1.0 / n_cells, abs=1e-12)
    chain = of(" | ".join(["-:1", *["&1:1"] * (n_cells - 1), "&1:-1"]))
    assert chain.blocked_force_N == pytest.approx(PHI, rel=1e-12)
    assert chain.stroke_m == pytest.approx(n_cells * PHI / K, rel=1e-12)
    assert chain.variance_N2 == pytest.approx(PHI**2 / (4.0 * n_cells), rel=1e-12)
    assert chain.robustness == pytest.approx(0.0, abs=1e-12)
    for k, breaks, dead in (
        (1, "broken_worst", "dead_worst"), (2, "two_broken_worst", "two_dead_worst"),
    ):  # fmt: skip
        kept = max(1.0 - k / n_cells, 0.0)
        assert getattr(parallel, breaks) == pytest.approx(kept, abs=1e-12)
        assert getattr(parallel, dead) == pytest.approx(kept, abs=1e-12)
        assert getattr(chain, breaks) == pytest.approx(0.0, abs=1e-12)
        assert getattr(chain, dead) == pytest.approx(kept, abs=1e-12)


def test_mirror_images_have_the_same_figures():
    whole = list(topologies(7))
    for one, other in zip(figures(whole), figures(map(mirrored, whole)), strict=True):
        for key, value in asdict(one).items():
            if key != "fingerprint":
                assert asdict(other)[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key


def test_another_cell_and_force_scale_the_figures():
    soft = cells.hill(k_pe_N_per_m=0.0, k_se_N_per_m=3.0, k_ae_N_per_m=6.0, b_N_s_per_m=1.0)
    found = of("-:2 | &3:1 | &1:-1", cells=LikeCells(soft, force_on_N=6.0))
    # K = 2 N/m and phi F = 2 N: two cells in parallel, then one.
    assert found.blocked_force_N == pytest.approx(8.0 / 3.0, rel=1e-12)
    assert found.stroke_m == pytest.approx(2.0, rel=1e-12)
    assert found.smallest_step_N == pytest.approx(2.0 / 3.0, rel=1e-12)


def test_figures_come_in_the_order_of_the_topologies():
    texts = [t.text for t in topologies(6)]
    assert [f.fingerprint for f in figures(topologies(6))] == texts


@pytest.mark.parametrize("cell", [cells.custom(Ke=1.0), cells.custom(Kf=1.0)])
def test_a_cell_without_force_or_stiffness_is_refused(cell):
    with pytest.raises(ValueError, match="must be above zero"):
        LikeCells(cell)
