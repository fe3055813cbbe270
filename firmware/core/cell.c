#include "cell.h"

#include <string.h>

/* One cell can be read out of turn, and in turn soon after. */
enum { SAMPLES_IN_FLIGHT = 2 };

/* Counts of 1024. */
static inline uint16_t share_of(uint16_t full_scale, uint16_t counts)
{
    return (uint16_t)((uint32_t)(uint16_t)(counts << 6) * full_scale >> 16);
}

uint16_t cell_current_mA(uint16_t counts, const struct wire_limits *limits)
{
    return share_of(limits->current_full_scale_mA, counts);
}

void cell_boot(struct cell *cell)
{
    memset(cell, 0, sizeof *cell);
    cell->not_on_since_ms = UINT16_MAX;
    cell->not_duty_per_255 = UINT8_MAX;
    cell->on_counts = HEAT_COUNTS_MAX;
}

bool cell_is_kept(const struct cell *cell)
{
    return heat_is_kept(&cell->heat) && (cell->duty_per_255 ^ cell->not_duty_per_255) == UINT8_MAX &&
           (cell->on_since_ms ^ cell->not_on_since_ms) == UINT16_MAX;
}

void cell_command(struct cell *cell, uint8_t duty_per_255, uint16_t now_ms, uint16_t before_ticks,
                  uint16_t after_ticks)
{
    if (cell->duty_per_255 != 0)
        heat_count(&cell->heat, cell->duty_per_255, after_ticks);
    heat_begin(&cell->heat, duty_per_255, before_ticks);
    if (cell->duty_per_255 == 0) {
        cell->on_since_ms = now_ms;
        cell->not_on_since_ms = (uint16_t)~now_ms;
    }
    cell->duty_per_255 = duty_per_255;
    cell->not_duty_per_255 = (uint8_t)~duty_per_255;
    cell->just_set = SAMPLES_IN_FLIGHT;
}

void cell_probed(struct cell *cell, const struct heat_law *law, uint16_t counts, uint16_t now_ticks)
{
    cell->on_counts = counts;
    heat_cool(&cell->heat, law, now_ticks);
    heat_add_pulse(&cell->heat, law, counts, PORT_PROBE_MAX_US);
    cell->streak[CHECK_HIGH] = 0;
    cell->streak[CHECK_LOW] = 0;
}

/* The pulse is counted whether the gate was on anyway or not, and however it ended. */
void cell_sensed(struct cell *cell, const struct wire_limits *limits, const struct heat_law *law,
                 const struct port_sample *sample, uint16_t now_ticks)
{
    uint16_t counts = sample->current_counts;
    heat_cool(&cell->heat, law, now_ticks);
    heat_add_pulse(&cell->heat, law, counts, PORT_PROBE_MAX_US);
    if (!sample->gate_on)
        return;
    cell->on_counts = counts;
    cell->sampled_mA = cell_current_mA(counts, limits);
}

/* The least count above current_max_mA: the current of a gate that is on, if nothing measures it. */
static uint16_t assumed_counts(const struct wire_limits *limits)
{
    uint16_t counts = 0;
    for (uint16_t bit = (HEAT_COUNTS_MAX + 1) / 2; bit != 0; bit >>= 1)
        if (cell_current_mA((uint16_t)(counts | bit), limits) <= limits->current_max_mA)
            counts |= bit;
    return counts < HEAT_COUNTS_MAX ? (uint16_t)(counts + 1) : HEAT_COUNTS_MAX;
}

static inline void take_reading(struct cell *cell, const struct wire_limits *limits,
                         const struct port_sample *sample)
{
    uint16_t current_mA = cell_current_mA(sample->current_counts, limits);
    uint16_t above_zero_cC = share_of(limits->temperature_full_scale_cC, sample->temperature_counts);
    int32_t temperature_cC = (int32_t)above_zero_cC + limits->temperature_zero_cC;
    cell->temperature_cC = (int16_t)(temperature_cC < INT16_MAX ? temperature_cC : INT16_MAX);
    cell->sampled_mA = current_mA;
    if (sample->gate_on)
        cell->on_counts = sample->current_counts;
    if (sample->gate_on == (cell->duty_per_255 > 0))
        cell->current_mA = current_mA;
}

void cell_sample(struct cell *cell, const struct wire_limits *limits, const struct heat_law *law,
                 const struct port_sample *sample, uint16_t now_ticks)
{
    if (PORT_MEASURES(sample))
        take_reading(cell, limits, sample);
    else
        cell->on_counts = assumed_counts(limits);
    heat_count(&cell->heat, cell->duty_per_255, now_ticks);
    heat_cool(&cell->heat, law, now_ticks);
    heat_add(&cell->heat, law, cell->on_counts);
}
