"""Tests that name a failed cell, by force or by the wires' law."""
