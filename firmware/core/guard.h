/* Every limit of the board. A level at its limit is allowed. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "cell.h"

/* Faults in one cell's sample. Call cell_sample first. */
uint16_t guard_sample(struct cell *cell, const struct wire_limits *limits,
                      const struct port_sample *sample, uint32_t now_ms);

/* Without a supply, 4 % of its full scale, no current says nothing about the wire. */
enum { GUARD_SUPPLY_COUNTS = 41 };

/* Faults in a cell's current that port_sense has measured. Call cell_sensed first. */
uint16_t guard_sensed(struct cell *cell, const struct wire_limits *limits, uint16_t supply_counts);

/* Whether one more cell than these may be on. */
bool guard_may_add(uint8_t n_on, const struct wire_limits *limits);

/* Allowed deviation of a reference: 4 % of full scale. The levels differ by more. */
enum { GUARD_REFERENCE_COUNTS = 40 };

/* Whether a reference has its level on both multiplexers; each reference has its own streak. */
uint16_t guard_reference(uint8_t *streak, const struct wire_limits *limits,
                         const struct port_sample *sample);

/* Present faults of a cell, on or off: faults can be cleared only when there are none. */
uint16_t guard_condition(const struct cell *cell, const struct wire_limits *limits);

/* Whether enough of a cell's heat budget is left to arm it. */
bool guard_is_cool(const struct cell *cell, const struct wire_limits *limits);

/* Fault of a wire from its current during the test pulse: broken or shorted. */
uint16_t guard_probe(uint16_t counts, const struct wire_limits *limits);

/* Whether one more cell may be open, in addition to those found open since arming. */
bool guard_may_be_open(uint8_t n_open, const struct wire_limits *limits);

bool guard_too_many(uint8_t n_on, const struct wire_limits *limits);
bool guard_silent(uint32_t silence_us, const struct wire_limits *limits);
bool guard_scan_stale(uint32_t age_ms, const struct wire_limits *limits);

#endif
