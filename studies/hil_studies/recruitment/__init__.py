"""Recruitment controllers on many plants."""
