"""Gate drive, sense amplifier and e-stop path of the driver board in ngspice, at their worst cases.

Component values are those of `circuit.py`, ratings those of `parts.toml`. Every function returns
measured values of one corner; `corners()` combines the limits of several quantities.
`python firmware/board/spice.py` prints the table of docs/how-to/build-a-board.md.
"""

import itertools
import math
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence

import circuit as c

MOSFET, SENSE, RELAY = c.PARTS["mosfet"], c.PARTS["sense"], c.PARTS["relay"]
INPUT_PF, REVERSE_PF, OUTPUT_PF = 650.0, 46.0, 65.0  # typical; to be checked with the data sheet
CAPACITANCE_MOST = 1.5  # assumed: of a typical capacitance
PIN_OHM = 40.0  # of an output of the chip, most: 0.8 V at 20 mA
PIN_LEAKAGE_A = 1e-6
COIL_H = (0.2, 1.0)  # assumed: data sheets of relays do not give it; both ends are simulated
DROP_OUT = 0.1  # of a coil's nominal current: no later than there its contacts open
PULL_IN = 0.75  # of a coil's nominal voltage
DEAD_V = 0.8  # of the rail: 41 counts of 20 V
PUMPED_S = 0.3  # of a simulated pump, many of its time constants
MUX_OHM, MUX_COMMON_F, SAMPLER_F = 130.0, 50e-12, 14e-12
SAMPLE_S = 12e-6  # from a conversion's start to its sample: 1.5 periods of 125 kHz
SETTLE_S = 20e-6  # SETTLE_US of the port: from a probe's edge to the conversion's start


class NoSpiceError(RuntimeError):
    """ngspice is missing or found no solution."""


def corners(**limits: Sequence[float]) -> Iterator[dict[str, float]]:
    """Every combination of the limits of each quantity."""
    for values in itertools.product(*limits.values()):
        yield dict(zip(limits, values, strict=True))


def simulate(netlist: str, measures: Mapping[str, str], step_s: float, end_s: float) -> dict:
    """Run a transient from the initial conditions and return the measured values.

    Parameters
    ----------
    measures : text of a `meas tran` by the name of its value

    Raises
    ------
    NoSpiceError
        ngspice is not installed, stops, or does not find a value.
    """
    program = shutil.which("ngspice")
    if program is None:
        raise NoSpiceError("ngspice is missing: sudo apt-get install ngspice")
    lines = "\n".join(f"meas tran {name} {text}" for name, text in measures.items())
    deck = f"board\n{netlist}\n.control\ntran {step_s:g} {end_s:g} 0 {step_s:g} uic\n{lines}\n"
    deck += "quit\n.endc\n.end\n"
    done = subprocess.run([program, "-b"], input=deck, capture_output=True, text=True, check=False)
    found = dict(re.findall(r"^(\w+) += +(-?[\d.]+e[+-]\d+)", done.stdout, re.M))
    missing = [name for name in measures if name not in found]
    if missing:
        raise NoSpiceError(f"ngspice gave no {missing[0]}: {(done.stderr or done.stdout)[-400:]}")
    return {name: float(found[name]) for name in measures}


def mosfet_model(threshold_V: float, share: float = CAPACITANCE_MOST) -> str:
    """IRLML6344 as a VDMOS: 29 mOhm at 4.5 V, at this threshold."""
    rds_Ohm = 0.029
    kp = 1.0 / (0.7 * rds_Ohm * (4.5 - MOSFET["threshold_max_V"]))  # 30 % are leads and drift
    gate_F = share * 1e-12 * (INPUT_PF - REVERSE_PF)
    least_F, most_F = share * 1e-12 * REVERSE_PF, 4.0 * share * 1e-12 * REVERSE_PF
    return (
        f".model power VDMOS(Vto={threshold_V} Kp={kp:.4g} Rd={0.3 * rds_Ohm:.4g} Rs=1m Rg=2 "
        f"Cgs={gate_F:.4g} Cgdmin={least_F:.4g} Cgdmax={most_F:.4g} A=1 "
        f"Cjo={share * 1e-12 * (OUTPUT_PF - REVERSE_PF):.4g} Is=1e-14 Rb=10m BV=30 IBV=10u)"
    )


# Gate drive


