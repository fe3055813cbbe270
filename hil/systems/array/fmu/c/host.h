/* A driver board in a unit: the firmware (board.c and its neighbours, libboard.c) and its host, which sends it the
 * commands of hil's driver. hil.devices.board.driver and hil.devices.sim.plant are their models. */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data.h"
#include "libboard.h"
#include "message.h"
#include "room.h"

#define ONE_MORE(...) +1
enum { N_FAULTS = 0 WIRE_FAULTS(ONE_MORE), N_LIMITS = 0 WIRE_LIMITS(ONE_MORE) };
enum ask { ASK_ARM, ASK_ESTOP, ASK_SILENCE, N_ASKS };
enum { OF_BOARD = 3 + N_FAULTS, OF_GATE = 6 }; /* outputs: state, result, fault bits, faults; of host_get */

/* The variables of all boards, in blocks, from VR_BOARDS on. */
enum {
    AT_ASK,
    AT_CURRENT_ON = AT_ASK + N_ASKS * N_BOARDS,
    AT_LIMIT = AT_CURRENT_ON + N_PLAIN,
    AT_BOARD = AT_LIMIT + N_LIMITS * N_BOARDS,
    AT_GATE = AT_BOARD + OF_BOARD * N_BOARDS,
    HOST_VARIABLES = AT_GATE + OF_GATE * N_GATES
};

struct host {
    uint64_t board[LIBBOARD_ROOM / sizeof(uint64_t)];
    double ask[N_ASKS]; /* inputs: 1 from 0.5 */
    double limit[N_LIMITS];
    double current_on_A[WIRE_CELLS_MAX]; /* of cells without a wire */
    struct wire_readings readings;
    uint32_t number; /* of the last command, as hil.devices.board.driver counts */
    uint32_t periods;
    uint8_t result; /* of the last command but `read` */
    uint8_t place;  /* among the boards */
    bool was_on;    /* the last command had a cell on */
};

/* Limits and inputs at their start values. */
void host_reset(struct host *host, size_t place);

/* A new board with its limits. False: it refuses them. */
bool host_start(struct host *host);

/* As much time passes as before a run; the board is armed if that is asked for. Sense its wires before. */
void host_power(struct host *host);

/* Call after its memory has been copied to where it is now. */
void host_moved(struct host *host);

/* Currents of a wire when its gate is on, and the temperature at its end; the voltage of the board's cells. */
void host_sense(struct host *host, size_t gate, double current_A, double temperature_C);
void host_sense_supply(struct host *host, double supply_V);

/* Sends the command of this period if it is due and lets a period pass; the gates' shares of it become the drive. */
void host_step(struct host *host, const double *duty, double *drive);

/* Asks the board for its readings. */
void host_read(struct host *host);

/* A variable of the boards by its place after VR_BOARDS; false: it cannot be set to this, or not now. */
bool host_get(const struct host *hosts, uint32_t at, double *value);
bool host_set(struct host *hosts, uint32_t at, double value, bool before_run);

#endif
