/* An array of cells as a functional mock-up unit (FMU): its variables and its motion, whatever the version of FMI.
 * Cells are switched, or are wires; with boards, the firmware of a driver board is between the commands and the cells.
 *
 * The numbers of the array are in data.h, which hil writes when it exports a model. */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"
#include "room.h"

#if HAS_BOARDS
#include "host.h"
#endif

enum { WIRE_C, AUSTENITE, STRAIN, RESISTANCE, CURRENT, N_WIRE_ROWS };

/* Value references, in blocks of one per cell, input, output or state. */
enum {
    VR_TIME,
    VR_DUTY,
    VR_EXTERNAL = VR_DUTY + N_CELLS,
    VR_OUTPUT = VR_EXTERNAL + N_EXTERNAL,
    VR_FORCE_ON = VR_OUTPUT + N_OUTPUTS,
    VR_FORCE = VR_FORCE_ON + N_CELLS,
    VR_STATE = VR_FORCE + N_CELLS,
    VR_DERIVATIVE = VR_STATE + N_STATES,
    VR_SUPPLY = VR_DERIVATIVE + N_DERIVATIVES,
    VR_WIRE = VR_SUPPLY + N_WIRES, /* N_WIRE_ROWS blocks: struct wires */
    VR_TENSION = VR_WIRE + N_WIRE_ROWS * N_WIRES,
    VR_BOARDS = VR_TENSION + N_LOADED, /* host.h has those of the boards */
#if HAS_BOARDS
    VR_END = VR_BOARDS + HOST_VARIABLES
#else
    VR_END = VR_BOARDS
#endif
};

enum mode { BEFORE, INITIALISING, RUNNING, TERMINATED };

struct unit {
    enum mode mode;
    double time_s;
    double duty[ROOM(N_CELLS)];         /* commanded, 0 to 1 */
    double drive[ROOM(N_CELLS)];        /* of the cells, behind the boards: a wire's duty; another cell is on from 0.5 */
    double external[ROOM(N_EXTERNAL)];  /* forces on free points, motion of driven points */
    double force_on_N[ROOM(N_CELLS)];
    double F_N[ROOM(N_CELLS)];          /* activation forces */
    double state[ROOM(N_STATES)];       /* x of the array, then theta of every cell if one is a sigmoid */
    double y[ROOM(N_OUTPUTS)];
    bool on[ROOM(N_CELLS)];
    int8_t at_stop[ROOM(N_CELLS)];      /* theta is at its lower (-1) or upper (1) limit */
    double supply_V[ROOM(N_WIRES)];     /* across the cell while its gate is on */
    double law[ROOM(N_WIRES)][N_LAW];   /* LAW with the supply of now */
    double wire[N_WIRE_ROWS][ROOM(N_WIRES)];
    double clamp_C[ROOM(N_WIRES)];
    double tension_N[ROOM(N_LOADED)];
#if HAS_BOARDS
    struct host hosts[N_BOARDS];
#endif
};

/* All variables at their start values, before initialisation. */
void unit_reset(struct unit *unit);

/* In equilibrium with the air, boards armed if that is commanded. False: a board refuses its limits. */
bool unit_rest(struct unit *unit);

/* Call after the unit's memory has been copied to where it is now. */
void unit_moved(struct unit *unit);

/* Switches the cells as their duties say, and notes which are at a limit. */
void unit_switch(struct unit *unit);

/* Computes the outputs from states, forces and external inputs. */
void unit_outputs(struct unit *unit);

/* One period with constant inputs; see hil.mechanics.discrete, hil.systems.array.model.activation and
 * hil.systems.array.model.wire_load. */
void unit_step(struct unit *unit);

/* Time derivatives of all states. */
void unit_derivatives(struct unit *unit, double *derivative);

/* Three per cell: its duty against 0.5, its theta against both limits. */
void unit_indicators(const struct unit *unit, double *indicator);

/* A variable by its value reference; false: there is none, or it cannot be set now. */
bool unit_get(struct unit *unit, uint32_t reference, double *value);
bool unit_set(struct unit *unit, uint32_t reference, double value);

/* The number of periods in a communication step; 0: it is not a whole number of them. */
uint64_t unit_periods(double step_s);

#endif
