#include "board.h"

#include <string.h>

#include "guard.h"
#include "limits.h"
#include "sense.h"

void board_boot(struct board *board, struct port *port)
{
    memset(board, 0, sizeof *board);
    port_gates_off(port);
    board->port = port;
    board->sensed.cell = PORT_SENSE_NONE;
    board->trip.cell = WIRE_CELLS_MAX;
    frame_start(&board->reader);
    board->identity = port_identity(port);
    memset(&board->complement, UINT8_MAX, sizeof board->complement);
    board->complement.n_cells = (uint8_t)~board->identity.n_cells;
    board->now_us = port_now_us(port);
    board->ms_mark_us = board->now_us;
    board->memory_whole = true;
    board->limits_whole = limits_load(&board->limits, port);
    for (uint8_t i = 0; i < PORT_CELLS_MAX; i++)
        cell_boot(&board->cells[i]);
    board_take_limits(board);
    if (!board->limits_whole)
        board_trip(board, FAULT_limits_corrupt, 0);
    board_check_program(board);
}

static uint16_t with_law(const struct board *board, uint16_t crc)
{
    return frame_crc(crc, (const uint8_t *)&board->law, sizeof board->law);
}

void board_take_limits(struct board *board)
{
    board->limits_crc = limits_crc(&board->limits);
    board->law = heat_law(&board->limits);
    board->kept_crc = with_law(board, board->limits_crc);
    board->checked_entry = 0;
    board->checked_crc = WIRE_CRC_INIT;
    board->sense_step_ms = (uint16_t)(board->limits.sense_every_ms / (unsigned)board->identity.n_cells + 1u);
    for (uint8_t i = 0; i < PORT_CELLS_MAX; i++)
        heat_use_up(&board->cells[i].heat, &board->limits, heat_ticks(board->now_us));
}

void board_check_limits(struct board *board, uint16_t table_crc)
{
    if (!board->limits_whole || with_law(board, table_crc) == board->kept_crc)
        return;
    board->limits_whole = false;
    board_trip(board, FAULT_limits_corrupt, 0);
}

static bool is_kept(const struct board *board)
{
    const struct complements *not = &board->complement;
    uint32_t times = (board->commanded_us ^ not->commanded_us) & (board->hold_us ^ not->hold_us);
    uint16_t masks = (uint16_t)((board->fault_bits ^ not->fault_bits) & (board->cells_on ^ not->cells_on) &
                                (board->wired ^ not->wired) & (board->cells_open ^ not->cells_open));
    uint8_t numbers = (uint8_t)((board->state ^ not->state) & (board->n_on ^ not->n_on) &
                                (board->n_open ^ not->n_open) & (board->identity.n_cells ^ not->n_cells));
    return times == UINT32_MAX && masks == UINT16_MAX && numbers == UINT8_MAX;
}

static void lose_memory(struct board *board, uint16_t cells)
{
    if (!board->memory_whole)
        return;
    board->memory_whole = false;
    board_trip(board, FAULT_memory_corrupt, cells);
}

void board_check_program(struct board *board)
{
    if (!port_program_intact(board->port))
        lose_memory(board, 0);
}

void board_check_memory(struct board *board)
{
    if (!is_kept(board))
        lose_memory(board, 0);
}

void board_check_cell(struct board *board, uint8_t cell)
{
    if (!cell_is_kept(&board->cells[cell]))
        lose_memory(board, (uint16_t)(1u << cell));
}

/* Records that a cell is off; its gate has been switched already. */
static void cell_off(struct board *board, uint8_t cell)
{
    uint16_t now_ticks = heat_ticks(port_now_us(board->port));
    cell_command(&board->cells[cell], 0, (uint16_t)board->now_ms, now_ticks, now_ticks);
}

void board_all_off(struct board *board)
{
    port_gates_off(board->port);
    KEEP(u16, board, cells_on, 0);
    KEEP(u8, board, n_on, 0);
    board->sense_asked = false;
    board->supply_asked = 0;
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        cell_off(board, i);
}

