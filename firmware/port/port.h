/* The interface between the core and a chip. Every port, including the host's, implements these functions. */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

struct port; /* the port's own state */

/* A port whose boards have fewer cells saves memory. */
#ifndef PORT_CELLS_MAX
#define PORT_CELLS_MAX WIRE_CELLS_MAX
#endif

/* Constants of a board. */
struct port_identity {
    uint32_t serial;
    uint32_t scan_period_us; /* current and temperature of every cell, once */
    uint8_t n_cells;
    uint8_t reset_cause; /* enum reset */
    bool measures; /* currents and temperatures; false: samples have gates only, and there are no references */
    uint8_t fuses[WIRE_FUSES]; /* low, high, extended, as the chip reads them */
};

/* Whether an identity or a sample is that of a board that measures. A port that is compiled for one kind of
 * board defines MEASURES, and does without the code for the other. */
#ifdef MEASURES
#define PORT_MEASURES(of) (MEASURES != 0)
#else
#define PORT_MEASURES(of) ((of)->measures)
#endif

/* The references, and the cells' supply: current_counts is the feed before relay K1, temperature_counts the rail
 * behind it, both of supply_full_scale_mV. */
enum { PORT_REFERENCES_MAX = 4, PORT_SUPPLY = WIRE_CELLS_MAX + PORT_REFERENCES_MAX - 1 };

/* One reading of the scan: of a cell, or after the last cell of a reference (a spare input of both
 * multiplexers with a known level; one reference per scan, in rotation). */
struct port_sample {
    uint16_t current_counts; /* 10 bits of full scale */
    uint16_t temperature_counts;
    uint16_t known_counts; /* of a reference: the expected value of both */
    uint8_t cell;          /* from WIRE_CELLS_MAX on: a reference */
    bool gate_on;   /* setting of the gate, long enough for the current to settle */
    bool gate_high; /* level of its pin during the reading */
    bool measures;  /* set by the core, from the identity */
    bool sensed;    /* requested by port_sense: temperature_counts are the supply's voltage, and gate_on also
                       means that no other gate switched between the two */
};

struct port_identity port_identity(struct port *port);
uint32_t port_now_us(struct port *port);

/* Switches all gates off at once, at any phase of the PWM, until the next port_gates_set. */
void port_gates_off(struct port *port);

enum { PORT_MODULATION_MAX_US = 4096 }; /* longest period of the modulation */

/* These two check the e-stop loop at the moment of switching, and raise no gate while it is open or if it has
 * been open since the last call of port_estop_open. */
void port_gates_set(struct port *port, const uint8_t *duty_per_255, uint8_t n_cells);

/* The duty that a gate is set to; 0 too if an open e-stop has switched it off. */
uint8_t port_gate_set(struct port *port, uint8_t cell);

/* Rewrites the registers of the gates with their last setting. */
void port_gates_refresh(struct port *port);

enum { PORT_PROBE_MAX_US = 300 };

/* Current of a cell in counts, with only its gate high, for at most PORT_PROBE_MAX_US; before and after, all
 * gates are low. */
uint16_t port_probe(struct port *port, uint8_t cell);

/* Requests one more reading of a cell's current, with the supply's voltage at the same time. The gate is high
 * meanwhile, for at most PORT_PROBE_MAX_US beyond what is set, and never while or after the e-stop is open.
 * `wait`: up to one period of the modulation until the gate is high anyway. A later request replaces this one;
 * PORT_SENSE_NONE and port_gates_off cancel it. Every reading that was begun is returned. */
enum { PORT_SENSE_NONE = WIRE_CELLS_MAX };
void port_sense(struct port *port, uint8_t cell, bool wait);

/* Whether the loop is open or has been open since the last call. */
bool port_estop_open(struct port *port);
bool port_sample(struct port *port, struct port_sample *sample); /* false: none is ready */

bool port_receive(struct port *port, uint8_t *byte);
bool port_send(struct port *port, const uint8_t *bytes, uint8_t n); /* all or nothing */

/* Permits relay K1 to close, which it does while the scan turns the multiplexers. */
void port_supply(struct port *port, bool on);

/* The watchdog resets the chip and thus switches all gates off, 16 ms after it was fed last. */
void port_watchdog_feed(struct port *port);

/* Checks a further part of the program against the CRC that it carries, or by another means. False: it is not the
 * one that was flashed. Larger parts are checked after a reset, so that the whole is known before wires that count
 * as hot may be armed. */
bool port_program_intact(struct port *port);

/* Memory that survives a reset; load returns whether anything was ever stored. */
bool port_memory_load(struct port *port, uint8_t *bytes, uint8_t n);
bool port_memory_store(struct port *port, const uint8_t *bytes, uint8_t n);

/* One more than at the last call, also after resets; may block the main loop for 10 ms. */
uint16_t port_memory_count(struct port *port);

#endif
