/* Sends the board random bytes, broken and valid frames, with random cells, limits, resets and memories. Checks
 * that no gate is high without permission; the sanitisers check memory.
 * Arguments: rounds, seed. */
#include "fuzz_host.h"

#include <stdio.h>
#include <stdlib.h>

#include "chance.h"
#include "libboard.h"
#include "limits.h"

enum { SCAN_US = 3000, NOTICED_US = 5000, LIFE = 300 /* rounds of one board */ };

#define COUNT(name, number) +1
enum { N_FAULTS = 0 WIRE_FAULTS(COUNT) };

/* Number of rounds that ended with a gate high, with an isolated cell, with each fault. */
static struct {
    long rounds, high, apart;
    long faults[N_FAULTS];
} met;

/* Stores a table that no board accepts. */
static void store_insane(void *board)
{
    size_t size;
    uint8_t *memory = libboard_memory(board, &size);
    struct wire_limits insane;
    limits_default(&insane);
    insane.persistence_scans = 0;
    uint8_t *end = wire_pack_limits(memory, &insane);
    uint16_t crc = frame_crc(WIRE_CRC_INIT, memory, WIRE_SIZE_limits);
    end[0] = (uint8_t)crc;
    end[1] = (uint8_t)(crc >> 8);
}

static void spoil_memory(void *board)
{
    size_t size;
    uint8_t *memory = libboard_memory(board, &size);
    if (one_in(2))
        flip_bit(memory, size);
    else
        store_insane(board);
    libboard_reset(board, (uint8_t)(next() % 4));
}

/* Flips a bit of the limits in use; the core detects it before the next event. */
static void spoil_limits(void *board)
{
    size_t size;
    uint8_t *limits = libboard_limits(board, &size);
    flip_bit(limits, size);
    libboard_advance(board, NOTICED_US);
}

/* Flips a bit of the core's state that has a complement, or of the program; only a reset mends it. */
static void spoil_core(void *board)
{
    size_t size;
    uint8_t cell = (uint8_t)(next() % PORT_CELLS_MAX);
    uint8_t *bytes = one_in(4)   ? libboard_duty(board, cell, &size)
                     : one_in(2) ? libboard_cell(board, cell, &size)
                                 : libboard_complements(board, &size);
    libboard_set_scan(board, 1); /* it notices the bit */
    if (one_in(4))
        libboard_set_program(board, 0);
    else
        flip_bit(bytes, size);
    libboard_advance(board, NOTICED_US);
    libboard_set_program(board, 1);
}

static uint16_t counts(uint32_t value, uint32_t full_scale)
{
    uint32_t counts = value * 1024u / full_scale + 1;
    return (uint16_t)(counts < 1023 ? counts : 1023);
}

/* A wire that the limits allow at room temperature. */
static void connect(void *board, const struct wire_limits *limits, uint8_t cell)
{
    uint32_t current_mA = (limits->current_on_min_mA + limits->current_max_mA) / 2u;
    libboard_set_analog(board, cell, counts(current_mA, limits->current_full_scale_mA), 0, 153);
}

static void spoil_cell(void *board, uint8_t cell)
{
    uint16_t on = one_in(3) ? 0 : (uint16_t)(next() % 1024);
    uint16_t off = one_in(3) ? (uint16_t)(next() % 64) : 0;
    uint16_t temperature = one_in(4) ? (uint16_t)(next() % 1024) : 153;
    libboard_set_analog(board, cell, on, off, temperature);
}

/* Turns a gate over, which a scan finds. */
static void spoil_gate(void *board)
{
    libboard_set_scan(board, 1);
    libboard_set_late(board, 0);
    libboard_flip_gate(board, (uint8_t)(next() % PORT_CELLS_MAX), one_in(2));
    libboard_advance(board, 2 * NOTICED_US);
}

/* K1 welded or dead for a while, or K2. */
static void spoil_relays(void *board)
{
    libboard_set_relays(board, (uint8_t)(next() % 3), one_in(4) ? (uint8_t)(next() % 3) : 0);
    libboard_advance(board, one_in(2) ? 0 : next() % 400000);
}

/* References and pins are normal, with occasional faults; the supply is on, or not connected. */
static void turn_pins(void *board)
{
    static const uint16_t known[] = {1023, 839, 512};
    for (uint8_t i = 0; i < 3; i++)
        libboard_set_reference(board, i, one_in(512) ? (uint16_t)(next() % 1024) : known[i]);
    libboard_set_supply(board, one_in(8) ? 0 : 800);
    libboard_set_address(board, 1u << next() % 2, 0, one_in(256) ? 2 : 0);
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        libboard_set_stuck(board, i, one_in(1024)); /* low */
}

/* Usually without faults, so that arming succeeds; a fault lasts for a while. */
static void turn_world(void *board, const struct board *core)
{
    if (one_in(8))
        for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
            connect(board, &core->limits, i);
    if (one_in(8))
        turn_pins(board);
    if (one_in(32))
        spoil_cell(board, (uint8_t)(next() % WIRE_CELLS_MAX));
    libboard_set_estop(board, one_in(128));
    libboard_open_estop_at(board, one_in(128) ? next() % 32 : 0);
    libboard_set_late(board, one_in(16));
    libboard_set_scan(board, !one_in(64));
    if (one_in(512))
        spoil_memory(board);
    if (one_in(512))
        spoil_limits(board);
    if (one_in(256))
        spoil_core(board);
    if (one_in(256))
        spoil_gate(board);
    if (one_in(256))
        spoil_relays(board);
    else if (one_in(8))
        libboard_set_relays(board, 0, 0);
    if (one_in(512))
        libboard_reset(board, (uint8_t)(next() % 4));
}