void board_trip(struct board *board, uint16_t bits, uint16_t cells)
{
    if (board->fault_bits == 0)
        board->first_fault_bits = bits;
    KEEP(u16, board, fault_bits, board->fault_bits | bits);
    board->fault_cells |= cells;
    KEEP(u8, board, state, STATE_faulted);
    board_all_off(board);
}

void board_trip_cell(struct board *board, uint8_t cell, uint16_t bits)
{
    const uint16_t on = FAULT_current_high | FAULT_current_low | FAULT_cell_energy_high;
    const struct cell *tripped = &board->cells[cell];
    if (board->trip.cell == WIRE_CELLS_MAX)
        board->trip = (struct trip){
            .current_mA = (bits & on) != 0 ? cell_current_mA(tripped->on_counts, &board->limits)
                                           : tripped->sampled_mA,
            .temperature_cC = tripped->temperature_cC,
            .cell = cell,
        };
    board_trip(board, bits, (uint16_t)(1u << cell));
}

void board_clear(struct board *board)
{
    KEEP(u16, board, fault_bits, 0);
    board->first_fault_bits = 0;
    board->fault_cells = 0;
    board->trip = (struct trip){.cell = WIRE_CELLS_MAX};
    KEEP(u8, board, state, STATE_disarmed);
}

void board_forget_open(struct board *board)
{
    KEEP(u16, board, cells_open, 0);
    KEEP(u8, board, n_open, 0);
}

/* Switches one cell off until the next arming; the others keep their duties. */
static void isolate(struct board *board, uint8_t cell)
{
    uint16_t bit = (uint16_t)(1u << cell);
    uint8_t duty_per_255[WIRE_CELLS_MAX] = {0};
    KEEP(u16, board, cells_open, board->cells_open | bit);
    KEEP(u8, board, n_open, (uint8_t)(board->n_open + 1));
    sense_restrict(board, (uint16_t)~bit);
    if (board->cells[cell].duty_per_255 == 0)
        return;
    KEEP(u16, board, cells_on, board->cells_on & (uint16_t)~bit);
    KEEP(u8, board, n_on, (uint8_t)(board->n_on - 1));
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        duty_per_255[i] = i == cell ? 0 : board->cells[i].duty_per_255;
    port_gates_set(board->port, duty_per_255, board->identity.n_cells);
    cell_off(board, cell);
}

uint16_t board_faults_of(struct board *board, uint8_t cell, uint16_t found)
{
    if ((found & FAULT_current_low) == 0)
        return found;
    if ((board->cells_open & (uint16_t)(1u << cell)) == 0) {
        if (!guard_may_be_open(board->n_open, &board->limits))
            return found;
        isolate(board, cell);
    }
    return found & (uint16_t)~FAULT_current_low;
}

static void switch_cells(struct board *board, const uint8_t *duty_per_255)
{
    uint8_t n_cells = board->identity.n_cells;
    port_gates_set(board->port, duty_per_255, n_cells);
    uint16_t before_ticks = heat_ticks(board->now_us);
    uint16_t after_ticks = heat_ticks(port_now_us(board->port));
    struct cell *cell = board->cells;
    for (const uint8_t *end = duty_per_255 + n_cells; duty_per_255 != end; duty_per_255++, cell++)
        if (cell->duty_per_255 != *duty_per_255)
            cell_command(cell, *duty_per_255, (uint16_t)board->now_ms, before_ticks, after_ticks);
}

static void leave_open_off(const struct board *board, uint8_t *duty)
{
    for (uint16_t bit = 1; bit != 0; bit = (uint16_t)(bit << 1), duty++)
        if ((board->cells_open & bit) != 0)
            *duty = 0;
}

