"""Balanced reduction: the printed bound against the measured error."""

import json

import numpy as np
import pytest
import scipy.signal

from hil.__main__ import main
from hil.errors import ModelError
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.reduction import reduce

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
FIG_2 = "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1"
RIGHT = ["array.right_N"]


@pytest.fixture(scope="module")
def fig_2():
    return CellArray.from_fingerprint(FIG_2, cell=MIGA, mass_kg=0.01583)


def gain(A, B, C, D, omega):
    return C @ np.linalg.solve(1j * omega * np.eye(len(A)) - A, B) + D


@pytest.mark.parametrize("order", [1, 4, 8, 12])
def test_the_error_at_every_frequency_is_below_the_bound(fig_2, order):
    small = reduce(fig_2, order, RIGHT)
    row = fig_2.outputs.index(RIGHT[0])
    omegas = np.unique(np.concatenate((
        [0.0], np.logspace(-2, 4, 300), np.abs(np.linalg.eigvals(fig_2.A).imag)
    )))  # fmt: skip
    worst = max(
        np.linalg.norm(
            gain(fig_2.A, fig_2.B, fig_2.C[[row]], fig_2.D[[row]], w)
            - gain(small.A, small.B, small.C, small.D, w),
            2,
        )
        for w in omegas
    )
    assert 0.0 < worst <= small.error_bound * (1 + 1e-9)


def test_the_first_hankel_value_of_a_first_order_lag_is_half_its_gain():
    """For C/(s + a) B the only Hankel singular value is |C B| / (2 a)."""
    cell = cells.custom(Kd=[1.0], Ze=[0.0], Zv=[0.0], I=[[-4.0]], Kp=[3.0])
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=cell, mass_kg=1.0)
    small = reduce(model, 1, RIGHT)
    assert small.hankel_singular_values == pytest.approx([3.0 / 8.0])
    assert small.error_bound == 0.0


def test_the_reduced_step_response_follows_the_full_one(fig_2):
    small = reduce(fig_2, 12, RIGHT)
    row = fig_2.outputs.index(RIGHT[0])
    t = np.linspace(0.0, 3.0, 3001)
    u = np.ones((len(t), 14))
    full = scipy.signal.lsim((fig_2.A, fig_2.B, fig_2.C[[row]], fig_2.D[[row]]), u, t)[1]
    less = scipy.signal.lsim((small.A, small.B, small.C, small.D), u, t)[1]
    assert np.abs(full - less).max() < 0.01 * np.abs(full).max()


@pytest.mark.parametrize(
    ("order", "outputs", "message"),
    [(0, None, "choose 1 to 26"), (27, None, "choose 1 to 26"), (2, ["x"], "'x' is not an output"),
     (26, RIGHT, "are rounding")],
)  # fmt: skip
def test_what_cannot_be_reduced_is_refused(fig_2, order, outputs, message):
    with pytest.raises(ModelError, match=message):
        reduce(fig_2, order, outputs)


def test_a_model_with_a_rigid_mode_is_refused():
    model = CellArray.from_fingerprint(
        "-:1 | &1:-1", cell=MIGA, mass_kg=0.01, left="free", right="free"
    )
    with pytest.raises(ModelError, match="not stable"):
        reduce(model, 1)


def test_the_command_line_prints_bound_and_values_and_writes_the_reduced_model(
    fig_2, configs, tmp_path, capsys
):
    out = tmp_path / "small.npz"
    rig = str(configs / "array14" / "rig.toml")
    assert main(["model", rig, "--reduce", "8", "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["reduction"]
    forces = ["array.left_N", "array.right_N"]
    same = reduce(fig_2, 8, forces)
    assert said["order"] == 8
    assert said["error_bound"] == pytest.approx(same.error_bound)
    written = np.load(out)
    assert written["A"].shape == (8, 8)
    assert written["C"].shape == (2, 8)
    assert list(written["outputs"]) == ["muscle.left_N", "muscle.right_N"]
    assert list(written["states"]) == [f"r{i}" for i in range(1, 9)]
    assert main(["model", rig, "--reduce", "27"]) == 2
    assert "choose 1 to 26" in capsys.readouterr().err
