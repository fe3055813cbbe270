/* Feeds the board random bytes, broken frames and whole ones under the sanitisers: no gate may
 * open without an arm command, and none of it may hurt memory. Arguments: rounds, seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "libboard.h"
#include "limits.h"
#include "message.h"

static uint32_t state;
static struct wire_limits limits;

static uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static uint8_t stuffed(uint8_t *frame, uint8_t payload)
{
    struct frame_writer writer;
    frame_open(&writer, frame, frame + 1 + FRAME_HEADER + payload);
    uint8_t *end = frame;
    for (uint8_t *next = frame; next != NULL; next = frame_group(&writer))
        end = next;
    return (uint8_t)(end - frame);
}

/* Some cells may be open: setting them apart is part of what is tried. */
static void set_limits(void *board)
{
    uint8_t frame[FRAME_SENT_MAX] = {0, WIRE_VERSION, COMMAND_set_limits, 0};
    limits_default(&limits);
    limits.open_cells_max = 3;
    wire_pack_set_limits(frame + 1 + FRAME_HEADER, &(struct wire_set_limits){limits});
    libboard_receive(board, frame, stuffed(frame, WIRE_SIZE_set_limits));
}

static uint8_t random_frame(uint8_t *frame, int arms)
{
    static const uint8_t codes[] = {COMMAND_identify,  COMMAND_read,   COMMAND_set_mask,
                                    COMMAND_set_duties, COMMAND_broadcast, COMMAND_disarm,
                                    COMMAND_clear_faults, COMMAND_set_limits, COMMAND_arm};
    static const uint8_t sizes[] = {0, 0, WIRE_SIZE_set_mask, WIRE_SIZE_set_duties,
                                    WIRE_SIZE_broadcast, 0, 0, WIRE_SIZE_set_limits, WIRE_SIZE_arm};
    uint32_t which = next() % (arms ? 9u : 8u);
    uint8_t n = next() % 8 == 0 ? (uint8_t)(next() % FRAME_PAYLOAD_MAX) : sizes[which];
    frame[1] = next() % 16 == 0 ? (uint8_t)next() : WIRE_VERSION;
    frame[2] = codes[which];
    for (uint8_t i = 0; i <= n; i++)
        frame[3 + i] = (uint8_t)next();
    if (codes[which] == COMMAND_arm)
        wire_pack_arm(frame + 1 + FRAME_HEADER, &(struct wire_arm){limits_crc(&limits), 0x0FFF});
    return stuffed(frame, n);
}

static void feed(void *board, int arms)
{
    uint8_t bytes[512];
    size_t n = next() % 300;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)next();
    if (next() % 4 != 0) {
        n = random_frame(bytes, arms);
        if (next() % 4 == 0)
            bytes[next() % n] ^= (uint8_t)(1u << next() % 8);
    }
    libboard_receive(board, bytes, n);
}

/* Now and then one cell's readings are wild; mostly all are good, so that arming succeeds. */
static void spoil_pins(void *board)
{
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        libboard_set_analog(board, i, 205, 0, 153);
    if (next() % 64 == 0)
        libboard_set_analog(board, (uint8_t)(next() % 16), (uint16_t)(next() % 1024),
                            (uint16_t)(next() % 1024), (uint16_t)(next() % 1024));
}

static int any_gate(const void *board)
{
    uint8_t gates[WIRE_CELLS_MAX] = {0};
    libboard_gates(board, gates);
    for (size_t i = 0; i < sizeof gates; i++)
        if (gates[i] != 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    state = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    long open_rounds = 0;
    for (int arms = 0; arms < 2; arms++) {
        void *board = calloc(1, libboard_size());
        if (board == NULL || libboard_init(board, 12, 1, 3000, next()) != 0)
            return 2;
        set_limits(board);
        for (long i = 0; i < rounds; i++) {
            uint8_t answer[4096];
            feed(board, arms);
            spoil_pins(board);
            libboard_set_estop(board, next() % 64 == 0);
            libboard_advance(board, next() % 4000);
            libboard_send(board, answer, sizeof answer);
            if (next() % 4096 == 0)
                libboard_reset(board, (uint8_t)(next() % 4));
            open_rounds += any_gate(board);
            if (!arms && open_rounds > 0) {
                fprintf(stderr, "round %ld: a gate opened without arming\n", i);
                return 1;
            }
        }
        free(board);
    }
    printf("%ld rounds, %ld of them with open gates\n", 2 * rounds, open_rounds);
    return 0;
}
