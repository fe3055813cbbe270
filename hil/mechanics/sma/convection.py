"""Convection from a thin horizontal wire to still air.

    h = Nu k / d,    Nu = 0.675 Ra^0.058 for Ra < 0.01, 1.02 Ra^0.148 above,
    Ra = g (T - T_a) d^3 / (T_film nu^2) Pr

Source: Morgan 1975, Adv. Heat Transfer 11, 199-264, table 1 (horizontal cylinders). Air at 1 bar:
k = 0.0262 W/m K, nu = 1.57e-5 m2/s at 300 K, in proportion to T^0.81 and T^1.7 nearby; Pr = 0.71.
"""


def morgan_W_per_m2_K(diameter_m: float, wire_C: float, air_C: float) -> float:
    """Heat transfer coefficient, evaluated at the mean of wire and air; module."""
    film_K = 0.5 * (wire_C + air_C) + 273.15
    k, nu = 0.0262 * (film_K / 300.0) ** 0.81, 1.57e-5 * (film_K / 300.0) ** 1.7
    Ra = 9.81 * (wire_C - air_C) * diameter_m**3 / (film_K * nu**2) * 0.71
    Nu = 0.675 * Ra**0.058 if Ra < 0.01 else 1.02 * Ra**0.148
    return float(Nu * k / diameter_m)
