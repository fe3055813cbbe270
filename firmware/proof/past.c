#include "past.h"

#include <string.h>

#include "explorations.h"
#include "guard.h"
#include "limits.h"

enum { ON = 255 };

static uint16_t bit_of(uint8_t cell)
{
    return (uint16_t)(1u << cell);
}

static void due(uint16_t faults, uint16_t cells)
{
    turn.due |= faults;
    turn.may |= faults;
    turn.due_cells |= cells;
    turn.may_cells |= cells;
    if (world.past.tripped == WIRE_CELLS_MAX && cells != 0 && faults != FAULT_too_many_cells_on)
        world.past.tripped = (uint8_t)__builtin_ctz(cells);
}

void past_boot(void)
{
    struct past *past = &world.past;
    uint32_t now_us = past->now_us;
    uint8_t frame = turn.input.frame;
    memset(past, 0, sizeof *past);
    past->now_us = past->scanned_us = past->fed_us = past->set_us = past->sensed_us = now_us;
    past->sense = past->begun = past->unsent = PORT_SENSE_NONE;
    past->tripped = WIRE_CELLS_MAX;
    past->limits = exploration->limits;
    past->corrupt = frame == EVENT_reset_corrupt || frame == EVENT_reset_insane;
    if (frame >= EVENT_reset_virgin)
        limits_default(&past->limits);
    if (past->corrupt)
        due(FAULT_limits_corrupt, 0);
    for (uint8_t i = 0; i < N_CELLS; i++) {
        past->cells[i].n_since = IN_FLIGHT;
        past->cells[i].on_counts = 1023;
    }
}

/* Counts readings in a row; true once the limit is reached. */
static bool persists(uint8_t *bad, bool failed)
{
    if (!failed)
        *bad = 0;
    else if (*bad < world.past.limits.persistence_scans)
        (*bad)++;
    return *bad >= world.past.limits.persistence_scans;
}

/* An open wire is set apart, or it is a fault. */
static void found_open(uint8_t cell)
{
    struct past *past = &world.past;
    if ((past->apart & bit_of(cell)) != 0)
        return;
    if (__builtin_popcount(past->apart) < past->limits.open_cells_max)
        past->apart |= bit_of(cell);
    else
        due(FAULT_current_low, bit_of(cell));
}

static void judge_on(uint8_t cell, bool high, bool low)
{
    struct cell_past *past = &world.past.cells[cell];
    if (persists(&past->bad[CHECK_HIGH], high))
        due(FAULT_current_high, bit_of(cell));
    if (persists(&past->bad[CHECK_LOW], low))
        found_open(cell);
}

static void judge_level(uint8_t cell)
{
    struct cell_past *past = &world.past.cells[cell];
    uint8_t event = turn.input.sample;
    if (persists(&past->bad[CHECK_RANGE], event == EVENT_cold || event == EVENT_no_sensor))
        due(FAULT_temperature_range, bit_of(cell));
    if (persists(&past->bad[CHECK_HOT], event == EVENT_hot || event == EVENT_no_sensor))
        due(FAULT_temperature_high, bit_of(cell));
}

static void judge_cell(const struct port_sample *sample)
{
    uint8_t event = turn.input.sample, i = sample->cell;
    struct past *past = &world.past;
    struct cell_past *cell = &past->cells[i];
    bool differs = event == EVENT_stuck_low || event == EVENT_stuck_high;
    if (persists(&cell->bad[CHECK_GATE], differs || (event == EVENT_flipped && cell->n_since >= IN_FLIGHT)))
        due(FAULT_gate_stuck, bit_of(i));
    if (cell->n_since < IN_FLIGHT)
        cell->n_since++;
    if (exploration->measures) {
        judge_level(i);
        if (sample->gate_on) {
            cell->on_counts = sample->current_counts;
            judge_on(i, event == EVENT_high, event == EVENT_low || event == EVENT_late_low || event == EVENT_stuck_low);
        } else if (persists(&cell->bad[CHECK_OFF], event == EVENT_leak || event == EVENT_stuck_high)) {
            due(FAULT_current_when_off, bit_of(i));
        }
    } else {
        cell->on_counts = 513; /* the least count above current_max_mA */
    }
    if (cell->gate > 0 && past->now_us - cell->on_us > past->limits.on_time_max_ms * 1000u)
        due(FAULT_cell_on_too_long, bit_of(i));
    if (script_heat(i, ABOVE))
        due(FAULT_cell_energy_high, bit_of(i));
    turn.n_readings[i]++;
    past->read |= (uint8_t)bit_of(i);
    if (past->read != bit_of(N_CELLS) - 1)
        return;
    past->read = 0;
    past->scanned = turn.scan_ended = true;
    past->scanned_us = past->now_us;
}

