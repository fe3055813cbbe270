#include "script.h"

#include <string.h>

#include "explorations.h"
#include "guard.h"
#include "limits.h"
#include "past.h"

enum { ON = 255, GOOD = 300, LOW = 63, LEAST_ON = 64, MOST_ON = 512, HIGH = 513, MOST_OFF = 64, LEAK = 65 };
enum { COLD = 19, COLDEST = 20, ROOM = 153, HOTTEST = 256, HOT = 257, HOTTEST_READ = 1000, NO_SENSOR = 1001 };
enum { REFERENCE = 512, SUPPLY = GUARD_SUPPLY_COUNTS };

struct turn turn;

static const uint8_t OPEN_LOOKS[] = {
#define VALUE(name, value) value,
    ESTOPS(VALUE)};
static const uint32_t STEP_US[] = {STEPS(VALUE)};

bool script_estop(struct input input, uint8_t look)
{
    return (OPEN_LOOKS[input.estop] >> (look < 7 ? look : 7) & 1) != 0;
}

struct port_identity answer_identity(void)
{
    return (struct port_identity){
        .n_cells = N_CELLS, .scan_period_us = 1000, .measures = exploration->measures};
}

/* Each switching takes a tick, which does not count in the next turn. */
uint32_t answer_now_us(void)
{
    return world.past.now_us + (uint32_t)HEAT_TICK_US * turn.switched;
}

bool answer_estop_open(void)
{
    bool open = script_estop(turn.input, turn.looks++);
    past_look(open);
    return open;
}

void answer_gates(const uint8_t *duty_per_255, uint8_t n_cells)
{
    (void)n_cells;
    turn.switched = (uint8_t)(turn.switched + past_gates(duty_per_255));
}

void answer_refresh(void)
{
    turn.refreshed = true;
}

void answer_sense(uint8_t cell)
{
    past_sense(cell);
}

static bool is_on(uint8_t cell)
{
    return world.past.cells[cell].gate > 0;
}

static uint8_t sensed_cell(void)
{
    return world.past.sense != PORT_SENSE_NONE ? world.past.sense : world.past.begun;
}

bool script_admits(struct input input)
{
    const struct cell_past *cell = &world.past.cells[input.cell];
    switch (input.sample) {
    case EVENT_low: case EVENT_high: case EVENT_stuck_low:
        return is_on(input.cell);
    case EVENT_leak: case EVENT_stuck_high: case EVENT_flipped:
        return !is_on(input.cell);
    case EVENT_late:
        return cell->n_since < IN_FLIGHT && (cell->before > 0) != is_on(input.cell);
    case EVENT_late_low:
        return cell->n_since < IN_FLIGHT && cell->before > 0 && !is_on(input.cell);
    case EVENT_between:
        return is_on(input.cell) && cell->gate < ON;
    case EVENT_sensed: case EVENT_sensed_low: case EVENT_sensed_unsupplied: case EVENT_sensed_high:
    case EVENT_sensed_off:
        return sensed_cell() != PORT_SENSE_NONE;
    default:
        return true;
    }
}

static void fill_reference(struct port_sample *sample)
{
    enum { ALLOWED = GUARD_REFERENCE_COUNTS };
    uint16_t beyond = turn.input.sample == EVENT_reference ? 0 : 1;
    bool low = turn.input.sample == EVENT_reference_low;
    bool split = turn.input.sample == EVENT_reference_split;
    uint16_t off = (uint16_t)(ALLOWED + beyond);
    sample->cell = (uint8_t)(WIRE_CELLS_MAX + turn.input.cell);
    sample->known_counts = REFERENCE;
    sample->current_counts = (uint16_t)(low ? REFERENCE - off : REFERENCE + off);
    sample->temperature_counts = split ? REFERENCE : (uint16_t)(low ? REFERENCE - off : REFERENCE + off);
}

static void fill_sensed(struct port_sample *sample)
{
    uint8_t event = turn.input.sample;
    sample->sensed = true;
    sample->cell = sensed_cell();
    sample->gate_on = sample->gate_high = event != EVENT_sensed_off;
    sample->current_counts = event == EVENT_sensed_high ? HIGH : event == EVENT_sensed ? GOOD : LOW;
    sample->temperature_counts = event == EVENT_sensed_unsupplied ? SUPPLY - 1 : SUPPLY;
    if (world.past.sense != PORT_SENSE_NONE)
        world.past.sense = PORT_SENSE_NONE;
    else
        world.past.begun = PORT_SENSE_NONE;
}

