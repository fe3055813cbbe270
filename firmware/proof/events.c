#include "events.h"

#include <string.h>

#include "explorations.h"
#include "guard.h"
#include "past.h"

struct world world;
void (*violated)(unsigned which);

void check(unsigned which, bool ok)
{
    if (!ok)
        violated(which);
}

void property(enum property which, bool ok)
{
    check(which, ok);
}

struct heard {
    struct wire_status status; /* of `status` and `armed` */
    struct wire_readings readings;
    uint8_t n, code, result;
};

/* What the board has sent in this turn; an `armed` answer begins with a status. */
static struct heard read_answers(void)
{
    struct heard answer = {.result = UINT8_MAX};
    struct frame_reader reader;
    struct wire_identity identity;
    frame_start(&reader);
    for (uint8_t i = 0; i < turn.n_answer; i++) {
        if (frame_take(&reader, turn.answer[i]) != FRAME_WHOLE)
            continue;
        const uint8_t *payload = reader.bytes + FRAME_HEADER;
        answer.n++;
        answer.code = reader.bytes[1];
        answer.result = RESULT_done;
        check(PROPERTY_answered, reader.bytes[0] == WIRE_VERSION);
        if (answer.code == ANSWER_readings) {
            wire_unpack_readings(payload, &answer.readings);
        } else if (answer.code == ANSWER_identity) {
            wire_unpack_identity(payload, &identity);
            check(PROPERTY_true_answer, identity.state == world.board.state);
        } else {
            wire_unpack_status(payload, &answer.status);
            answer.result = answer.status.result;
        }
        uint8_t number[FRAME_SENT_MAX];
        struct frame_reader asked_by;
        frame_start(&asked_by);
        for (uint8_t j = 0; j < turn.n_bytes; j++)
            frame_take(&asked_by, turn.bytes[j]);
        memcpy(number, asked_by.bytes, sizeof asked_by.bytes);
        check(PROPERTY_answered, reader.bytes[2] == number[2]);
    }
    return answer;
}

static void check_answer(const struct heard *answer)
{
    const struct board *board = &world.board;
    uint8_t frame = turn.input.frame, code = ANSWER_status;
    if (turn.expected == UINT8_MAX) {
        check(PROPERTY_answered, answer->n == 0);
        return;
    }
    if (frame == EVENT_read || frame == EVENT_identify)
        code = frame == EVENT_read ? ANSWER_readings : ANSWER_identity;
    else if (frame >= EVENT_arm && frame <= EVENT_arm_other_limits)
        code = ANSWER_armed;
    check(PROPERTY_answered, answer->n == 1 && answer->code == code);
    bool replayed = answer->result == RESULT_replayed || answer->result == RESULT_other_arming;
    check(PROPERTY_answered, turn.expected == EXPECT_REPLAYED ? replayed : answer->result == turn.expected);
    if (turn.input.after || world.past.n_since_flip > 0)
        return; /* a later reading, or the check of the table, may have changed what the answer told */
    if (code == ANSWER_readings) {
        const struct wire_readings *told = &answer->readings;
        check(PROPERTY_true_answer, told->state == board->state && told->fault_bits == board->fault_bits &&
              told->fault_cells == board->fault_cells && told->cells_open == world.past.apart &&
              told->first_fault_bits == board->first_fault_bits);
        for (uint8_t i = 0; i < N_CELLS; i++)
            check(PROPERTY_true_answer, told->duty_per_255[i] == world.past.cells[i].gate);
    } else if (code != ANSWER_identity) {
        const struct wire_status *told = &answer->status;
        check(PROPERTY_true_answer, told->state == board->state && told->fault_bits == board->fault_bits &&
              told->fault_cells == board->fault_cells && told->cells_open == world.past.apart &&
              told->first_fault_bits == board->first_fault_bits && told->cells_on == world.port.high);
        if (told->first_cell < WIRE_SENSED)
            return;
        check(PROPERTY_sensed_once, told->first_cell == WIRE_SENSED + world.past.unsent);
        world.past.unsent = PORT_SENSE_NONE;
    }
}

static void command_cells(const uint8_t *duty_per_255)
{
    for (uint8_t i = 0; i < N_CELLS; i++)
        world.past.cells[i].commanded = duty_per_255[i];
}