def gate_on_V(supply_V: float, series: float, pull_down: float) -> float:
    """The steady voltage at a gate that the chip drives high; resistors as shares of theirs."""
    netlist = f"""
Vpin pin 0 {supply_V}
Rpin pin gate {PIN_OHM + series * c.GATE_OHM}
Rpd gate 0 {pull_down * c.PULL_DOWN_OHM}
Cg gate 0 1n"""
    return simulate(netlist, {"gate_v": "find v(gate) at=50u"}, 1e-6, 60e-6)["gate_v"]


def gate_in_reset_V(pull_down: float) -> float:
    """The voltage at a gate while the chip's pin floats and leaks."""
    netlist = f"""
Ipin 0 gate {PIN_LEAKAGE_A}
Rg gate drive {c.GATE_OHM}
Rpd drive 0 {pull_down * c.PULL_DOWN_OHM}
Cg drive 0 1n"""
    return simulate(netlist, {"gate_v": "find v(drive) at=400u"}, 1e-6, 401e-6)["gate_v"]


def switching(supply_V: float, cell_Ohm: float, lead_H: float, threshold_V: float, vcc_V: float):
    """A gate that rises at 1 us and falls at 40 us.

    Returns
    -------
    on_s, off_s : from the pin's edge until 90 % of the current flows, or 10 %
    peak_V : the drain's highest voltage
    cell_V : the voltage across the cell before it is switched off
    """
    on_A = supply_V / cell_Ohm
    netlist = f"""
{mosfet_model(threshold_V)}
.model free D(Is=1e-7 N=1.05 Rs=40m Cjo=100p)
Vrail rail 0 {supply_V}
Vpin pin 0 PULSE(0 {vcc_V} 1u 20n 20n 39u 1)
Rpin pin drive {PIN_OHM + c.GATE_OHM}
Rpd drive 0 {c.PULL_DOWN_OHM}
Lcell rail a {lead_H}
Rcell a drain {cell_Ohm}
Dfree drain rail free
M1 drain drive source power
Rshunt source 0 {c.SHUNT_OHM}"""
    measures = {
        "on_s": f"trig v(pin) val={vcc_V / 2} rise=1 targ v(source) "
                f"val={0.9 * on_A * c.SHUNT_OHM} rise=1",
        "off_s": f"trig v(pin) val={vcc_V / 2} fall=1 targ v(source) "
                 f"val={0.1 * on_A * c.SHUNT_OHM} fall=last",
        "peak_v": "max v(drain) from=40u to=60u",
        "drop_v": "find v(drain) at=39u",
    }  # fmt: skip
    found = simulate(netlist, measures, 5e-9, 60e-6)
    return {"on_s": found["on_s"], "off_s": found["off_s"], "peak_V": found["peak_v"],
            "cell_V": supply_V - found["drop_v"]}  # fmt: skip


def relay_closes(supply_V: float, cell_Ohm: float, threshold_V: float, rise_s: float):
    """The rail rises while the chip has no power: the drain pulls the gate up by its capacitance.

    Returns
    -------
    gate_V : the gate's highest voltage
    heat_A2s : integral of the square of the current through the shunt
    """
    netlist = f"""
{mosfet_model(threshold_V)}
Vrail rail 0 PWL(0 0 1u 0 {1e-6 + rise_s} {supply_V})
Rpd drive 0 {c.PULL_DOWN_OHM}
Rcell rail drain {cell_Ohm}
M1 drain drive source power
Rshunt source 0 {c.SHUNT_OHM}
Bheat 0 heat I=(v(source)/{c.SHUNT_OHM})^2
Cheat heat 0 1u
Rheat heat 0 1e12"""
    measures = {"gate_v": "max v(drive) from=0 to=150u", "heat": "find v(heat) at=149u"}
    found = simulate(netlist, measures, 10e-9, 150e-6)
    return {"gate_V": found["gate_v"], "heat_A2s": 1e-6 * found["heat"]}


# Sense amplifier


