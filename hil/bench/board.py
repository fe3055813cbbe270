"""Speed of the simulated driver board: its code on this machine, its image on the emulated chip."""

import statistics
import time
from dataclasses import dataclass

import numpy as np

from hil.bench.table import as_table
from hil.config.values import Figures
from hil.devices.board import protocol
from hil.devices.board.emulated import EmulatedBoard, check_tools
from hil.devices.board.native import N_CELLS, NativeBoard
from hil.devices.board.port import Port, SerialPort
from hil.errors import ConfigError, DeviceError

PERIOD_US = 1000
BEFORE_US = 100_000
NATIVE_STEPS = 20_000
HOLD_MS = 50
ARM_SEQ = 2  # limits other than the default were stored with 1
ARMING_PERIODS = 5  # every wire is pulsed


@dataclass
class Exchanges:
    """Results of one command per period; a late, missing or wrong answer is an error."""

    n: int
    errors: int
    round_trips_s: list[float]
    wall_s: float

    def figures(self) -> dict[str, object]:
        return {
            "exchanges": self.n,
            "errors": self.errors,
            "round_trip_p50_s": statistics.median(self.round_trips_s),
            "round_trip_max_s": max(self.round_trips_s),
            "times_real_time": 1e-6 * PERIOD_US * self.n / self.wall_s,
            "steps_per_s": self.n / self.wall_s,
        }


def measure(n_emulated: int) -> dict[str, object]:
    """All figures; `emulated` is the reason if this machine cannot emulate the chip."""
    native = NativeBoard(1, protocol.default_limits(), np.random.default_rng(0))
    figures: dict[str, object] = {"native": exchange(native, native, NATIVE_STEPS).figures()}
    try:
        check_tools()
    except ConfigError as error:
        return figures | {"emulated": str(error)}
    chip = EmulatedBoard(1, protocol.default_limits())
    port = SerialPort("board", chip.url, chip.sent_s, chip.arrived_s)
    return figures | {"emulated": exchange(chip, port, n_emulated).figures()}


def exchange(board: NativeBoard | EmulatedBoard, port: Port, n: int) -> Exchanges:
    """Send n commands, one per period, which change the cells every time.

    Raises
    ------
    DeviceError
        The board cannot be armed.
    """
    for cell in range(N_CELLS):
        board.sense(cell, 0.2, 0.0, 25.0)
    board.advance(BEFORE_US)
    decoder = protocol.Decoder()
    table = protocol.default_limits()
    armed = {"limits_crc": protocol.limits_crc(table), "cells": (1 << N_CELLS) - 1}
    for seq in range(ARM_SEQ, 256):  # until the supply is there
        port.write(protocol.encode("arm", seq, **armed))
        board.step(ARMING_PERIODS * PERIOD_US)
        answers = decoder.feed(port.read(0.0))
        if not answers or answers[-1]["result"] != protocol.RESULTS["supply_waits"]:
            break
    if not answers or answers[-1]["result"] != protocol.RESULTS["done"]:
        raise DeviceError("the simulated board cannot be armed")
    number = answers[-1]["arming"] << 8 | answers[-1].seq
    set_mask = protocol.encoder("set_mask")
    exchanges = Exchanges(n, 0, [], 0.0)
    began = time.perf_counter()
    for k in range(n):
        cells = (k * 0x9E37 >> 3) & 0xFFF  # switches every cell on and off
        sent_s = port.sent_s()
        number = protocol.following(number)
        port.write(set_mask(number & 255, number >> 8, HOLD_MS, cells))
        board.step(PERIOD_US)
        answers = decoder.feed(port.read(0.0))
        whole = len(answers) == 1 and answers[0].seq == number & 255
        if not whole or answers[0]["cells_on"] != cells or answers[0]["fault_bits"]:
            exchanges.errors += 1
        else:
            exchanges.round_trips_s.append(port.arrived_s() - sent_s)
    exchanges.wall_s = time.perf_counter() - began
    return exchanges


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    native, chip = figures["native"], figures["emulated"]
    rows = [
        ("board on this machine, ticks of 1 ms", f"{native['steps_per_s']:.0f} /s",
         "above 10 000 /s"),
        ("  errors", f"{native['errors']} of {native['exchanges']}", "none"),
    ]  # fmt: skip
    if isinstance(chip, str):
        rows.append(("board's own chip, emulated", "not here", chip))
    else:
        rows += [
            ("board's own chip, emulated, at 1 kHz", f"{chip['times_real_time']:.1f} x",
             "faster than real time"),
            ("  errors or answers missed", f"{chip['errors']} of {chip['exchanges']}", "none"),
            ("  exchange at 1 Mbaud, median / longest",
             f"{1e3 * chip['round_trip_p50_s']:.2f} / {1e3 * chip['round_trip_max_s']:.2f} ms",
             "below 1 ms"),
        ]  # fmt: skip
    return as_table(rows)