static void judge_sensed(const struct port_sample *sample)
{
    uint8_t event = turn.input.sample, i = sample->cell;
    struct cell_past *cell = &world.past.cells[i];
    turn.n_heating[i]++;
    turn.pulse_counts = sample->current_counts;
    if (!sample->gate_on)
        return;
    cell->on_counts = sample->current_counts;
    world.past.unsent = i;
    if (event != EVENT_sensed_unsupplied) {
        judge_on(i, event == EVENT_sensed_high, event == EVENT_sensed_low);
    } else if (persists(&cell->bad[CHECK_HIGH], false)) {
        due(FAULT_current_high, bit_of(i));
    }
    if (script_heat(i, ABOVE))
        due(FAULT_cell_energy_high, bit_of(i));
}

static bool is_closed(void)
{
    return world.board.state == STATE_armed || world.past.closes > 0;
}

/* Judged with the look at the e-stop that belongs to it, and ends with it what K1 stayed closed for. */
static void judge_supply(bool open)
{
    struct past *past = &world.past;
    bool closed = is_closed() && !open;
    past->cut = !is_closed();
    turn.supply_read = false;
    past->uncut = (open && past->fed) || (!closed && past->alive) ? (uint8_t)(past->uncut + 1) : 0;
    if (past->uncut >= GUARD_SUPPLY_READINGS) {
        past->uncut = GUARD_SUPPLY_READINGS;
        due(FAULT_supply_stuck, 0);
    }
    if (past->closes > 0)
        past->closes--;
}

static void read_supply(const struct port_sample *sample)
{
    struct past *past = &world.past;
    past->fed = sample->current_counts >= GUARD_SUPPLY_COUNTS;
    past->alive = sample->temperature_counts >= GUARD_SUPPLY_COUNTS;
    if (world.port.supply_on)
        past->seen_alive = past->alive;
    else
        past->seen_dead = past->fed && !past->alive, past->seen_alive = false;
    turn.supply_read = true;
}

/* Whether arming has to wait for K1, which its question closes, or keeps closed. */
static bool supply_waits(void)
{
    struct past *past = &world.past;
    bool ready = past->closes > 0 && past->alive;
    if (ready || (past->closes == 0 && past->cut && past->fed && !past->alive))
        past->closes = GUARD_SUPPLY_READINGS;
    return exploration->measures && !ready;
}

void past_reading(const struct port_sample *sample)
{
    if (sample->sensed) {
        judge_sensed(sample);
    } else if (sample->cell == PORT_SUPPLY) {
        read_supply(sample);
    } else if (sample->cell < WIRE_CELLS_MAX) {
        judge_cell(sample);
    } else if (persists(&world.past.bad_reference[sample->cell - WIRE_CELLS_MAX],
                        turn.input.sample != EVENT_reference)) {
        due(FAULT_scan_untrue, 0);
    }
}

void past_pulse(uint8_t cell, uint16_t counts)
{
    struct past *past = &world.past;
    if (turn.probed == 0)
        past->apart = 0; /* every cell is tested anew */
    turn.probed |= (uint8_t)(1u << (cell + N_CELLS));
    turn.pulse_counts = counts;
    turn.n_heating[cell]++;
    past->cells[cell].on_counts = counts;
    past->cells[cell].bad[CHECK_HIGH] = past->cells[cell].bad[CHECK_LOW] = 0;
}

