/* The driver board: commands in, gates out, and its own last word on both. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "cell.h"
#include "frame.h"
#include "port.h"

struct board {
    struct port *port;
    struct port_identity identity;
    struct wire_limits limits;
    struct heat_law law; /* of these limits */
    struct frame_reader reader;
    struct cell cells[WIRE_CELLS_MAX];
    uint32_t now_us;
    uint32_t now_ms;
    uint32_t ms_mark_us;    /* now_ms counts up to here */
    uint32_t scanned_ms;    /* when the last scan was complete */
    uint32_t commanded_us;  /* the last command that feeds the dead-man */
    uint32_t hold_us;       /* how long it holds */
    uint32_t served_tick;
    uint32_t number; /* of the last command taken: 24 bits, the arming's above the sequence number */
    uint32_t armed_number; /* as the board was armed */
    uint16_t limits_crc;
    uint16_t kept_crc;    /* of the limits and their law, as they are meant to stay */
    uint16_t checked_crc; /* of the limits up to checked_entry */
    uint16_t fault_bits;
    uint16_t first_fault_bits;
    uint16_t fault_cells;
    uint16_t cells_on;
    uint16_t wired; /* cells that may be switched on, as arming said */
    uint16_t cells_open; /* of these, set apart since they were armed: found open, they stay off */
    uint16_t bad_frames;
    uint8_t state; /* enum state */
    uint8_t status_page;
    uint8_t reference_streak[PORT_REFERENCES_MAX];
    uint8_t n_open; /* bits in cells_open */
    uint8_t checked_entry;
    bool limits_whole;
    bool scanned; /* at least once since the reset */
    bool tick_served;
};

/* After a reset: disarmed, all gates off. */
void board_boot(struct board *board, struct port *port);

/* One turn of the main loop; takes at most one command. */
void board_poll(struct board *board);

/* For command.c */
uint16_t board_conditions(struct board *board);
void board_trip(struct board *board, uint16_t bits, uint16_t cells);
void board_all_off(struct board *board);
/* Pulses each of these cells; open ones are set apart, as far as the limit allows. False: it has tripped,
 * and the cells after that one were not pulsed. */
bool board_probe(struct board *board, uint16_t cells);
/* After an operation on memory, which held the loop up with all gates off: the scan was not at fault. */
void board_resume(struct board *board);
/* Other limits are in force, which are not to change by themselves: every cell's heat counts as used up. */
void board_take_limits(struct board *board);
/* These cells have heat left for the pulse of arming and a first command. */
bool board_is_cool(const struct board *board, uint16_t cells);
/* No cell is set apart any more: arming looks at all of them again. */
void board_forget_open(struct board *board);
/* WIRE_CELLS_MAX duties, those of cells set apart become 0; false: one is of a cell that has no wire. */
bool board_set(struct board *board, uint8_t *duty_per_255, uint8_t valid_for_ms);

#endif
