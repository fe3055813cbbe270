/* The heat budget is never below that of the wire: the steps of a proof by induction over the readings, each
 * checked on the functions of heat.c themselves, for every value of what it depends on. README.md has the proof.
 *
 * heat [STEP]: only every STEP-th time constant, count and time; without it, all of them. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "heat.c"

__extension__ typedef unsigned __int128 u128;

enum { FULL_SCALE_MAX_mA = 10000, TIME_CONSTANT_MAX_MS = 65535, PERIOD_TICKS = PORT_MODULATION_MAX_US / HEAT_TICK_US };

static unsigned long n_checked, n_failed;
static unsigned step = 1;

static void check(bool ok, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    n_checked++;
    if (!ok && n_failed++ < 10)
        fprintf(stderr, "not so: %s (%lu, %lu, %lu)\n", what, (unsigned long)a, (unsigned long)b, (unsigned long)c);
}

/* Any value, the same in each run. */
static uint64_t any(void)
{
    static uint64_t at;
    uint64_t x = at += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static struct heat_law law_of(unsigned full_scale_mA, unsigned time_constant_ms)
{
    struct wire_limits limits = {
        .current_full_scale_mA = (uint16_t)full_scale_mA, .heat_time_constant_ms = (uint16_t)time_constant_ms};
    return heat_law(&limits);
}

/* gain 2^-24 is at least (full scale / 10 / 1024)^2 tick, in cA^2 ms, and n ticks of c counts gain at least
 * n (c + 1)^2 gain 2^-24. Every full scale and count; n: any, each power of two, and the most. For each remainder
 * in which rounding could differ, every n. */
static void check_gained(void)
{
    static unsigned char seen[65536];
    for (unsigned full = 1; full <= FULL_SCALE_MAX_mA; full += step) {
        struct heat_law law = law_of(full, 683);
        check(UINT64_C(3125) * law.gain >= UINT64_C(2) * full * full, "the gain is rounded up", full, law.gain, 0);
        for (unsigned counts = 0; counts <= HEAT_COUNTS_MAX; counts++) {
            uint64_t square = (uint64_t)(counts + 1) * (counts + 1);
            uint64_t tick = square * law.gain / 256 + 1; /* of 2^-16 cA^2 ms */
            uint16_t rest = (uint16_t)tick;
            bool every = step == 1 && !seen[rest];
            seen[rest] = 1;
            for (unsigned n = 0; n <= UINT16_MAX; n = every ? n + 1 : n == 0 ? 1 : n < 32768 ? 2 * n : n + 32767) {
                uint64_t heat = gained(&law, (uint16_t)counts, (uint16_t)n);
                check((u128)heat << 24 >= (u128)n * square * law.gain, "n ticks gain n I^2", full, counts, n);
                check(heat <= tick * n / 65536 + 2, "and less than 2 more", full, counts, n);
            }
        }
    }
}

/* 1 - exp(-t), from below for 0 <= t <= 1. */
static long double least_loss(long double t)
{
    return t * (1 - t / 2 * (1 - t / 3 * (1 - t / 4)));
}

static void check_cooled(const struct heat_law *law, uint16_t passed, uint32_t share)
{
    uint64_t drawn = any();
    uint32_t before = (uint32_t)drawn >> (drawn >> 59), now = (uint32_t)(drawn >> 32);
    struct heat heat = {.cA2ms = before, .rest = (uint16_t)(drawn >> 40), .cooled_ticks = (uint16_t)now};
    uint16_t rest = heat.rest;
    heat_cool(&heat, law, (uint16_t)(now + passed));
    int64_t lost = ((int64_t)before - heat.cA2ms) * 65536 + heat.rest - rest; /* 2^-16 cA^2 ms */
    check(heat.cA2ms <= before, "cooling ends at 0", before, rest, share);
    check((u128)(uint64_t)lost << 16 <= (u128)share * before && lost >= 0, "the loss is at most its share", before, rest, share);
    check((u128)(uint64_t)(lost + 3 * 65536) << 16 >= (u128)share * before, "and at most 3 less", before, rest, share);
    check(heat.cooled_ticks == (uint16_t)(now + passed), "cooled up to now", before, now, passed);
}

/* The share that is lost in any time is at most 1 - exp(-time / time constant), for every time constant and time;
 * and H loses at most this share, for an H of any size. */
static void check_lost(void)
{
    for (unsigned ms = 1; ms <= TIME_CONSTANT_MAX_MS; ms += step) {
        struct heat_law law = law_of(2000, ms);
        long double span = 250.0L * ms;
        for (unsigned passed = 0; passed <= UINT16_MAX; passed++) {
            uint32_t share = lost_share(&law, (uint16_t)passed);
            long double t = passed < span ? passed / span : 1;
            check(share <= 4294967296.0L * least_loss(t), "no more is lost than cools", ms, passed, share);
            bool nearly = share + passed + 65540.0L >= 4294967296.0L * (t - t * t / 2);
            check(nearly, "and nearly t - t^2 / 2 is", ms, passed, share);
            check_cooled(&law, (uint16_t)passed, share);
        }
    }
}

/* Most ticks for which a gate of this duty can be on in a time, in any phase of a modulation of the longest
 * period, where each period is on for its share: whole periods, and the rest of the time, up to a whole on-time. */
static double most_on(unsigned duty, unsigned time)
{
    double on = PERIOD_TICKS * duty / 255.0, rest = time % PERIOD_TICKS;
    return time / PERIOD_TICKS * on + (rest < on ? rest : on);
}

/* The time of a gate that is counted is at least that for which it can be on; every duty and time, read in between
 * at any time. */
static void check_counted(void)
{
    for (unsigned duty = 1; duty <= UINT8_MAX; duty++)
        for (unsigned time = 0; time < 3 * PERIOD_TICKS; time += step > 1 ? 7 : 1)
            for (unsigned part = 0; part <= time; part += step > 1 ? 61 : 1 + time / 64) {
                uint16_t began = (uint16_t)any();
                struct heat heat = {0};
                heat_begin(&heat, (uint8_t)duty, began);
                heat_count(&heat, (uint8_t)duty, (uint16_t)(began + part));
                heat_count(&heat, (uint8_t)duty, (uint16_t)(began + time));
                check(heat.on_ticks >= (duty == UINT8_MAX ? time : most_on(duty, time)), "on-time is counted", duty, time, part);
                double share = duty / 255.0, full = (duty + 1) * PERIOD_TICKS / 256.0;
                double most = time > full ? full + (time - full) * share : time;
                check(heat.on_ticks <= most + 4, "and no more than that in any phase", duty, time, part);
            }
}

/* H does not run over; what is added is all of the gain, until there is no room. Afterwards no time is left to be
 * added, and a reset begins with the whole budget. */
static void check_added(void)
{
    struct heat_law law = law_of(2000, 683);
    for (unsigned i = 0; i < (1u << 24) / step; i++) {
        uint64_t drawn = any();
        uint32_t gain = (uint32_t)drawn >> (drawn >> 60), before = (uint32_t)(drawn >> 24);
        uint16_t counts = (uint16_t)(drawn % (HEAT_COUNTS_MAX + 1)), n = (uint16_t)(drawn >> 48);
        struct heat heat = {.cA2ms = before}, read = {.on_ticks = n}, pulsed = {0}, used_up;
        add(&heat, gain);
        uint64_t sum = (uint64_t)before + gain;
        check(heat.cA2ms == (sum < UINT32_MAX ? sum : UINT32_MAX), "H grows by the gain", before, gain, 0);
        heat_add(&read, &law, counts);
        check(read.cA2ms == (n > 0 ? gained(&law, counts, n) : 0) && read.on_ticks == 0, "time is added once", counts, n, 0);
        heat_add_pulse(&pulsed, &law, counts, PORT_PROBE_MAX_US);
        check(pulsed.cA2ms >= gained(&law, counts, PORT_PROBE_MAX_US / HEAT_TICK_US), "a pulse adds its time", counts, 0, 0);
        struct wire_limits limits = {.heat_max_cA2ms = before};
        heat_use_up(&used_up, &limits, n);
        check(used_up.cA2ms == before && used_up.cooled_ticks == n, "used up from now on", before, n, 0);
    }
}

int main(int argc, char **argv)
{
    step = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    check_gained();
    check_lost();
    check_counted();
    check_added();
    printf("heat of core %08x: %s, %lu checks, %s\n", CORE_HASH, n_failed ? "VIOLATED" : "holds", n_checked,
           step == 1 ? "every value" : "a sample");
    return n_failed != 0;
}