/* With the loop open the gate did not rise, or not for long enough: the pulse says nothing. */
static void judge_pulse(bool open)
{
    uint8_t frame = turn.input.frame;
    for (uint8_t i = 0; i < N_CELLS; i++) {
        if ((turn.probed >> (i + N_CELLS) & 1) == 0 || (turn.probed >> i & 1) != 0)
            continue;
        turn.probed |= (uint8_t)bit_of(i);
        if (open)
            continue;
        if (frame == EVENT_arm_both_open || (frame == EVENT_arm_0_open && i == 0))
            found_open(i);
        if (frame == EVENT_arm_0_short && i == 0)
            due(FAULT_current_high, bit_of(i));
    }
}

void past_look(bool open)
{
    if (turn.supply_read)
        judge_supply(open);
    judge_pulse(open);
    turn.last_look_open = open;
    turn.seen_open |= open;
    if (open)
        due(FAULT_estop_open, 0);
}

bool past_gates(const uint8_t *duty_per_255)
{
    struct past *past = &world.past;
    bool changed = false;
    for (uint8_t i = 0; i < N_CELLS; i++) {
        struct cell_past *cell = &past->cells[i];
        uint8_t duty = duty_per_255 == NULL ? 0 : duty_per_255[i];
        if (duty_per_255 != NULL && duty == cell->gate)
            continue;
        if (duty != cell->gate || cell->n_since == IN_FLIGHT)
            cell->before = cell->gate;
        cell->n_since = 0;
        if (duty == cell->gate)
            continue;
        if (cell->gate == 0)
            cell->on_us = past->now_us;
        cell->gate = duty;
        changed = true;
    }
    if (duty_per_255 == NULL) {
        past_sense(PORT_SENSE_NONE);
        past->closes = 0;
    }
    return changed;
}

/* Whether a reading of this cell's resistance is allowed now. */
static bool may_sense(uint8_t cell)
{
    const struct past *past = &world.past;
    uint8_t n_on = 0;
    for (uint8_t i = 0; i < N_CELLS; i++)
        n_on = (uint8_t)(n_on + (past->cells[i].gate > 0));
    return (past->wired & (uint16_t)~past->apart & bit_of(cell)) != 0 &&
           (past->cells[cell].gate > 0 || n_on < past->limits.cells_on_max) &&
           world.board.state == STATE_armed && past->now_us - past->set_us <= past->hold_us;
}

void past_sense(uint8_t cell)
{
    struct past *past = &world.past;
    if (past->sense != PORT_SENSE_NONE)
        past->begun = past->sense;
    past->sense = cell;
    if (cell == PORT_SENSE_NONE)
        return;
    uint32_t step_ms = past->limits.sense_every_ms / N_CELLS + 1u;
    check(PROPERTY_sensing_allowed, cell < N_CELLS && may_sense(cell) && exploration->measures);
    check(PROPERTY_sensing_allowed, past->now_us - past->sensed_us >= step_ms * 1000 && step_ms > 1);
    past->sensed_us = past->now_us;
}

static void check_due(void)
{
    const struct board *board = &world.board;
    check(PROPERTY_condition_trips, (turn.due & (uint16_t)~board->fault_bits) == 0);
    check(PROPERTY_condition_trips, (turn.due_cells & (uint16_t)~board->fault_cells) == 0);
    check(PROPERTY_sensing_ends, world.past.sense == PORT_SENSE_NONE || may_sense(world.past.sense));
    turn.due = turn.due_cells = 0;
}

static uint16_t asked_on(void)
{
    uint8_t duty[N_CELLS], ms;
    uint16_t cells = 0;
    asked(turn.input.frame, duty, &ms);
    for (uint8_t i = 0; i < N_CELLS; i++)
        cells |= (uint16_t)((duty[i] > 0) << i);
    return cells & (uint16_t)~world.past.apart;
}

