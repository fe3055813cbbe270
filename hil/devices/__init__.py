"""Instruments of a rig, real or simulated, behind one interface."""
