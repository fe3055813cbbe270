#include "host.h"

#include <math.h>
#include <string.h>

#include "frame.h"
#include "limits.h"

enum { STEPS = 255 };
enum { STARTED_US = 355000 }; /* passes before a run: the scan of every cell, and the self-test */
enum { SUPPLY_MAX_US = 2000000, SUPPLY_EVERY_US = 5000 }; /* as hil.devices.board.arming */
static const double SUPPLY_V = 8.0; /* of cells without a wire model */

static bool asks(const struct host *host, enum ask what) { return host->ask[what] >= 0.5; }

static size_t first_gate(const struct host *host) { return (size_t)FIRST_GATE[host->place]; }

static size_t n_gates(const struct host *host) { return (size_t)FIRST_GATE[host->place + 1] - first_gate(host); }

/* The payload of the board's answer to a command; NULL: it is another than this. */
static const uint8_t *exchange(struct host *host, uint8_t command, const uint8_t *payload, size_t n, uint8_t answer,
                               struct frame_reader *reader)
{
    uint8_t frame[FRAME_SENT_MAX], answered[2 * FRAME_SENT_MAX];
    struct frame_writer writer;
    frame[1] = WIRE_VERSION;
    frame[2] = command;
    frame[3] = (uint8_t)host->number;
    if (n > 0)
        memcpy(frame + 1 + FRAME_HEADER, payload, n);
    frame_open(&writer, frame, frame + 1 + FRAME_HEADER + n);
    uint8_t *end = frame;
    for (uint8_t *next; (next = frame_group(&writer)) != NULL;)
        end = next;
    libboard_receive(host->board, frame, (size_t)(end - frame));
    size_t received = libboard_send(host->board, answered, sizeof answered);
    frame_start(reader);
    for (size_t i = 0; i < received; i++)
        if (frame_take(reader, answered[i]) == FRAME_WHOLE && reader->bytes[1] == answer)
            return reader->bytes + FRAME_HEADER;
    return NULL;
}

static void count(struct host *host) { host->number = (host->number + 1) & 0xFFFFFF; }

/* A command that `status` answers. */
static void order(struct host *host, uint8_t command, const uint8_t *payload, size_t n)
{
    struct frame_reader reader;
    struct wire_status status;
    count(host);
    const uint8_t *answer = exchange(host, command, payload, n, ANSWER_status, &reader);
    if (answer == NULL)
        return;
    wire_unpack_status(answer, &status);
    host->result = status.result;
}

static struct wire_limits limits_of(const struct host *host)
{
    struct wire_limits limits;
    const double *value = host->limit;
#define TAKE(type, name, normal, lowest, highest) limits.name = (wire_##type)*value++;
    WIRE_LIMITS(TAKE)
    return limits;
}

/* Lowest and highest value of every limit. */
#define RANGE(type, name, normal, lowest, highest) {lowest, highest},
static const double RANGES[N_LIMITS][2] = {WIRE_LIMITS(RANGE)};

void host_reset(struct host *host, size_t place)
{
    memset(host, 0, sizeof *host);
    host->place = (uint8_t)place;
    host->ask[ASK_ARM] = 1.0;
    memcpy(host->limit, LIMIT[place], sizeof host->limit);
    for (size_t i = 0; i < WIRE_CELLS_MAX; i++)
        host->current_on_A[i] = CURRENT_ON_A;
}

static uint16_t counts(double share)
{
    return (uint16_t)fmin(COUNTS_FULL, fmax(0.0, rint(share * COUNTS_FULL)));
}

static void show(struct host *host, size_t gate, double current_A, double temperature_C)
{
    struct wire_limits limits = limits_of(host);
    double above_zero_cC = 100.0 * temperature_C - limits.temperature_zero_cC;
    libboard_set_analog(host->board, (uint8_t)gate, counts(1e3 * current_A / limits.current_full_scale_mA), 0,
                        counts(above_zero_cC / limits.temperature_full_scale_cC));
}

