/* The board as a library: the real core on simulated pins, in the caller's memory and time. Bytes arrive
 * without delay; time passes only in libboard_advance. */
#ifndef LIBBOARD_H
#define LIBBOARD_H

#include <stddef.h>
#include <stdint.h>

enum { LIBBOARD_ROOM = 12288 }; /* at least libboard_size() */
size_t libboard_size(void);

/* Call after the board's memory has been copied to where it is now. */
void libboard_moved(void *board);

/* Powers up a board without stored limits; 0, or -1 for an invalid number of cells. */
int libboard_init(void *board, uint8_t n_cells, uint32_t serial, uint32_t scan_period_us,
                  uint32_t now_us);

/* Takes effect at the next reset; the defaults are the required fuses. */
void libboard_set_fuses(void *board, uint8_t low, uint8_t high, uint8_t extended);

/* Resets the processor: pins and stored limits stay, and its time restarts at 0. `cause` is one of WIRE_RESETS. */
void libboard_reset(void *board, uint8_t cause);
void libboard_set_measures(void *board, int measures); /* 0: a build without sensors; the board is powered on again */

void libboard_receive(void *board, const uint8_t *bytes, size_t n);
size_t libboard_send(void *board, uint8_t *bytes, size_t room);
/* Sets the heat of all cells to 0, as if all gates had been off for long. */
void libboard_rest(void *board);
void libboard_advance(void *board, uint32_t duration_us);
/* Returns the commanded duty of every gate, 0 to 1, with the pulses of the last period that measured resistance,
 * and advances by a period. */
void libboard_step(void *board, uint32_t period_us, double *duty);
uint32_t libboard_now_us(const void *board);

/* Counts of the 10-bit converter: current with the gate on, with it off, and temperature. */
void libboard_set_analog(void *board, uint8_t cell, uint16_t on_counts, uint16_t off_counts,
                         uint16_t temperature_counts);
/* Counts of the supply's voltage, before both relays. */
void libboard_set_supply(void *board, uint16_t counts);
/* Relay K1, which the core permits, and K2, which opens with the e-stop: 0 normal, 1 never closes, 2 welded. */
void libboard_set_relays(void *board, uint8_t k1, uint8_t k2);
int libboard_rail_is_alive(const void *board);
void libboard_set_estop(void *board, int open);
/* Samples show the gates as they were a scan ago, as on a board whose loop lags. */
void libboard_set_late(void *board, int late);
/* The e-stop opens at the n-th moment from now at which the core reads it, switches gates or is pulsing a
 * cell; 0: never. */
void libboard_open_estop_at(void *board, uint32_t moment);
int libboard_estop_is_open(const void *board);
/* Since the last opening of the e-stop: pulses requested by the core, gates that have risen. */
uint32_t libboard_pulses(const void *board);
uint32_t libboard_rises(const void *board);
/* A gate's pin: 0 normal, 1 stuck low, 2 stuck high. */
void libboard_set_stuck(void *board, uint8_t gate, uint8_t stuck);
/* The current of an input is switched by this gate; by its own, unless wires are swapped. */
void libboard_set_wiring(void *board, uint8_t cell, uint8_t gate);
/* Corrupts a gate's register, or the table from which it is written. */
void libboard_flip_gate(void *board, uint8_t gate, int in_table);
/* Address bits stuck low and high: of the multiplexer for currents (bit 0), for temperatures (bit 1). */
void libboard_set_address(void *board, uint8_t multiplexers, uint8_t low, uint8_t high);
/* Counts of a reference, 0 to 2: full scale 1023, 4.096 V 839, half supply 512. */
void libboard_set_reference(void *board, uint8_t reference, uint16_t counts);
void libboard_set_scan(void *board, int runs);
void libboard_gates(const void *board, uint8_t *duty_per_255);
/* The limits in use followed by the values derived from them, to be corrupted by a test. */
uint8_t *libboard_limits(void *board, size_t *size);
/* Whether the check of the program finds it as it was flashed. */
void libboard_set_program(void *board, int intact);
/* A cell's heat and on-time, its duty, and the complements of what decides on gates, to be corrupted by a test. */
uint8_t *libboard_cell(void *board, uint8_t cell, size_t *size);
uint8_t *libboard_duty(void *board, uint8_t cell, size_t *size);
uint8_t *libboard_complements(void *board, size_t *size);
uint32_t libboard_watchdog_feeds(const void *board);

/* The stored limits, to be read or corrupted by a test. */
uint8_t *libboard_memory(void *board, size_t *size);
/* Whether storing works. */
void libboard_set_memory(void *board, int works);
/* The stored count that determines the first arming number after the next reset. */
void libboard_set_count(void *board, uint16_t count);

/* The core's own state, for proofs. */
struct board;
const struct board *libboard_core(const void *board);

uint16_t libboard_draw(uint32_t seed, uint32_t tick, uint16_t cell);

#endif