static void remember(bool done)
{
    struct past *past = &world.past;
    uint8_t frame = turn.input.frame, duty[N_CELLS], ms;
    if (!done)
        return;
    if (named(frame) != 0) {
        past->wired = named(frame);
        past->fed_us = past->set_us = past->now_us;
        past->hold_us = past->tick = 0;
        past->unsent = PORT_SENSE_NONE;
    }
    if (frame == EVENT_set_limits || frame == EVENT_set_limits_other) {
        past->limits = exploration->limits;
        past->limits.cells_on_max = frame == EVENT_set_limits_other ? 1 : past->limits.cells_on_max;
        past->corrupt = false;
        past->n_since_flip = 0;
    }
    if (!asked(frame, duty, &ms))
        return;
    command_cells(duty);
    uint8_t tick = frame == EVENT_broadcast_on ? 5 : frame == EVENT_broadcast_off ? 6 : 0;
    past->tick = tick > past->tick ? tick : past->tick;
    past->fed_us = past->set_us = past->now_us;
    past->hold_us = 1000u * (ms < past->limits.hold_max_ms ? ms : past->limits.hold_max_ms);
    past->last_n = turn.n_bytes;
    memcpy(past->last_frame, turn.bytes, turn.n_bytes);
}

static bool is_reset(uint8_t frame)
{
    return frame >= EVENT_reset;
}

static void check_gates(const struct board *before, bool done)
{
    const struct board *board = &world.board;
    const struct past *past = &world.past;
    uint16_t high = world.port.high;
    uint8_t frame = turn.input.frame;
    bool armed = board->state == STATE_armed, was_armed = before->state == STATE_armed;
    bool cleared = done && frame == EVENT_clear && !turn.last_look_open;
    check(PROPERTY_armed_to_be_high, high == 0 || armed);
    check(PROPERTY_hold_ends, high == 0 || past->now_us - past->set_us <= past->hold_us);
    check(PROPERTY_dead_man, !armed || past->now_us - past->fed_us <= past->limits.silence_max_ms * 1000u);
    check(PROPERTY_estop_read, turn.read_before);
    check(PROPERTY_estop_ends, !turn.seen_open || (high == 0 && (board->state == STATE_faulted || cleared)));
    check(PROPERTY_rise_by_command, world.port.rose == 0 || (done && is_set(frame)));
    check(PROPERTY_armed_by_command, !armed || was_armed || (done && named(frame) != 0));
    check(PROPERTY_cleared_by_command, before->state != STATE_faulted || board->state == STATE_faulted ||
          (done && frame == EVENT_clear) || is_reset(frame));
    check(PROPERTY_rail_tested, !armed || was_armed || !exploration->supply || (past->seen_dead && past->seen_alive));
    if (armed)
        world.past.seen_dead = world.past.seen_alive = false; /* the next arming tests it anew */
    check(PROPERTY_supply_cut, world.port.supply_on == (exploration->measures && (armed || past->closes > 0)));
    check(PROPERTY_disarm_obeyed, frame != EVENT_disarm || (!armed && high == 0));
    check(PROPERTY_wired_only, (high & (uint16_t)~past->wired) == 0 && (high & past->apart) == 0);
    check(PROPERTY_stale_scan_ends, !armed || turn.fresh);
    check(PROPERTY_watchdog_honest, turn.fed_watchdog == turn.fresh);
    for (uint8_t i = 0; i < N_CELLS; i++) {
        check(PROPERTY_as_commanded, past->cells[i].gate == past->cells[i].commanded);
        check(PROPERTY_open_persists, past->cells[i].gate == 0 ||
              past->cells[i].bad[CHECK_LOW] < past->limits.persistence_scans);
    }
}

static void check_faults(const struct board *before)
{
    const struct board *board = &world.board;
    uint16_t new_bits = board->fault_bits & (uint16_t)~before->fault_bits;
    uint16_t new_cells = board->fault_cells & (uint16_t)~before->fault_cells;
    check(PROPERTY_fault_has_cause, (new_bits & (uint16_t)~turn.may) == 0);
    check(PROPERTY_fault_has_cause, (new_cells & (uint16_t)~turn.may_cells) == 0);
    check(PROPERTY_fault_has_cause, (board->first_fault_bits & (uint16_t)~board->fault_bits) == 0);
    check(PROPERTY_fault_is_state, (board->fault_bits != 0) == (board->state == STATE_faulted));
    check(PROPERTY_fault_is_state, (board->fault_bits != 0) == (board->first_fault_bits != 0));
    check(PROPERTY_set_apart, board->cells_open == world.past.apart);
    check(PROPERTY_reading_taken, turn.sampled == (turn.input.sample != EVENT_no_sample));
    check(PROPERTY_trip_kept, board->trip.cell == world.past.tripped);
    check(PROPERTY_gates_refreshed, turn.refreshed == turn.scan_ended);
}

