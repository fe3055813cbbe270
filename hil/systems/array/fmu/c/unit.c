#include "unit.h"

#include <math.h>
#include <string.h>

static double lowest(size_t cell) { return -STOP[0][cell]; }

static double highest(size_t cell) { return STOP[1][cell]; }

static double *theta(struct unit *unit) { return unit->state + N_LINEAR; }

static bool is_sigmoid(size_t cell) { return KIND[cell] != STEP; }

/* The force of a sigmoid cell: hil.systems.array.activation.sigmoid_N. */
static double sigmoid_N(size_t cell, double force_on_N, double at)
{
    if (KIND[cell] == UNSCALED)
        return force_on_N / (1.0 + exp(-at));
    double low = tanh(-0.5 * lowest(cell)), high = tanh(0.5 * highest(cell));
    return force_on_N * ((tanh(0.5 * at) + low) / (high + low));
}

/* Forces of the cells at their present states. */
static void activate(struct unit *unit)
{
    for (size_t n = 0; n < N_CELLS; n++) {
        if (is_sigmoid(n))
            unit->F_N[n] = sigmoid_N(n, unit->force_on_N[n], theta(unit)[n]);
        else
            unit->F_N[n] = unit->on[n] ? unit->force_on_N[n] : 0.0;
    }
}

static void find_stops(struct unit *unit)
{
    for (size_t n = 0; n < N_CELLS; n++) {
        if (!is_sigmoid(n))
            continue;
        double at = theta(unit)[n];
        unit->at_stop[n] = at >= highest(n) ? 1 : at <= lowest(n) ? -1 : 0;
    }
}

void unit_reset(struct unit *unit)
{
    memset(unit, 0, sizeof *unit);
    memcpy(unit->force_on_N, FORCE_ON_N, sizeof FORCE_ON_N);
    unit_rest(unit);
}

void unit_rest(struct unit *unit)
{
    for (size_t n = 0; n < N_CELLS; n++)
        if (is_sigmoid(n))
            theta(unit)[n] = lowest(n);
    memset(unit->on, 0, sizeof unit->on);
    activate(unit);
    for (size_t i = 0; i < N_LINEAR; i++) {
        unit->state[i] = 0.0;
        for (size_t n = 0; n < N_CELLS; n++)
            unit->state[i] += REST_PER_N[i][n] * unit->F_N[n];
    }
    find_stops(unit);
    unit_outputs(unit);
}

void unit_switch(struct unit *unit)
{
    for (size_t n = 0; n < N_CELLS; n++)
        unit->on[n] = unit->duty[n] >= 0.5;
    find_stops(unit);
}

void unit_outputs(struct unit *unit)
{
    activate(unit);
    for (size_t i = 0; i < N_OUTPUTS; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < N_LINEAR; j++)
            sum += C[i][j] * unit->state[j];
        for (size_t n = 0; n < N_CELLS; n++)
            sum += D[i][n] * unit->F_N[n];
        for (size_t e = 0; e < N_EXTERNAL; e++)
            sum += D[i][N_CELLS + e] * unit->external[e];
        unit->y[i] = sum;
    }
}

void unit_step(struct unit *unit)
{
    double before_N[ROOM(N_CELLS)], next[ROOM(N_LINEAR)];
    for (size_t n = 0; n < N_CELLS; n++) {
        unit->on[n] = unit->duty[n] >= 0.5;
        before_N[n] = unit->F_N[n];
        if (!is_sigmoid(n)) {
            before_N[n] = unit->on[n] ? unit->force_on_N[n] : 0.0;
            continue;
        }
        double change = PERIOD_S * (unit->on[n] ? RATE_PER_S[0][n] : -RATE_PER_S[1][n]);
        theta(unit)[n] = fmin(highest(n), fmax(lowest(n), theta(unit)[n] + change));
    }
    activate(unit);
    for (size_t i = 0; i < N_LINEAR; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < N_LINEAR; j++)
            sum += AD[i][j] * unit->state[j];
        for (size_t n = 0; n < N_CELLS; n++)
            sum += B0[i][n] * before_N[n] + B1[i][n] * unit->F_N[n];
        for (size_t e = 0; e < N_EXTERNAL; e++)
            sum += (B0[i][N_CELLS + e] + B1[i][N_CELLS + e]) * unit->external[e];
        next[i] = sum;
    }
    memcpy(unit->state, next, N_LINEAR * sizeof *next);
    find_stops(unit);
    unit_outputs(unit);
    unit->time_s += PERIOD_S;
}

