/* The board's past, recorded from what it is told and shown, and what the limits say of it. */
#ifndef PAST_H
#define PAST_H

#include "limits.h"
#include "script.h"

/* Turns in which a bit that has turned over is noticed: the rest of a round, and one more. */
enum { FLIP_NOTICED = 2 * (LIMITS_ENTRIES + 1) };

void past_boot(void);

/* A reading of a cell or reference. */
void past_reading(const struct port_sample *sample);
/* A pulse at arming has had this current; the next look at the e-stop decides whether it counts. */
void past_pulse(uint8_t cell, uint16_t counts);
void past_look(bool open);
bool past_gates(const uint8_t *duty_per_255); /* NULL: off; whether any has changed */
void past_sense(uint8_t cell);

/* The board begins to listen: what has been due until now must stand. */
void past_heard(void);
/* The same at the end of the turn. */
void past_ends(void);

/* The result of this turn's frame, by protocol.h; UINT8_MAX: no answer. */
uint8_t expected_result(void);
enum { EXPECT_REPLAYED = UINT8_MAX - 1 }; /* `replayed` or `other_arming` */

/* The duties that a set command asks for, and its validity; false: the frame is no set command. */
bool asked(uint8_t frame, uint8_t *duty_per_255, uint8_t *valid_for_ms);
uint16_t named(uint8_t frame); /* cells that an arm command names; 0: it is none */
bool is_set(uint8_t frame);

#endif
