"""Draws the driver board's circuits for people, with the values of `circuit.py`.

`python firmware/board/drawing.py` writes docs/images/board-cell.svg and board-cut.svg.
"""

import os
from pathlib import Path

import circuit as c
import matplotlib
import schemdraw
import schemdraw.elements as e
from schemdraw import logic

IMAGES = Path(__file__).parents[2] / "docs" / "images"
INK = {"bgcolor": "white", "color": "#333333", "fontsize": 11, "unit": 2.2}


def value(number: float, unit: str) -> str:
    """A value with its prefix, such as 10 kOhm."""
    for power, prefix in ((6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "µ"), (-9, "n"), (-12, "p")):
        if number >= 10**power:
            return f"{number / 10**power:g} {prefix}{unit}"
    return f"{number:g} {unit}"


def cell(path: Path) -> None:
    """One of twelve cells: gate, transistor, shunt, amplifier, filter, multiplexer."""
    with schemdraw.Drawing(file=str(path), show=False) as d:
        d.config(**INK)
        d += (gate := e.Dot(open=True).label("GATE n\n(chip)", "left"))
        d += e.Resistor().right().at(gate.center).label(f"R_G\n{value(c.GATE_OHM, 'Ω')}")
        d += (node := e.Dot())
        d += e.Resistor().down().at(node.center).label(
            f"R_PD\n{value(c.PULL_DOWN_OHM, 'Ω')}", "bottom")  # fmt: skip
        d += e.Ground()
        d += e.Line().right(1.6).at(node.center)
        d += (q := e.NFet(diode=True).theta(0).reverse().anchor("gate"))
        d += e.Label().at((q.drain[0] + 0.2, q.gate[1])).label("IRLML6344", halign="left")
        d += e.Line().up(0.5).at(q.drain)
        d += (drain := e.Dot())
        d += (wire := e.Resistor().up(2.4).at(drain.center).label("SMA wire"))
        d += (rail := e.Dot().at(wire.end).label("RAIL, switched", "left"))
        x, y = rail.center
        d += e.Line().at(rail.center).to((x + 1.8, y))
        d += e.Schottky().at((x + 1.8, drain.center[1])).to((x + 1.8, y)).label("D_FREE", "bottom")
        d += e.Line().at(drain.center).to((x + 1.8, drain.center[1]))
        d += (low := e.Dot().at(q.source))
        d += (shunt := e.Resistor().down().at(low.center).label(
            f"R_S {value(c.SHUNT_OHM, 'Ω')}", "top"))  # fmt: skip
        d += (back := e.Dot().at(shunt.end).label("RETURN", "left"))
        d += (all_ := e.Resistor().down().at(back.center).label(
            f"R_LEAK {value(c.LEAK_SHUNT_OHM, 'Ω')}, of all cells", "top"))  # fmt: skip
        d += e.Ground().at(all_.end)
        top = (low.center[0] + 3.6, low.center[1])
        d += e.Line().at(low.center).to(top)
        d += (amp := e.Opamp(sign=True).right().anchor("in2").at(top).flip().label("INA180A2\n×50"))
        d += e.Line().at(amp.in1).left(0.5)
        d += (corner := e.Dot(radius=0).at((amp.in1[0] - 0.5, back.center[1])))
        d += e.Line().at((amp.in1[0] - 0.5, amp.in1[1])).to(corner.center)
        d += e.Line().at(back.center).to(corner.center)
        d += e.Resistor().right().at(amp.out).label(f"R_F {value(c.FILTER_OHM, 'Ω')}")
        d += (filtered := e.Dot())
        d += (
            e.Capacitor()
            .down()
            .at(filtered.center)
            .label(f"C_F {value(c.FILTER_F, 'F')}", "bottom")
        )
        d += e.Ground()
        d += e.Line().right(1.2).at(filtered.center)
        d += e.Dot(open=True).label("input n of the\ncurrents' multiplexer", "right")


