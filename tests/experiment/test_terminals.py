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
    assert text.endswith(f"lines.feed.terminal: '{terminal}' is used by line 'loop'")


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
