/* The order in which a port reads cells and references.
 *
 * The cells take turns, and after the last of them one reference. A cell whose last turn found its gate off
 * is overdue: as soon as its gate is on, it is read before the others. Without this, a cell switched in the
 * rhythm of the scan would never be read while it is on. Of several overdue cells that are on, the one that
 * has waited longest is read first. So every cell is read under any pattern of commands:
 *
 * - an overdue cell is read after at most n_cells readings that are complete while its gate is on;
 * - between two readings of a cell with its gate on, at most 3 n_cells other readings are complete while its
 *   gate is on, and any cell or reference is read again within 3 n_cells readings: a cell becomes overdue
 *   only in its turn, so each is read at most three times in between.
 *
 * tests/firmware/test_scan_order.py searches every pattern for up to four cells. */
#ifndef SCAN_H
#define SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

struct scan_turn {
    uint16_t bit;    /* of the cell; 0: a reference */
    uint8_t address; /* of a cell; from n_cells on, of a reference */
    uint8_t place;   /* in the list of overdue cells; SCAN_IN_TURN: none */
};

enum { SCAN_IN_TURN = UINT8_MAX };

struct scan {
    uint16_t overdue_bits;
    uint16_t bits[WIRE_CELLS_MAX]; /* of the overdue cells, the one that has waited longest first */
    uint8_t cells[WIRE_CELLS_MAX];
    uint8_t n_overdue;
    uint8_t n_cells;
    uint8_t n_references;
    uint8_t reference; /* the next reference, from 0 */
    struct scan_turn turn;
};

void scan_start(struct scan *scan, uint8_t n_cells, uint8_t n_references);

/* The next reading; on: the cells whose gates are on now. */
struct scan_turn scan_next(const struct scan *scan, uint16_t on);

/* Reports a complete reading; gate_on: the cell's gate was on throughout. */
void scan_done(struct scan *scan, struct scan_turn turn, bool gate_on);

#endif
