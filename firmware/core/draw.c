#include "draw.h"

/* A permutation of 32-bit words. Constants: C. Wellons, "Prospecting for hash functions" (2018),
 * lowbias32, public domain: every input bit flips every output bit with probability 0.5 within
 * 0.17 %. */
static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= UINT32_C(0x7feb352d);
    x ^= ((x >> 16) << 1) | (uint16_t)((uint16_t)x >> 15); /* x >> 15 without a loop of shifts */
    x *= UINT32_C(0x846ca68b);
    x ^= x >> 16;
    return x;
}

/* 2^32 over the golden ratio: neighbouring counts differ in many bits before they are mixed. */
#define STRIDE UINT32_C(0x9e3779b9)

uint32_t draw_start(uint32_t seed, uint32_t tick, uint16_t cell)
{
    return mix(seed ^ mix(tick + STRIDE)) + (cell + UINT32_C(1)) * STRIDE;
}

uint32_t draw_following(uint32_t at)
{
    return at + STRIDE;
}

uint16_t draw_u16(uint32_t at)
{
    return (uint16_t)(mix(at) >> 16);
}