static void fill_gate(struct port_sample *sample)
{
    bool on = is_on(sample->cell);
    switch (turn.input.sample) {
    case EVENT_stuck_low:
        sample->gate_on = true;
        break;
    case EVENT_stuck_high:
        sample->gate_high = true;
        break;
    case EVENT_flipped: case EVENT_late: case EVENT_late_low:
        sample->gate_on = sample->gate_high = !on;
        break;
    case EVENT_between:
        break;
    default:
        sample->gate_on = sample->gate_high = on;
        break;
    }
}

static uint16_t current_counts(bool on)
{
    switch (turn.input.sample) {
    case EVENT_least:
        return on ? LEAST_ON : 0;
    case EVENT_most:
        return on ? MOST_ON : MOST_OFF;
    case EVENT_low: case EVENT_late_low:
        return LOW;
    case EVENT_high:
        return HIGH;
    case EVENT_leak:
        return LEAK;
    default:
        return on ? GOOD : 0;
    }
}

static uint16_t temperature_counts(void)
{
    switch (turn.input.sample) {
    case EVENT_least:
        return COLDEST;
    case EVENT_most:
        return HOTTEST;
    case EVENT_cold:
        return COLD;
    case EVENT_hot:
        return turn.input.cell == 0 ? HOT : HOTTEST_READ;
    case EVENT_no_sensor:
        return NO_SENSOR;
    default:
        return ROOM;
    }
}

static void fill_supply(struct port_sample *sample)
{
    uint8_t event = turn.input.sample;
    sample->cell = PORT_SUPPLY;
    sample->current_counts = event >= EVENT_unfed ? SUPPLY - 1 : SUPPLY;
    sample->temperature_counts = event == EVENT_rail_alive || event == EVENT_unfed_alive ? SUPPLY : SUPPLY - 1;
}

bool answer_sample(struct port_sample *sample)
{
    if (turn.input.sample == EVENT_no_sample || turn.sampled || turn.heard != turn.input.after)
        return false;
    turn.sampled = true;
    *sample = (struct port_sample){.cell = turn.input.cell};
    if (turn.input.sample >= EVENT_rail_dead) {
        fill_supply(sample);
    } else if (turn.input.sample >= EVENT_sensed) {
        fill_sensed(sample);
    } else if (turn.input.sample >= EVENT_reference) {
        fill_reference(sample);
    } else {
        fill_gate(sample);
        sample->current_counts = current_counts(sample->gate_high);
        sample->temperature_counts = temperature_counts();
    }
    past_reading(sample);
    return true;
}

bool answer_byte(uint8_t *byte)
{
    if (!turn.heard)
        past_heard();
    if (turn.at_byte == turn.n_bytes)
        return false;
    *byte = turn.bytes[turn.at_byte++];
    return true;
}

bool answer_send(const uint8_t *bytes, uint8_t n)
{
    memcpy(turn.answer + turn.n_answer, bytes, n);
    turn.n_answer = (uint8_t)(turn.n_answer + n);
    return !turn.input.mute;
}

uint16_t answer_probe(uint8_t cell)
{
    uint8_t frame = turn.input.frame;
    bool open = frame == EVENT_arm_both_open || (frame == EVENT_arm_0_open && cell == 0);
    uint16_t counts = open ? LOW : frame == EVENT_arm_0_short && cell == 0 ? HIGH : GOOD;
    turn.switched++;
    past_pulse(cell, counts);
    return counts;
}

bool answer_load(uint8_t *bytes, uint8_t n)
{
    (void)n;
    if (turn.input.frame == EVENT_reset_virgin)
        return false;
    struct wire_limits limits = exploration->limits;
    if (turn.input.frame == EVENT_reset_insane)
        limits.hold_max_ms = 0;
    uint8_t *end = wire_pack_limits(bytes, &limits);
    uint16_t crc = limits_crc(&limits);
    end[0] = (uint8_t)crc;
    end[1] = (uint8_t)(crc >> 8);
    if (turn.input.frame == EVENT_reset_corrupt)
        bytes[3] ^= 1;
    return true;
}

bool answer_store(const uint8_t *bytes, uint8_t n)
{
    (void)bytes, (void)n;
    world.past.scanned_us = world.past.now_us; /* storing blocks the loop; this is not the scan's fault */
    return turn.input.frame != EVENT_set_limits_unstored;
}

uint16_t answer_count(void)
{
    world.past.scanned_us = world.past.now_us; /* so does counting */
    return 1;
}

/* As the core has set it. */
uint8_t answer_gate(uint8_t cell)
{
    (void)cell;
    return 0;
}

bool answer_program(void)
{
    return true;
}

void answer_watchdog(void)
{
    turn.fed_watchdog = true;
}

