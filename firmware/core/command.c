#include "command.h"

#include <string.h>

#include "draw.h"
#include "limits.h"
#include "supply.h"

enum { DUTY_ON = 255, SEQ = 2, ARMINGS_APART = 2 };
static const uint16_t STARTS_APART = 40503; /* 2^16 by the golden ratio, odd */
static const uint32_t NUMBER_MASK = 0xFFFFFF;

/* Accepts the sequence number of the present frame; false: it is not ahead of the last one. */
static bool take_number(struct board *board)
{
    uint8_t ahead = (uint8_t)(board->reader.bytes[SEQ] - (uint8_t)board->number);
    if (ahead == 0 || ahead > WIRE_AHEAD_MAX)
        return false;
    board->number = (board->number + ahead) & NUMBER_MASK;
    return true;
}

/* The same for a set command, whose number has 24 bits. */
static uint8_t take_armed_number(struct board *board, uint16_t arming)
{
    uint32_t number = (uint32_t)arming << 8 | board->reader.bytes[SEQ];
    uint32_t ahead = (number - board->number) & NUMBER_MASK;
    if (ahead > 0 && ahead <= WIRE_AHEAD_MAX) {
        board->number = number;
        return RESULT_done;
    }
    uint32_t behind = (board->number - number) & NUMBER_MASK;
    uint32_t since_arming = (board->number - board->armed_number) & NUMBER_MASK;
    return behind <= since_arming ? RESULT_replayed : RESULT_other_arming;
}

/* Start of the arming numbers after a reset: different from all earlier starts, and as far as possible from
 * the most recent ones. */
static uint16_t first_arming(struct board *board)
{
    uint16_t count = port_memory_count(board->port);
    board_resume(board);
    return (uint16_t)((uint32_t)count * STARTS_APART);
}

/* Always increases, so that no frame of earlier armings has this number. 0 means refused. */
static uint16_t new_arming(struct board *board)
{
    bool armed_before = board->wired != 0;
    uint16_t arming =
        armed_before ? (uint16_t)((board->number >> 8) + ARMINGS_APART) : first_arming(board);
    return arming != 0 ? arming : ARMINGS_APART;
}

static uint8_t refusal(const struct board *board)
{
    if (board->state == STATE_faulted)
        return RESULT_is_faulted;
    return board->state == STATE_armed ? RESULT_done : RESULT_not_armed;
}

/* The result of a set command, which may have tripped the guard. */
static uint8_t set_duties(struct board *board, uint16_t arming, uint8_t *duty_per_255,
                          uint8_t valid_for_ms)
{
    if (valid_for_ms == 0)
        return RESULT_bad_value;
    uint8_t result = refusal(board);
    if (result == RESULT_done)
        result = take_armed_number(board, arming);
    else
        take_number(board); /* a host may send set commands before it arms */
    if (result != RESULT_done)
        return result;
    if (!board_set(board, duty_per_255, valid_for_ms))
        return RESULT_bad_value;
    return refusal(board);
}

static uint8_t serve_set_mask(struct board *board, const uint8_t *payload)
{
    struct wire_set_mask command;
    uint8_t duty_per_255[WIRE_CELLS_MAX];
    wire_unpack_set_mask(payload, &command);
    uint16_t left = command.cells_on;
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++, left >>= 1)
        duty_per_255[i] = (left & 1u) != 0 ? DUTY_ON : 0;
    return set_duties(board, command.arming, duty_per_255, command.valid_for_ms);
}

static bool are_readable(const uint8_t *duty_per_255)
{
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        if (duty_per_255[i] != 0 && duty_per_255[i] < WIRE_DUTY_MIN_PER_255)
            return false;
    return true;
}

static uint8_t serve_set_duties(struct board *board, const uint8_t *payload)
{
    struct wire_set_duties command;
    wire_unpack_set_duties(payload, &command);
    if (!are_readable(command.duty_per_255))
        return RESULT_bad_value;
    return set_duties(board, command.arming, command.duty_per_255, command.valid_for_ms);
}

