#include "unit.h"

#include <math.h>
#include <string.h>

#include "wire.h"

#define STEP_S (PERIOD_S / STEPS_OF_PERIOD[0])

static double lowest(size_t cell) { return -STOP[0][cell]; }

static double highest(size_t cell) { return STOP[1][cell]; }

static double *theta(struct unit *unit) { return unit->state + N_LINEAR; }

static bool is_sigmoid(size_t cell) { return KIND[cell] == SIGMOID || KIND[cell] == UNSCALED; }

static bool is_wire(size_t cell) { return KIND[cell] == THERMAL || KIND[cell] == SMA; }

/* The force of a sigmoid cell: hil.systems.array.model.activation.sigmoid_N. */
static double sigmoid_N(size_t cell, double force_on_N, double at)
{
    if (KIND[cell] == UNSCALED)
        return force_on_N / (1.0 + exp(-at));
    double low = tanh(-0.5 * lowest(cell)), high = tanh(0.5 * highest(cell));
    return force_on_N * ((tanh(0.5 * at) + low) / (high + low));
}

/* Forces of the cells at their present states; those of wires change in a step alone. */
static void activate(struct unit *unit)
{
    for (size_t n = 0; n < N_CELLS; n++) {
        if (is_sigmoid(n))
            unit->F_N[n] = sigmoid_N(n, unit->force_on_N[n], theta(unit)[n]);
        else if (KIND[n] == STEP)
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
    for (size_t w = 0; w < N_WIRES; w++)
        unit->supply_V[w] = LAW[w][CELL_V_AT];
#if HAS_BOARDS
    for (size_t b = 0; b < N_BOARDS; b++)
        host_reset(&unit->hosts[b], b);
#endif
    unit_rest(unit);
}

static void feed_wires(struct unit *unit)
{
    for (size_t w = 0; w < N_WIRES; w++) {
        double share = unit->supply_V[w] / LAW[w][CELL_V_AT];
        unit->law[w][E2_AT] = LAW[w][E2_AT] * (share * share);
        unit->law[w][CELL_V_AT] = unit->supply_V[w];
    }
}

static void rest_wires(struct unit *unit)
{
    memcpy(unit->law, LAW, sizeof unit->law);
    memcpy(unit->wire, WIRE_AT_REST, sizeof unit->wire);
    memcpy(unit->tension_N, TENSION_AT_REST_N, sizeof unit->tension_N);
    for (size_t w = 0; w < N_WIRES; w++) {
        unit->F_N[CELL_OF_WIRE[w]] = FORCE_AT_REST_N[w];
        unit->clamp_C[w] = LAW[w][T_A_AT];
    }
}

#if HAS_BOARDS
/* What the boards measure: the wires' currents when on, and the clamps' temperatures. */
static void sense(struct unit *unit)
{
    for (size_t g = N_GATES; g-- > 0;) { /* a board's supply is that of its first wire */
        struct host *host = &unit->hosts[BOARD_OF_GATE[g]];
        int wire = WIRE_OF_GATE[g];
        if (wire < 0)
            continue;
        host_sense(host, g, unit->supply_V[wire] / unit->wire[RESISTANCE][wire], unit->clamp_C[wire]);
        host_sense_supply(host, unit->supply_V[wire]);
    }
}
#endif

bool unit_rest(struct unit *unit)
{
    rest_wires(unit);
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
#if HAS_BOARDS
    for (size_t b = 0; b < N_BOARDS; b++)
        if (!host_start(&unit->hosts[b]))
            return false;
    sense(unit);
    for (size_t b = 0; b < N_BOARDS; b++)
        host_power(&unit->hosts[b]);
#endif
    return true;
}

void unit_moved(struct unit *unit)
{
#if HAS_BOARDS
    for (size_t b = 0; b < N_BOARDS; b++)
        host_moved(&unit->hosts[b]);
#else
    (void)unit;
#endif
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

/* The duties of the cells over the coming period. */
static void drive_cells(struct unit *unit)
{
    memcpy(unit->drive, unit->duty, sizeof unit->drive);
#if HAS_BOARDS
    for (size_t b = 0; b < N_BOARDS; b++)
        host_step(&unit->hosts[b], unit->duty, unit->drive);
#endif
    for (size_t n = 0; n < N_CELLS; n++)
        unit->on[n] = unit->drive[n] >= 0.5;
}

/* Resistance and current of a wire as its step has left it. */
static void measure_wire(struct unit *unit, size_t w, double strain)
{
    const double *law = unit->law[w];
    unit->wire[STRAIN][w] = strain;
    unit->wire[RESISTANCE][w] =
        law[CELL_OHM_M_AT] * wire_ohm_per_m(law, unit->wire[WIRE_C][w], unit->wire[AUSTENITE][w], strain);
    unit->wire[CURRENT][w] = unit->drive[CELL_OF_WIRE[w]] * law[CELL_V_AT] / unit->wire[RESISTANCE][w];
}

/* Wires without a law of stress: hil.mechanics.sma.wire. */
static void step_free_wires(struct unit *unit)
{
    for (size_t w = 0; w < N_WIRES; w++) {
        size_t n = CELL_OF_WIRE[w];
        if (KIND[n] != THERMAL)
            continue;
        double *xi = &unit->wire[AUSTENITE][w];
        wire_advance(unit->law[w], unit->drive[n], &unit->wire[WIRE_C][w], xi, STEP_S);
        measure_wire(unit, w, unit->law[w][STRAIN_AT] * (1.0 - *xi));
        unit->F_N[n] = unit->force_on_N[n] * *xi;
    }
}

static void add_stretch(size_t first, const double *values, size_t n, double *stretch_m)
{
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < N_LOADED; k++)
            stretch_m[k] += STRETCH_PER[first + j][k] * values[j];
}

/* Between the steps of hil.systems.array.model.wire_step: what the heat of a wire has left of it. */
struct heated {
    double T, xi;          /* of the wire */
    double trial, began;   /* T and xi from which it settles */
    double per_xi, strain; /* latent heat over heat capacity; of its martensite */
};

/* hil.systems.array.model.wire_step._heat */
static struct heated heat(const struct unit *unit, size_t i)
{
    size_t w = WIRE_OF_LOADED[i];
    const double *c = CELL[i], *law = unit->law[w];
    double duty = unit->drive[CELL_OF_WIRE[w]], stress = unit->tension_N[i] / c[AREA_M2_AT], slope, place[4];
    struct heated now = {.T = unit->wire[WIRE_C][w], .xi = unit->wire[AUSTENITE][w]};
    now.began = now.xi;
    stressed_stroke(c + LAW_AT, stress, &slope);
    stressed_places(c + LAW_AT, stress, slope, place);
    stressed_advance(law, c + LAW_AT, place, duty, &now.T, &now.xi, STEP_S);
    double r = law[R_MARTENSITE_AT] + law[R_CHANGE_AT] * now.xi;
    double latent = law[L_AT] + 0.5 * STEP_S * duty * law[E2_AT] * law[R_CHANGE_AT] / (r * r);
    now.per_xi = latent / (law[C_AT] + 0.5 * STEP_S * law[G_AT]);
    now.trial = now.T + now.per_xi * (now.xi - now.began);
    return now;
}

/* hil.systems.array.model.wire_step._settle */
static double settle(const double *c, struct heated *now, double f, double slope)
{
    double place[4];
    stressed_places(c + LAW_AT, f / c[AREA_M2_AT], slope, place);
    now->T = now->trial;
    now->xi = now->began;
    double width = stressed_settled(c + LAW_AT, place, now->per_xi, &now->T, &now->xi);
    if (width == 0.0)
        return 0.0;
    double moves = stressed_moves(c + LAW_AT, place, now->strain, now->T, width > 0.0);
    return moves / (c[AREA_M2_AT] * (fabs(width) + now->per_xi));
}

/* hil.systems.array.model.wire_step._follow */
static void follow(struct heated *now, double less)
{
    double xi = fmin(1.0, fmax(0.0, now->xi - less));
    now->T -= now->per_xi * (xi - now->xi);
    now->xi = xi;
}

/* hil.systems.array.model.wire_step._force */
static double pull(const double *c, struct heated *now, double *tension, double stretch_m)
{
    double area = c[AREA_M2_AT], on = c[FORCE_ON_N_AT], k_ae = c[K_AE_N_PER_M_AT];
    double eases = 1.0 + k_ae * c[OWN_M_PER_N_AT], known = c[PULL_N_AT] + k_ae * stretch_m;
    bool held = c[IMPLICIT_AT] == 0.0;
    double close = held ? HELD_SOLVED * (1.0 + c[PULL_N_AT]) : CLOSE * (on + c[PULL_N_AT]);
    double f = *tension, low = 0.0, high = INFINITY, slope;
    now->strain = stressed_stroke(c + LAW_AT, f / area, &slope);
    for (int k = 0; k < (held ? HELD_STEPS : NEWTON_STEPS); k++) {
        double loses = held ? 0.0 : settle(c, now, f, slope);
        double share = (1.0 - now->xi) * on / c[REST_STRAIN_AT];
        double off = f - known - eases * (on - share * now->strain);
        double lost = eases * on / c[REST_STRAIN_AT] * loses * now->strain;
        double change = off / (1.0 + eases * share * slope / area + lost), before = f;
        f = fmax(0.0, f - change);
        if (!held) {
            *(off > 0.0 ? &high : &low) = before;
            if (f < low || f > high)
                f = 0.5 * (low + high);
            follow(now, loses * (f - before));
        }
        if (fabs(change) < close || f == before)
            break;
        now->strain = stressed_stroke(c + LAW_AT, f / area, &slope);
    }
    *tension = f;
    return (f - known) / eases;
}

/* Wires under stress, with the tension that the array gives them: hil.systems.array.model.wire_step. */
static void step_loaded_wires(struct unit *unit, const double *before_N)
{
    double stretch_m[ROOM(N_LOADED)] = {0};
    struct heated now[ROOM(N_LOADED)];
    add_stretch(N_CELLS, unit->state, N_LINEAR, stretch_m);
    add_stretch(N_CELLS + N_LINEAR, before_N, N_CELLS, stretch_m);
    add_stretch(0, unit->F_N, N_CELLS, stretch_m);
    add_stretch(2 * N_CELLS + N_LINEAR, unit->external, N_EXTERNAL, stretch_m);
    add_stretch(2 * N_CELLS + N_LINEAR + N_EXTERNAL, unit->external, N_EXTERNAL, stretch_m);
    for (size_t i = 0; i < N_LOADED; i++)
        now[i] = heat(unit, i);
    bool solved = false;
    for (int sweep = 0; !solved && sweep < (COUPLED[0] ? SWEEPS_MAX : 1); sweep++) {
        solved = true;
        for (size_t i = 0; i < N_LOADED; i++) {
            size_t n = CELL_OF_WIRE[WIRE_OF_LOADED[i]];
            double force = pull(CELL[i], &now[i], &unit->tension_N[i], stretch_m[i]), change = force - unit->F_N[n];
            for (size_t k = 0; k < N_LOADED; k++) /* the other wires feel it */
                stretch_m[k] += STRETCH_PER[n][k] * change;
            unit->F_N[n] = force;
            solved = solved && fabs(change) <= SOLVED * (CELL[i][FORCE_ON_N_AT] + CELL[i][PULL_N_AT]);
        }
    }
    for (size_t i = 0; i < N_LOADED; i++) {
        size_t w = WIRE_OF_LOADED[i];
        unit->wire[WIRE_C][w] = now[i].T;
        unit->wire[AUSTENITE][w] = now[i].xi;
        measure_wire(unit, w, (1.0 - now[i].xi) * now[i].strain);
    }
}

/* hil.mechanics.sma.clamp */
static void step_clamps(struct unit *unit)
{
    for (size_t w = 0; w < N_WIRES; w++) {
        double air_C = unit->law[w][T_A_AT];
        double settles_C = air_C + CLAMP_SHARE[w] * (unit->wire[WIRE_C][w] - air_C);
        unit->clamp_C[w] = settles_C + CLAMP_KEEPS[w] * (unit->clamp_C[w] - settles_C);
    }
}

/* Cells, wires and array over one step. */
static void step_array(struct unit *unit)
{
    double before_N[ROOM(N_CELLS)], next[ROOM(N_LINEAR)];
    for (size_t n = 0; n < N_CELLS; n++) {
        before_N[n] = unit->F_N[n];
        if (KIND[n] == STEP)
            before_N[n] = unit->on[n] ? unit->force_on_N[n] : 0.0;
        if (!is_sigmoid(n))
            continue;
        double change = STEP_S * (unit->on[n] ? RATE_PER_S[0][n] : -RATE_PER_S[1][n]);
        theta(unit)[n] = fmin(highest(n), fmax(lowest(n), theta(unit)[n] + change));
    }
    activate(unit);
    step_free_wires(unit);
    step_loaded_wires(unit, before_N);
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
}

void unit_step(struct unit *unit)
{
    feed_wires(unit);
    drive_cells(unit);
    for (int k = 0; k < STEPS_OF_PERIOD[0]; k++)
        step_array(unit);
    find_stops(unit);
    unit_outputs(unit);
    step_clamps(unit);
    unit->time_s += PERIOD_S;
#if HAS_BOARDS
    sense(unit);
    for (size_t b = 0; b < N_BOARDS; b++)
        host_read(&unit->hosts[b]);
#endif
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
#if HAS_BOARDS
    if (reference >= VR_BOARDS)
        return host_get(unit->hosts, reference - VR_BOARDS, value);
#endif
    if (reference >= VR_TENSION)
        *value = unit->tension_N[reference - VR_TENSION];
    else if (reference >= VR_WIRE) {
        uint32_t at = reference - VR_WIRE;
        *value = unit->wire[at / ROOM(N_WIRES)][at % ROOM(N_WIRES)];
    } else if (reference >= VR_SUPPLY)
        *value = unit->supply_V[reference - VR_SUPPLY];
    else if (reference >= VR_DERIVATIVE) {
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
    if (reference >= VR_FORCE_ON && reference < VR_FORCE) {
        size_t n = reference - VR_FORCE_ON;
        if (unit->mode == RUNNING || is_wire(n))
            return false;
        unit->force_on_N[n] = value;
        return true;
    }
    if (reference >= VR_SUPPLY && reference < VR_WIRE) {
        if (value < 0.0 || value > SUPPLY_MAX_V)
            return false;
        unit->supply_V[reference - VR_SUPPLY] = value;
        return true;
    }
#if HAS_BOARDS
    if (reference >= VR_BOARDS && reference < VR_END)
        return host_set(unit->hosts, reference - VR_BOARDS, value, unit->mode != RUNNING);
#endif
    return false;
}

uint64_t unit_periods(double step_s)
{
    double periods = step_s / PERIOD_S, whole = round(periods);
    return whole >= 1.0 && fabs(periods - whole) < 1e-6 ? (uint64_t)whole : 0;
}
