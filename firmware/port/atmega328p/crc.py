"""The CRC that an image of the firmware carries: CRC-16/CCITT of all its bytes but its own two.

Usage: crc.py IMAGE.bin
"""

import binascii
import sys
from pathlib import Path

TAG = b"HILBOARD"  # port.c: two hashes of four bytes follow, then the CRC
image = Path(sys.argv[1]).read_bytes()
if image.count(TAG) != 1:
    sys.exit(f"{sys.argv[1]}: no image of the firmware")
at = image.index(TAG) + len(TAG) + 8
print(binascii.crc_hqx(image[:at] + image[at + 2 :], 0xFFFF))