def sense(current_A: float, previous_V: float, shunt: float, gain: float, offset_V: float,
          bandwidth: float):  # fmt: skip
    """From the edge of a cell's current to the converter; shares of nominal values.

    Returns
    -------
    final_V : the converter's input after settling
    probe_V : at the sample of a probe, SETTLE_S + SAMPLE_S after the edge
    scan_V : at the sample of a scan, SAMPLE_S after the multiplexer turned to this settled cell
    """
    pole_s = 1.0 / (2.0 * math.pi * bandwidth * SENSE["bandwidth_Hz"])
    top_V = 5.0 - SENSE["swing_to_supply_V"]
    volts = gain * SENSE["gain"] * (current_A * shunt * c.SHUNT_OHM + offset_V)
    netlist = f"""
Bamp amp 0 V=min({top_V}, max(0.0005, {volts}*u(time-1u)))
Rpole amp pole 1k
Cpole pole 0 {pole_s / 1e3}
Ebuf out 0 pole 0 1
Rf out filtered {c.FILTER_OHM}
Cf filtered 0 {c.FILTER_F}
.model sw SW(Vt=0.5 Vh=0.1 Ron={MUX_OHM} Roff=1e9)
Vsel sel 0 {{sel}}
Smux filtered common sel 0 sw
Cmux common 0 {MUX_COMMON_F + SAMPLER_F} IC={previous_V}"""
    probe = simulate(
        netlist.format(sel=1),
        {"v": f"find v(common) at={1e-6 + SETTLE_S + SAMPLE_S}"},
        20e-9,
        60e-6,
    )
    later = "PWL(0 0 100u 0 100.01u 1)"
    measures = {
        "scan_v": f"find v(common) at={100e-6 + SAMPLE_S}",
        "final": "find v(common) at=290u",
    }
    found = simulate(netlist.format(sel=later), measures, 20e-9, 300e-6)
    return {"final_V": found["final"], "probe_V": probe["v"], "scan_V": found["scan_v"]}


# Master cut


def estop(coil_H: float, coil_Ohm: float, aux_V: float) -> float:
    """From the e-stop's opening until a coil carries no more than DROP_OUT of its current."""
    drop_A = DROP_OUT * RELAY["coil_V"] / RELAY["coil_Ohm"]
    netlist = f"""
.model small D(Is=2.5n N=1.75 Rs=0.6)
.model sw SW(Vt=0.5 Vh=0.1 Ron=0.1 Roff=1e8)
Vaux aux 0 {aux_V}
Vpress press 0 PULSE(1 0 20m 1u 1u 1 2)
Sestop aux coils press 0 sw
Rk coils a {coil_Ohm}
Lk a low {coil_H} IC={aux_V / coil_Ohm}
Vq low 0 0
Dk 0 coils small
Bi i 0 V=i(Vq)
Ri i 0 1k"""
    return simulate(netlist, {"off": f"when v(i)={drop_A} fall=1"}, 10e-6, 80e-3)["off"] - 20e-3


def pump(vcc_V: float, half_period_s: float, tolerance: float, threshold_V: float):
    """The pump on a square wave that stops at PUMPED_S.

    Returns
    -------
    held_V : the relay transistor's lowest gate voltage while the wave runs, in its last third
    drop_s : from the wave's stop until the gate is at the threshold
    """
    netlist = f"""
.model bat D(Is=1e-7 N=1.02 Rs=2 Cjo=10p)
Vsel osc 0 PULSE(0 {vcc_V} 0 20n 20n {half_period_s} {2 * half_period_s})
Bgate buf 0 V=v(osc)*u({PUMPED_S}-time)
Rp buf r {c.PUMP_OHM}
Cp r p {(2.0 - tolerance) * c.PUMP_F}
D1 0 p bat
D2 p gate bat
Ch gate 0 {tolerance * c.HOLD_F} IC=0
Rh gate 0 {tolerance * c.HOLD_OHM}"""
    measures = {
        "held": f"min v(gate) from={0.66 * PUMPED_S} to={0.99 * PUMPED_S}",
        "off": f"when v(gate)={threshold_V} fall=last",
    }
    found = simulate(netlist, measures, min(20e-6, half_period_s / 20), PUMPED_S + 0.3)
    return {"held_V": found["held"], "drop_s": found["off"] - PUMPED_S}


def pump_starts(vcc_V: float, half_period_s: float, threshold_V: float) -> float:
    """From the permit until the pump's gate, from 0 V, is at the threshold; everything nominal."""
    netlist = f"""
.model bat D(Is=1e-7 N=1.02 Rs=2 Cjo=10p)
Vsel buf 0 PULSE(0 {vcc_V} {half_period_s} 20n 20n {half_period_s} {2 * half_period_s})
Rp buf r {c.PUMP_OHM}
Cp r p {c.PUMP_F}
D1 0 p bat
D2 p gate bat
Ch gate 0 {c.HOLD_F} IC=0
Rh gate 0 {c.HOLD_OHM}"""
    measures = {"on": f"when v(gate)={threshold_V} rise=1"}
    return simulate(netlist, measures, half_period_s / 20, 60 * half_period_s)["on"]


