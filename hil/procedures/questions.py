"""What `hil new rig` asks: its options, its questions and the window's form are made from it.

It imports nothing, since every command builds the parser. `hil.procedures.new_rig.Answers` has the
type, range and default of each.
"""

QUESTIONS = {
    "wire": "the wire or actuator by name, such as flexinol_150_LT, miga_nanomuscle_704, or one of "
    "your wires.toml",
    "cells": "number of cells that switch",
    "wires_per_cell": "wires of one cell, electrically in series",
    "length_m": "length of a wire, m",
    "joined": "how cells are joined: parallel, series, antagonists, or a topology such as "
    "'-:2 | &3:1 | &1:-1'",
    "against": "what they pull on: fixed (a transducer), spring or weight",
    "mass_kg": "mass of the weight, or of the slide at the spring",
    "spring_N_per_m": "stiffness of the spring, or of that in series with the wires of each cell",
    "switches": "what switches the cells: board (hil's), arduino, card (lines of an NI card) or "
    "device (your own)",
    "measures": "what measures force: an NI card by product (USB-6009), labjack-T4, -T7 or -T8, "
    "futek, phidget or indicator",
    "capacity_N": "capacity of the force transducer, N",
    "cut": "what cuts the cells' power at a trip: supply (that hil commands), a relay at a line of "
    "the card or the labjack, or none",
    "supply_V": "voltage of the cells' supply (empty: hil chooses)",
    "supply_current_max_A": "current limit of that supply, or its fuse, A (empty: hil chooses)",
}
