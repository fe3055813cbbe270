/* What the two halves of the fuzz loop share: chance, and a host that mostly makes sense. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"

uint32_t next(void);
bool one_in(uint32_t n);
/* Turns one bit of these. */
void fuzz_flip(uint8_t *bytes, size_t n);

/* Sends a table of limits: the defaults but for a few entries, or one that no board takes. */
void fuzz_limit(void *board);
/* Sends what a host would, what it would not, an old frame, a broken one, noise or nothing. */
void fuzz_feed(void *board, const struct board *core, bool arms);
/* Sends more broken frames than the board can count. */
void fuzz_flood(void *board);

#endif
