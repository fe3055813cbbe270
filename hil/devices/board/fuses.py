"""The fuses of a driver board's ATmega328P: required values, and problems of others.

Bits as in the data sheet (Microchip DS40002061, 27.2 Fuse Bits; coding of the clock in 9.2, of the
brown-out level in table 28-6). A fuse is programmed where its bit is 0.
"""

from collections.abc import Sequence

RSTDISBL, DWEN, SPIEN, WDTON, EESAVE, BOOTSZ1, BOOTSZ0, BOOTRST = (1 << b for b in range(7, -1, -1))
BODLEVEL = 0b111
BODLEVEL_4V3 = 0b100

#: CKDIV8, CKOUT unprogrammed; SUT 11, CKSEL 0111: full swing crystal, power that rises slowly.
LOW = 0xFF & ~(1 << 3)
#: Unused bits read 1.
EXTENDED = 0xF8 | BODLEVEL_4V3


def high(boot_loader: bool) -> int:
    """Serial programming, watchdog always on, EEPROM kept, boot section of 256 words.

    With a boot loader a reset begins in its section.
    """
    return 0xFF & ~(SPIEN | WDTON | EESAVE | (BOOTRST if boot_loader else 0))


def problems(low_high_extended: Sequence[int]) -> list[str]:
    """What these fuses do not protect against; clock and boot loader are free."""
    _, high_byte, extended = low_high_extended
    wrong = []
    if high_byte & WDTON:
        wrong.append("WDTON: the watchdog can be switched off by the program")
    if extended & BODLEVEL != BODLEVEL_4V3:
        wrong.append("BODLEVEL: it keeps running below 4.3 V")
    if high_byte & EESAVE:
        wrong.append("EESAVE: its limits are lost when the chip is erased")
    if not high_byte & DWEN:
        wrong.append("DWEN: debugWIRE holds the reset line")
    if not high_byte & RSTDISBL:
        wrong.append("RSTDISBL: no programmer can reset it")
    return wrong


def as_text(low_high_extended: Sequence[int]) -> str:
    low, high_byte, extended = low_high_extended
    return f"low 0x{low:02X}, high 0x{high_byte:02X}, extended 0x{extended:02X}"
