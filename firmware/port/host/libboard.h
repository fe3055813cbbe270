/* The board as a library: the shipped core on simulated pins, in the caller's memory and time.
 * Bytes arrive at once; time passes in libboard_advance only. */
#ifndef LIBBOARD_H
#define LIBBOARD_H

#include <stddef.h>
#include <stdint.h>

size_t libboard_size(void);

/* Powers a board up whose memory of limits is blank; 0, or -1 for a number of cells it cannot have. */
int libboard_init(void *board, uint8_t n_cells, uint32_t serial, uint32_t scan_period_us,
                  uint32_t now_us);

/* From the next reset on; those it has by itself are those that a board is to have. */
void libboard_set_fuses(void *board, uint8_t low, uint8_t high, uint8_t extended);

/* Resets the processor: pins and stored limits stay, its time begins at 0. `cause` is one of WIRE_RESETS. */
void libboard_reset(void *board, uint8_t cause);

void libboard_receive(void *board, const uint8_t *bytes, size_t n);
size_t libboard_send(void *board, uint8_t *bytes, size_t room);
/* All gates have been off for long: no cell has heat left. */
void libboard_rest(void *board);
void libboard_advance(void *board, uint32_t duration_us);
/* A period of the host's: the duty of every gate in it, 0 to 1, as commanded before; then it passes. */
void libboard_step(void *board, uint32_t period_us, double *duty);
uint32_t libboard_now_us(const void *board);

/* Counts of the 10-bit converter: current with the gate on, with it off, and temperature. */
void libboard_set_analog(void *board, uint8_t cell, uint16_t on_counts, uint16_t off_counts,
                         uint16_t temperature_counts);
void libboard_set_estop(void *board, int open);
/* Samples tell of the gates as they were a scan ago, as on a board whose loop is behind. */
void libboard_set_late(void *board, int late);
/* The e-stop opens at one of the moments from now on at which the core looks at it, switches gates or has a
 * pulse under way; 0: it does not. */
void libboard_open_estop_at(void *board, uint32_t moment);
int libboard_estop_is_open(const void *board);
/* Since the e-stop has opened last: pulses that the core has asked for, gates that have risen. */
uint32_t libboard_pulses(const void *board);
uint32_t libboard_rises(const void *board);
/* A gate's pin: 0 as it is set, 1 stuck low, 2 stuck high. */
void libboard_set_stuck(void *board, uint8_t gate, uint8_t stuck);
/* A gate's register is written by nobody; or the table that it is written from. */
void libboard_flip_gate(void *board, uint8_t gate, int in_table);
/* Address bits stuck low and high: of the multiplexer for currents (bit 0), for temperatures (bit 1). */
void libboard_set_address(void *board, uint8_t multiplexers, uint8_t low, uint8_t high);
/* Counts of a reference, 0 to 2: full scale 1023, 4.096 V 839, half supply 512. */
void libboard_set_reference(void *board, uint8_t reference, uint16_t counts);
void libboard_set_scan(void *board, int runs);
void libboard_gates(const void *board, uint8_t *duty_per_255);
/* The limits that the core works with, and behind them what follows from them: to be spoilt. */
uint8_t *libboard_limits(void *board, size_t *size);
uint32_t libboard_watchdog_feeds(const void *board);

/* The memory of limits, to be read or spoilt. */
uint8_t *libboard_memory(void *board, size_t *size);
/* Whether it stores what it is given. */
void libboard_set_memory(void *board, int works);
/* The count in memory from which the first arming after the next reset follows. */
void libboard_set_count(void *board, uint16_t count);

/* The core's own state, for proofs. */
struct board;
const struct board *libboard_core(const void *board);

uint16_t libboard_draw(uint32_t seed, uint32_t tick, uint16_t cell);

#endif
