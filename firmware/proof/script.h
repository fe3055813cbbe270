/* The present turn: the port's answers and the requests to it. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "events.h"

enum { ANSWER_MAX = 2 * FRAME_SENT_MAX };

struct turn {
    struct input input;
    uint8_t bytes[FRAME_SENT_MAX]; /* of the frame that arrives */
    uint8_t n_bytes, at_byte;
    uint8_t looks, switched;
    uint8_t answer[ANSWER_MAX];
    uint8_t n_answer;
    bool heard;            /* the board has begun to listen; so these were judged: */
    bool fresh;            /* the scan was */
    bool read_before;      /* the e-stop has been read */
    uint8_t expected;      /* result of the frame */
    bool supply_read;        /* by the reading whose look at the e-stop comes next */
    bool sampled, seen_open, last_look_open, fed_watchdog, refreshed, scan_ended;
    uint16_t due, due_cells; /* faults, and their cells, that stand from now on */
    uint16_t may, may_cells; /* those that may be new */
    uint8_t probed;          /* cells whose pulses have been judged, and the one that has not been yet */
    uint16_t pulse_counts;
    uint8_t n_readings[N_CELLS], n_counted[N_CELLS], n_added[N_CELLS], n_cooled[N_CELLS];
    uint16_t counted_ticks[N_CELLS], cooled_ticks[N_CELLS]; /* the last ones, in this turn */
    uint8_t n_heating[N_CELLS], n_pulses[N_CELLS], n_used_up[N_CELLS];
};

extern struct turn turn;

/* Whether the n-th read of the e-stop in this turn finds it open. */
bool script_estop(struct input input, uint8_t look);

/* Whether the reading that is due, of this cell, can have this level now. */
bool script_admits(struct input input);

/* Whether a cell's heat is of this class or above now. */
bool script_heat(uint8_t cell, enum heat_class least);
/* Gives each cell the heat with which the turn begins. */
void script_heat_start(void);

/* Prepares a new turn and advances the time. */
void script_start(struct input input);

#endif