/* A draw takes 20 us on an 8-bit processor: skip it if its outcome has no effect. */
static bool happens(uint32_t at, uint16_t probability_per_65536)
{
    if (probability_per_65536 == 0 || probability_per_65536 == WIRE_PROBABILITY_ONE)
        return probability_per_65536 != 0;
    return draw_u16(at) < probability_per_65536;
}

static void draw_cells(const struct board *board, const struct wire_broadcast *command,
                       uint8_t *duty_per_255)
{
    uint32_t at = draw_start(command->seed, command->tick, command->first_cell);
    uint16_t bit = 1;
    for (uint8_t i = 0; i < board->identity.n_cells; i++, at = draw_following(at)) {
        bool on = duty_per_255[i] != 0;
        bool wired = (board->wired & bit) != 0;
        bit = (uint16_t)(bit << 1);
        if (wired && happens(at, on ? command->q_off_per_65536 : command->p_on_per_65536))
            duty_per_255[i] = on ? 0 : DUTY_ON;
    }
}

static uint8_t serve_broadcast(struct board *board, const uint8_t *payload)
{
    struct wire_broadcast command;
    uint8_t duty_per_255[WIRE_CELLS_MAX] = {0};
    wire_unpack_broadcast(payload, &command);
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        duty_per_255[i] = board->cells[i].duty_per_255;
    bool served = board->tick_served && command.tick <= board->served_tick;
    if (!served)
        draw_cells(board, &command, duty_per_255);
    uint8_t result = set_duties(board, command.arming, duty_per_255, command.valid_for_ms);
    if (result == RESULT_done && !served) {
        board->served_tick = command.tick;
        board->tick_served = true;
    }
    return result;
}

static uint8_t serve_arm(struct board *board, const uint8_t *payload)
{
    struct wire_arm command;
    wire_unpack_arm(payload, &command);
    if (board->state == STATE_faulted)
        return RESULT_is_faulted;
    if (command.limits_crc != board->limits_crc)
        return RESULT_limits_differ;
    if (command.cells >> (board->identity.n_cells - 1) > 1)
        return RESULT_bad_value;
    if (board_conditions(board) != 0)
        return RESULT_condition_present;
    if (!board_is_cool(board, command.cells))
        return RESULT_cooling;
    if (!supply_ready(board))
        return RESULT_supply_waits;
    if (command.cells == 0)
        return RESULT_not_armed;
    uint16_t arming = new_arming(board);
    board_forget_open(board);
    if (!board_probe(board, command.cells))
        return RESULT_is_faulted;
    KEEP(u16, board, wired, command.cells);
    board->sensed.cell = PORT_SENSE_NONE; /* of an earlier arming */
    KEEP(u8, board, state, STATE_armed);
    board->number = (uint32_t)arming << 8 | (uint8_t)board->number;
    board->armed_number = board->number;
    board->tick_served = false;
    KEEP(u32, board, commanded_us, board->now_us);
    KEEP(u32, board, hold_us, 0); /* no command is valid yet */
    return RESULT_done;
}

static uint8_t serve_disarm(struct board *board)
{
    board_all_off(board);
    if (board->state == STATE_armed)
        KEEP(u8, board, state, STATE_disarmed);
    take_number(board);
    return RESULT_done;
}

static uint8_t serve_clear_faults(struct board *board)
{
    if (board->state != STATE_faulted)
        return RESULT_done;
    if (board_conditions(board) != 0)
        return RESULT_condition_present;
    board_clear(board);
    return RESULT_done;
}

static uint8_t serve_set_limits(struct board *board, const uint8_t *payload)
{
    struct wire_set_limits command;
    wire_unpack_set_limits(payload, &command);
    if (!limits_sane(&command.limits))
        return RESULT_bad_value;
    bool stored = limits_store(&command.limits, board->port);
    board_resume(board);
    if (!stored)
        return RESULT_store_failed;
    board->limits = command.limits;
    board_take_limits(board);
    board->limits_whole = true;
    return RESULT_done;
}

