#include "cell.h"

#include <string.h>

enum { DT_MAX_MS = UINT8_MAX }; /* keeps products short; a scan this old has tripped long before */

static uint8_t elapsed_ms(uint16_t now_ms, uint16_t then_ms)
{
    uint16_t dt_ms = (uint16_t)(now_ms - then_ms);
    return (uint8_t)(dt_ms < DT_MAX_MS ? dt_ms : DT_MAX_MS);
}

static void add_duty_time(struct cell *cell, uint16_t now_ms)
{
    uint8_t dt_ms = elapsed_ms(now_ms, cell->elapsed_ms);
    uint8_t duty_per_255 = cell->duty_per_255;
    cell->elapsed_ms = now_ms;
    if (duty_per_255 > 0) /* on adds 256 a millisecond */
        cell->duty_time_ms_256 += (uint16_t)(dt_ms * duty_per_255 + dt_ms);
}

/* mA / 10 without a division, rounded down; exact up to 43 A. */
static uint16_t cA_of_mA(uint16_t current_mA)
{
    return (uint16_t)((uint32_t)current_mA * 6554u >> 16);
}

static uint32_t squared(uint16_t current_cA)
{
    return (uint32_t)current_cA * current_cA;
}

static uint32_t gain_cA2ms(const struct cell *cell)
{
    uint32_t on_ms_256 = cell->duty_time_ms_256;
    uint32_t i2_cA2 = squared(cA_of_mA(cell->current_on_mA));
    return i2_cA2 * (on_ms_256 >> 8) + (i2_cA2 * (uint8_t)on_ms_256 >> 8);
}

/* heat += duty I^2 dt - I_continuous^2 dt, between 0 and the largest number. */
static void add_heat(struct cell *cell, uint16_t continuous_mA, uint16_t now_ms)
{
    uint32_t heat_cA2ms = cell->heat_cA2ms;
    if (cell->duty_time_ms_256 != 0) {
        uint32_t gain = gain_cA2ms(cell);
        uint32_t room = UINT32_MAX - heat_cA2ms;
        heat_cA2ms += gain < room ? gain : room;
        cell->duty_time_ms_256 = 0;
    }
    if (heat_cA2ms != 0) {
        uint32_t loss = squared(cA_of_mA(continuous_mA)) * elapsed_ms(now_ms, cell->sampled_ms);
        heat_cA2ms -= loss < heat_cA2ms ? loss : heat_cA2ms;
    }
    cell->heat_cA2ms = heat_cA2ms;
}

uint16_t cell_current_mA(uint16_t counts, const struct wire_limits *limits)
{
    return (uint16_t)((uint32_t)counts * limits->current_full_scale_mA >> 10);
}

void cell_boot(struct cell *cell, uint32_t now_ms, uint16_t current_max_mA)
{
    memset(cell, 0, sizeof *cell);
    cell->elapsed_ms = (uint16_t)now_ms;
    cell->sampled_ms = (uint16_t)now_ms;
    cell->current_on_mA = current_max_mA; /* heat is counted before the first sample, at its worst */
}

void cell_command(struct cell *cell, uint8_t duty_per_255, uint32_t now_ms)
{
    add_duty_time(cell, (uint16_t)now_ms);
    if (cell->duty_per_255 == 0)
        cell->on_since_ms = now_ms;
    cell->duty_per_255 = duty_per_255;
}

void cell_probed(struct cell *cell)
{
    cell->streak[CHECK_HIGH] = 0;
    cell->streak[CHECK_LOW] = 0;
}

void cell_sample(struct cell *cell, const struct wire_limits *limits,
                 const struct port_sample *sample, uint32_t now_ms)
{
    uint16_t current_mA = cell_current_mA(sample->current_counts, limits);
    uint32_t above_zero_cC =
        (uint32_t)sample->temperature_counts * limits->temperature_full_scale_cC >> 10;
    int32_t temperature_cC = (int32_t)above_zero_cC + limits->temperature_zero_cC;
    cell->temperature_cC = (int16_t)(temperature_cC < INT16_MAX ? temperature_cC : INT16_MAX);
    cell->sampled_mA = current_mA;
    if (sample->gate_on)
        cell->current_on_mA = current_mA;
    if (sample->gate_on == (cell->duty_per_255 > 0))
        cell->current_mA = current_mA;
    add_duty_time(cell, (uint16_t)now_ms);
    add_heat(cell, limits->current_continuous_mA, (uint16_t)now_ms);
    cell->sampled_ms = (uint16_t)now_ms;
}
