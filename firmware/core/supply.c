#include "supply.h"

#include "guard.h"

static bool is_permitted(const struct board *board)
{
    return board->state == STATE_armed || board->supply_asked > 0;
}

void supply_poll(struct board *board)
{
    if (PORT_MEASURES(&board->identity))
        port_supply(board->port, is_permitted(board));
}

void supply_take(struct board *board, const struct port_sample *sample)
{
    board->feed_counts = sample->current_counts;
    board->rail_counts = sample->temperature_counts;
    bool fed = guard_is_alive(board->feed_counts), alive = guard_is_alive(board->rail_counts);
    board->rail_dead = !is_permitted(board) && !alive && fed;
    bool unfed = board_estop_open(board) && fed;
    bool uncut = !is_permitted(board) && alive;
    if (board->supply_asked > 0)
        board->supply_asked--;
    if (guard_supply(&board->supply_streak, unfed || uncut))
        board_trip(board, FAULT_supply_stuck, 0);
}

bool supply_ready(struct board *board)
{
    bool closed = board->supply_asked > 0 && guard_is_alive(board->rail_counts);
    if (!PORT_MEASURES(&board->identity))
        return true;
    if (closed || (board->supply_asked == 0 && board->rail_dead))
        board->supply_asked = GUARD_SUPPLY_READINGS;
    return closed;
}
