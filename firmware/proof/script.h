/* The present turn: the port's answers and the requests to it. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "events.h"

enum { ANSWER_MAX = 2 * FRAME_SENT_MAX };

struct turn {
    struct input input;
    uint8_t bytes[FRAME_SENT_MAX]; /* of the frame that arrives */
    uint8_t n_bytes, at_byte;
    uint8_t looks, at_sample;
    uint8_t answer[ANSWER_MAX];
    uint8_t n_answer;
    bool seen_open, last_look_open, fed_watchdog;
};

extern struct turn turn;

/* Prepares a new turn and advances the time. */
void script_start(struct input input);

#endif
