/* The events of a board of two cells in one turn of its main loop, and the properties that must hold after it.
 * A turn brings at most one reading, one frame and one pattern of the e-stop; explorations.c says which of them
 * meet each other. */
#ifndef EVENTS_H
#define EVENTS_H

#include "watched.h"

/* P(name, what holds after every turn) */
#define PROPERTIES_OF_A_TURN(P)                                                                     \
    P(armed_to_be_high, "a gate is high only while the board is armed")                             \
    P(hold_ends, "a command's hold ends within one turn of its time")                               \
    P(dead_man, "no set command for silence_max_ms disarms, within one turn")                       \
    P(estop_read, "the e-stop is read in every turn")                                               \
    P(estop_ends, "an e-stop seen open ends the turn all gates low and, until cleared, faulted")    \
    P(rise_by_command, "a gate rises only in a turn that answers `done` to a set command")          \
    P(armed_by_command, "the board arms only in a turn that answers `done` to `arm`")               \
    P(cleared_by_command, "a fault ends only in a turn that answers `done` to `clear_faults`")      \
    P(disarm_obeyed, "`disarm` ends the turn unarmed, all gates low")                               \
    P(wired_only, "a gate is high only of a cell that arming named, and that is not set apart")     \
    P(stale_scan_ends, "a scan older than scan_age_max_ms disarms, within one turn")                \
    P(watchdog_honest, "the watchdog is fed in every turn in which the scan is fresh, and in no other") \
    P(open_persists, "a current too low for persistence_scans readings switches the cell off")      \
    P(as_commanded, "gates have the duties of the last command answered `done`, until its time ends, a trip, or their cell is set apart") \
    P(condition_trips, "whatever a limit forbids is a fault in the turn that shows it, or persistence_scans readings of it") \
    P(fault_has_cause, "no fault is latched, and no cell is named, without its cause")              \
    P(fault_is_state, "the state is `faulted` as long as a fault is latched, and not otherwise")    \
    P(set_apart, "the cells set apart are those found open since arming, open_cells_max at most")   \
    P(answered, "each whole frame is answered once, with its number and the result that protocol.h says") \
    P(true_answer, "an answer tells the present state, faults, gates and cells set apart")          \
    P(heat_of_duty, "the heat budget counts each gate with its duty, from before it rises until after it falls") \
    P(heat_of_reading, "each reading counts the time, cools, and adds the time with the last current of the gate on") \
    P(heat_of_time, "heat is counted and cools up to the present time, which does not go back")     \
    P(heat_of_pulse, "each pulse adds its heat")                                                    \
    P(heat_used_up, "after a reset and with a new table every budget counts as used up")            \
    P(table_in_force, "the limits in force are those stored last; a store that failed changes none") \
    P(sensing_ends, "a request to measure resistance ends with all that allowed it")                \
    P(sensed_once, "each reading of resistance is sent at most once")                               \
    P(gates_refreshed, "each complete scan rewrites the gates, and nothing else does")              \
    P(reading_taken, "a reading is taken in the turn in which it is ready, before the frame or after it") \
    P(trip_kept, "the cell that tripped first is kept until faults are cleared")                    \
    P(rail_tested, "the board arms only after the rail was seen dead while fed and cut, then alive by K1") \
    P(supply_cut, "relay K1 is permitted while armed, and a while after arming asked for it, and at no other time")

#define PROPERTY_ENUM_TURN(name, text) PROPERTY_##name,
enum turn_property {
    BEFORE_TURN = N_PORT_PROPERTIES - 1,
    PROPERTIES_OF_A_TURN(PROPERTY_ENUM_TURN) N_PROPERTIES
};

enum { N_CELLS = 2, N_REFERENCES = 2 };

/* S(name): one reading. On and off are as the gate is set. Each level is at its limit, or a count beyond it. */
#define SAMPLES(S)                                                                                           \
    S(no_sample)                                                                                             \
    S(least)      /* the least current on and off, the coldest that is allowed */                            \
    S(most)       /* the most current on and off, the hottest that is allowed */                             \
    S(low) S(high) /* of a gate that is on */                                                                \
    S(leak)       /* of a gate that is off */                                                                \
    S(cold) S(hot) S(no_sensor) /* below the range, above the limit but in the range, above both */                           \
    S(stuck_low) S(stuck_high) S(flipped) /* a pin that is not as set; set, but not commanded */             \
    S(late) S(late_low) /* the gate before the last command, in the first two readings after it */                \
    S(between)    /* a partial duty in its off-time */                                                       \
    S(reference) S(reference_low) S(reference_high) S(reference_split) /* split: on one multiplexer */       \
    S(sensed) S(sensed_low) S(sensed_unsupplied) S(sensed_high) S(sensed_off) /* off: the gate did not rise */ \
    S(rail_dead) S(rail_alive) S(unfed) S(unfed_alive) /* the supply behind K1; unfed: none before it */
/* E(name, the reads of the e-stop in this turn that find it open; bit 0 is the first) */
#define ESTOPS(E) \
    E(closed, 0x00) E(open, 0xFF) E(blip_1, 0x01) E(blip_2, 0x02) E(from_2, 0xFE) E(from_3, 0xFC)
