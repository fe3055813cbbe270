/* The budget of heat of one wire: what its current puts in, what the air carries away.
 *
 * dH/dt = duty I^2 - H / heat_time_constant, in cA^2 ms. A wire of resistance r and heat capacity C a
 * metre is at most r H / C warmer than the air around it, whenever it is austenite and cools at least
 * as fast as the time constant says. So every rounding makes H too large, never too small. */
#ifndef HEAT_H
#define HEAT_H

#include <stdint.h>

#include "message.h"

enum {
    HEAT_TICK_US = 4,
    HEAT_STEP_MS = 8,      /* what is carried away is taken off in such steps */
    HEAT_COUNTS_MAX = 1023, /* the largest current that can be read: so much is assumed before any was */
};

/* What follows from the table of limits, so that the scan does without a division. */
struct heat_law {
    uint16_t gain; /* cA^2 ms of a tick at one count of current, times 2^24 */
    uint16_t loss; /* share of H carried away in a step, times 2^16 */
};

struct heat {
    uint32_t cA2ms;
    uint32_t loss_cA2ms;    /* of the step under way */
    uint16_t rest;          /* of what is carried away, in 2^-16 cA^2 ms */
    uint16_t on_ticks;      /* on since the current was last read, weighted with the duty */
    uint16_t counted_ticks; /* on_ticks counts up to here */
    uint16_t full_ticks;    /* of what comes, so much counts as on without a break */
    uint8_t stepped_ms;     /* the step under way began here */
};

struct heat_law heat_law(const struct wire_limits *limits);

/* Everything is used up: as after a reset, of which nobody knows what was before it. */
void heat_use_up(struct heat *heat, const struct wire_limits *limits, uint32_t now_ms);

/* Modulo 262 ms: a cell that is on is sampled within 50 ms, or the scan is stale. */
uint16_t heat_ticks(uint32_t now_us);

/* From here on the gate has this duty. Nobody knows where a partial one is in its modulation: it may be on at
 * once, for as long as it is on in a whole period. So much counts in full, and only what comes then in
 * proportion: never less than the gate is on, whatever the place in the modulation at which a duty comes and
 * goes. */
void heat_begin(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks);

/* The gate has had this duty up to now. */
void heat_count(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks);

/* What was on since the last call was so with this current, as counts of the converter. */
void heat_add(struct heat *heat, const struct heat_law *law, uint16_t counts);
void heat_add_pulse(struct heat *heat, const struct heat_law *law, uint16_t counts, uint16_t pulse_us);

/* To be called more often than once a step; seldom, and H falls too slowly. */
void heat_cool(struct heat *heat, const struct heat_law *law, uint32_t now_ms);

#endif
