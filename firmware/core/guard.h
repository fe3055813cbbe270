/* Every limit of the board. A level at its limit is allowed. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "cell.h"

/* One cell's sample against the limits: the faults found. Before it, cell_sample. */
uint16_t guard_sample(struct cell *cell, const struct wire_limits *limits,
                      const struct port_sample *sample, uint32_t now_ms);

/* How far a reference may be from its level: 4 % of full scale. Levels lie further apart. */
enum { GUARD_REFERENCE_COUNTS = 40 };

/* Whether a reference reads as it should on both multiplexers; streak is its own. */
uint16_t guard_reference(uint8_t *streak, const struct wire_limits *limits,
                         const struct port_sample *sample);

/* What is wrong with a cell now, on or off: a fault is not cleared before this is nothing. */
uint16_t guard_condition(const struct cell *cell, const struct wire_limits *limits);

/* Whether so little of a cell's heat is used up that it may be armed. */
bool guard_is_cool(const struct cell *cell, const struct wire_limits *limits);

/* What a cell's current says of its wire while it is pulsed: broken, or shorted. */
uint16_t guard_probe(uint16_t counts, const struct wire_limits *limits);

/* Whether one more cell may be open than these that have been found so since arming. */
bool guard_may_be_open(uint8_t n_open, const struct wire_limits *limits);

bool guard_too_many(uint8_t n_on, const struct wire_limits *limits);
bool guard_silent(uint32_t silence_us, const struct wire_limits *limits);
bool guard_scan_stale(uint32_t age_ms, const struct wire_limits *limits);

#endif
