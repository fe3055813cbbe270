#ifndef COMMAND_H
#define COMMAND_H

#include "board.h"

/* Obeys the frame that the reader holds and answers it. */
void command_serve(struct board *board);

#endif
