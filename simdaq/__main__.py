"""`python -m simdaq`."""

import sys

from simdaq.command import main

sys.exit(main())