void past_heard(void)
{
    const struct past *past = &world.past;
    turn.fresh = past->now_us - past->scanned_us <= past->limits.scan_age_max_ms * 1000u;
    if (!turn.fresh)
        due(FAULT_scan_stale, 0);
    if (past->now_us - past->fed_us > past->limits.silence_max_ms * 1000u)
        turn.may |= FAULT_host_silent;
    if (past->n_since_flip > 0) {
        turn.may |= FAULT_limits_corrupt;
        turn.due |= past->n_since_flip > FLIP_NOTICED ? FAULT_limits_corrupt : 0;
    }
    turn.read_before = turn.looks > 0;
    check_due();
    turn.expected = expected_result();
    if (turn.expected == RESULT_is_faulted && world.board.state == STATE_armed)
        due(FAULT_too_many_cells_on, asked_on());
    if (turn.input.frame == EVENT_clear && turn.expected == RESULT_done)
        world.past.tripped = WIRE_CELLS_MAX;
    turn.heard = true;
}

void past_ends(void)
{
    check_due();
}

/* ---- what a frame asks for */

struct request {
    uint8_t duty_per_255[N_CELLS], valid_for_ms;
};

static const struct request REQUESTS[N_FRAMES] = {
    [EVENT_set_none] = {{0, 0}, 200},
    [EVENT_set_0] = {{ON, 0}, 1},
    [EVENT_set_1] = {{0, ON}, 200},
    [EVENT_set_both] = {{ON, ON}, 200},
    [EVENT_set_unwired] = {{0, 0}, 2},
    [EVENT_set_untimed] = {{ON, ON}, 0},
    [EVENT_set_partial] = {{WIRE_DUTY_MIN_PER_255, 0}, 200},
    [EVENT_set_swapped] = {{0, 254}, 2},
    [EVENT_set_too_short_duty] = {{ON, WIRE_DUTY_MIN_PER_255 - 1}, 200},
    [EVENT_set_other_arming] = {{ON, ON}, 200},
    [EVENT_set_other_version] = {{ON, ON}, 200},
    [EVENT_set_spoilt] = {{ON, ON}, 200},
    [EVENT_set_cut] = {{ON, ON}, 200},
    [EVENT_broadcast_on] = {{0, 0}, 2},
    [EVENT_broadcast_off] = {{0, 0}, 2},
};

bool asked(uint8_t frame, uint8_t *duty_per_255, uint8_t *valid_for_ms)
{
    uint8_t tick = frame == EVENT_broadcast_on ? 5 : 6;
    bool draws = world.past.tick < tick;
    memcpy(duty_per_255, REQUESTS[frame].duty_per_255, N_CELLS);
    *valid_for_ms = REQUESTS[frame].valid_for_ms;
    if (frame != EVENT_broadcast_on && frame != EVENT_broadcast_off)
        return is_set(frame);
    for (uint8_t i = 0; i < N_CELLS; i++) {
        uint8_t duty = world.past.cells[i].commanded;
        bool wired = (world.past.wired & bit_of(i)) != 0;
        if (draws && wired)
            duty = frame == EVENT_broadcast_off ? 0 : duty > 0 ? duty : ON;
        duty_per_255[i] = duty;
    }
    return true;
}

bool is_set(uint8_t frame)
{
    return (frame >= EVENT_set_none && frame <= EVENT_set_cut) || frame == EVENT_broadcast_on ||
           frame == EVENT_broadcast_off;
}

uint16_t named(uint8_t frame)
{
    switch (frame) {
    case EVENT_arm: case EVENT_arm_0_open: case EVENT_arm_both_open: case EVENT_arm_0_short:
    case EVENT_arm_other_limits:
        return 3;
    case EVENT_arm_0:
        return 1;
    case EVENT_arm_1:
        return 2;
    case EVENT_arm_beyond:
        return 4;
    default:
        return 0;
    }
}

/* ---- what protocol.h says of it */

static bool condition(void)
{
    const struct past *past = &world.past;
    bool found = script_estop(turn.input, 1) || !turn.fresh || !past->scanned || past->corrupt ||
                 past->n_since_flip > 0;
    for (uint8_t i = 0; i < N_CELLS; i++) {
        const uint8_t *bad = past->cells[i].bad;
        found |= bad[CHECK_OFF] > 0 || bad[CHECK_RANGE] > 0 || bad[CHECK_HOT] > 0 || bad[CHECK_GATE] > 0 ||
                 script_heat(i, ABOVE);
    }
    for (uint8_t i = 0; i < N_REFERENCES; i++)
        found |= past->bad_reference[i] > 0;
    return found || past->uncut >= GUARD_SUPPLY_READINGS;
}

