#ifndef COMMAND_H
#define COMMAND_H

#include "board.h"

/* Executes the frame in the reader and answers it. */
void command_serve(struct board *board);

#endif
