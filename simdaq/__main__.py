"""`python -m simdaq`."""

from simdaq.command import console

console()
