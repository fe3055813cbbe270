/* The turn at hand: what the port answers in it, and what it is asked. */
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

/* Sets a new turn up; time passes. */
void script_start(struct input input);

#endif
