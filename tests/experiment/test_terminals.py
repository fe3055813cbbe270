"""`hil check` knows the terminals of NI's products, as the run does."""

from pathlib import Path

import pytest

import hil
from hil.errors import ConfigError
from simdaq import card_files, catalog
from simdaq.system import System

MIGA = Path(__file__).resolve().parents[2] / "configs" / "miga6" / "all_on.toml"


def refusal(*changes):
    with pytest.raises(ConfigError) as error:
        hil.load(MIGA, [f"devices.daq.{change}" for change in changes])
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("terminal", ["ai99", "ao0", "ctr0", "hello world", "port0/line0"])
def test_what_is_an_analog_input_of_no_card_is_refused_though_the_product_is_not_stated(terminal):
    text = refusal(f"channels.force.terminal = '{terminal}'")
    assert f"channels.force.terminal = '{terminal}': no card has this analog input" in text


def test_what_the_stated_product_lacks_is_refused_with_what_it_has():
    text = refusal("channels.force.terminal = 'ai20'", "sim.product = 'USB-6001'")
    assert text.endswith("'ai20': USB-6001 has no such analog input: it has ai0 to ai7")
    text = refusal("lines.power = {kind = 'enable', terminal = 'port9/line0'}",
                   "sim.product = 'USB-6001'")  # fmt: skip
    assert "lines.power.terminal = 'port9/line0': USB-6001 has no such digital output" in text


@pytest.mark.parametrize("terminal", ["port0/line0", "Port0/Line0", "/Dev1/port0/line0"])
def test_two_lines_of_a_card_are_at_two_terminals(terminal):
    """A card that senses the e-stop at the coil that it drives never sees it open."""
    text = refusal("lines.loop = {kind = 'estop', terminal = 'port0/line0'}",
                   f"lines.feed = {{kind = 'enable', terminal = '{terminal}'}}")  # fmt: skip
    used = "is used by devices.daq.lines.loop.terminal"
    assert text.endswith(f"lines.feed.terminal = '{terminal}': {used}")


LINES = MIGA.parents[1] / "miga6_lines" / "all_on.toml"
ONE = "switches.lines.'muscle.1'"


@pytest.mark.parametrize(
    ("key", "line", "other"),
    [
        ("channels.force.shunt_line", "port0/line1", "lines.power.terminal"),
        ("channels.force.shunt_line", "/Dev1/port0/line8", ONE),
        ("channels.force.shunt_line", "PORT0/line8", ONE),
        ("lines.feed", "/Dev1/port0/line9", "switches.lines.'muscle.2'"),
    ],
)
def test_what_closes_a_shunt_or_the_power_is_no_line_of_a_cell(key, line, other):
    """A shunt is closed before the run; a line that switches a cell as well would heat its wire."""
    value = f"{{kind = 'enable', terminal = '{line}'}}" if key == "lines.feed" else f"'{line}'"
    with pytest.raises(ConfigError) as refused:
        hil.load(LINES, [f"devices.daq.{key} = {value}"])
    text = str(refused.value)
    assert "\n" not in text
    assert f"devices.daq.{other}" in text
    assert f"= '{line}': is used by " in text or f"is used by devices.daq.{key}" in text


def test_one_line_may_close_the_shunts_of_two_channels():
    more = "{terminal = 'ai1', newtons_per_V = 1.0, shunt_line = '/Dev1/port0/line3'}"
    assert hil.load(
        LINES,
        ["devices.daq.channels.force.shunt_line = 'port0/line3'",
         f"devices.daq.channels.other = {more}"],
    )  # fmt: skip


def test_a_product_that_is_unknown_or_a_module_without_a_chassis_is_refused():
    assert "sim.product = 'USB-6O01': unknown: did you mean 'USB-6001'" in refusal(
        "sim.product = 'USB-6O01'"
    )
    text = refusal("sim.product = 'NI 9219'")
    assert "sim.product = 'NI 9219': is a module: name its chassis too" in text


def test_what_a_larger_card_has_passes_while_the_product_is_not_stated():
    assert hil.load(MIGA, ["devices.daq.channels.force.terminal = 'ai31'"])


@pytest.mark.parametrize("product", ["PCIe-6363", "USB-6001", "NI 9401", "cDAQ-9174"])
def test_the_list_of_a_product_is_what_its_simulated_card_has(product):
    system = System("held")
    inside = None if product[0] != "N" else system.add("cDAQ-9174", "cDAQ1")
    name = "Dev1" if inside is None else "cDAQ1Mod1"
    card = system.add(product, name, chassis=inside and "cDAQ1")
    listed = card_files.terminals(card_files.whole(product, card_files.tables()))
    assert catalog.model(product).terminals == listed
    for kind, terminals in listed.items():
        assert card.names(kind) == [f"{name}/{terminal}" for terminal in terminals]
