/* Random numbers of the fuzz loop: the same seed gives the same sequence. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the sequence; the seed is not 0. */
void chance_seed(uint32_t seed);
uint32_t next(void);
bool one_in(uint32_t n);
/* Flips one random bit of these. */
void flip_bit(uint8_t *bytes, size_t n);

#endif
