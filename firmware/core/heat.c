#include "heat.h"

#include "port.h"

enum { TICKS_A_MS = 1000 / HEAT_TICK_US };

/* The compiler must not see where the operands come from: GCC 5 would make a product of 32 by 32 bits, which
 * takes an AVR three times as long. */
static inline uint32_t product(uint16_t a, uint16_t b)
{
    __asm__("" : "+r"(a), "+r"(b));
    return (uint32_t)a * b;
}

struct heat_law heat_law(const struct wire_limits *limits)
{
    uint32_t full_scale_mA = limits->current_full_scale_mA;
    uint32_t time_constant_ms = limits->heat_time_constant_ms;
    uint32_t span_ticks = time_constant_ms * TICKS_A_MS;
    /* (full scale / 10 / 1024)^2 tick / 1000 2^24 = full scale^2 / 1562.5, rounded up */
    uint32_t gain = (2u * full_scale_mA * full_scale_mA + 3124u) / 3125u;
    return (struct heat_law){
        .rate = UINT32_MAX / TICKS_A_MS / time_constant_ms,
        .span_ticks = (uint16_t)(span_ticks < UINT16_MAX ? span_ticks : UINT16_MAX),
        .gain = (uint16_t)gain,
    };
}

static void set_sum(struct heat *heat, uint32_t cA2ms)
{
    heat->cA2ms = cA2ms;
    heat->not_cA2ms = ~cA2ms;
}

static void set_cooled(struct heat *heat, uint16_t now_ticks)
{
    heat->cooled_ticks = now_ticks;
    heat->not_cooled_ticks = (uint16_t)~now_ticks;
}

bool heat_is_kept(const struct heat *heat)
{
    return (heat->cA2ms ^ heat->not_cA2ms) == UINT32_MAX &&
           (heat->cooled_ticks ^ heat->not_cooled_ticks) == UINT16_MAX;
}

void heat_start(struct heat *heat, uint32_t cA2ms, uint16_t now_ticks)
{
    *heat = (struct heat){.counted_ticks = now_ticks};
    set_sum(heat, cA2ms);
    set_cooled(heat, now_ticks);
}

void heat_use_up(struct heat *heat, const struct wire_limits *limits, uint16_t now_ticks)
{
    heat_start(heat, limits->heat_max_cA2ms, now_ticks);
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
    uint32_t square = product(at_most, at_most);
    uint32_t a_tick_65536 = (product((uint16_t)(square >> 16), law->gain) << 8) +
                            (product((uint16_t)square, law->gain) >> 8) + 1u;
    return product((uint16_t)(a_tick_65536 >> 16), n) + (product((uint16_t)a_tick_65536, n) >> 16) + 1u;
}

static void add(struct heat *heat, uint32_t gain)
{
    uint32_t room = UINT32_MAX - heat->cA2ms;
    set_sum(heat, heat->cA2ms + (gain < room ? gain : room));
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

/* With x = passed / time constant, 1 - exp(-x) is at least x - x^2 / 2, which is 1/2 at its most. Ticks do not
 * reach a span of UINT16_MAX, which stands for a longer one. */
static uint32_t lost_share(const struct heat_law *law, uint16_t passed)
{
    if (passed >= law->span_ticks && law->span_ticks < UINT16_MAX)
        return UINT32_C(1) << 31;
    uint16_t rate_high = (uint16_t)(law->rate >> 16);
    uint32_t x = product((uint16_t)law->rate, passed);
    if (rate_high != 0) /* the time constant is below 263 ms */
        x += product(rate_high, passed) << 16;
    uint16_t at_most = (uint16_t)((x >> 16) + 1u);
    return x - (product(at_most, at_most) >> 1) - (x != 0); /* the half is rounded down */
}

/* Heat that has flowed since the last call is not yet in H, so that it cools only from now on. */
void heat_cool(struct heat *heat, const struct heat_law *law, uint16_t now_ticks)
{
    uint32_t share = lost_share(law, (uint16_t)(now_ticks - heat->cooled_ticks));
    uint16_t share_high = (uint16_t)(share >> 16), high = (uint16_t)(heat->cA2ms >> 16);
    uint32_t middle = product(high, (uint16_t)share);
    uint32_t low = product((uint16_t)heat->cA2ms, share_high);
    uint32_t rest = (uint32_t)(uint16_t)middle + (uint16_t)low + heat->rest;
    uint32_t loss = product(high, share_high) + (middle >> 16) + (low >> 16) + (rest >> 16);
    heat->rest = (uint16_t)rest;
    set_sum(heat, heat->cA2ms - loss);
    set_cooled(heat, now_ticks);
}
