/* The possible events of a board of two cells in one turn of its main loop, and the properties that must hold
 * after it. */
#ifndef EVENTS_H
#define EVENTS_H

#include "watched.h"

/* P(name, what holds after every turn) */
#define PROPERTIES_OF_A_TURN(P)                                                              \
    P(armed_to_be_high, "a gate is high only while the board is armed")                      \
    P(hold_ends, "a command's hold ends within one turn of its time")                        \
    P(dead_man, "no set command for silence_max_ms disarms, within one turn")                \
    P(estop_ends, "an e-stop seen open ends the turn all gates low and, until cleared, faulted")                \
    P(rise_by_command, "a gate rises only in a turn that answers `done` to a set command")   \
    P(armed_by_command, "the board arms only in a turn that answers `done` to `arm`")        \
    P(cleared_by_command, "a fault ends only in a turn that answers `done` to `clear_faults`") \
    P(disarm_obeyed, "`disarm` ends the turn unarmed, all gates low")                        \
    P(wired_only, "a gate is high only of a cell that arming named, and that is not set apart") \
    P(stale_scan_ends, "a scan older than scan_age_max_ms disarms, within one turn")         \
    P(watchdog_honest, "the watchdog is fed only while the scan is fresh")                   \
    P(current_persists, "a current too high for persistence_scans readings ends in a fault") \
    P(open_persists, "a current too low for persistence_scans readings switches the cell off")

#define PROPERTY_ENUM_TURN(name, text) PROPERTY_##name,
enum turn_property {
    BEFORE_TURN = N_PORT_PROPERTIES - 1,
    PROPERTIES_OF_A_TURN(PROPERTY_ENUM_TURN) N_PROPERTIES
};

enum { N_CELLS = 2 };

/* S(name): one complete scan of both cells, or none */
#define SCANS(S) S(no_scan) S(good) S(low_0) S(high_0) S(leak_0) S(low_1) S(low_both)
/* E(name, the reads of the e-stop in this turn that find it open; bit 0 is the first) */
#define ESTOPS(E) \
    E(closed, 0x00) E(open, 0xFF) E(blip_1, 0x01) E(blip_2, 0x02) E(from_2, 0xFE) E(from_3, 0xFC)
/* F(name): the frame that arrives in this turn */
#define FRAMES(F)                                                                                \
    F(no_frame) F(arm) F(arm_0_open) F(arm_0_short) F(arm_1_alone) F(arm_other_limits) F(set_none) \
    F(set_0_short) F(set_both) F(set_unwired) F(set_other_arming) F(set_other_version) F(set_spoilt)   \
    F(set_too_short) F(replay) F(broadcast) F(disarm) F(clear) F(set_limits) F(read) F(reset)
/* A(name, us since the turn before) */
#define STEPS(A) A(at_once, 0) A(ms_1, 1000) A(ms_4, 4000) A(ms_11, 11000)

#define NAME_ENUM(name) EVENT_##name,
#define VALUE_ENUM(name, value) EVENT_##name,
enum scan_event { SCANS(NAME_ENUM) N_SCANS };
enum estop_event { ESTOPS(VALUE_ENUM) N_ESTOPS };
enum frame_event_kind { FRAMES(NAME_ENUM) N_FRAMES };
enum step_event { STEPS(VALUE_ENUM) N_STEPS };

struct input {
    uint8_t step, scan, estop, frame;
};

/* The past, recorded independently of the board. */
struct past {
    uint32_t now_us;
    uint32_t set_us;     /* time of the last set command answered `done` */
    uint32_t hold_us;    /* and its validity */
    uint32_t fed_us;     /* time of the last set or arm command answered `done` */
    uint32_t scanned_us; /* time of the last complete scan */
    uint16_t wired;      /* cells that the last successful arming named */
    uint8_t n_high[N_CELLS]; /* readings in a row, of cells that are on, with too high a current */
    uint8_t n_low[N_CELLS];
    uint8_t last_set;    /* kind of the last set command answered `done`; 0: none */
    uint8_t last_frame[FRAME_SENT_MAX];
    uint8_t last_n;
};

struct world {
    struct board board;
    struct port port;
    struct past past;
};

extern struct world world;

void world_boot(void);
/* One turn of the main loop; the properties are checked. */
void world_turn(struct input input);
/* Calls `violated` for a property that does not hold. */
extern void (*violated)(unsigned which);

#endif
