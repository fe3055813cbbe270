/* What may happen in each exploration: one dimension of the board's surroundings, with the commands that matter
 * for it; everything else is well. Together: every property, in each of these worlds. */
#ifndef EXPLORATIONS_H
#define EXPLORATIONS_H

#include "events.h"

struct exploration {
    const char *name, *varies;
    uint64_t samples, estops, frames, heats, steps; /* bit i: event i may happen */
    bool one;       /* cell 1 is well: the cells are alike */
    bool meets;     /* a turn may bring a reading together with a frame, before or after it */
    bool mute;      /* the line may take no answer */
    bool measures;
    bool supply;    /* it is read; else arming finds it tested */
    struct wire_limits limits;
};

extern const struct exploration EXPLORATIONS[];
extern const unsigned N_EXPLORATIONS;
extern const struct exploration *exploration; /* the present one */

/* Whether the exploration has this input at all. */
bool exploration_has(struct input input);

#endif