void host_sense(struct host *host, size_t gate, double current_A, double temperature_C)
{
    show(host, gate - first_gate(host), current_A, temperature_C);
}

void host_sense_supply(struct host *host, double supply_V)
{
    libboard_set_supply(host->board, counts(1e3 * supply_V / limits_of(host).supply_full_scale_mV));
}

static void disarm(struct host *host) { order(host, COMMAND_disarm, NULL, 0); }

static void arm(struct host *host)
{
    struct wire_limits limits = limits_of(host);
    struct wire_arm command = {.limits_crc = limits_crc(&limits), .cells = (uint16_t)((1u << n_gates(host)) - 1u)};
    struct wire_armed armed;
    struct frame_reader reader;
    uint8_t payload[WIRE_SIZE_arm];
    wire_pack_arm(payload, &command);
    count(host);
    const uint8_t *answer = exchange(host, COMMAND_arm, payload, sizeof payload, ANSWER_armed, &reader);
    if (answer == NULL)
        return;
    wire_unpack_armed(answer, &armed);
    host->result = armed.status.result;
    if (armed.status.result == RESULT_done)
        host->number = (uint32_t)armed.arming << 8 | (uint8_t)host->number;
}

static void set_duties(struct host *host, const double *duty)
{
    struct wire_set_duties command = {.arming = (uint16_t)(((host->number + 1) & 0xFFFFFF) >> 8),
                                      .valid_for_ms = HOLD_MS[host->place]};
    uint8_t payload[WIRE_SIZE_set_duties];
    for (size_t i = 0; i < n_gates(host); i++) {
        double steps = rint(STEPS * duty[CELL_OF_GATE[first_gate(host) + i]]);
        command.duty_per_255[i] = steps < WIRE_DUTY_MIN_PER_255 ? 0 : (uint8_t)steps;
    }
    wire_pack_set_duties(payload, &command);
    order(host, COMMAND_set_duties, payload, sizeof payload);
}

/* What the host sends in a period. */
static void command(struct host *host, const double *duty)
{
    if (!asks(host, ASK_ARM)) {
        disarm(host);
        if (host->readings.state == STATE_faulted)
            order(host, COMMAND_clear_faults, NULL, 0);
        return;
    }
    if (host->readings.state == STATE_disarmed)
        arm(host);
    set_duties(host, duty);
}

/* As hil.devices.rate_divider: in every n-th period, and whenever all cells go off. */
static bool is_due(struct host *host, const double *duty)
{
    bool on = false;
    for (size_t i = 0; i < n_gates(host); i++)
        on = on || duty[CELL_OF_GATE[first_gate(host) + i]] > 0.0;
    bool due = host->periods++ % EVERY[host->place] == 0 || (host->was_on && !on);
    if (due)
        host->was_on = on;
    return due;
}

void host_step(struct host *host, const double *duty, double *drive)
{
    double share[WIRE_CELLS_MAX];
    libboard_set_estop(host->board, asks(host, ASK_ESTOP));
    if (is_due(host, duty) && !asks(host, ASK_SILENCE))
        command(host, duty);
    libboard_step(host->board, PERIOD_US, share);
    for (size_t i = 0; i < n_gates(host); i++)
        drive[CELL_OF_GATE[first_gate(host) + i]] = share[i];
}

void host_read(struct host *host)
{
    struct frame_reader reader;
    const uint8_t *answer = exchange(host, COMMAND_read, NULL, 0, ANSWER_readings, &reader);
    if (answer != NULL)
        wire_unpack_readings(answer, &host->readings);
}

