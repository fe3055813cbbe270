#include "guard.h"

/* Counts samples in a row for which a check failed; true once the limit is reached. */
static bool persists(uint8_t *streak, bool failed, uint8_t scans)
{
    if (!failed)
        *streak = 0;
    else if (*streak < UINT8_MAX)
        (*streak)++;
    return *streak >= scans;
}

static uint16_t check_current_high(struct cell *cell, const struct wire_limits *limits)
{
    bool failed = cell->sampled_mA > limits->current_max_mA;
    bool lasts = persists(&cell->streak[CHECK_HIGH], failed, limits->persistence_scans);
    return lasts ? FAULT_current_high : 0;
}

static uint16_t check_current_low(struct cell *cell, const struct wire_limits *limits)
{
    bool failed = cell->sampled_mA < limits->current_on_min_mA;
    bool lasts = persists(&cell->streak[CHECK_LOW], failed, limits->persistence_scans);
    return lasts ? FAULT_current_low : 0;
}

static uint16_t check_current_off(struct cell *cell, const struct wire_limits *limits)
{
    bool failed = cell->sampled_mA > limits->current_off_max_mA;
    bool lasts = persists(&cell->streak[CHECK_OFF], failed, limits->persistence_scans);
    return lasts ? FAULT_current_when_off : 0;
}

/* The pin differs from its setting, or is set without a command. */
static uint16_t check_gate(struct cell *cell, const struct wire_limits *limits,
                           const struct port_sample *sample)
{
    bool uncommanded = (cell->duty_per_255 == 0) & sample->gate_on & (cell->just_set == 0);
    bool failed = (sample->gate_high != sample->gate_on) | uncommanded;
    if (cell->just_set > 0)
        cell->just_set--;
    bool lasts = persists(&cell->streak[CHECK_GATE], failed, limits->persistence_scans);
    return lasts ? FAULT_gate_stuck : 0;
}

static uint16_t check_temperature(struct cell *cell, const struct wire_limits *limits,
                                  uint16_t counts)
{
    bool below = counts < limits->temperature_counts_min;
    bool above = counts > limits->temperature_counts_max;
    bool hot = cell->temperature_cC > limits->temperature_max_cC;
    uint16_t found = 0;
    if (persists(&cell->streak[CHECK_RANGE], below || above, limits->persistence_scans))
        found |= FAULT_temperature_range;
    if (persists(&cell->streak[CHECK_HOT], hot, limits->persistence_scans))
        found |= FAULT_temperature_high;
    return found;
}

static bool on_too_long(const struct cell *cell, const struct wire_limits *limits, uint16_t now_ms)
{
    return cell->duty_per_255 > 0 && (uint16_t)(now_ms - cell->on_since_ms) > limits->on_time_max_ms;
}

static bool energy_high(const struct cell *cell, const struct wire_limits *limits)
{
    return cell->heat.cA2ms > limits->heat_max_cA2ms;
}

bool guard_is_cool(const struct cell *cell, const struct wire_limits *limits)
{
    return cell->heat.cA2ms <= limits->heat_max_cA2ms / WIRE_HEAT_TO_ARM;
}

static inline uint16_t check_reading(struct cell *cell, const struct wire_limits *limits,
                              const struct port_sample *sample)
{
    uint16_t found = check_temperature(cell, limits, sample->temperature_counts);
    if (sample->gate_on)
        found |= check_current_high(cell, limits) | check_current_low(cell, limits);
    else
        found |= check_current_off(cell, limits);
    return found;
}

uint16_t guard_sample(struct cell *cell, const struct wire_limits *limits,
                      const struct port_sample *sample, uint32_t now_ms)
{
    uint16_t found = check_gate(cell, limits, sample);
    if (PORT_MEASURES(sample))
        found |= check_reading(cell, limits, sample);
    if (on_too_long(cell, limits, (uint16_t)now_ms))
        found |= FAULT_cell_on_too_long;
    if (energy_high(cell, limits))
        found |= FAULT_cell_energy_high;
    return found;
}

bool guard_is_alive(uint16_t supply_counts)
{
    return supply_counts >= GUARD_SUPPLY_COUNTS;
}

bool guard_supply(uint8_t *streak, bool uncut)
{
    return persists(streak, uncut, GUARD_SUPPLY_READINGS);
}

uint16_t guard_sensed(struct cell *cell, const struct wire_limits *limits, uint16_t supply_counts)
{
    uint16_t found = check_current_high(cell, limits);
    if (guard_is_alive(supply_counts))
        found |= check_current_low(cell, limits);
    if (energy_high(cell, limits))
        found |= FAULT_cell_energy_high;
    return found;
}

uint16_t guard_condition(const struct cell *cell, const struct wire_limits *limits)
{
    uint16_t found = 0;
    if (cell->streak[CHECK_OFF] > 0)
        found |= FAULT_current_when_off;
    if (cell->streak[CHECK_RANGE] > 0)
        found |= FAULT_temperature_range;
    if (cell->streak[CHECK_HOT] > 0)
        found |= FAULT_temperature_high;
    if (cell->streak[CHECK_GATE] > 0)
        found |= FAULT_gate_stuck;
    if (energy_high(cell, limits))
        found |= FAULT_cell_energy_high;
    return found;
}

static bool is_far(uint16_t counts, uint16_t known_counts)
{
    int16_t difference = (int16_t)(counts - known_counts);
    return difference > GUARD_REFERENCE_COUNTS || difference < -GUARD_REFERENCE_COUNTS;
}

uint16_t guard_reference(uint8_t *streak, const struct wire_limits *limits,
                         const struct port_sample *sample)
{
    bool failed = is_far(sample->current_counts, sample->known_counts) ||
                  is_far(sample->temperature_counts, sample->known_counts);
    return persists(streak, failed, limits->persistence_scans) ? FAULT_scan_untrue : 0;
}

uint16_t guard_probe(uint16_t counts, const struct wire_limits *limits)
{
    uint16_t current_mA = cell_current_mA(counts, limits);
    uint16_t found = 0;
    if (current_mA < limits->current_on_min_mA)
        found |= FAULT_current_low;
    if (current_mA > limits->current_max_mA)
        found |= FAULT_current_high;
    return found;
}

bool guard_may_be_open(uint8_t n_open, const struct wire_limits *limits)
{
    return n_open < limits->open_cells_max;
}

bool guard_may_add(uint8_t n_on, const struct wire_limits *limits)
{
    return n_on < limits->cells_on_max;
}

bool guard_too_many(uint8_t n_on, const struct wire_limits *limits)
{
    return n_on > limits->cells_on_max;
}

bool guard_silent(uint32_t silence_us, const struct wire_limits *limits)
{
    return silence_us > (uint32_t)limits->silence_max_ms * 1000u;
}

bool guard_scan_stale(uint32_t age_ms, const struct wire_limits *limits)
{
    return age_ms > limits->scan_age_max_ms;
}
