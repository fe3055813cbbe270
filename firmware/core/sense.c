#include "sense.h"

#include "guard.h"

static uint16_t bit_of(uint8_t cell)
{
    return (uint16_t)(1u << cell);
}

void sense_restrict(struct board *board, uint16_t cells_on)
{
    if ((cells_on & bit_of(board->sense_cell)) != 0)
        return;
    port_sense(board->port, PORT_SENSE_NONE, false);
    board->sense_asked = false;
}

static bool is_allowed(const struct board *board, uint8_t cell)
{
    uint16_t bit = bit_of(cell);
    if ((board->wired & (uint16_t)~board->cells_open & bit) == 0)
        return false;
    return (board->cells_on & bit) != 0 || guard_may_add(board->n_on, &board->limits);
}

static bool is_due(const struct board *board)
{
    uint16_t since_ms = (uint16_t)((uint16_t)board->now_ms - board->sense_asked_ms);
    return !board->sense_asked && board->sensed.cell == PORT_SENSE_NONE &&
           since_ms >= board->sense_step_ms;
}

static bool is_commanded(const struct board *board)
{
    return board->state == STATE_armed && board->now_us - board->commanded_us <= board->hold_us;
}

void sense_poll(struct board *board)
{
    if (!PORT_MEASURES(&board->identity) || board->limits.sense_every_ms == 0 || !is_due(board) || !is_commanded(board))
        return;
    uint8_t cell = (uint8_t)(board->sense_cell + 1 < board->identity.n_cells ? board->sense_cell + 1 : 0);
    uint8_t duty_per_255 = board->cells[cell].duty_per_255;
    board->sense_asked_ms = (uint16_t)board->now_ms;
    board->sense_cell = cell;
    board->sense_asked = is_allowed(board, cell);
    if (board->sense_asked)
        port_sense(board->port, cell, duty_per_255 != 0 && duty_per_255 != UINT8_MAX);
}

void sense_take(struct board *board, const struct port_sample *sample)
{
    struct cell *cell = &board->cells[sample->cell];
    board->sense_asked = false;
    board_check_cell(board, sample->cell);
    cell_sensed(cell, &board->limits, &board->law, sample, heat_ticks(board->now_us));
    if (!sample->gate_on)
        return;
    board->sensed = (struct sensed){
        .current_counts = sample->current_counts,
        .supply_counts = sample->temperature_counts,
        .at_ms = (uint16_t)board->now_ms,
        .cell = sample->cell,
    };
    uint16_t found = guard_sensed(cell, &board->limits, sample->temperature_counts);
    found = board_faults_of(board, sample->cell, found);
    if (found != 0)
        board_trip_cell(board, sample->cell, found);
}
