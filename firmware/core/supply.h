/* The cells' supply: relay K1, which may close only while the board is armed or is being armed, and the voltages
 * on both sides of it: the feed, which relay K2 cuts when the e-stop opens, and the rail. */
#ifndef SUPPLY_H
#define SUPPLY_H

#include "board.h"

/* Permits K1 or not. Call in every turn of the main loop. */
void supply_poll(struct board *board);

/* A reading of both voltages. Trips if one that should be cut stays alive. */
void supply_take(struct board *board, const struct port_sample *sample);

/* Arming asks, and asks again: true once the rail, dead while the feed was alive, has come alive by K1, which stays
 * closed for a while. */
bool supply_ready(struct board *board);

#endif
