#include "wire.h"

#include <math.h>
#include <stdbool.h>

#include "data.h"

static double between(double low, double value, double high) { return fmin(high, fmax(low, value)); }

/* hil.mechanics.sma.resistance.ohm_per_m */
static double ohm_per_m(const double *c, double r_M, double r_A, double T, double xi, double strain)
{
    double a_M = c[0], a_A = c[1], T_0 = c[2], k = c[3], r_R = c[4], R_s = c[5], R_f = c[6];
    double martensite = r_M * (1.0 + a_M * (T - T_0));
    double parent = r_A * (1.0 + a_A * (T - T_0));
    if (r_R > 0.0)
        parent += (r_R - parent) * between(0.0, (R_s - T) / (R_s - R_f), 1.0);
    return (martensite + (parent - martensite) * xi) * (1.0 + k * strain);
}

double wire_ohm_per_m(const double *law, double T, double xi, double strain)
{
    double r_M = law[R_MARTENSITE_AT], dr = law[R_CHANGE_AT];
    if (law[VARIES_AT] == 0.0)
        return r_M + dr * xi;
    return ohm_per_m(law + RESISTIVITY_AT, r_M, r_M + dr, T, xi, strain);
}

/* How much more the supply heats this wire than one whose resistance follows from its phases alone. */
static double heats(const double *law, double T, double xi)
{
    if (law[VARIES_AT] == 0.0)
        return 1.0;
    return (law[R_MARTENSITE_AT] + law[R_CHANGE_AT] * xi) / wire_ohm_per_m(law, T, xi, law[STRAIN_AT] * (1.0 - xi));
}

/* (1 - exp(-z)) / z */
static double phi(double z) { return fabs(z) < 1e-9 ? 1.0 - 0.5 * z : -expm1(-z) / z; }

/* When T' = speed - rate (T - T0) has gone dT. */
static double time_to(double dT, double speed, double rate)
{
    double x = rate * dT / speed;
    if (fabs(x) < 1e-9)
        return dT / speed * (1.0 + 0.5 * x);
    return x < 1.0 ? -log1p(-x) / rate : INFINITY;
}

void wire_advance(const double *law, double duty, double *temperature, double *fraction, double remaining)
{
    double C = law[C_AT], L = law[L_AT], G = law[G_AT], T_a = law[T_A_AT], dr = law[R_CHANGE_AT];
    double T = *temperature, xi = *fraction, E2 = law[E2_AT] * heats(law, T, xi);
    while (remaining > 0.0) {
        double r = law[R_MARTENSITE_AT] + dr * xi, P = duty * E2 / r, q = P - G * (T - T_a);
        if (q == 0.0)
            break;
        bool rises = q > 0.0, movable = rises ? xi < 1.0 : xi > 0.0;
        double start = rises ? law[A_S_AT] : law[M_F_AT];
        double width = rises ? law[A_F_AT] - start : law[M_S_AT] - start;
        double meets = start + xi * width;
        bool along = movable && (T - meets) * q >= 0.0;
        double limit = xi, capacity = C, slope = 0.0, target = meets;
        if (along) {
            limit = rises ? fmin(1.0, xi + 1.0 / WIRE_PIECES) : fmax(0.0, xi - 1.0 / WIRE_PIECES);
            capacity = C + L / width;
            slope = -P * dr / (r * width);
            target = start + limit * width;
        }
        double rate = (G - slope) / capacity;
        double next = T + q / capacity * remaining * phi(rate * remaining), took = remaining;
        if (movable && (next - target) * q >= 0.0) {
            took = fmin(remaining, fmax(0.0, time_to(target - T, q / capacity, rate)));
            next = target;
        }
        if (along)
            xi = next == target ? limit : between(0.0, (next - start) / width, 1.0);
        T = rises ? next : fmax(next, T_a); /* rounding must not carry a cooling wire past the air */
        remaining -= took;
    }
    *temperature = T;
    *fraction = xi;
}

double stressed_stroke(const double *c, double stress, double *slope)
{
    double gone = c[STROKE_MORE_AT] * exp(-c[RATE_PER_PA_AT] * stress);
    *slope = c[RATE_PER_PA_AT] * gone + c[SOFTER_PER_PA_AT];
    return c[STROKE_MAX_AT] - gone + c[SOFTER_PER_PA_AT] * stress;
}

void stressed_places(const double *c, double stress, double slope, double place[4])
{
    double softer = c[SOFTER_PER_PA_AT], gone = (slope - softer) / c[RATE_PER_PA_AT];
    double work = c[STROKE_MAX_AT] * stress + (gone - c[STROKE_MORE_AT]) / c[RATE_PER_PA_AT] + 0.5 * softer * stress * stress;
    double moved = c[STRESS_PER_WORK_AT] * work;
    for (int branch = 0; branch < 2; branch++) {
        const double *of = c + (branch == 0 ? HEATING_AT : COOLING_AT);
        double share = of[WORK_SHARE_AT];
        place[2 * branch] = of[MIDDLE_C_AT] + ((1.0 - share) * stress + share * moved) * of[K_PER_PA_AT];
        place[2 * branch + 1] = exp(of[WIDENS_PER_PA_AT] * stress);
    }
}

