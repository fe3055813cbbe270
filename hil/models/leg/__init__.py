"""Limbs of rigid bodies moved by Hill-type muscles: mechanics, muscles, stepping, statics.

Source: Makkonen 2021, *Simulated Muscle Driven Leg* (LUT), with the muscle of Haeufle et al. 2014.
"""
