"""Random networks for hypothesis: the project's model and the oracle's, side by side."""

import numpy as np
from hypothesis import strategies as st

from hil.systems.array.model import cells, fingerprint
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.network import Point
from oracles.newton import Newton, OracleArray, OracleCell

positive = st.floats(0.1, 10.0)


@st.composite
def fingerprints(draw, max_layers=4, max_per_layer=3, max_cells=4):
    """Text of a random topology."""
    n_layers = draw(st.integers(1, max_layers))
    nodes = [("-", 1)]
    text = []
    for layer in range(n_layers):
        counts = [draw(st.integers(1, max_cells)) for _ in nodes]
        text.append(" ".join(f"{mask}:{n}" for (mask, _), n in zip(nodes, counts, strict=True)))
        n_cells = sum(counts)
        last = layer == n_layers - 1
        n_masses = 1 if last else draw(st.integers(1, min(max_per_layer, n_cells)))
        owners = [*range(n_masses)] + [
            draw(st.integers(0, n_masses - 1)) for _ in range(n_cells - n_masses)
        ]
        owners = draw(st.permutations(owners))
        masks = [sum(1 << c for c, o in enumerate(owners) if o == m) for m in range(n_masses)]
        nodes = [(f"&{mask:X}", 0) for mask in masks]
    text.append(f"{nodes[0][0]}:-1")
    return " | ".join(text)


@st.composite
def cell_pairs(draw, kinds=("hill", "miga", "two_damper", "custom")):
    """(project's cell, oracle's cell)."""
    kind = draw(st.sampled_from(kinds))
    if kind == "custom":
        n = draw(st.integers(0, 3))
        number = st.floats(-3.0, 3.0)
        row = st.lists(number, min_size=n, max_size=n)
        c = {key: draw(number) for key in ("Ke", "Kv", "Kf")}
        c |= {key: draw(row) for key in ("Kd", "Ze", "Zv", "Kp")}
        iota = np.array([draw(row) for _ in range(n)]).reshape(n, n)
        c["I"] = (iota - 10.0 * np.eye(n)).tolist()  # diagonally dominant: not singular
        return cells.custom(**c), OracleCell("custom", custom=c)
    k_pe, k_se, k_ae, b_1, b_2 = (draw(positive) for _ in range(5))
    springs = {"k_pe_N_per_m": k_pe, "k_se_N_per_m": k_se, "k_ae_N_per_m": k_ae}
    if kind == "hill":
        ours = cells.hill(**springs, b_N_s_per_m=b_1)
        return ours, OracleCell(kind, k_pe, k_se, k_ae, b_se=b_1)
    if kind == "miga":
        ours = cells.miga(**springs, b_N_s_per_m=b_1)
        return ours, OracleCell(kind, k_pe, k_se, k_ae, b_ae=b_1)
    ours = cells.two_damper(**springs, b_se_N_s_per_m=b_1, b_ae_N_s_per_m=b_2)
    return ours, OracleCell(kind, k_pe, k_se, k_ae, b_se=b_1, b_ae=b_2)


@st.composite
def networks(draw, kinds=("hill", "miga", "two_damper", "custom"), failures=True):
    """(CellArray, Newton) of the same random network of one to three arrays."""
    supports = draw(st.lists(st.sampled_from(("fixed", "free", "driven")), min_size=2, max_size=4))
    names = [f"p{i}" for i in range(len(supports))]
    n_arrays = draw(st.integers(max(1, len(names) - 1), 3))
    points, arrays, oracle_arrays = {}, {}, {}
    for name, support in zip(names, supports, strict=True):
        points[name] = Point(support, draw(st.floats(0.0, 3.0)) if support == "free" else 0.0)
    for i in range(n_arrays):
        # A chain through all points, so that each is used; further arrays anywhere.
        ends = (names[i], names[i + 1]) if i + 1 < len(names) else draw(st.permutations(names))[:2]
        start, end = draw(st.permutations(ends))
        text = draw(fingerprints())
        t = fingerprint.parse(text)
        pairs = [draw(cell_pairs(kinds)) for _ in range(t.n_cells)]
        mass = [draw(positive) for _ in range(t.n_masses)]
        some = st.sets(st.integers(1, t.n_cells), max_size=2) if failures else st.just(set())
        dead, broken = draw(some), draw(some)
        oracle_cells = []
        for n, (_, cell) in enumerate(pairs, start=1):
            cell.dead, cell.broken = n in dead, n in broken
            oracle_cells.append(cell)
        arrays[f"a{i}"] = make_array(
            text,
            cell=[ours for ours, _ in pairs],
            mass_kg=mass,
            start=start,
            end=end,
            dead_cells=sorted(dead),
            broken_cells=sorted(broken),
        )
        oracle_arrays[f"a{i}"] = OracleArray(
            t.left.tolist(), t.right.tolist(), oracle_cells, mass, start, end
        )
    oracle_points = {name: (p.support, p.mass_kg) for name, p in points.items()}
    return CellArray(points, arrays), Newton(oracle_points, oracle_arrays)
