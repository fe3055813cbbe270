#include "script.h"

#include <string.h>

#include "limits.h"

enum {
    ON_GOOD = 300, ON_LOW = 2, ON_HIGH = 900, LEAK = 40, ROOM = 153,
    ON = 255
};

struct turn turn;

static const uint8_t OPEN_LOOKS[] = {
#define VALUE(name, value) value,
    ESTOPS(VALUE)};
static const uint32_t STEP_US[] = {STEPS(VALUE)};

struct port_identity answer_identity(void)
{
    return (struct port_identity){.n_cells = N_CELLS, .scan_period_us = 1000, .measures = true};
}

uint32_t answer_now_us(void)
{
    return world.past.now_us;
}

bool answer_estop_open(void)
{
    uint8_t look = turn.looks < 7 ? turn.looks++ : 7;
    bool open = (OPEN_LOOKS[turn.input.estop] >> look & 1) != 0;
    turn.seen_open |= open;
    turn.last_look_open = open;
    return open;
}

static uint16_t current_of(uint8_t cell, bool on)
{
    switch (turn.input.scan) {
    case EVENT_low_0:
        return cell == 0 && on ? ON_LOW : on ? ON_GOOD : 0;
    case EVENT_low_1:
        return cell == 1 && on ? ON_LOW : on ? ON_GOOD : 0;
    case EVENT_low_both:
        return on ? ON_LOW : 0;
    case EVENT_high_0:
        return cell == 0 && on ? ON_HIGH : on ? ON_GOOD : 0;
    case EVENT_leak_0:
        return cell == 0 && !on ? LEAK : on ? ON_GOOD : 0;
    default:
        return on ? ON_GOOD : 0;
    }
}

static void count(uint8_t *streak, bool failed)
{
    if (!failed)
        *streak = 0;
    else if (*streak < UINT8_MAX)
        (*streak)++;
}

bool answer_sample(struct port_sample *sample)
{
    if (turn.input.scan == EVENT_no_scan || turn.at_sample == N_CELLS)
        return false;
    uint8_t cell = turn.at_sample++;
    bool on = (world.port.high >> cell & 1) != 0;
    sample->cell = cell;
    sample->gate_on = sample->gate_high = on;
    sample->known_counts = 0;
    sample->sensed = false;
    sample->current_counts = current_of(cell, on);
    sample->temperature_counts = ROOM;
    if (on) {
        count(&world.past.n_high[cell], sample->current_counts == ON_HIGH);
        count(&world.past.n_low[cell], sample->current_counts == ON_LOW);
    }
    if (cell == N_CELLS - 1)
        world.past.scanned_us = world.past.now_us;
    return true;
}

bool answer_byte(uint8_t *byte)
{
    if (turn.at_byte == turn.n_bytes)
        return false;
    *byte = turn.bytes[turn.at_byte++];
    return true;
}

bool answer_send(const uint8_t *bytes, uint8_t n)
{
    memcpy(turn.answer + turn.n_answer, bytes, n);
    turn.n_answer = (uint8_t)(turn.n_answer + n);
    return true;
}

uint16_t answer_probe(uint8_t cell)
{
    if (cell == 0 && turn.input.frame == EVENT_arm_0_open)
        return ON_LOW;
    return cell == 0 && turn.input.frame == EVENT_arm_0_short ? ON_HIGH : ON_GOOD;
}

bool answer_load(uint8_t *bytes, uint8_t n)
{
    (void)n;
    struct wire_limits limits;
    limits_default(&limits);
    limits.silence_max_ms = 4;
    limits.hold_max_ms = 3;
    limits.scan_age_max_ms = 10;
    limits.open_cells_max = 1;
    limits.on_time_max_ms = 60000;
    limits.heat_max_cA2ms = UINT32_C(4000000000);
    limits.heat_time_constant_ms = 1;
    uint8_t *end = wire_pack_limits(bytes, &limits);
    uint16_t crc = limits_crc(&limits);
    end[0] = (uint8_t)crc;
    end[1] = (uint8_t)(crc >> 8);
    return true;
}

bool answer_store(const uint8_t *bytes, uint8_t n)
{
    (void)bytes;
    (void)n;
    return true;
}

/* Counting blocks the loop; this is not the scan's fault. */
uint16_t answer_count(void)
{
    world.past.scanned_us = world.past.now_us;
    return 1;
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

static void put_arm(uint16_t cells, uint16_t spoil)
{
    uint16_t crc = (uint16_t)(world.board.limits_crc ^ spoil);
    PUT(arm, .limits_crc = crc, .cells = cells);
}

static void put_set(uint8_t valid_for_ms, uint16_t cells)
{
    PUT(set_mask, .arming = arming(), .valid_for_ms = valid_for_ms, .cells_on = cells);
}

static void put_event(uint8_t frame)
{
    switch (frame) {
    case EVENT_arm:
    case EVENT_arm_0_open:
    case EVENT_arm_0_short:
        put_arm(3, 0);
        break;
    case EVENT_arm_1_alone:
        put_arm(2, 0);
        break;
    case EVENT_arm_other_limits:
        put_arm(3, 1);
        break;
    case EVENT_set_none:
        put_set(2, 0);
        break;
    case EVENT_set_0_short:
        put_set(1, 1);
        break;
    case EVENT_set_both:
        PUT(set_duties, .arming = arming(), .valid_for_ms = 200, .duty_per_255 = {ON, ON});
        break;
    case EVENT_set_other_version:
    case EVENT_set_other_arming:
        put_set(200, 3);
        break;
    case EVENT_set_unwired:
        put_set(2, 4);
        break;
    case EVENT_set_spoilt:
        put_set(2, 3);
        turn.bytes[turn.n_bytes - 2] ^= 0x40;
        break;
    case EVENT_set_too_short:
        put_frame(COMMAND_set_mask, WIRE_SIZE_set_mask - 1);
        break;
    case EVENT_replay:
        turn.n_bytes = world.past.last_n;
        memcpy(turn.bytes, world.past.last_frame, turn.n_bytes);
        break;
    case EVENT_broadcast:
        PUT(broadcast, .arming = arming(), .valid_for_ms = 2, .p_on_per_65536 = WIRE_PROBABILITY_ONE, .tick = 5);
        break;
    case EVENT_disarm:
        put_frame(COMMAND_disarm, 0);
        break;
    case EVENT_clear:
        put_frame(COMMAND_clear_faults, 0);
        break;
    case EVENT_set_limits:
        PUT(set_limits, .limits = world.board.limits);
        break;
    case EVENT_read:
        put_frame(COMMAND_read, 0);
        break;
    default:
        break;
    }
}

void script_start(struct input input)
{
    memset(&turn, 0, sizeof turn);
    turn.input = input;
    world.past.now_us += STEP_US[input.step];
    put_event(input.frame);
}