void unit_derivatives(struct unit *unit, double *derivative)
{
    activate(unit);
    for (size_t i = 0; i < N_LINEAR; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < N_LINEAR; j++)
            sum += A[i][j] * unit->state[j];
        for (size_t n = 0; n < N_CELLS; n++)
            sum += B[i][n] * unit->F_N[n];
        for (size_t e = 0; e < N_EXTERNAL; e++)
            sum += B[i][N_CELLS + e] * unit->external[e];
        derivative[i] = sum;
    }
    for (size_t n = 0; n < N_STATES - N_LINEAR; n++) {
        bool stopped = !is_sigmoid(n) || unit->at_stop[n] == (unit->on[n] ? 1 : -1);
        derivative[N_LINEAR + n] = stopped ? 0.0 : unit->on[n] ? RATE_PER_S[0][n] : -RATE_PER_S[1][n];
    }
}

void unit_indicators(const struct unit *unit, double *indicator)
{
    for (size_t n = 0; n < N_CELLS; n++) {
        const double *at = unit->state + N_LINEAR;
        indicator[3 * n] = unit->duty[n] - 0.5;
        indicator[3 * n + 1] = is_sigmoid(n) ? at[n] - lowest(n) : 1.0;
        indicator[3 * n + 2] = is_sigmoid(n) ? at[n] - highest(n) : -1.0;
    }
}

bool unit_get(struct unit *unit, uint32_t reference, double *value)
{
    double derivative[ROOM(N_STATES)];
    if (reference >= VR_END)
        return false;
    if (reference >= VR_DERIVATIVE) {
        unit_derivatives(unit, derivative);
        *value = derivative[reference - VR_DERIVATIVE];
    } else if (reference >= VR_STATE)
        *value = unit->state[reference - VR_STATE];
    else if (reference >= VR_FORCE)
        *value = unit->F_N[reference - VR_FORCE];
    else if (reference >= VR_FORCE_ON)
        *value = unit->force_on_N[reference - VR_FORCE_ON];
    else if (reference >= VR_OUTPUT)
        *value = unit->y[reference - VR_OUTPUT];
    else if (reference >= VR_EXTERNAL)
        *value = unit->external[reference - VR_EXTERNAL];
    else if (reference >= VR_DUTY)
        *value = unit->duty[reference - VR_DUTY];
    else
        *value = unit->time_s;
    return true;
}

bool unit_set(struct unit *unit, uint32_t reference, double value)
{
    if (!isfinite(value))
        return false;
    if (reference >= VR_DUTY && reference < VR_EXTERNAL) {
        if (value < 0.0 || value > 1.0)
            return false;
        unit->duty[reference - VR_DUTY] = value;
        return true;
    }
    if (reference >= VR_EXTERNAL && reference < VR_OUTPUT) {
        unit->external[reference - VR_EXTERNAL] = value;
        return true;
    }
    if (reference >= VR_FORCE_ON && reference < VR_FORCE && unit->mode != RUNNING) {
        unit->force_on_N[reference - VR_FORCE_ON] = value;
        return true;
    }
    return false;
}

uint64_t unit_periods(double step_s)
{
    double periods = step_s / PERIOD_S, whole = round(periods);
    return whole >= 1.0 && fabs(periods - whole) < 1e-6 ? (uint64_t)whole : 0;
}
