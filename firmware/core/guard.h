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
bool guard_is_alive(uint16_t supply_counts);

/* The last relay and the discharge of the rail take 0.3 s; four scans of 3.25 ms are between two readings. */
#ifndef GUARD_SUPPLY_READINGS
#define GUARD_SUPPLY_READINGS 32
#endif

/* Whether the supply has been alive for so many readings in a row although it should be cut. */
bool guard_supply(uint8_t *streak, bool uncut);

/* Faults in a cell's current that port_sense has measured. Call cell_sensed first. */
uint16_t guard_sensed(struct cell *cell, const struct wire_limits *limits, uint16_t supply_counts);

/* Whether one more cell than these may be on. */
bool guard_may_add(uint8_t n_on, const struct wire_limits *limits);

/* Allowed deviation of a reference: of 4.096 V, when AVCC is 1.4 % off. Of a sound board, in counts: 4.096 V by
 * the 5 V regulator 10.1 (1.2 %), the reference 3.5 (0.1 %, and 100 ppm/K for 40 K), the converter 2 and half a
 * count, as root of the sum of squares 10.8; half of AVCC by two resistors of 1 % at most 5.1, and the converter;
 * full scale by the converter alone. So one bound does for all. The levels differ by more. */
enum { GUARD_REFERENCE_COUNTS = 12 };

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
