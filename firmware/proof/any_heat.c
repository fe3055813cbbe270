/* Replaces heat.c in the explorations: the heat of a cell is whatever the input says, at every look at it. So an
 * exploration has every course of the heat that any arithmetic could compute, and more: the core asks only
 * whether H is above heat_max_cA2ms and above an eighth of it (guard.c; `read` reports its share, which switches
 * nothing). What heat.c itself computes is proven by heat_contract.c. Here its callers are watched. */
#include "heat.h"

#include "script.h"

static const enum heat_class CLASSES[][3] = {
#define CLASS(name, first, then, other) {first, then, other},
    HEATS(CLASS)};

static uint8_t cell_of(const struct heat *heat)
{
    uint8_t i = 0;
    while (i < WIRE_CELLS_MAX && heat != &world.board.cells[i].heat)
        i++;
    return i;
}

static enum heat_class class_of(uint8_t cell)
{
    return CLASSES[turn.input.heat][cell != 0 ? 2 : turn.input.after && turn.heard];
}

bool script_heat(uint8_t cell, enum heat_class least)
{
    return class_of(cell) >= least;
}

static void look(struct heat *heat)
{
    const uint32_t most = world.past.limits.heat_max_cA2ms;
    const uint32_t classes[] = {
        [COOL] = most / WIRE_HEAT_TO_ARM, [WARM] = most / WIRE_HEAT_TO_ARM + 1, [AT_LIMIT] = most, [ABOVE] = most + 1};
    heat->cA2ms = classes[class_of(cell_of(heat))];
}

void script_heat_start(void)
{
    for (uint8_t i = 0; i < N_CELLS; i++)
        look(&world.board.cells[i].heat);
}

struct heat_law heat_law(const struct wire_limits *limits)
{
    return (struct heat_law){.gain = limits->current_full_scale_mA, .rate = limits->heat_time_constant_ms};
}

void heat_use_up(struct heat *heat, const struct wire_limits *limits, uint16_t now_ticks)
{
    (void)limits, (void)now_ticks;
    *heat = (struct heat){0};
    look(heat);
    if (cell_of(heat) < N_CELLS)
        turn.n_used_up[cell_of(heat)]++;
}

uint16_t heat_ticks(uint32_t now_us)
{
    return (uint16_t)(now_us / HEAT_TICK_US);
}

/* The tick of a switching: script.c advances the time with each. */
static uint16_t switching_ticks(void)
{
    return heat_ticks(world.past.now_us + (uint32_t)HEAT_TICK_US * turn.switched);
}

/* Whether this time, of this turn, is not before the last one. */
static bool goes_on(uint16_t *last_ticks, uint16_t now_ticks)
{
    uint16_t since = (uint16_t)(now_ticks - heat_ticks(world.past.now_us));
    bool ok = since >= *last_ticks && since <= turn.switched;
    *last_ticks = since;
    return ok;
}

void heat_begin(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks)
{
    (void)heat;
    uint8_t i = cell_of(heat);
    if (i >= N_CELLS)
        return;
    bool early = (int16_t)(now_ticks - switching_ticks()) < 0;
    check(PROPERTY_heat_of_duty, duty_per_255 == 0 || early);
    world.past.cells[i].heat_duty = duty_per_255;
}

void heat_count(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks)
{
    uint8_t i = cell_of(heat);
    if (i >= N_CELLS)
        return;
    turn.n_counted[i]++;
    check(PROPERTY_heat_of_duty, duty_per_255 == world.past.cells[i].heat_duty);
    check(PROPERTY_heat_of_time, goes_on(&turn.counted_ticks[i], now_ticks));
    bool late = (int16_t)(now_ticks - switching_ticks()) >= 0;
    check(PROPERTY_heat_of_duty, duty_per_255 == 0 || late || !turn.switched);
}

void heat_add(struct heat *heat, const struct heat_law *law, uint16_t counts)
{
    (void)law;
    uint8_t i = cell_of(heat);
    look(heat);
    if (i >= N_CELLS)
        return;
    bool in_order = turn.n_added[i] < turn.n_counted[i] && turn.n_added[i] < turn.n_cooled[i];
    check(PROPERTY_heat_of_reading, in_order && counts == world.past.cells[i].on_counts);
    turn.n_added[i]++;
}

void heat_add_pulse(struct heat *heat, const struct heat_law *law, uint16_t counts, uint16_t pulse_us)
{
    (void)law;
    uint8_t i = cell_of(heat);
    look(heat);
    if (i >= N_CELLS)
        return;
    check(PROPERTY_heat_of_pulse, pulse_us >= PORT_PROBE_MAX_US && counts == turn.pulse_counts);
    turn.n_pulses[i]++;
}

void heat_cool(struct heat *heat, const struct heat_law *law, uint16_t now_ticks)
{
    (void)law;
    uint8_t i = cell_of(heat);
    if (i >= N_CELLS)
        return;
    check(PROPERTY_heat_of_time, goes_on(&turn.cooled_ticks[i], now_ticks));
    turn.n_cooled[i]++;
}

/* tests/firmware/test_memory.py turns bits over. */
bool heat_is_kept(const struct heat *heat)
{
    (void)heat;
    return true;
}
