import numpy as np
import pytest

from hil import open_run
from hil.devices.sim.plant import SimPlant
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.mechanics.sma.wire import SmaWire
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.systems.array.model.system import ArraySystem

PID = "configs/silicone4/pid.toml"
PLANT = "plant.arrays.muscle.activation"
THERMAL = f"{PLANT}.kind='thermal'"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def test_a_plant_of_wires_stands_behind_a_twin_of_sigmoids():
    config = load(PID, [THERMAL])
    assert {a.kind for a in config.activation()} == {"sigmoid"}
    plant = config.activation(plant=True)
    assert {a.kind for a in plant} == {"thermal"}
    assert {a.wire for a in plant} == {SmaWire()}
    assert [a.force_on_N for a in plant] == [6.8] * 4


def test_the_keys_of_the_wire_are_those_of_the_table():
    config = load(
        PID, [THERMAL, f"{PLANT}.n_wires=4", f"{PLANT}.wiring='parallel'", f"{PLANT}.supply_V=3.0"]
    )
    assert config.activation(plant=True)[0].wire == SmaWire(
        n_wires=4, wiring="parallel", supply_V=3.0
    )
    assert "A_f_C = 98.0" in config.to_toml()


def test_a_twin_of_wires_is_allowed():
    config = load(PID, ["model.arrays.muscle.activation.kind='thermal'"])
    assert {a.kind for a in config.activation()} == {"thermal"}


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([f"{PLANT}.length_m=0.0"], ["activation.length_m = 0.0", "greater"]),
        ([f"{PLANT}.wiring='star'"], ["activation.wiring = 'star'", "'series' or 'parallel'"]),
        ([f"{PLANT}.rate_per_s=5.0"], ["activation.rate_per_s", "unknown key"]),
        ([f"{PLANT}.A_s_C=99.0"], ["plant.arrays.muscle.activation: A_s_C must be below A_f_C"]),
        ([f"{PLANT}.supply_V=1e9"], ["activation.supply_V", "less than or equal to 1000"]),
    ],
)
def test_a_wire_that_cannot_be_is_one_line(sets, words):
    with pytest.raises(ConfigError) as caught:
        load(PID, [THERMAL, *sets])
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


class Board:
    """Gates at a duty; what the plant lets it sense."""

    def __init__(self, duty_per_255):
        self._duty = np.array(duty_per_255) / 255.0
        self.sensed = {}

    def advance(self, duration_us):
        """Its time is not looked at."""

    def step(self, period_us):
        return self._duty

    def sense(self, cell, current_A, leakage_A, temperature_C):
        self.sensed[cell] = (current_A, leakage_A, temperature_C)

    def sense_supply(self, supply_V):
        self.supply_V = supply_V


def plant_of(config, duty_per_255):
    system = ArraySystem(config.plant, config.activation(plant=True), 0.001)
    plant, board = SimPlant(system, 0.001, 0.2), Board(duty_per_255)
    plant.wire(board, range(4))
    return plant, board


def test_a_plant_of_wires_reads_back_and_shows_its_board_currents_and_temperatures():
    plant, board = plant_of(load(PID, [THERMAL]), [255, 127, 0, 255])
    assert plant.temperature_C.tolist() == [25.0] * 4
    assert board.sensed[0] == pytest.approx((0.2, 0.0, 25.0))  # the maker's current, when on
    plant.advance(0.3)
    hot, warm, cold, _ = plant.temperature_C
    assert hot > warm > cold == 25.0
    on_A = 0.2  # martensite still
    assert plant.current_A == pytest.approx([on_A, on_A * 127 / 255, 0.0, on_A])
    assert plant.resistance_Ohm == pytest.approx([12.6] * 4)
    # what a board measures is the clamp, which has hardly warmed
    assert board.sensed[1] == pytest.approx((on_A, 0.0, plant.clamp_C[1]))
    assert 25.0 < plant.clamp_C[1] < plant.clamp_C[0] < 25.1
    assert plant.cells.tolist() == [1, 0, 0, 1]  # on for less than half of the time is off


def test_wires_that_contract_and_relax_once_have_worn_by_one_cycle():
    """Two of four wires transform there and back in 20 s: half a cycle of the mean wire."""
    plant, board = plant_of(load(PID, [THERMAL]), [255, 0, 0, 255])
    plant.advance(4.0)
    board._duty[:] = 0.0
    plant.advance(20.0)
    assert plant.wear_per_h == pytest.approx(0.5 * 3600.0 / 20.0, rel=1e-9)


def test_a_plant_without_wires_reads_back_nothing():
    plant, board = plant_of(load(PID), [255] * 4)
    plant.advance(0.1)
    for readings in (plant.temperature_C, plant.current_A, plant.resistance_Ohm):
        assert np.isnan(readings).all()
    assert board.sensed[0] == (0.2, 0.0, 20.0)
    assert plant.wear_per_h is None


def settles_at_C(wire):
    """Where Joule heat of the austenite is what the air takes: module, first equation."""
    heat_W_per_m = wire.field_V_per_m**2 / wire.austenite_Ohm_per_m
    return wire.ambient_C + heat_W_per_m / wire.loss_W_per_m_K


def test_the_shipped_wires_contract_and_settle_below_what_their_board_allows():
    config = load("configs/wires4/hold.toml")
    limit_C = config.tables.model.arrays["muscle"].activation[0].temperature_max_C
    for wires in (config.activation(), config.activation(plant=True)):
        for activation in wires:
            assert activation.wire.A_f_C < settles_at_C(activation.wire) < limit_C


def test_the_makers_current_held_on_would_trip_the_board_that_protects_its_wire():
    """0.2 A contracts a wire in a second and is not for holding: firmware/README.md."""
    assert settles_at_C(SmaWire()) == pytest.approx(168, abs=1)
    limits = load("configs/wires4/hold.toml").tables.devices["board"].limits
    settles_cA2ms = 20.0**2 * limits["heat_time_constant_ms"]
    assert settles_cA2ms > limits["heat_max_cA2ms"]


def test_the_shipped_wires_are_run_without_a_trip(tmp_path):
    until_off = ["experiment.duration_s=9.0"]
    result = session.run(
        Plan(load("configs/wires4/hold.toml", until_off)), Output(out=tmp_path / "wires.h5")
    )
    assert result.outcome == "complete"
    run = open_run(result.path)
    wire = load("configs/wires4/hold.toml").activation()[0].wire
    assert np.nanmax(run["muscle.1.wire_model_C"].values) == pytest.approx(
        settles_at_C(wire), abs=1.0
    )
    # the board's sensor sits at the clamp, which follows by a tenth in half a minute
    clamp_C = run["muscle.1.temperature_C"].values
    assert 1.0 < np.nanmax(clamp_C) - np.nanmin(clamp_C) < 5.0
