#include "scan.h"

void scan_start(struct scan *scan, uint8_t n_cells, uint8_t n_references)
{
    *scan = (struct scan){
        .n_cells = n_cells,
        .n_references = n_references,
        .turn = {.bit = 1, .place = SCAN_IN_TURN},
    };
}

struct scan_turn scan_next(const struct scan *scan, uint16_t on)
{
    uint8_t i = 0;
    if ((scan->overdue_bits & on) == 0)
        return scan->turn;
    while ((scan->bits[i] & on) == 0)
        i++;
    return (struct scan_turn){.bit = scan->bits[i], .address = scan->cells[i], .place = i};
}

static void add_overdue(struct scan *scan, struct scan_turn turn)
{
    if ((scan->overdue_bits & turn.bit) != 0)
        return;
    scan->overdue_bits |= turn.bit;
    scan->bits[scan->n_overdue] = turn.bit;
    scan->cells[scan->n_overdue] = turn.address;
    scan->n_overdue++;
}

static void remove_overdue(struct scan *scan, struct scan_turn turn)
{
    scan->overdue_bits &= (uint16_t)~turn.bit;
    scan->n_overdue--;
    uint16_t *bit = &scan->bits[turn.place];
    uint8_t *cell = &scan->cells[turn.place];
    for (uint8_t left = (uint8_t)(scan->n_overdue - turn.place); left > 0; left--, bit++, cell++) {
        bit[0] = bit[1];
        cell[0] = cell[1];
    }
}

static void next_turn(struct scan *scan)
{
    struct scan_turn *turn = &scan->turn;
    bool was_cell = turn->bit != 0;
    turn->address++;
    turn->bit = (uint16_t)(turn->bit << 1);
    if (was_cell && turn->address < scan->n_cells)
        return;
    if (was_cell && scan->n_references > 0) { /* one reference after the last cell */
        turn->bit = 0;
        turn->address = (uint8_t)(scan->n_cells + scan->reference);
        scan->reference = (uint8_t)(scan->reference + 1 < scan->n_references ? scan->reference + 1 : 0);
        return;
    }
    turn->bit = 1;
    turn->address = 0;
}

void scan_done(struct scan *scan, struct scan_turn turn, bool gate_on)
{
    if (turn.place == SCAN_IN_TURN) {
        if (!gate_on && turn.bit != 0)
            add_overdue(scan, turn);
    } else if (gate_on) {
        remove_overdue(scan, turn);
    }
    if (turn.address == scan->turn.address)
        next_turn(scan);
}