static void put_faults(const struct board *board, uint16_t *all, uint16_t *first, uint16_t *cells)
{
    *all = board->fault_bits;
    *first = board->first_fault_bits;
    *cells = board->fault_cells;
}

/* The last reading of resistance, once; false: there is none. */
static bool fill_sensed(struct board *board, struct wire_status *answer)
{
    struct sensed *sensed = &board->sensed;
    board->sensed_sent = !board->sensed_sent && sensed->cell != PORT_SENSE_NONE;
    if (!board->sensed_sent)
        return false;
    answer->first_cell = (uint8_t)(WIRE_SENSED + sensed->cell);
    answer->current_mA[0] = sensed->current_counts;
    answer->current_mA[1] = sensed->supply_counts;
    answer->temperature_cC[0] = (int16_t)((uint16_t)((uint16_t)board->now_ms - sensed->at_ms) & INT16_MAX);
    answer->temperature_cC[1] = 0;
    sensed->cell = PORT_SENSE_NONE;
    return true;
}

static void fill_status(struct board *board, struct wire_status *answer, uint8_t result)
{
    answer->time_us = board->now_us;
    answer->result = result;
    answer->state = board->state;
    put_faults(board, &answer->fault_bits, &answer->first_fault_bits, &answer->fault_cells);
    answer->cells_on = board->cells_on;
    answer->cells_open = board->cells_open;
    if (fill_sensed(board, answer))
        return;
    answer->first_cell = board->status_page;
    const struct cell *cell = &board->cells[board->status_page];
    for (uint8_t i = 0; i < WIRE_CELLS_PER_STATUS; i++, cell++) {
        answer->current_mA[i] = cell->current_mA;
        answer->temperature_cC[i] = cell->temperature_cC;
    }
    board->status_page = (uint8_t)(board->status_page + WIRE_CELLS_PER_STATUS);
    if (board->status_page >= board->identity.n_cells)
        board->status_page = 0;
}

static uint8_t *put_status(struct board *board, uint8_t *at, uint8_t result)
{
    struct wire_status answer;
    fill_status(board, &answer, result);
    return wire_pack_status(at, &answer);
}

static uint8_t *put_armed(struct board *board, uint8_t *at, uint8_t result)
{
    struct wire_armed answer;
    fill_status(board, &answer.status, result);
    answer.arming = result == RESULT_done ? (uint16_t)(board->number >> 8) : 0;
    return wire_pack_armed(at, &answer);
}

static uint8_t heat_per_255(const struct board *board, uint8_t cell)
{
    uint32_t most = board->limits.heat_max_cA2ms;
    uint32_t heat = board->cells[cell].heat.cA2ms;
    if (heat >= most)
        return 255;
    if (most >= UINT32_C(1) << 24) { /* keeps the product within 32 bits */
        most >>= 8;
        heat >>= 8;
    }
    return (uint8_t)((heat * 255u + most - 1u) / most);
}

static uint8_t *put_readings(struct board *board, uint8_t *at)
{
    struct wire_readings answer = {0};
    answer.time_us = board->now_us;
    answer.state = board->state;
    put_faults(board, &answer.fault_bits, &answer.first_fault_bits, &answer.fault_cells);
    answer.cells_open = board->cells_open;
    answer.bad_frames = board->bad_frames;
    answer.feed_per_255 = (uint8_t)(board->feed_counts >> 2);
    answer.rail_per_255 = (uint8_t)(board->rail_counts >> 2);
    for (uint8_t i = 0; i < board->identity.n_cells; i++) {
        answer.duty_per_255[i] = board->cells[i].duty_per_255;
        answer.heat_per_255[i] = heat_per_255(board, i);
        answer.current_mA[i] = board->cells[i].current_mA;
        answer.temperature_cC[i] = board->cells[i].temperature_cC;
    }
    answer.trip_cell = board->trip.cell;
    answer.trip_current_mA = board->trip.current_mA;
    answer.trip_temperature_cC = board->trip.temperature_cC;
    return wire_pack_readings(at, &answer);
}

#define AND_FAULT(name, bit) | 1u << (bit)
static const uint16_t FAULTS_ALL = 0 WIRE_FAULTS(AND_FAULT);
#undef AND_FAULT