def cut(path: Path) -> None:
    """Fuse, relays, e-stop, START, pump and leak cut."""
    with schemdraw.Drawing(file=str(path), show=False) as d:
        d.config(**INK)
        d += e.Dot(open=True).at((0, 9)).label("SUPPLY IN", "left")
        d += e.Fuse().right().at((0, 9)).label("F_SUPPLY")
        d += e.Switch().right().label("K2")
        d += (feed := e.Dot().label("FEED", "top"))
        d += e.Switch().right(4.4).at(feed.center).label("K1")
        d += (rail := e.Dot())
        for node, mux in ((feed, "currents"), (rail, "temperatures")):
            d += e.Line().down(0.5).at(node.center)
            d += e.Dot(open=True).label(f"÷4, input 15\nof the {mux}", "bottom")
        d += e.Line().right(3).at(rail.center)
        d += e.Dot().label("RAIL to the cells", "right")
        d += (clamp := e.Zener().down().reverse().label("D_CLAMP", "bottom"))
        d += e.Ground().at(clamp.end)

        d += e.Dot(open=True).at((0, 5)).label("12 V", "left")
        d += e.Button(nc=True).right().at((0, 5)).label("E-STOP 1")
        d += (fed := e.Dot())
        d += e.Switch().right(4.4).at(fed.center).label("K2 holds")
        d += (coils := e.Dot().label("COILS", "top"))
        d += e.Resistor().down().at(fed.center).label(f"R_START\n{value(c.START_OHM, 'Ω')}", "top")
        d += e.Switch(nc=True).right().label("K1 NC", "bottom")
        d += e.Switch(nc=True).right().label("K2 NC", "bottom")
        d += (charged := e.Dot())
        d += (cap := e.Capacitor(polar=True).down().at(charged.center).label(
            f"C_START\n{value(c.START_F, 'F')}", "top"))  # fmt: skip
        d += e.Ground().at(cap.end)
        d += e.Button().at(charged.center).to(coils.center).label("START", "bottom")
        x, y = coils.center
        d += e.Line().at(coils.center).to((x + 9, y))
        for name, at, gate in (("K1", x + 4.2, "PUMP"), ("K2", x + 8.6, "LEAK_GATE")):
            d += e.Dot().at((at, y))
            d += e.Line().right(1).at((at, y))
            d += (top := e.Dot())
            d += (low := e.Diode().down(2.2).reverse().at(top.end))
            d += e.Line().left(1).at(low.end)
            d += (coil := e.Inductor2(loops=3).down().at((at, y)).label(f"coil {name}", "top"))
            d += (q := e.NFet().theta(0).reverse().anchor("drain").at(coil.end))
            d += e.Ground().at(q.source)
            d += e.Line().left(0.4).at(q.gate)
            d += e.Dot(open=True).label(gate, "left")

        y = -3.2
        d += (both := logic.And().right().at((0.4, y)).label("U_PUMP", "top", ofst=0.4))
        for pin, name in ((both.in1, "SEL0, the scan"), (both.in2, "PB5, the permit")):
            d += e.Line().left(0.4).at(pin)
            d += e.Dot(open=True).label(name, "left")
        d += e.Line().right(0.2).at(both.out)
        d += e.Resistor().right().label(value(c.PUMP_OHM, "Ω"))
        d += e.Capacitor().right().label(value(c.PUMP_F, "F"))
        d += (p := e.Dot())
        d += (d1 := e.Schottky().down().at(p.center).reverse())
        d += e.Ground().at(d1.end)
        d += e.Schottky().right().at(p.center)
        d += (hold := e.Dot())
        d += (ch := e.Capacitor().down().at(hold.center).label(value(c.HOLD_F, "F"), "bottom"))
        d += e.Ground().at(ch.end)
        d += e.Line().right(1.8).at(hold.center)
        d += (bleed := e.Dot())
        d += (rh := e.Resistor().down().at(bleed.center).label(value(c.HOLD_OHM, "Ω"), "bottom"))
        d += e.Ground().at(rh.end)
        d += e.Line().right(1).at(bleed.center)
        d += e.Dot(open=True).label("PUMP", "right")

        y = -8.2
        d += e.Dot(open=True).at((0, y)).label("VCC", "left")
        d += e.Resistor().right().at((0, y)).label(value(c.LOOP_OHM, "Ω"))
        d += (loop := e.Dot())
        d += e.Line().up(0.7).at(loop.center)
        d += e.Dot(open=True).label("PD2, ESTOP (1 kΩ)", "top")
        d += e.Button(nc=True).right().at(loop.center).label("E-STOP 2")
        d += e.Switch().right().label("K2")
        d += e.Ground()


def main() -> None:
    """Write both drawings."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # the same drawing is the same file
    matplotlib.rcParams["svg.hashsalt"] = "board"
    cell(IMAGES / "board-cell.svg")
    cut(IMAGES / "board-cut.svg")


if __name__ == "__main__":
    main()
