"""Campaigns: series of trials in a planned order, with a journal of their outcomes."""
