/* Random numbers of a broadcast, by counter: nothing is remembered between draws. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/* Where a cell's draw of this broadcast lies, and from there the next cell's. */
uint32_t draw_start(uint32_t seed, uint32_t tick, uint16_t cell);
uint32_t draw_following(uint32_t at);

/* Uniform on 0..65535. */
uint16_t draw_u16(uint32_t at);

#endif
