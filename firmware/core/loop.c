#include "loop.h"

#include "command.h"
#include "guard.h"
#include "limits.h"
#include "sense.h"
#include "supply.h"

enum {
    RECEIVED_MAX = 48, /* bytes per turn, so that a busy line cannot delay the guard */
};

/* The scan is complete when every cell has been read since the last complete one. */
static void count_reading(struct board *board, struct cell *cell)
{
    if (cell->was_read != 0)
        return;
    cell->was_read = 1;
    board->n_read++;
    if (board->n_read < board->identity.n_cells)
        return;
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        board->cells[i].was_read = 0;
    board->n_read = 0;
    port_gates_refresh(board->port);
    board->scanned = true;
    board->scanned_ms = board->now_ms;
}

static void check_cell(struct board *board, const struct port_sample *sample)
{
    struct cell *cell = &board->cells[sample->cell];
    board_check_cell(board, sample->cell);
    cell_sample(cell, &board->limits, &board->law, sample, heat_ticks(board->now_us));
    uint16_t found = guard_sample(cell, &board->limits, sample, board->now_ms);
    if ((port_gate_set(board->port, sample->cell) & (uint8_t)~cell->duty_per_255) != 0)
        found |= FAULT_gate_stuck; /* at some phase of the modulation, though not at that of the reading */
    found = board_faults_of(board, sample->cell, found);
    if (found != 0)
        board_trip_cell(board, sample->cell, found);
    count_reading(board, cell);
}

static void check_reference(struct board *board, const struct port_sample *sample)
{
    uint8_t *streak = &board->reference_streak[sample->cell - WIRE_CELLS_MAX];
    uint16_t found = guard_reference(streak, &board->limits, sample);
    if (found != 0)
        board_trip(board, found, 0);
}

static void take_sample(struct board *board)
{
    struct port_sample sample;
    if (!port_sample(board->port, &sample))
        return;
    sample.measures = PORT_MEASURES(&board->identity);
    if (sample.sensed)
        sense_take(board, &sample);
    else if (sample.cell == PORT_SUPPLY)
        supply_take(board, &sample);
    else if (sample.cell >= WIRE_CELLS_MAX)
        check_reference(board, &sample);
    else
        check_cell(board, &sample);
}

static void watch_host(struct board *board)
{
    uint32_t silence_us = board->now_us - board->commanded_us;
    board_estop_open(board);
    if (board->state == STATE_armed && guard_silent(silence_us, &board->limits))
        board_trip(board, FAULT_host_silent, 0);
    if ((board->cells_on != 0 || board->sense_asked) && silence_us > board->hold_us)
        board_all_off(board);
}

/* Feeds the hardware watchdog only while the scan is fresh. A silent host needs no watchdog: watch_host has
 * just switched everything off. */
static void watch_scan(struct board *board)
{
    bool stale = guard_scan_stale(board->now_ms - board->scanned_ms, &board->limits);
    if (!stale)
        port_watchdog_feed(board->port);
    else if ((board->fault_bits & FAULT_scan_stale) == 0)
        board_trip(board, FAULT_scan_stale, 0);
}

/* True: a command was served. */
static bool listen(struct board *board)
{
    uint8_t byte;
    for (uint8_t n = 0; n < RECEIVED_MAX && port_receive(board->port, &byte); n++) {
        enum frame_event event = frame_take(&board->reader, byte);
        if (event == FRAME_BAD && board->bad_frames < UINT16_MAX)
            board->bad_frames++;
        if (event == FRAME_WHOLE) {
            board_keep_time(board); /* receiving may have taken as long as the frame took to arrive */
            command_serve(board);
            frame_start(&board->reader);
            return true; /* the guard runs between any two commands */
        }
    }
    return false;
}

/* Each turn checks a part of the program and adds one entry of the table to its CRC; at the end of the table the
 * complements are compared. Those of a cell are compared whenever it is read. */
static void watch_memory(struct board *board)
{
    board_check_program(board);
    board->checked_crc = limits_crc_entry(board->checked_crc, &board->limits, board->checked_entry);
    if (board->checked_entry++ < LIMITS_ENTRIES)
        return;
    board_check_limits(board, board->checked_crc);
    board_check_memory(board);
    board->checked_entry = 0;
    board->checked_crc = WIRE_CRC_INIT;
}

void board_poll(struct board *board)
{
    board_keep_time(board);
    take_sample(board);
    watch_host(board);
    watch_scan(board);
    sense_poll(board);
    if (listen(board)) { /* serving takes as long as two readings, and the answer must not wait for them */
        board_keep_time(board);
        take_sample(board);
    }
    watch_memory(board); /* after the answer, as the next */
    supply_poll(board);
}
