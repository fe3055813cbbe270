/* The host of the fuzz loop: most of what it sends makes sense. */
#ifndef FUZZ_HOST_H
#define FUZZ_HOST_H

#include <stdbool.h>

#include "loop.h"

/* Sends a table of limits: the defaults but for a few entries, or one that no board takes. */
void fuzz_limit(void *board);
/* Sends what a host would, what it would not, an old frame, a broken one, noise or nothing. */
void fuzz_feed(void *board, const struct board *core, bool arms);
/* Sends more broken frames than the board can count. */
void fuzz_flood(void *board);

#endif