static bool pulses_fail(uint8_t frame)
{
    uint8_t n_pulses = exploration->measures ? (uint8_t)__builtin_popcount(named(frame)) : 1;
    uint8_t n_open = frame == EVENT_arm_both_open ? 2 : frame == EVENT_arm_0_open;
    for (uint8_t i = 0; i < n_pulses; i++)
        if (script_estop(turn.input, (uint8_t)(2 + i)))
            return true;
    return exploration->measures && (n_open > world.past.limits.open_cells_max || frame == EVENT_arm_0_short);
}

static uint8_t expected_of_arm(uint8_t frame)
{
    uint16_t cells = named(frame);
    if (frame == EVENT_arm_other_limits)
        return RESULT_limits_differ;
    if (cells >= bit_of(N_CELLS))
        return RESULT_bad_value;
    if (condition())
        return RESULT_condition_present;
    for (uint8_t i = 0; i < N_CELLS; i++)
        if ((cells & bit_of(i)) != 0 && script_heat(i, WARM))
            return RESULT_cooling;
    if (supply_waits())
        return RESULT_supply_waits;
    if (cells == 0)
        return RESULT_not_armed;
    return pulses_fail(frame) ? RESULT_is_faulted : RESULT_done;
}

static uint8_t expected_of_set(uint8_t frame)
{
    const struct past *past = &world.past;
    uint8_t duty[N_CELLS], ms, n_on = 0;
    uint8_t state = world.board.state;
    if (frame == EVENT_set_untimed || frame == EVENT_set_too_short_duty)
        return RESULT_bad_value;
    if (state != STATE_armed)
        return state == STATE_faulted ? RESULT_is_faulted : RESULT_not_armed;
    if (frame == EVENT_set_other_arming)
        return RESULT_other_arming;
    asked(frame, duty, &ms);
    for (uint8_t i = 0; i < N_CELLS; i++) {
        if (duty[i] == 0 || (past->apart & bit_of(i)) != 0)
            continue;
        if ((past->wired & bit_of(i)) == 0)
            return RESULT_bad_value;
        n_on++;
    }
    if (frame == EVENT_set_unwired)
        return RESULT_bad_value;
    return n_on > past->limits.cells_on_max ? RESULT_is_faulted : RESULT_done;
}

uint8_t expected_result(void)
{
    uint8_t frame = turn.input.frame, state = world.board.state;
    switch (frame) {
    case EVENT_set_other_version:
        return RESULT_version_differs;
    case EVENT_set_cut:
        return RESULT_bad_length;
    case EVENT_unknown:
        return RESULT_unknown_command;
    case EVENT_replay:
        return state == STATE_armed ? EXPECT_REPLAYED : state == STATE_faulted ? RESULT_is_faulted : RESULT_not_armed;
    case EVENT_disarm:
        return RESULT_done;
    case EVENT_no_frame: case EVENT_set_spoilt: case EVENT_flip_limit: case EVENT_flip_law: case EVENT_reset:
    case EVENT_reset_virgin: case EVENT_reset_corrupt: case EVENT_reset_insane:
        return UINT8_MAX;
    default:
        break;
    }
    if (is_set(frame))
        return expected_of_set(frame);
    if (frame == EVENT_read || frame == EVENT_identify)
        return RESULT_done;
    if (state == STATE_armed)
        return RESULT_is_armed;
    if (frame == EVENT_clear)
        return state != STATE_faulted ? RESULT_done : condition() ? RESULT_condition_present : RESULT_done;
    if (frame == EVENT_set_limits_insane)
        return RESULT_bad_value;
    if (frame == EVENT_set_limits_unstored)
        return RESULT_store_failed;
    if (frame >= EVENT_set_limits)
        return RESULT_done;
    return state == STATE_faulted ? RESULT_is_faulted : expected_of_arm(frame);
}
