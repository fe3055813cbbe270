#include "fuzz_host.h"

#include <string.h>

#include "chance.h"
#include "libboard.h"
#include "limits.h"

enum { FLOOD = UINT16_MAX + 2 };

static uint8_t last_frame[FRAME_SENT_MAX];
static uint8_t last_n;

static uint8_t stuffed(uint8_t *frame, uint8_t payload)
{
    struct frame_writer writer;
    frame_open(&writer, frame, frame + 1 + FRAME_HEADER + payload);
    uint8_t *end = frame;
    for (uint8_t *next = frame; next != NULL; next = frame_group(&writer))
        end = next;
    return (uint8_t)(end - frame);
}

/* Usually the next number of the host that armed the board. */
static void put_number(uint8_t *frame, uint32_t last)
{
    uint32_t number = last + (one_in(32) ? next() : 1 + next() % 3);
    bool sets = frame[2] == COMMAND_set_mask || frame[2] == COMMAND_set_duties ||
                frame[2] == COMMAND_broadcast;
    frame[3] = (uint8_t)number;
    if (!sets || one_in(32))
        return;
    frame[1 + FRAME_HEADER] = (uint8_t)(number >> 8);
    frame[2 + FRAME_HEADER] = (uint8_t)(number >> 16);
}

/* Sends the payload in the frame; one in sixteen is corrupted. */
static void send_frame(void *board, uint8_t code, uint8_t *frame, uint8_t payload)
{
    frame[1] = one_in(64) ? (uint8_t)next() : WIRE_VERSION;
    frame[2] = code;
    put_number(frame, libboard_core(board)->number);
    last_n = stuffed(frame, payload);
    if (one_in(16))
        flip_bit(frame, last_n);
    memcpy(last_frame, frame, last_n);
    libboard_receive(board, frame, last_n);
}

#define SEND(board, layout, message)                                 \
    do {                                                             \
        uint8_t frame[FRAME_SENT_MAX];                               \
        wire_pack_##layout(frame + 1 + FRAME_HEADER, message);       \
        send_frame(board, COMMAND_##layout, frame, WIRE_SIZE_##layout); \
    } while (0)

static void send_bare(void *board, uint8_t code)
{
    uint8_t frame[FRAME_SENT_MAX];
    send_frame(board, code, frame, 0);
}

static int64_t random_value(int64_t normal, int64_t lowest, int64_t highest)
{
    uint64_t range = (uint64_t)(highest - lowest) + 1;
    switch (next() % 8) {
    case 0:
        return one_in(2) ? lowest - 1 : highest + 1;
    case 1:
        return highest;
    case 2:
        return normal;
    case 3:
        return lowest + (int64_t)(next() % range);
    default:
        range >>= next() % 32;
        return lowest + (int64_t)(next() % (range + 1));
    }
}

/* The defaults, except for a few random entries, sometimes invalid. */
static void random_limits(struct wire_limits *table)
{
    limits_default(table);
    if (!one_in(4))
        table->heat_time_constant_ms = 1; /* otherwise the board would be cooling most of the time */
    if (one_in(2))
        table->open_cells_max = 3;
    if (one_in(2))
        table->sense_every_ms = WIRE_SENSE_EVERY_MIN_MS;
#define CHANGE(type, name, normal, lowest, highest) \
    if (one_in(12))                                 \
        table->name = (wire_##type)random_value(normal, lowest, highest);
    WIRE_LIMITS(CHANGE)
}

static uint16_t some_cells(const struct board *core)
{
    uint16_t all = (uint16_t)((1ul << core->identity.n_cells) - 1);
    return one_in(64) ? (uint16_t)next() : one_in(2) ? all : (uint16_t)(next() & all);
}

static void switch_cells(void *board, const struct board *core)
{
    uint8_t valid_for_ms = one_in(4) ? (uint8_t)next() : 100;
    struct wire_set_mask mask = {.valid_for_ms = valid_for_ms, .cells_on = some_cells(core)};
    struct wire_set_duties duties = {.valid_for_ms = valid_for_ms};
    struct wire_broadcast broadcast = {.valid_for_ms = valid_for_ms};
    for (uint8_t i = 0; i < core->identity.n_cells; i++)
        duties.duty_per_255[i] = one_in(2) ? (uint8_t)next() : core->cells[i].duty_per_255;
    if (one_in(64))
        duties.duty_per_255[WIRE_CELLS_MAX - 1] = 1; /* of a cell that a board may not have */
    broadcast.p_on_per_65536 = one_in(4) ? WIRE_PROBABILITY_ONE : (uint16_t)next();
    broadcast.q_off_per_65536 = one_in(4) ? 0 : (uint16_t)next();
    broadcast.tick = next() % 64;
    broadcast.seed = next();
    switch (next() % 3) {
    case 0:
        SEND(board, set_mask, &mask);
        break;
    case 1:
        SEND(board, set_duties, &duties);
        break;
    default:
        SEND(board, broadcast, &broadcast);
    }
}

void fuzz_limit(void *board)
{
    struct wire_set_limits table;
    random_limits(&table.limits);
    libboard_set_memory(board, !one_in(16));
    SEND(board, set_limits, &table);
}

static void arm(void *board, const struct board *core)
{
    uint16_t crc = one_in(32) ? (uint16_t)next() : core->limits_crc;
    SEND(board, arm, (&(struct wire_arm){.limits_crc = crc, .cells = some_cells(core)}));
}

/* A plausible next command, and occasionally an implausible one. */
static void send_sense(void *board, const struct board *core, bool arms)
{
    uint8_t to_do = one_in(8) ? (uint8_t)(next() % 3) : core->state;
    if (one_in(32))
        fuzz_limit(board);
    else if (one_in(32))
        send_bare(board, (uint8_t)next());
    else if (one_in(32))
        send_bare(board, COMMAND_disarm);
    else if (one_in(8))
        send_bare(board, one_in(2) ? COMMAND_identify : COMMAND_read);
    else if (to_do == STATE_armed)
        switch_cells(board, core);
    else if (to_do == STATE_faulted)
        send_bare(board, COMMAND_clear_faults);
    else if (arms)
        arm(board, core);
}

static void send_noise(void *board)
{
    uint8_t bytes[512];
    size_t n = next() % sizeof bytes;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)next();
    libboard_receive(board, bytes, n);
}

/* Frames of one byte, more than the board can count. */
void fuzz_flood(void *board)
{
    static const uint8_t bad[] = {1, 0};
    for (uint32_t i = 0; i < FLOOD; i++)
        libboard_receive(board, bad, sizeof bad);
}

void fuzz_feed(void *board, const struct board *core, bool arms)
{
    if (one_in(16))
        send_noise(board);
    else if (one_in(16))
        libboard_receive(board, last_frame, last_n);
    else if (!one_in(4))
        send_sense(board, core, arms);
}