struct ahead {
    double here;  /* temperature of the branch at xi */
    double width; /* K per unit of xi */
    double limit; /* xi of the next knot */
};

static struct ahead ahead(const double *c, const double place[4], double xi, bool rises)
{
    double z = xi * STRESSED_PIECES;
    if (rises) {
        int j = (int)(z + AT_KNOT);
        j = j < STRESSED_PIECES - 1 ? j : STRESSED_PIECES - 1;
        double low = c[KNOTS_K_AT + HEATING_KNOTS + j], width = place[1] * STRESSED_PIECES * (c[KNOTS_K_AT + HEATING_KNOTS + j + 1] - low);
        double here = place[0] + place[1] * low + width * (xi - (double)j / STRESSED_PIECES);
        return (struct ahead){here, width, (j + 1.0) / STRESSED_PIECES};
    }
    int j = (int)ceil(z - AT_KNOT) - 1;
    j = j > 0 ? j : 0;
    double part = z - j, hot = c[KNOTS_K_AT + HEATING_KNOTS + j], cold = c[KNOTS_K_AT + COOLING_KNOTS + j];
    double hot_K = place[1] * (c[KNOTS_K_AT + HEATING_KNOTS + j + 1] - hot), cold_K = place[3] * (c[KNOTS_K_AT + COOLING_KNOTS + j + 1] - cold);
    hot = place[0] + place[1] * hot;
    cold = place[2] + place[3] * cold;
    double end = fmin(hot, cold), here = fmin(hot + part * hot_K, cold + part * cold_K);
    return (struct ahead){here, (here - end) / part * STRESSED_PIECES, (double)j / STRESSED_PIECES};
}

double stressed_moves(const double *c, const double place[4], double strain, double T, bool heating)
{
    const double *of = c + (heating ? HEATING_AT : COOLING_AT);
    double share = of[WORK_SHARE_AT], middle_K = ((1.0 - share) + share * c[STRESS_PER_WORK_AT] * strain) * of[K_PER_PA_AT];
    return middle_K + of[WIDENS_PER_PA_AT] * (T - place[heating ? 0 : 2]);
}

double stressed_settled(const double *c, const double place[4], double per_xi, double *T, double *xi)
{
    double on = 0.0;
    for (int rises = 1; rises >= 0; rises--) {
        while (rises ? *xi < 1.0 : *xi > 0.0) {
            struct ahead at = ahead(c, place, *xi, rises);
            if (rises ? *T <= at.here : *T >= at.here)
                break;
            double change = (*T - at.here) / (at.width + per_xi), left = at.limit - *xi;
            bool within = rises ? change < left : change > left;
            *T -= per_xi * (within ? change : left);
            *xi = within ? *xi + change : at.limit;
            on = rises ? at.width : -at.width;
            if (within)
                return on;
            if (rises ? *xi >= 1.0 : *xi <= 0.0)
                on = 0.0;
        }
    }
    return on;
}

void stressed_advance(const double *law, const double *c, const double place[4], double duty, double *temperature,
                      double *fraction, double remaining)
{
    double C = law[C_AT], L = law[L_AT], G = law[G_AT], T_a = law[T_A_AT], dr = law[R_CHANGE_AT];
    if ((*fraction < 1.0 && *temperature > ahead(c, place, *fraction, true).here) ||
        (*fraction > 0.0 && *temperature < ahead(c, place, *fraction, false).here))
        stressed_settled(c, place, law[L_AT] / law[C_AT], temperature, fraction);
    double T = *temperature, xi = *fraction, E2 = law[E2_AT] * heats(law, T, xi);
    while (remaining > 0.0) {
        double r = law[R_MARTENSITE_AT] + dr * xi, P = duty * E2 / r, q = P - G * (T - T_a);
        if (q == 0.0)
            break;
        bool rises = q > 0.0, movable = rises ? xi < 1.0 : xi > 0.0, along = false;
        double capacity = C, slope = 0.0, target = T, limit = xi, width = 1.0;
        if (movable) {
            struct ahead at = ahead(c, place, xi, rises);
            target = at.here, width = at.width, limit = at.limit;
            along = (T - target) * q >= -ON_BRANCH_K * fabs(q);
        }
        if (along) {
            width = fmax(width, 1e-9);
            target += width * (limit - xi);
            capacity = C + L / width;
            slope = -P * dr / (r * width);
        }
        double speed = q / capacity, rate = (G - slope) / capacity;
        double next = T + speed * remaining * phi(rate * remaining), took = remaining;
        bool reached = movable && (next - target) * q >= 0.0;
        if (reached) {
            took = fmin(remaining, fmax(0.0, time_to(target - T, speed, rate)));
            next = target;
        }
        if (along)
            xi = reached ? limit : between(0.0, xi + (next - T) / width, 1.0);
        T = rises ? next : fmax(next, T_a);
        remaining -= took;
    }
    *temperature = T;
    *fraction = xi;
}
