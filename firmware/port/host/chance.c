#include "chance.h"

static uint32_t state;

void chance_seed(uint32_t seed)
{
    state = seed;
}

/* xorshift32: Marsaglia 2003, shifts 13, 17, 5 */
uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

bool one_in(uint32_t n)
{
    return next() % n == 0;
}

void flip_bit(uint8_t *bytes, size_t n)
{
    size_t place = next() % n;
    bytes[place] ^= (uint8_t)(1u << next() % 8);
}
