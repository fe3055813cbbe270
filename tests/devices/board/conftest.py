"""The firmware is built once for the tests in here and for its own."""

from firmware.conftest import build

__all__ = ["build"]
