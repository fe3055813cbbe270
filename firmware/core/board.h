/* The state of the driver board, and the functions of its commands and main loop. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "cell.h"
#include "frame.h"
#include "port.h"

struct sensed {
    uint16_t current_counts;
    uint16_t supply_counts; /* at the same time */
    uint16_t at_ms;
    uint8_t cell; /* PORT_SENSE_NONE: the host has it already */
};

/* The sample that tripped first. */
struct trip {
    uint16_t current_mA;
    int16_t temperature_cC;
    uint8_t cell; /* WIRE_CELLS_MAX: none has */
};

/* Complements of what decides on gates: of the state, of the cells that may be on, are on, must stay off, and for
 * how long. board_check_memory compares them; KEEP sets both. */
struct complements {
    uint32_t commanded_us, hold_us;
    uint16_t fault_bits, cells_on, wired, cells_open;
    uint8_t state, n_on, n_open, n_cells;
};

struct board {
    struct port *port;
    struct port_identity identity;
    struct wire_limits limits;
    struct heat_law law; /* follows from limits */
    struct frame_reader reader;
    struct cell cells[PORT_CELLS_MAX];
    struct complements complement;
    uint32_t now_us;
    uint32_t now_ms;
    uint32_t ms_mark_us;    /* now_us at the last step of now_ms */
    uint32_t scanned_ms;    /* time of the last complete scan */
    uint32_t commanded_us;  /* time of the last command that fed the dead-man */
    uint32_t hold_us;       /* how long that command is valid */
    uint32_t served_tick;
    uint32_t number; /* of the last accepted command, 24 bits: arming number above, sequence number below */
    uint32_t armed_number; /* `number` when the board was armed */
    uint16_t limits_crc;
    uint16_t kept_crc;    /* of limits and law when they were set */
    uint16_t checked_crc; /* of the limits up to checked_entry */
    uint16_t fault_bits;
    uint16_t first_fault_bits;
    uint16_t fault_cells;
    uint16_t cells_on;
    uint16_t wired; /* cells that may be switched on, as named at arming */
    uint16_t cells_open; /* wired cells found open since arming: they stay off */
    uint16_t bad_frames;
    struct trip trip;
    uint16_t feed_counts; /* of the supply before relay K1, and behind it */
    uint16_t rail_counts;
    struct sensed sensed;    /* the last reading of resistance */
    uint16_t sense_asked_ms; /* time of the last request for one */
    uint16_t sense_step_ms;  /* between two requests */
    uint8_t sense_cell;      /* the last one's */
    bool sense_asked;        /* the request has been neither answered nor cancelled */
    uint8_t n_on;            /* bits in cells_on */
    bool rail_dead;        /* in the last reading, though fed: K1 had been opened */
    uint8_t supply_asked;  /* readings of the supply for which arming still waits with K1 closed */
    uint8_t supply_streak; /* readings in which it was alive and should have been cut */
    uint8_t state; /* enum state */
    uint8_t status_page;
    uint8_t reference_streak[PORT_REFERENCES_MAX];
    bool sensed_sent; /* the last status had a reading of resistance */
    uint8_t n_open; /* bits in cells_open */
    uint8_t n_read; /* cells read since the last complete scan */
    uint8_t checked_entry;
    bool limits_whole;
    bool memory_whole; /* the program and the complements, since the reset */
    bool scanned; /* at least once since the reset */
    bool tick_served;
};

static inline void keep_u8(uint8_t *value, uint8_t *complement, uint8_t to)
{
    *value = to;
    *complement = (uint8_t)~to;
}

static inline void keep_u16(uint16_t *value, uint16_t *complement, uint16_t to)
{
    *value = to;
    *complement = (uint16_t)~to;
}

static inline void keep_u32(uint32_t *value, uint32_t *complement, uint32_t to)
{
    *value = to;
    *complement = ~to;
}

#define KEEP(type, board, name, to) keep_##type(&(board)->name, &(board)->complement.name, to)

/* After a reset: disarmed, all gates off. */
void board_boot(struct board *board, struct port *port);

/* Faults whose cause is still present; they prevent arming and clearing. */
uint16_t board_conditions(struct board *board);

/* Latches these faults of these cells and switches everything off. */
void board_trip(struct board *board, uint16_t bits, uint16_t cells);
void board_all_off(struct board *board);

/* The same for the last sample of a cell, whose values it keeps. */
void board_trip_cell(struct board *board, uint8_t cell, uint16_t bits);
void board_clear(struct board *board);

/* Pulses each of these cells. Isolates open ones, up to open_cells_max. False: the board has tripped, and the
 * remaining cells were not pulsed. */
bool board_probe(struct board *board, uint16_t cells);

/* Call after writing memory, which stops the main loop with all gates off: this time does not count as age of
 * the scan. */
void board_resume(struct board *board);

/* Puts new limits in force. Every cell's heat budget counts as used up. */
void board_take_limits(struct board *board);

/* Trips if the limits (given their CRC) or the heat law have changed since they were set. */
void board_check_limits(struct board *board, uint16_t table_crc);

/* Trips if the program has changed, or what has a complement: of the board, or of one cell. */
void board_check_program(struct board *board);
void board_check_memory(struct board *board);
void board_check_cell(struct board *board, uint8_t cell);

/* Whether these cells have enough heat budget left to be armed. */
bool board_is_cool(const struct board *board, uint16_t cells);

/* Every cell is tested again at arming. */
void board_forget_open(struct board *board);

/* Sets WIRE_CELLS_MAX duties; those of isolated cells become 0. False: a cell without a wire was commanded on. */
bool board_set(struct board *board, uint8_t *duty_per_255, uint8_t valid_for_ms);

/* Asks the port and latches estop_open: the port reports an opening only once. */
bool board_estop_open(struct board *board);

/* The part of `found` that is a fault. A current too low isolates the cell instead, up to open_cells_max
 * cells: an open wire does not heat. */
uint16_t board_faults_of(struct board *board, uint8_t cell, uint16_t found);

void board_keep_time(struct board *board);

#endif
