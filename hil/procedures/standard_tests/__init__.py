"""Standard tests of actuators: each a campaign, or a long run, and the analysis of its readings."""
