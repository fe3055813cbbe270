/* The heat budget of one wire: heating by its current, cooling by the air.
 *
 * dH/dt = duty I^2 - H / heat_time_constant, in cA^2 ms. A wire of resistance r and heat capacity C per
 * metre is at most r H / C warmer than the surrounding air while it is austenite, if it cools at least as
 * fast as the time constant. All rounding makes H larger. */
#ifndef HEAT_H
#define HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

enum {
    HEAT_TICK_US = 4,
    HEAT_COUNTS_MAX = 1023, /* full scale, which is assumed until the first reading */
};

/* Derived from the limits, so that the scan needs no division. */
struct heat_law {
    uint32_t rate;       /* a tick as a share of the time constant, times 2^32 */
    uint16_t span_ticks; /* the time constant, or as much of it as ticks can count */
    uint16_t gain;       /* cA^2 ms per tick at one count of current, times 2^24 */
};

struct heat {
    uint32_t cA2ms;
    uint32_t not_cA2ms;     /* complement, as of cooled_ticks: heat_is_kept compares them */
    uint16_t rest;          /* remainder of the loss, in 2^-16 cA^2 ms */
    uint16_t on_ticks;      /* on-time since the last reading of the current, weighted with the duty */
    uint16_t counted_ticks; /* time up to which on_ticks counts */
    uint16_t full_ticks;    /* of the coming time, this much counts as fully on */
    uint16_t cooled_ticks;  /* time up to which cooling has been subtracted */
    uint16_t not_cooled_ticks;
};

struct heat_law heat_law(const struct wire_limits *limits);

/* Nothing is on, and so much is used up. */
void heat_start(struct heat *heat, uint32_t cA2ms, uint16_t now_ticks);

/* Sets the budget to used up, as after a reset, when the history is unknown. */
void heat_use_up(struct heat *heat, const struct wire_limits *limits, uint16_t now_ticks);

/* Modulo 262 ms: a cell that is on is sampled within 50 ms, or the scan is stale. */
uint16_t heat_ticks(uint32_t now_us);

/* The gate has this duty from now on. The phase of a partial duty in its modulation is unknown: the gate may be
 * on first, for its whole on-time of a period. This time counts in full and the time after it in proportion, so
 * the count is never less than the actual on-time, at whatever phases duties change. */
void heat_begin(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks);

/* The gate has had this duty up to now. */
void heat_count(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks);

/* Whether no bit has changed since H was set. The other values are of the time since the last reading, which is
 * at most added to H twice or not at all. */
bool heat_is_kept(const struct heat *heat);

/* Subtracts the cooling since the last call. Call before adding what has flowed meanwhile. */
void heat_cool(struct heat *heat, const struct heat_law *law, uint16_t now_ticks);

/* Adds the on-time since the last call with this current, in counts of the converter. */
void heat_add(struct heat *heat, const struct heat_law *law, uint16_t counts);
void heat_add_pulse(struct heat *heat, const struct heat_law *law, uint16_t counts, uint16_t pulse_us);

#endif
