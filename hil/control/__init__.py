"""Controllers and references: pure, no clock, no device; the period is an argument."""