/* The numbering of the host that armed the board. */
static uint32_t next_number(void)
{
    return world.board.number + 1;
}

static uint16_t arming(void)
{
    uint16_t other = turn.input.frame == EVENT_set_other_arming ? 0x4000 : 0;
    return (uint16_t)(next_number() >> 8) ^ other;
}

static void put_frame(uint8_t code, uint8_t payload)
{
    struct frame_writer writer;
    uint8_t *frame = turn.bytes;
    frame[1] = turn.input.frame == EVENT_set_other_version ? WIRE_VERSION + 1 : WIRE_VERSION;
    frame[2] = code;
    frame[3] = (uint8_t)next_number();
    frame_open(&writer, frame, frame + 1 + FRAME_HEADER + payload);
    uint8_t *end = frame;
    for (uint8_t *next = frame; next != NULL; next = frame_group(&writer))
        end = next;
    turn.n_bytes = (uint8_t)(end - frame);
}

#define PUT(layout, ...)                                                          \
    do {                                                                          \
        struct wire_##layout message = {__VA_ARGS__};                             \
        wire_pack_##layout(turn.bytes + 1 + FRAME_HEADER, &message);              \
        put_frame(COMMAND_##layout, WIRE_SIZE_##layout);                          \
    } while (0)

static void put_arm(uint8_t frame)
{
    uint16_t spoil = frame == EVENT_arm_other_limits;
    PUT(arm, .limits_crc = (uint16_t)(world.board.limits_crc ^ spoil), .cells = named(frame));
}

static void put_mask(const uint8_t *duty_per_255, uint8_t valid_for_ms)
{
    uint16_t cells_on = turn.input.frame == EVENT_set_unwired ? 4 : 0;
    for (uint8_t i = 0; i < N_CELLS; i++)
        cells_on |= (uint16_t)((duty_per_255[i] != 0) << i);
    PUT(set_mask, .arming = arming(), .valid_for_ms = valid_for_ms, .cells_on = cells_on);
}

static void put_limits(void)
{
    struct wire_limits limits = exploration->limits;
    if (turn.input.frame == EVENT_set_limits_other)
        limits.cells_on_max = 1;
    if (turn.input.frame == EVENT_set_limits_insane)
        limits.temperature_counts_min = limits.temperature_counts_max;
    PUT(set_limits, .limits = limits);
}

static void put_set(uint8_t frame)
{
    uint8_t duty[WIRE_CELLS_MAX] = {0}, ms = 0;
    asked(frame, duty, &ms);
    if (frame == EVENT_broadcast_on)
        PUT(broadcast, .arming = arming(), .valid_for_ms = ms, .p_on_per_65536 = WIRE_PROBABILITY_ONE, .tick = 5);
    else if (frame == EVENT_broadcast_off)
        PUT(broadcast, .arming = arming(), .valid_for_ms = ms, .q_off_per_65536 = WIRE_PROBABILITY_ONE, .tick = 6);
    else if (frame == EVENT_set_both || (frame >= EVENT_set_partial && frame <= EVENT_set_too_short_duty))
        PUT(set_duties, .arming = arming(), .valid_for_ms = ms, .duty_per_255 = {duty[0], duty[1]});
    else
        put_mask(duty, ms);
    if (frame == EVENT_set_spoilt)
        turn.bytes[turn.n_bytes - 2] ^= 0x40;
    if (frame == EVENT_set_cut)
        put_frame(COMMAND_set_mask, WIRE_SIZE_set_mask - 1);
}

static void put_event(uint8_t frame)
{
    static const uint8_t CODES[N_FRAMES] = {
        [EVENT_disarm] = COMMAND_disarm, [EVENT_clear] = COMMAND_clear_faults, [EVENT_read] = COMMAND_read,
        [EVENT_identify] = COMMAND_identify, [EVENT_unknown] = 0x55};
    if (frame >= EVENT_arm && frame <= EVENT_arm_other_limits) {
        put_arm(frame);
    } else if (frame >= EVENT_set_limits && frame <= EVENT_set_limits_unstored) {
        put_limits();
    } else if (frame == EVENT_replay) {
        turn.n_bytes = world.past.last_n;
        memcpy(turn.bytes, world.past.last_frame, turn.n_bytes);
    } else if (frame >= EVENT_set_none && frame <= EVENT_broadcast_off) {
        put_set(frame);
    } else if (CODES[frame] != 0) {
        put_frame(CODES[frame], 0);
    }
}

void script_start(struct input input)
{
    memset(&turn, 0, sizeof turn);
    turn.input = input;
    world.past.now_us += STEP_US[input.step];
    put_event(input.frame);
}