static uint8_t *put_identity(struct board *board, uint8_t *at)
{
    struct wire_identity answer = {0};
    answer.wire_hash = WIRE_HASH;
    answer.firmware_hash = FIRMWARE_HASH;
    answer.serial = board->identity.serial;
    answer.time_us = board->now_us;
    answer.reset_cause = board->identity.reset_cause;
    answer.state = board->state;
    answer.seq_taken = (uint8_t)board->number;
    memcpy(answer.fuses, board->identity.fuses, sizeof answer.fuses);
    answer.n_cells = board->identity.n_cells;
    answer.faults_checked = FAULTS_ALL & (uint16_t)~(PORT_MEASURES(&board->identity) ? 0u : WIRE_FAULTS_MEASURED);
    answer.scan_period_us = board->identity.scan_period_us;
    answer.limits_crc = board->limits_crc;
    answer.limits = board->limits;
    return wire_pack_identity(at, &answer);
}

static uint8_t payload_size(uint8_t code)
{
#define CASE_SIZE(name, code, answer) \
    case COMMAND_##name:              \
        return WIRE_SIZE_##name;
    switch (code) {
        WIRE_COMMANDS(CASE_SIZE)
    default:
        return 0;
    }
}

static uint8_t serve(struct board *board, uint8_t code, const uint8_t *payload)
{
    switch (code) {
    case COMMAND_set_mask:
        return serve_set_mask(board, payload);
    case COMMAND_set_duties:
        return serve_set_duties(board, payload);
    case COMMAND_broadcast:
        return serve_broadcast(board, payload);
    case COMMAND_disarm:
        return serve_disarm(board);
    case COMMAND_arm:
    case COMMAND_clear_faults:
    case COMMAND_set_limits:
        break;
    default:
        return RESULT_unknown_command;
    }
    if (board->state == STATE_armed)
        return RESULT_is_armed;
    if (!take_number(board))
        return RESULT_replayed;
    if (code == COMMAND_arm)
        return serve_arm(board, payload);
    return code == COMMAND_set_limits ? serve_set_limits(board, payload) : serve_clear_faults(board);
}

static void send(struct board *board, uint8_t *frame, uint8_t *end)
{
    struct frame_writer writer;
    frame_open(&writer, frame, end);
    uint8_t *group = frame;
    for (;;) {
        uint8_t *next = frame_group(&writer);
        if (next == NULL)
            return;
        port_send(board->port, group, (uint8_t)(next - group));
        group = next;
    }
}

/* Queries of a disarmed board are numbered too; while armed, queries from other hosts have no effect. */
static void take_unless_armed(struct board *board)
{
    if (board->state != STATE_armed)
        take_number(board);
}

void command_serve(struct board *board)
{
    uint8_t frame[FRAME_SENT_MAX];
    const uint8_t *bytes = board->reader.bytes;
    uint8_t code = bytes[1];
    uint8_t n = (uint8_t)(board->reader.n - FRAME_HEADER);
    uint8_t *payload = frame + 1 + FRAME_HEADER;
    uint8_t *end;
    frame[1] = WIRE_VERSION;
    frame[2] = ANSWER_status;
    frame[3] = bytes[SEQ];
    if (bytes[0] != WIRE_VERSION) {
        end = put_status(board, payload, RESULT_version_differs);
    } else if (n != payload_size(code)) {
        end = put_status(board, payload, RESULT_bad_length);
    } else if (code == COMMAND_identify) {
        take_unless_armed(board);
        frame[2] = ANSWER_identity;
        end = put_identity(board, payload);
    } else if (code == COMMAND_read) {
        take_unless_armed(board);
        frame[2] = ANSWER_readings;
        end = put_readings(board, payload);
    } else {
        uint8_t result = serve(board, code, bytes + FRAME_HEADER);
        if (code == COMMAND_arm) {
            frame[2] = ANSWER_armed;
            end = put_armed(board, payload, result);
        } else {
            end = put_status(board, payload, result);
        }
    }
    send(board, frame, end);
}