bool host_start(struct host *host)
{
    struct wire_set_limits command = {.limits = limits_of(host)};
    uint8_t payload[WIRE_SIZE_set_limits];
    libboard_init(host->board, BOARD_CELLS, host->place + 1u, SCAN_PERIOD_US, 0);
    if (!MEASURES[host->place])
        libboard_set_measures(host->board, 0);
    host->number = host->periods = 0;
    host->was_on = false;
    wire_pack_set_limits(payload, &command);
    order(host, COMMAND_set_limits, payload, sizeof payload);
    if (host->result != RESULT_done)
        return false;
    libboard_rest(host->board);
    host_sense_supply(host, SUPPLY_V);
    for (size_t i = 0; i < BOARD_CELLS; i++)
        show(host, i, host->current_on_A[i], AMBIENT_C);
    return true;
}

void host_power(struct host *host)
{
    libboard_advance(host->board, STARTED_US);
    if (asks(host, ASK_ARM))
        arm(host);
    for (uint32_t us = 0; host->result == RESULT_supply_waits && us < SUPPLY_MAX_US; us += SUPPLY_EVERY_US) {
        libboard_advance(host->board, SUPPLY_EVERY_US);
        arm(host);
    }
    host_read(host);
}

void host_moved(struct host *host) { libboard_moved(host->board); }

static double of_board(const struct host *host, uint32_t at)
{
    uint16_t bits = host->readings.fault_bits;
    if (at == 0)
        return host->readings.state;
    if (at == 1)
        return host->result;
    return at == 2 ? bits : bits >> (at - 3) & 1;
}

static double of_gate(const struct host *host, size_t gate, uint32_t at)
{
    const struct wire_readings *found = &host->readings;
    switch (at) {
    case 0:
        return found->duty_per_255[gate] / 255.0;
    case 1:
        return 1e-3 * found->current_mA[gate];
    case 2:
        return 1e-2 * found->temperature_cC[gate];
    case 3:
        return found->heat_per_255[gate] / 255.0;
    case 4:
        return found->fault_cells >> gate & 1;
    default:
        return found->cells_open >> gate & 1;
    }
}

bool host_get(const struct host *hosts, uint32_t at, double *value)
{
    if (at >= AT_GATE) {
        uint32_t gate = (at - AT_GATE) / OF_GATE;
        const struct host *host = &hosts[BOARD_OF_GATE[gate]];
        *value = of_gate(host, gate - first_gate(host), (at - AT_GATE) % OF_GATE);
    } else if (at >= AT_BOARD) {
        *value = of_board(&hosts[(at - AT_BOARD) / OF_BOARD], (at - AT_BOARD) % OF_BOARD);
    } else if (at >= AT_LIMIT) {
        *value = hosts[(at - AT_LIMIT) / N_LIMITS].limit[(at - AT_LIMIT) % N_LIMITS];
    } else if (at >= AT_CURRENT_ON) {
        uint32_t gate = GATE_OF_PLAIN[at - AT_CURRENT_ON];
        const struct host *host = &hosts[BOARD_OF_GATE[gate]];
        *value = host->current_on_A[gate - first_gate(host)];
    } else {
        *value = hosts[at / N_ASKS].ask[at % N_ASKS];
    }
    return true;
}

bool host_set(struct host *hosts, uint32_t at, double value, bool before_run)
{
    if (at < AT_CURRENT_ON) {
        if (value < 0.0 || value > 1.0)
            return false;
        hosts[at / N_ASKS].ask[at % N_ASKS] = value;
        return true;
    }
    if (at < AT_LIMIT) {
        uint32_t gate = GATE_OF_PLAIN[at - AT_CURRENT_ON];
        struct host *host = &hosts[BOARD_OF_GATE[gate]];
        if (value < 0.0)
            return false;
        host->current_on_A[gate - first_gate(host)] = value;
        show(host, gate - first_gate(host), value, AMBIENT_C);
        return true;
    }
    if (at >= AT_BOARD || !before_run)
        return false;
    const double *range = RANGES[(at - AT_LIMIT) % N_LIMITS];
    if (value < range[0] || value > range[1] || value != rint(value))
        return false;
    hosts[(at - AT_LIMIT) / N_LIMITS].limit[(at - AT_LIMIT) % N_LIMITS] = value;
    return true;
}
