"""`hil calibrate KIND`: procedures that end in a record, on a bench or rehearsed at home."""
