/* Resistance: the current of every wired cell and the supply's voltage, measured at the same time in rotation.
 * A cell that is off is on for the measurement. This is subject to every limit: it happens only while the board
 * is armed and a command is valid, never with more cells on than cells_on_max, and its heat counts. */
#ifndef SENSE_H
#define SENSE_H

#include "board.h"

/* Requests the next reading when it is due and a status has taken the last one. Call in every turn of the main
 * loop. */
void sense_poll(struct board *board);

/* These cells will be on, as many as may be: cancels a request, not yet begun, for any other. */
void sense_restrict(struct board *board, uint16_t cells_on);

/* A reading that was requested. */
void sense_take(struct board *board, const struct port_sample *sample);

#endif
