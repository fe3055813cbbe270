#include "events.h"

#include <string.h>

#include "script.h"

struct world world;
void (*violated)(unsigned which);

static void check(unsigned which, bool ok)
{
    if (!ok)
        violated(which);
}

void property(enum property which, bool ok)
{
    check(which, ok);
}

/* Whether the answer to this turn's frame was `done`; an `armed` answer begins with a status. */
static bool answered_done(void)
{
    struct frame_reader reader;
    struct wire_status status;
    frame_start(&reader);
    for (uint8_t i = 0; i < turn.n_answer; i++)
        if (frame_take(&reader, turn.answer[i]) == FRAME_WHOLE) {
            if (reader.bytes[1] != ANSWER_status && reader.bytes[1] != ANSWER_armed)
                return false;
            wire_unpack_status(reader.bytes + FRAME_HEADER, &status);
            return status.result == RESULT_done;
        }
    return false;
}

static bool is_set(uint8_t frame)
{
    return frame == EVENT_set_none || frame == EVENT_set_0_short || frame == EVENT_set_both ||
           frame == EVENT_broadcast;
}

static bool is_arm(uint8_t frame)
{
    return frame == EVENT_arm || frame == EVENT_arm_0_open || frame == EVENT_arm_1_alone;
}

static uint32_t asked_us(uint8_t frame)
{
    uint32_t ms = frame == EVENT_set_0_short ? 1 : frame == EVENT_set_both ? 200 : 2;
    return 1000 * (ms < world.board.limits.hold_max_ms ? ms : world.board.limits.hold_max_ms);
}

static void remember(struct past *past, bool done)
{
    uint8_t frame = turn.input.frame;
    if (!done)
        return;
    if (is_arm(frame))
        past->wired = frame == EVENT_arm_1_alone ? 2 : 3;
    if (frame == EVENT_set_limits) /* storing blocks the loop; this is not the scan's fault */
        past->scanned_us = past->now_us;
    if (is_arm(frame) || is_set(frame))
        past->fed_us = past->now_us;
    if (is_set(frame)) {
        past->set_us = past->now_us;
        past->hold_us = asked_us(frame);
        past->last_set = frame;
        past->last_n = turn.n_bytes;
        memcpy(past->last_frame, turn.bytes, turn.n_bytes);
    }
}

static void check_turn(const struct board *before, bool done)
{
    const struct board *board = &world.board;
    const struct past *past = &world.past;
    uint16_t high = world.port.high;
    uint8_t frame = turn.input.frame;
    bool armed = board->state == STATE_armed, was_armed = before->state == STATE_armed;
    uint32_t scan_age_us = past->now_us - past->scanned_us;
    uint32_t stale_us = (board->limits.scan_age_max_ms + 1u) * 1000u;
    check(PROPERTY_armed_to_be_high, high == 0 || armed);
    check(PROPERTY_hold_ends, high == 0 || past->now_us - past->set_us <= past->hold_us);
    check(PROPERTY_dead_man,
          !armed || past->now_us - past->fed_us <= board->limits.silence_max_ms * 1000u);
    bool cleared = done && frame == EVENT_clear && !turn.last_look_open;
    check(PROPERTY_estop_ends, !turn.seen_open || (high == 0 && board->state == STATE_faulted) ||
          (high == 0 && cleared));
    check(PROPERTY_rise_by_command, world.port.rose == 0 || (done && is_set(frame)));
    check(PROPERTY_armed_by_command, !armed || was_armed || (done && is_arm(frame)));
    check(PROPERTY_cleared_by_command, before->state != STATE_faulted ||
          board->state == STATE_faulted || (done && frame == EVENT_clear) ||
          frame == EVENT_reset);
    check(PROPERTY_disarm_obeyed, frame != EVENT_disarm || (!armed && high == 0));
    check(PROPERTY_wired_only,
          (high & (uint16_t)~past->wired) == 0 && (high & board->cells_open) == 0);
    check(PROPERTY_stale_scan_ends, !armed || scan_age_us <= stale_us);
    check(PROPERTY_watchdog_honest, !turn.fed_watchdog || scan_age_us <= stale_us);
    for (uint8_t i = 0; i < N_CELLS; i++) {
        uint8_t scans = board->limits.persistence_scans;
        bool on = (high >> i & 1) != 0;
        check(PROPERTY_current_persists, !armed || past->n_high[i] < scans);
        check(PROPERTY_open_persists, !on || past->n_low[i] < scans);
    }
}

void world_boot(void)
{
    memset(&world, 0, sizeof world);
    memset(&turn, 0, sizeof turn);
    world.port.board = &world.board;
    world.past.now_us = 1000000;
    world.past.scanned_us = world.past.now_us;
    board_boot(&world.board, &world.port);
}

void world_turn(struct input input)
{
    struct board before;
    if (input.frame == EVENT_reset) {
        board_boot(&world.board, &world.port);
        world.past.scanned_us = world.past.now_us; /* the port's scan starts too */
        world.past.last_set = world.past.last_n = 0; /* tests/firmware replays what was sent before */
        memset(world.past.n_high, 0, sizeof world.past.n_high);
        memset(world.past.n_low, 0, sizeof world.past.n_low);
    }
    memcpy(&before, &world.board, sizeof before);
    world.port.pulses = 0;
    world.port.rose = 0;
    script_start(input);
    for (uint8_t i = 0; i < N_CELLS; i++)
        world.board.cells[i].heat = (struct heat){.cA2ms = 0};
    do
        board_poll(&world.board);
    while (turn.at_byte < turn.n_bytes);
    bool done = answered_done();
    remember(&world.past, done);
    check_turn(&before, done);
    if (world.board.state != STATE_armed) {
        memset(world.past.n_high, 0, sizeof world.past.n_high);
        memset(world.past.n_low, 0, sizeof world.past.n_low);
    }
}
