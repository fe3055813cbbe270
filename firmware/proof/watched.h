/* A port that checks the core. Its answers are arbitrary (proof/any_answer.c) or a script of events
 * (proof/explore.c). Every request of the core for the gates is checked. */
#ifndef WATCHED_H
#define WATCHED_H

#include "loop.h"

/* P(name, what holds) */
#define PROPERTIES_AT_THE_PORT(P)                                                                \
    P(off_unless_armed, "a gate is switched on only while the board is armed")                   \
    P(no_rise_after_estop, "no gate rises after the e-stop was open until armed again")          \
    P(no_rise_after_fault, "no gate rises while a fault stands")                                 \
    P(pulse_in_arming, "a pulse comes only in arming: disarmed, all gates low, no fault, loop closed") \
    P(pulses_bounded, "a command causes one pulse a cell at most")                               \
    P(sensing_allowed, "resistance is measured only while armed, no fault, loop closed")          \
    P(cut_with_a_fault, "relay K1 is permitted with no fault alone, armed or as arming asked for it")

#define PROPERTY_ENUM(name, text) PROPERTY_##name,
enum property { PROPERTIES_AT_THE_PORT(PROPERTY_ENUM) N_PORT_PROPERTIES };

struct port {
    const struct board *board;
    uint16_t high;  /* gates requested high by the core */
    bool estop_was_open; /* at any read since the last arming; if disarmed, at the last read */
    uint16_t rose;  /* gates that went high since the last turn of the main loop */
    uint8_t pulses; /* since the last turn of the main loop */
    bool supply_on; /* K1 permitted */
};

/* Holds, or the proof has failed. */
/*@ requires holds: ok != 0;
    assigns \nothing; */
void property(enum property which, bool ok);

struct port_identity answer_identity(void);
uint32_t answer_now_us(void);
bool answer_estop_open(void);
void answer_gates(const uint8_t *duty_per_255, uint8_t n_cells); /* NULL: off */
void answer_refresh(void);
void answer_sense(uint8_t cell);
bool answer_sample(struct port_sample *sample);
bool answer_byte(uint8_t *byte);
bool answer_send(const uint8_t *bytes, uint8_t n);
uint16_t answer_probe(uint8_t cell);
bool answer_load(uint8_t *bytes, uint8_t n);
bool answer_store(const uint8_t *bytes, uint8_t n);
uint16_t answer_count(void);
void answer_watchdog(void);
uint8_t answer_gate(uint8_t cell);
bool answer_program(void);

#endif
