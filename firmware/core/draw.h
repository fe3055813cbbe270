/* Random numbers of a broadcast, by counter: nothing is remembered between draws. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/* What all draws of a broadcast share. */
uint32_t draw_key(uint32_t seed, uint32_t tick);

/* Uniform on 0..65535. */
uint16_t draw_u16(uint32_t key, uint16_t cell);

#endif
