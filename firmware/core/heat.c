#include "heat.h"

#include "port.h"

struct heat_law heat_law(const struct wire_limits *limits)
{
    uint32_t full_scale_mA = limits->current_full_scale_mA;
    uint32_t time_constant_ms = limits->heat_time_constant_ms;
    /* (full scale / 10 / 1024)^2 tick / 1000 2^24 = full scale^2 / 1562.5, rounded up */
    uint32_t gain = (2u * full_scale_mA * full_scale_mA + 3124u) / 3125u;
    /* not above 1 - exp(-step / time constant) */
    uint32_t loss = ((uint32_t)HEAT_STEP_MS << 16) / (time_constant_ms + HEAT_STEP_MS);
    return (struct heat_law){.gain = (uint16_t)gain, .loss = (uint16_t)loss};
}

void heat_use_up(struct heat *heat, const struct wire_limits *limits, uint32_t now_ms)
{
    *heat = (struct heat){.cA2ms = limits->heat_max_cA2ms, .stepped_ms = (uint8_t)now_ms};
}

uint16_t heat_ticks(uint32_t now_us)
{
    return (uint16_t)(now_us / HEAT_TICK_US);
}

void heat_begin(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks)
{
    enum { TICKS_A_STEP = PORT_MODULATION_MAX_US / HEAT_TICK_US / 256 };
    heat->counted_ticks = now_ticks;
    if (duty_per_255 < UINT8_MAX)
        heat->full_ticks = (uint16_t)((duty_per_255 + 1u) * TICKS_A_STEP);
}

/* Ticks times the duty d / 255; (257 d + 1) / 65536 is just above that. */
static uint16_t partly_on(struct heat *heat, uint8_t duty_per_255, uint16_t ticks)
{
    uint16_t full = heat->full_ticks;
    if (ticks <= full) {
        heat->full_ticks = (uint16_t)(full - ticks);
        return ticks;
    }
    uint16_t share = (uint16_t)(((unsigned)duty_per_255 << 8 | duty_per_255) + 1u);
    heat->full_ticks = 0;
    return (uint16_t)(full + ((uint32_t)(uint16_t)(ticks - full) * share >> 16));
}

void heat_count(struct heat *heat, uint8_t duty_per_255, uint16_t now_ticks)
{
    uint16_t passed = (uint16_t)(now_ticks - heat->counted_ticks);
    heat->counted_ticks = now_ticks;
    if (duty_per_255 == 0)
        return;
    if (duty_per_255 < UINT8_MAX)
        passed = partly_on(heat, duty_per_255, passed);
    heat->on_ticks = (uint16_t)(heat->on_ticks + passed + 1u);
}

/* n I^2 in cA^2 ms, of n ticks. */
static uint32_t gained(const struct heat_law *law, uint16_t counts, uint16_t n)
{
    uint16_t at_most = (uint16_t)(counts + 1u);
    uint32_t square = (uint32_t)at_most * at_most;
    uint32_t a_tick_65536 = ((uint32_t)(uint16_t)(square >> 16) * law->gain << 8) +
                            ((uint32_t)(uint16_t)square * law->gain >> 8) + 1u;
    return (uint32_t)(uint16_t)(a_tick_65536 >> 16) * n +
           ((uint32_t)(uint16_t)a_tick_65536 * n >> 16) + 1u;
}

static void add(struct heat *heat, uint32_t gain)
{
    uint32_t room = UINT32_MAX - heat->cA2ms;
    heat->cA2ms += gain < room ? gain : room;
}

void heat_add(struct heat *heat, const struct heat_law *law, uint16_t counts)
{
    if (heat->on_ticks == 0)
        return;
    add(heat, gained(law, counts, heat->on_ticks));
    heat->on_ticks = 0;
}

void heat_add_pulse(struct heat *heat, const struct heat_law *law, uint16_t counts, uint16_t pulse_us)
{
    add(heat, gained(law, counts, (uint16_t)(pulse_us / HEAT_TICK_US + 1u)));
}

/* The loss of a step is computed from H at its beginning; heat gained within it is not reduced until the
 * next. */
void heat_cool(struct heat *heat, const struct heat_law *law, uint32_t now_ms)
{
    if ((uint8_t)((uint8_t)now_ms - heat->stepped_ms) < HEAT_STEP_MS)
        return;
    heat->stepped_ms = (uint8_t)(heat->stepped_ms + HEAT_STEP_MS);
    heat->cA2ms -= heat->loss_cA2ms;
    uint32_t low = (uint32_t)(uint16_t)heat->cA2ms * law->loss + heat->rest;
    heat->rest = (uint16_t)low;
    heat->loss_cA2ms = (uint32_t)(uint16_t)(heat->cA2ms >> 16) * law->loss + (low >> 16);
}
