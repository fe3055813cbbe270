/* Counter-based random numbers of a broadcast: no state between draws. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/* The counter of a cell's draw in this broadcast, and the step to the next cell's. */
uint32_t draw_start(uint32_t seed, uint32_t tick, uint16_t cell);
uint32_t draw_following(uint32_t at);

/* Uniform on 0..65535. */
uint16_t draw_u16(uint32_t at);

#endif