def rail_dies(rail_V: float, rail_F: float) -> float:
    """From the contact's opening until the divider at the rail gives no more than 41 counts."""
    share = c.SUPPLY_BOTTOM_OHM / (c.SUPPLY_TOP_OHM + c.SUPPLY_BOTTOM_OHM)
    netlist = f"""
Crail rail 0 {rail_F} IC={rail_V}
Rtop rail level {c.SUPPLY_TOP_OHM}
Rbottom level 0 {c.SUPPLY_BOTTOM_OHM}
Clevel level 0 {c.SUPPLY_F} IC={share * rail_V}"""
    measures = {"dead": f"when v(level)={share * DEAD_V} fall=1"}
    return simulate(netlist, measures, 20e-6, 0.3)["dead"]


def start(aux_V: float, capacitor: float, *, stuck: bool) -> float:
    """K2's coil voltage 50 ms after START is pressed; or of a START that was never let go."""
    netlist = f"""
.model sw SW(Vt=0.5 Vh=0.1 Ron=0.1 Roff=1e8)
Vaux aux 0 {aux_V}
Rstart aux cap {c.START_OHM}
Cstart cap 0 {capacitor * c.START_F} IC={0.0 if stuck else aux_V}
Vpress press 0 1
Sstart cap coils press 0 sw
Rcoil coils 0 {RELAY["coil_Ohm"]}"""
    at_s = 20.0 if stuck else 50e-3
    return simulate(netlist, {"v": f"find v(coils) at={at_s}"}, at_s / 2000, 1.01 * at_s)["v"]


def estop_with_start_held(capacitor: float, aux_V: float) -> float:
    """From the e-stop's opening until K2's coil is at DROP_OUT, fed by START's capacitor."""
    netlist = f"""
Ccap coils 0 {capacitor * c.START_F} IC={aux_V}
Rcoil coils 0 {RELAY["coil_Ohm"]}"""
    measures = {"off": f"when v(coils)={DROP_OUT * RELAY['coil_V']} fall=1"}
    return simulate(netlist, measures, 1e-3, 3.0)["off"]


def leak(current_A: float, offset_V: float, comparator_V: float, tolerance: float) -> float:
    """From the last gate's fall until K2's gate is pulled low; raises if that never happens."""
    gain, limit_V = (
        c.PARTS["leak_sense"]["gain"],
        5.0 * c.LEAK_BOTTOM_OHM / (c.LEAK_TOP_OHM + c.LEAK_BOTTOM_OHM),
    )
    netlist = f"""
Vleak leak 0 {max(0.0005, gain * (current_A * c.LEAK_SHUNT_OHM + offset_V))}
Vlimit limit 0 {limit_V + comparator_V}
.model sw SW(Vt=0.0 Vh=0.0001 Ron=50 Roff=1e8)
.model swh SW(Vt=2.5 Vh=0.1 Ron=5 Roff=1e9)
Vany any 0 PULSE(5 0 10m 1u 1u 1 2)
Rd vcc delay {tolerance * c.LEAK_DELAY_OHM}
Vcc vcc 0 5
Cd delay 0 {tolerance * c.LEAK_DELAY_F} IC=0
S1 delay 0 limit leak sw
S2 delay 0 any 0 swh
Rg vcc gate {c.LEAK_RELAY_OHM}
Vhalf half 0 {2.5 + comparator_V}
S3 gate 0 delay half sw
Cg gate 0 1n IC=5"""
    return simulate(netlist, {"off": "when v(gate)=0.5 fall=1"}, 50e-6, 0.4)["off"] - 10e-3


# Figures of the documentation