bool board_set(struct board *board, uint8_t *duty_per_255, uint8_t valid_for_ms)
{
    uint8_t hold_max_ms = board->limits.hold_max_ms;
    uint16_t cells_on = 0;
    uint16_t bit = 1;
    uint8_t n_on = 0;
    uint8_t changes = 0;
    const struct cell *cell = board->cells;
    const uint8_t *duty = duty_per_255;
    if (board->cells_open != 0)
        leave_open_off(board, duty_per_255);
    for (; duty != duty_per_255 + PORT_CELLS_MAX; bit = (uint16_t)(bit << 1), duty++, cell++) {
        changes |= *duty ^ cell->duty_per_255;
        if (*duty == 0)
            continue;
        cells_on |= bit;
        n_on++;
    }
    for (; duty != duty_per_255 + WIRE_CELLS_MAX; duty++)
        if (*duty != 0)
            return false;
    if ((cells_on & (uint16_t)~board->wired) != 0)
        return false;
    if (guard_too_many(n_on, &board->limits)) {
        board_trip(board, FAULT_too_many_cells_on, cells_on);
        return true;
    }
    if (!guard_may_add(n_on, &board->limits))
        sense_restrict(board, cells_on);
    KEEP(u16, board, cells_on, cells_on);
    KEEP(u8, board, n_on, n_on);
    KEEP(u32, board, commanded_us, board->now_us);
    KEEP(u32, board, hold_us, (uint32_t)(valid_for_ms < hold_max_ms ? valid_for_ms : hold_max_ms) * 1000u);
    if (changes != 0)
        switch_cells(board, duty_per_255);
    return true;
}

bool board_estop_open(struct board *board)
{
    bool open = port_estop_open(board->port);
    if (open && (board->fault_bits & FAULT_estop_open) == 0)
        board_trip(board, FAULT_estop_open, 0);
    return open;
}

bool board_probe(struct board *board, uint16_t cells)
{
    uint16_t bit = 1;
    if (!PORT_MEASURES(&board->identity))
        return !board_estop_open(board);
    for (uint8_t i = 0; i < board->identity.n_cells; i++, bit = (uint16_t)(bit << 1)) {
        if ((cells & bit) == 0)
            continue;
        uint16_t counts = port_probe(board->port, i);
        cell_probed(&board->cells[i], &board->law, counts, heat_ticks(port_now_us(board->port)));
        if (board_estop_open(board)) /* the gate did not rise, or not for long enough: discard the reading */
            return false;
        uint16_t found = board_faults_of(board, i, guard_probe(counts, &board->limits));
        if (found != 0) {
            board_trip_cell(board, i, found);
            return false;
        }
    }
    return true;
}

bool board_is_cool(const struct board *board, uint16_t cells)
{
    for (uint8_t i = 0; i < board->identity.n_cells; i++, cells >>= 1)
        if ((cells & 1u) != 0 && !guard_is_cool(&board->cells[i], &board->limits))
            return false;
    return true;
}

/* Faults that the last readings of cells and references still show. */
static uint16_t reading_conditions(const struct board *board)
{
    uint16_t found = 0;
    for (uint8_t i = 0; i < PORT_REFERENCES_MAX; i++)
        if (board->reference_streak[i] > 0)
            found |= FAULT_scan_untrue;
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        found |= guard_condition(&board->cells[i], &board->limits);
    return found;
}

uint16_t board_conditions(struct board *board)
{
    uint16_t found = 0;
    if (board_estop_open(board))
        found |= FAULT_estop_open;
    board_check_limits(board, limits_crc(&board->limits));
    if (!board->limits_whole)
        found |= FAULT_limits_corrupt;
    board_check_memory(board);
    for (uint8_t i = 0; i < board->identity.n_cells; i++)
        board_check_cell(board, i);
    if (!board->memory_whole)
        found |= FAULT_memory_corrupt;
    if (!board->scanned || guard_scan_stale(board->now_ms - board->scanned_ms, &board->limits))
        found |= FAULT_scan_stale;
    if (board->supply_streak >= GUARD_SUPPLY_READINGS)
        found |= FAULT_supply_stuck;
    return found | reading_conditions(board);
}

void board_keep_time(struct board *board)
{
    board->now_us = port_now_us(board->port);
    while (board->now_us - board->ms_mark_us >= 1000u) {
        board->ms_mark_us += 1000u;
        board->now_ms++;
    }
}

void board_resume(struct board *board)
{
    board_keep_time(board);
    board->scanned_ms = board->now_ms;
}