static void check_heat(bool done)
{
    uint8_t frame = turn.input.frame;
    bool used_up = is_reset(frame) || (done && (frame == EVENT_set_limits || frame == EVENT_set_limits_other));
    for (uint8_t i = 0; i < N_CELLS; i++) {
        check(PROPERTY_heat_of_duty, world.past.cells[i].heat_duty == world.past.cells[i].gate);
        check(PROPERTY_heat_of_reading, turn.n_counted[i] >= turn.n_readings[i] &&
              turn.n_added[i] == turn.n_readings[i] && turn.n_cooled[i] == turn.n_readings[i] + turn.n_heating[i]);
        check(PROPERTY_heat_of_pulse, turn.n_pulses[i] == turn.n_heating[i]);
        check(PROPERTY_heat_used_up, (turn.n_used_up[i] > 0) == used_up);
    }
}

/* The limits are compared where they may have changed. */
static void check_table(void)
{
    uint8_t in_force[WIRE_SIZE_limits], stored[WIRE_SIZE_limits];
    bool touched = turn.input.frame >= EVENT_set_limits;
    if (!touched || world.past.n_since_flip > 0 || world.past.corrupt)
        return;
    wire_pack_limits(in_force, &world.board.limits);
    wire_pack_limits(stored, &world.past.limits);
    check(PROPERTY_table_in_force, memcmp(in_force, stored, sizeof stored) == 0);
}

static void boot(void)
{
    past_boot();
    world.port.supply_on = false; /* the pin is an input again */
    board_boot(&world.board, &world.port);
    for (uint8_t i = 0; i < N_CELLS; i++)
        world.past.cells[i].n_since = IN_FLIGHT; /* no gate was on */
}

void world_boot(void)
{
    memset(&world, 0, sizeof world);
    world.port.board = &world.board;
    world.past.now_us = 1000000;
    script_start((struct input){.frame = EVENT_reset});
    boot();
}

bool world_admits(struct input input)
{
    bool flips = input.frame == EVENT_flip_limit || input.frame == EVENT_flip_law;
    return script_admits(input) && (input.frame != EVENT_replay || world.past.last_n > 0) &&
           (!flips || (world.past.n_since_flip == 0 && !world.past.corrupt));
}

static void test_supply(bool tested)
{
    struct past *past = &world.past;
    past->closes = world.board.supply_asked = tested ? GUARD_SUPPLY_READINGS : 0;
    past->alive = tested;
    world.board.rail_counts = tested ? GUARD_SUPPLY_COUNTS : 0;
}

static void begin(struct input input)
{
    struct past *past = &world.past;
    script_start(input);
    if (!exploration->supply && world.board.state == STATE_disarmed)
        test_supply(input.frame >= EVENT_arm && input.frame <= EVENT_arm_other_limits);
    if (is_reset(input.frame)) {
        boot(); /* tests/firmware replays what was sent before */
    } else {
        script_heat_start();
    }
    world.board.limits.supply_full_scale_mV ^= input.frame == EVENT_flip_limit;
    world.board.law.gain ^= input.frame == EVENT_flip_law;
    if (past->n_since_flip > 0 || input.frame == EVENT_flip_limit || input.frame == EVENT_flip_law)
        past->n_since_flip = (uint8_t)(past->n_since_flip < FLIP_NOTICED ? past->n_since_flip + 1 : FLIP_NOTICED + 1);
    if (past->now_us - past->set_us > past->hold_us)
        command_cells((uint8_t[N_CELLS]){0});
}

void world_turn(struct input input)
{
    struct board before;
    memcpy(&before, &world.board, sizeof before);
    world.port.pulses = 0;
    world.port.rose = 0;
    begin(input);
    if (is_reset(input.frame))
        before.fault_bits = before.fault_cells = 0;
    board_poll(&world.board);
    KEEP(u32, &world.board, commanded_us, world.board.commanded_us - world.board.commanded_us % 1000); /* takes the ticks of switchings back (script.c) */
    check(PROPERTY_answered, turn.at_byte == turn.n_bytes);
    past_ends();
    struct heard answer = read_answers();
    bool done = answer.n > 0 && answer.result == RESULT_done;
    check_answer(&answer);
    remember(done);
    for (uint8_t i = 0; i < N_CELLS; i++)
        if (world.board.state != STATE_armed || (world.past.apart >> i & 1) != 0)
            world.past.cells[i].commanded = 0;
    check_gates(&before, done);
    check_faults(&before);
    check_heat(done);
    check_table();
    if ((world.board.fault_bits & (uint16_t)~before.fault_bits & FAULT_limits_corrupt) != 0) {
        world.past.n_since_flip = 0;
        world.past.corrupt = true;
    }
}
