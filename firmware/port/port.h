/* What the core needs of a chip. Every port, the host's among them, is these functions. */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct port; /* the port's own state */

/* What never changes while the board runs. */
struct port_identity {
    uint32_t serial;
    uint32_t scan_period_us; /* every cell's current and temperature once */
    uint8_t n_cells;
    uint8_t reset_cause; /* enum reset */
    uint8_t fuses[WIRE_FUSES]; /* low, high, extended, as the chip reads them */
};

enum { PORT_REFERENCES_MAX = 4 };

/* One turn in the scan: a cell's, or behind the last cell's that of one reference after the other: a
 * spare input of both multiplexers that carries a known level. */
struct port_sample {
    uint16_t current_counts; /* 10 bits of full scale */
    uint16_t temperature_counts;
    uint16_t known_counts; /* of a reference: what both should be */
    uint8_t cell;          /* from WIRE_CELLS_MAX on: a reference */
    bool gate_on;   /* as the gate was set, since long enough for the current to settle */
    bool gate_high; /* as its pin was meanwhile */
};

struct port_identity port_identity(struct port *port);
uint32_t port_now_us(struct port *port);

/* All gates low at once, whatever a PWM period is at; they stay so until the next port_gates_set. */
void port_gates_off(struct port *port);

enum { PORT_MODULATION_MAX_US = 4096 }; /* in which a partial duty has been on for its share once */

/* While the e-stop loop is open, or has been since port_estop_open was last asked, these two raise no
 * gate: they look at it at the moment of switching. */
void port_gates_set(struct port *port, const uint8_t *duty_per_255, uint8_t n_cells);

/* Writes the registers of the gates anew, as they were set last. */
void port_gates_refresh(struct port *port);

enum { PORT_PROBE_MAX_US = 300 };

/* Counts of a cell's current with its gate alone high for a moment, PORT_PROBE_MAX_US at most; before and
 * after it all gates are low. */
uint16_t port_probe(struct port *port, uint8_t cell);

/* The loop is open, or has been since this was last asked. */
bool port_estop_open(struct port *port);
bool port_sample(struct port *port, struct port_sample *sample); /* false: none is ready */

bool port_receive(struct port *port, uint8_t *byte);
bool port_send(struct port *port, const uint8_t *bytes, uint8_t n); /* all or nothing */

void port_watchdog_feed(struct port *port);

/* The memory that outlives a reset; load says whether anything was ever stored. */
bool port_memory_load(struct port *port, uint8_t *bytes, uint8_t n);
bool port_memory_store(struct port *port, const uint8_t *bytes, uint8_t n);

/* One more than at the last call, over resets too; this may hold the main loop up for 10 ms. */
uint16_t port_memory_count(struct port *port);

#endif