static uint8_t n_high(const struct board *core, const uint8_t *gates)
{
    uint8_t n = 0;
    for (uint8_t i = 0; i < core->identity.n_cells; i++)
        n = (uint8_t)(n + (gates[i] != 0));
    return n;
}

static uint16_t mask_high(const uint8_t *gates)
{
    uint16_t mask = 0;
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        if (gates[i] != 0)
            mask |= (uint16_t)(1u << i);
    return mask;
}

/* The error of the gates after some time; NULL: none. */
static const char *wrong(const struct board *core, const uint8_t *gates)
{
    uint16_t high = mask_high(gates);
    if (!core->identity.measures && (core->fault_bits & WIRE_FAULTS_MEASURED) != 0)
        return "a fault that needs sensors, without them";
    if (high == 0)
        return NULL;
    if (core->state != STATE_armed)
        return "a gate is high and the board not armed";
    if ((high & (uint16_t)~core->wired) != 0)
        return "a gate is high that has no wire";
    if ((high & core->cells_open) != 0)
        return "the gate of an open wire is high";
    if (n_high(core, gates) > core->limits.cells_on_max)
        return "too many gates are high";
    if (core->now_us - core->commanded_us > core->limits.hold_max_ms * 1000u)
        return "a gate is high longer than any command holds";
    return NULL;
}

/* The error of one answer; NULL: none. */
static const char *wrong_answer(const uint8_t *frame)
{
    const uint8_t *payload = frame + FRAME_HEADER;
    struct wire_status status;
    struct wire_armed armed;
    struct wire_readings readings;
    struct wire_identity identity;
    switch (frame[1]) {
    case ANSWER_status:
        wire_unpack_status(payload, &status);
        return status.cells_on != 0 && status.state != STATE_armed ? "cells on, not armed" : NULL;
    case ANSWER_armed:
        wire_unpack_armed(payload, &armed);
        if ((armed.status.result == RESULT_done) != (armed.arming != 0))
            return "armed by no number, or refused with one";
        return armed.arming != 0 && armed.status.cells_on != 0 ? "cells on as it is armed" : NULL;
    case ANSWER_readings:
        wire_unpack_readings(payload, &readings);
        return mask_high(readings.duty_per_255) != 0 && readings.state != STATE_armed &&
                       (readings.fault_bits & FAULT_memory_corrupt) == 0 /* it tells a duty that has turned over */
                   ? "duties, not armed" : NULL;
    case ANSWER_identity:
        wire_unpack_identity(payload, &identity);
        return identity.state == STATE_faulted || limits_sane(&identity.limits) ? NULL : "limits that no table may have";
    default:
        return "an answer of no known kind";
    }
}

static const char *wrong_answers(const uint8_t *bytes, size_t n)
{
    struct frame_reader reader;
    const char *found = NULL;
    frame_start(&reader);
    for (size_t i = 0; i < n && found == NULL; i++) {
        enum frame_event event = frame_take(&reader, bytes[i]);
        if (event == FRAME_BAD)
            return "an answer is broken";
        if (event != FRAME_WHOLE)
            continue;
        found = wrong_answer(reader.bytes);
        frame_start(&reader);
    }
    return found;
}

static void *new_board(void)
{
    void *board = calloc(1, libboard_size());
    uint8_t n_cells = one_in(4) ? (uint8_t)(1 + next() % PORT_CELLS_MAX) : 12;
    if (board == NULL || libboard_init(board, n_cells, 1, SCAN_US, next()) != 0)
        exit(2);
    if (one_in(8))
        libboard_set_measures(board, 0);
    if (one_in(8))
        libboard_set_count(board, UINT16_MAX); /* the next count is 0, which is not a valid arming number */
    return board;
}

static void meet(const struct board *core, bool high)
{
    met.rounds++;
    met.high += high;
    met.apart += core->cells_open != 0;
    for (int i = 0; i < N_FAULTS; i++)
        met.faults[i] += core->fault_bits >> i & 1;
}

/* One board from power-up on; NULL, or the error. */
static const char *live(long rounds, bool arms)
{
    void *board = new_board();
    const struct board *core = libboard_core(board);
    const char *found = NULL;
    fuzz_limit(board);
    if (one_in(256))
        fuzz_flood(board);
    for (long i = 0; i < rounds && found == NULL; i++) {
        uint8_t answer[4096], gates[WIRE_CELLS_MAX] = {0};
        turn_world(board, core);
        fuzz_feed(board, core, arms);
        libboard_advance(board, one_in(64) ? next() % 400000 : next() % 4000);
        found = wrong_answers(answer, libboard_send(board, answer, sizeof answer));
        libboard_gates(board, gates);
        bool high = mask_high(gates) != 0;
        if (found == NULL)
            found = high && !arms ? "a gate is high and nobody has armed" : wrong(core, gates);
        meet(core, high);
    }
    free(board);
    return found;
}

static void report(void)
{
#define NAME(name, number) #name,
    static const char *const names[] = {WIRE_FAULTS(NAME)};
    printf("%ld rounds, %ld of them with open gates\n", met.rounds, met.high);
    printf("set_apart %ld\n", met.apart);
    for (int i = 0; i < N_FAULTS; i++)
        printf("%s %ld\n", names[i], met.faults[i]);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    chance_seed(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1);
    for (int arms = 0; arms < 2; arms++)
        for (long left = rounds; left > 0; left -= LIFE) {
            const char *found = live(left < LIFE ? left : LIFE, arms != 0);
            if (found != NULL) {
                fprintf(stderr, "round %ld: %s\n", met.rounds, found);
                return 1;
            }
        }
    report();
    return 0;
}