/* F(name): what arrives in this turn */
#define FRAMES(F)                                                                                       \
    F(no_frame)                                                                                         \
    F(arm) F(arm_0_open) F(arm_both_open) F(arm_0_short) F(arm_0) F(arm_1) F(arm_none) F(arm_beyond) F(arm_other_limits) \
    F(set_none) F(set_0) F(set_1) F(set_both) F(set_unwired) F(set_untimed)            \
    F(set_partial) F(set_swapped) F(set_too_short_duty)                                                 \
    F(set_other_arming) F(set_other_version) F(set_spoilt) F(set_cut) F(replay)                         \
    F(broadcast_on) F(broadcast_off)                                                                    \
    F(disarm) F(clear) F(read) F(identify) F(unknown)                                                   \
    F(set_limits) F(set_limits_other) F(set_limits_insane) F(set_limits_unstored)                       \
    F(flip_limit) F(flip_law) /* no frame: a bit of the table in memory turns over */                   \
    F(reset) F(reset_virgin) F(reset_corrupt) F(reset_insane) /* with this memory of limits */
/* H(name, classes of the heat of both cells): first until the frame is served, then */
#define HEATS(H)                                                                                        \
    H(cool, COOL, COOL, COOL) H(warm, WARM, WARM, COOL) H(at_limit, AT_LIMIT, AT_LIMIT, COOL)           \
    H(above, ABOVE, ABOVE, COOL) H(rises, COOL, ABOVE, COOL) H(falls, ABOVE, COOL, COOL)                \
    H(other_warm, COOL, COOL, WARM) H(other_above, COOL, COOL, ABOVE)
/* A(name, us since the turn before) */
#define STEPS(A) A(at_once, 0) A(ms_1, 1000) A(ms_4, 4000) A(ms_11, 11000)

#define NAME_ENUM(name) EVENT_##name,
#define VALUE_ENUM(name, value) EVENT_##name,
#define HEAT_ENUM(name, first, then, other) EVENT_##name,
enum sample_event { SAMPLES(NAME_ENUM) N_SAMPLES };
enum estop_event { ESTOPS(VALUE_ENUM) N_ESTOPS };
enum frame_event_kind { FRAMES(NAME_ENUM) N_FRAMES };
enum heat_event { HEATS(HEAT_ENUM) N_HEATS };
enum step_event { STEPS(VALUE_ENUM) N_STEPS };
/* The limit on heat has these sides; which one a cell is on is all that the board asks (any_heat.c). */
enum heat_class { COOL, WARM, AT_LIMIT, ABOVE };

struct input {
    uint8_t step, sample, cell, estop, frame, heat;
    bool after; /* the reading comes after the frame */
    bool mute;  /* the line takes no answer */
};

/* What the properties know of a cell, recorded independently of the board. */
struct cell_past {
    uint32_t on_us;     /* since when its gate is on without a break */
    uint16_t on_counts; /* last reading of a gate that is on */
    uint8_t commanded;  /* duty of the last set command answered `done`; 0 when its time has ended */
    uint8_t gate;       /* duty that the port was asked for */
    uint8_t before;     /* the same before that */
    uint8_t n_since;    /* readings since then; IN_FLIGHT at most */
    uint8_t heat_duty;  /* duty that heat.c was told */
    uint8_t bad[N_CHECKS]; /* readings in a row that fail a check */
};

struct past {
    uint32_t now_us;
    uint32_t set_us;     /* time of the last set command answered `done` */
    uint32_t hold_us;    /* and its validity */
    uint32_t fed_us;     /* time of the last set or arm command answered `done` */
    uint32_t scanned_us; /* time of the last complete scan */
    uint32_t sensed_us;  /* time of the last request for a reading of resistance */
    struct wire_limits limits; /* those stored last */
    struct cell_past cells[N_CELLS];
    uint16_t wired;      /* cells that the last successful arming named */
    uint16_t apart;      /* those of them found open since */
    uint8_t bad_reference[N_REFERENCES];
    uint8_t read;        /* cells read since the last complete scan */
    uint8_t tick;        /* last broadcast of this arming; 0: none */
    uint8_t sense;       /* requested cell */
    uint8_t begun;       /* cell whose request was cancelled; its reading may have begun */
    uint8_t tripped;     /* first cell at fault */
    uint8_t unsent;      /* cell of the reading of resistance that no status has taken */
    uint8_t n_since_flip; /* turns since a bit turned over; 0: none has */
    uint8_t closes;      /* readings of the supply for which K1 still stays closed for arming */
    uint8_t uncut;       /* readings in a row of a supply that should be cut */
    bool fed, alive;     /* the last reading of the supply: before K1, and behind it */
    bool cut;            /* K1 was not permitted then */
    bool seen_dead, seen_alive; /* behind K1: dead while cut and fed, then alive by K1 */
    bool scanned;        /* since the reset */
    bool corrupt;        /* the memory of limits was, at the reset */
    uint8_t last_frame[FRAME_SENT_MAX]; /* the last set command answered `done` */
    uint8_t last_n;
};

enum { IN_FLIGHT = 2 };

struct world {
    struct board board;
    struct port port;
    struct past past;
};

extern struct world world;

/* Records whether a property holds. */
void check(unsigned which, bool ok);

void world_boot(void);
/* One turn of the main loop; the properties are checked. */
void world_turn(struct input input);
/* Whether this input can happen now. */
bool world_admits(struct input input);
/* Calls `violated` for a property that does not hold. */
extern void (*violated)(unsigned which);

#endif
