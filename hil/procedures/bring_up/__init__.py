"""`hil board bring-up`: the guided first power-up of a driver board, and its rehearsal."""
