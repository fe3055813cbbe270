/* The main loop. */
#ifndef LOOP_H
#define LOOP_H

#include "board.h"

/* One turn of the main loop; takes at most one command. */
void board_poll(struct board *board);

#endif