def rows() -> Iterator[tuple[str, str, str]]:
    """What, at which worst case, and its value with the limit that it must keep."""
    ohms = {"series": (0.99, 1.01), "pull_down": (0.99, 1.01)}
    least = min(gate_on_V(4.1, **corner) for corner in corners(**ohms))
    yield "gate of a cell that is on", "chip at 4.1 V", f"{least:.2f} V; 2.5 V are enough"
    most = gate_in_reset_V(1.01)
    yield "gate in reset", "1 uA from the pin", f"{1e3 * most:.0f} mV; threshold 500 mV"
    kinds = {
        "supply_V": (2.2, 18.0), "cell_Ohm": (9.5, 110.0), "lead_H": (0.2e-6, 4e-6),
        "threshold_V": (0.5, 1.1), "vcc_V": (4.1, 5.25),
    }  # fmt: skip
    found = [switching(**corner) for corner in corners(**kinds)]
    on_s, off_s = (max(one[key] for one in found) for key in ("on_s", "off_s"))
    yield "current of a cell, on", "4 uH of leads", f"{1e6 * on_s:.1f} us; sampled after 32 us"
    yield "current of a cell, off", "the same", f"{1e6 * off_s:.1f} us"
    peak = max(one["peak_V"] for one in found)
    yield "drain when switched off", "18 V, 4 uH", f"{peak:.1f} V; transistor 30 V"
    pulse = relay_closes(18.0, 9.5, 0.5, 1e-7)
    yield ("relay closes, chip unpowered", "18 V in 0.1 us",
           f"{pulse['gate_V']:.2f} V at the gate, {1e6 * pulse['heat_A2s']:.1f} uA2s; budget "
           "29 000 uA2s")  # fmt: skip
    errors = {
        "shunt": (0.99, 1.01), "gain": (0.99, 1.01), "offset_V": (-190e-6, 190e-6),
        "bandwidth": (0.7, 1.0),
    }  # fmt: skip
    late = 0.0
    for current_A in (0.2, 1.9):
        read = [sense(current_A, 5.0, **corner) for corner in corners(**errors)]
        ends = [(f(one["final_V"] for one in read) / 2.5) for f in (min, max)]
        yield ("current, before the converter", f"{current_A:g} A",
               f"{1e3 * ends[0]:.0f} to {1e3 * ends[1]:.0f} mA")  # fmt: skip
        late = max(late, *(abs(one["scan_V"] - one["final_V"]) for one in read))
    yield "multiplexer, 12 us after 5 V", "filter and 64 pF", f"{1e6 * late:.0f} uV; a count 4.9 mV"
    coils = {"coil_H": COIL_H, "coil_Ohm": (0.9 * 288, 1.1 * 288), "aux_V": (11.4, 12.6)}
    slowest = max(estop(**corner) for corner in corners(**coils))
    yield "e-stop to coils without current", "1 H assumed", f"{1e3 * slowest:.0f} ms"
    kinds = {"vcc_V": (4.9, 5.1), "half_period_s": (250e-6, 2e-3), "tolerance": (0.9, 1.1)}
    pumped = [(pump(**corner, threshold_V=v), v) for corner in corners(**kinds) for v in (0.5, 1.1)]
    held = min(one["held_V"] for one, _ in pumped)
    yield (
        "pump while the scan runs",
        "2 ms between changes of SEL0",
        f"{held:.1f} V; 3 V are enough",
    )
    drops = [one["drop_s"] for one, _ in pumped]
    yield ("scan stops to K1's transistor off", "threshold 0.5 to 1.1 V",
           f"{1e3 * min(drops):.0f} to {1e3 * max(drops):.0f} ms")  # fmt: skip
    most_V = c.PARTS["pump_switch"]["threshold_max_V"]
    slowest = max(pump_starts(4.9, half_s, most_V) for half_s in (250e-6, 2e-3))
    yield "permit to K1's transistor on", f"threshold {most_V} V", f"{1e3 * slowest:.0f} ms"
    dies_s = rail_dies(18.0, 1e-6)
    yield ("cut to a dead rail", "18 V, 1 uF at the rail", f"{1e3 * dies_s:.0f} ms to 0.8 V")
    least = min(start(aux, cap, stuck=False) for aux in (11.4, 12.6) for cap in (0.8, 1.2))
    yield "START, K2's coil after 50 ms", "11.4 V, -20 %", f"{least:.1f} V; 9 V pull in"
    most = max(start(aux, cap, stuck=True) for aux in (11.4, 12.6) for cap in (0.8, 1.2))
    yield "START that sticks, K2's coil", "12.6 V", f"{most:.1f} V; 9 V pull in"
    slowest = estop_with_start_held(1.2, 12.6)
    yield ("e-stop with START held, K2's coil", "12.6 V, +20 %",
           f"{slowest:.2f} s; K1 drops meanwhile")  # fmt: skip
    late = [leak(0.075, -190e-6, offset, t) for offset in (-9e-3, 9e-3) for t in (0.89, 1.11)]
    yield ("last gate low to K2's transistor off", "75 mA",
           f"{1e3 * min(late):.0f} to {1e3 * max(late):.0f} ms")  # fmt: skip


def table() -> str:
    """The rows as a table in Markdown."""
    lines = ["| what | worst case | simulated, and its limit |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {a} | {b} | {v} |" for a, b, v in rows())])


if __name__ == "__main__":
    print(table())
