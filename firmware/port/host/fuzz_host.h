/* The host of the fuzz loop: most of its frames are valid. */
#ifndef FUZZ_HOST_H
#define FUZZ_HOST_H

#include <stdbool.h>

#include "loop.h"

/* Sends a table of limits: the defaults except for a few entries, or an invalid table. */
void fuzz_limit(void *board);
/* Sends a plausible or implausible command, an old or broken frame, noise or nothing. */
void fuzz_feed(void *board, const struct board *core, bool arms);
/* Sends more broken frames than the board can count. */
void fuzz_flood(void *board);

#endif
