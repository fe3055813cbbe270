#include "libboard.h"

#include <string.h>

#include "loop.h"
#include "draw.h"
#include "message.h"
#include "scan.h"

enum {
    POLL_US = 50, /* period of the main loop */
    SENSE_US = 180, /* of a pulse that measures resistance, as on the chip */
    RX_ROOM = 4096,
    TX_ROOM = 4096,
    MEMORY = WIRE_SIZE_limits + FRAME_CRC,
};

struct pins {
    uint16_t on_counts;
    uint16_t off_counts;
    uint16_t temperature_counts;
};

enum { MEMORY_US = 3000 /* of a byte that changes: whole scans, nearly the 3.4 ms of the chip */, N_REFERENCES = 3, N_LEVELS /* and the supply */, REFERENCES_AT = 12 /* address */, SUPPLY_AT = 15, K1 = 0, K2 = 1, CURRENTS = 0, TEMPERATURES = 1 };

static const uint16_t KNOWN_COUNTS[N_REFERENCES] = {1023, 839, 512}; /* as on the chip */

enum stuck { AS_SET, STUCK_LOW, STUCK_HIGH };

struct address_fault {
    uint8_t low, high; /* bits */
};

struct port {
    struct board board;
    struct port_identity identity;
    struct pins pins[WIRE_CELLS_MAX];
    uint8_t set[WIRE_CELLS_MAX];   /* duties set by the core */
    uint8_t gates[WIRE_CELLS_MAX]; /* registers */
    uint8_t stuck[WIRE_CELLS_MAX]; /* enum stuck */
    uint8_t switched_by[WIRE_CELLS_MAX]; /* the gate that switches the current of each input */
    uint16_t references[N_REFERENCES];
    uint16_t supply_counts;
    uint8_t relays[2]; /* K1 and K2, enum stuck: low never closes, high is welded */
    bool supply_on;    /* K1 is permitted */
    uint32_t sensing_us[WIRE_CELLS_MAX]; /* for which a gate was high in addition, since the last step */
    uint8_t sense; /* requested cell, or PORT_SENSE_NONE */
    struct address_fault address[2]; /* of the multiplexer for currents, and for temperatures */
    struct scan scan;
    bool was_on[WIRE_CELLS_MAX]; /* at its last reading */
    uint8_t rx[RX_ROOM];
    uint8_t tx[TX_ROOM];
    uint8_t memory[MEMORY];
    size_t rx_first, rx_n, tx_n;
    uint64_t scan_us; /* time reached by the scan, since power-up */
    uint64_t life_us;
    uint32_t now_us;
    uint32_t watchdog_feeds;
    uint32_t sample; /* number of the next one */
    uint32_t moments_to_opening; /* reads of the e-stop and switchings until it opens; 0: never */
    uint32_t n_pulses;           /* requested by the core since the last opening of the loop */
    uint32_t n_rises;            /* of gates since then */
    uint16_t count; /* survives a reset, like EEPROM */
    bool memory_used;
    bool memory_works;
    bool estop_open;
    bool estop_seen; /* since the last call of port_estop_open */
    bool scan_runs;
    bool late;
    bool program_spoilt;
};

struct port_identity port_identity(struct port *port)
{
    return port->identity;
}

uint32_t port_now_us(struct port *port)
{
    return port->now_us;
}

void port_gates_off(struct port *port)
{
    memset(port->set, 0, sizeof port->set);
    port->sense = PORT_SENSE_NONE;
    port_gates_refresh(port);
}

/* Gates have no phase here: one with a duty is high at any time. */
void port_sense(struct port *port, uint8_t cell, bool wait)
{
    (void)wait;
    port->sense = cell;
}

static void open_estop(struct port *port)
{
    port->estop_open = port->estop_seen = true;
    port->n_pulses = port->n_rises = 0;
    port_gates_off(port); /* done by the interrupt on a chip */
}

static void pass_moment(struct port *port)
{
    if (port->moments_to_opening > 0 && --port->moments_to_opening == 0)
        open_estop(port);
}

void port_gates_set(struct port *port, const uint8_t *duty_per_255, uint8_t n_cells)
{
    pass_moment(port);
    if (port->estop_seen)
        return;
    for (uint8_t i = 0; i < n_cells; i++)
        port->n_rises += port->gates[i] == 0 && duty_per_255[i] > 0;
    memcpy(port->set, duty_per_255, n_cells);
    port_gates_refresh(port);
    pass_moment(port);
}

uint8_t port_gate_set(struct port *port, uint8_t cell)
{
    return port->set[cell];
}

bool port_program_intact(struct port *port)
{
    return !port->program_spoilt;
}

void port_gates_refresh(struct port *port)
{
    memcpy(port->gates, port->set, sizeof port->gates);
}

/* Of a gate's pin. */
static uint8_t level_per_255(const struct port *port, uint8_t cell)
{
    if (port->stuck[cell] == AS_SET)
        return port->gates[cell];
    return port->stuck[cell] == STUCK_HIGH ? UINT8_MAX : 0;
}

uint16_t port_probe(struct port *port, uint8_t cell)
{
    pass_moment(port);
    port->n_pulses++;
    if (port->estop_seen)
        return port->pins[cell].off_counts;
    port->n_rises++;
    pass_moment(port); /* during the pulse */
    bool flows = !port->estop_seen && port->switched_by[cell] == cell;
    return flows ? port->pins[cell].on_counts : port->pins[cell].off_counts;
}

bool port_estop_open(struct port *port)
{
    pass_moment(port);
    bool open = port->estop_seen;
    port->estop_seen = port->estop_open;
    return open;
}

/* With more cells no input is left but one for the supply. */
static bool has_references(const struct port *port)
{
    return port->identity.n_cells <= REFERENCES_AT;
}

static uint8_t n_levels(const struct port *port)
{
    return port->identity.measures ? has_references(port) ? N_LEVELS : 1 : 0;
}

static uint8_t n_turns(const struct port *port)
{
    return (uint8_t)(port->identity.n_cells + (n_levels(port) > 0));
}

static bool is_closed(const struct port *port, uint8_t relay, bool driven)
{
    uint8_t stuck = port->relays[relay];
    return stuck == AS_SET ? driven : stuck == STUCK_HIGH;
}

/* K1 and K2 switch at once. */
static uint16_t feed_counts(const struct port *port)
{
    return is_closed(port, K2, !port->estop_open) ? port->supply_counts : 0;
}

static uint16_t rail_counts(const struct port *port)
{
    return is_closed(port, K1, port->supply_on) ? feed_counts(port) : 0;
}

/* Output of a multiplexer. */
static uint16_t counts_at(const struct port *port, uint8_t which, uint8_t address)
{
    const struct address_fault *fault = &port->address[which];
    address = (uint8_t)((address & ~fault->low) | fault->high);
    if (address >= REFERENCES_AT && address < SUPPLY_AT && has_references(port))
        return port->references[address - REFERENCES_AT];
    if (address == SUPPLY_AT && has_references(port))
        return which == CURRENTS ? feed_counts(port) : rail_counts(port);
    if (address >= port->identity.n_cells)
        return 0;
    const struct pins *pins = &port->pins[address];
    if (which == TEMPERATURES)
        return pins->temperature_counts;
    uint8_t gate = port->switched_by[address];
    bool high = port->late ? port->was_on[gate] : level_per_255(port, gate) > 0;
    return high ? pins->on_counts : pins->off_counts;
}

static void convert(struct port *port, uint8_t address, struct port_sample *sample)
{
    sample->current_counts = counts_at(port, CURRENTS, address);
    sample->temperature_counts = counts_at(port, TEMPERATURES, address);
}

static void sample_reference(struct port *port, uint8_t reference, struct port_sample *sample)
{
    *sample = (struct port_sample){.cell = (uint8_t)(WIRE_CELLS_MAX + reference),
                                   .known_counts = KNOWN_COUNTS[reference]};
    convert(port, (uint8_t)(REFERENCES_AT + reference), sample);
}

static void sample_supply(struct port *port, struct port_sample *sample)
{
    *sample = (struct port_sample){.cell = PORT_SUPPLY,
                                   .current_counts = feed_counts(port),
                                   .temperature_counts = rail_counts(port)};
    if (has_references(port))
        convert(port, SUPPLY_AT, sample);
}

static void sample_cell(struct port *port, uint8_t cell, struct port_sample *sample)
{
    bool on = port->set[cell] > 0;
    *sample = (struct port_sample){.cell = cell};
    convert(port, cell, sample);
    sample->gate_on = port->late ? port->was_on[cell] : on;
    sample->gate_high = port->late ? port->was_on[cell] : level_per_255(port, cell) > 0;
    port->was_on[cell] = on;
}

static void sample_sensed(struct port *port, struct port_sample *sample)
{
    uint8_t cell = port->sense;
    bool was_on = port->set[cell] > 0;
    port->sense = PORT_SENSE_NONE;
    *sample = (struct port_sample){.cell = cell, .sensed = true};
    pass_moment(port);
    if (!was_on && !port->estop_seen) {
        port->n_rises++;
        port->sensing_us[cell] += SENSE_US;
        port->gates[cell] = UINT8_MAX;
    }
    convert(port, cell, sample);
    sample->temperature_counts = rail_counts(port);
    pass_moment(port); /* during the pulse */
    sample->gate_on = !port->estop_seen;
    sample->gate_high = level_per_255(port, cell) > 0;
    port_gates_refresh(port);
}

static uint16_t cells_set(const struct port *port)
{
    uint16_t set = 0;
    for (uint8_t i = 0; i < port->identity.n_cells; i++)
        if (port->set[i] > 0)
            set |= (uint16_t)(1u << i);
    return set;
}

bool port_sample(struct port *port, struct port_sample *sample)
{
    uint8_t turns = n_turns(port);
    uint8_t turn = (uint8_t)(port->sample % turns);
    uint32_t period_us = port->identity.scan_period_us;
    uint64_t due_us = port->scan_us + period_us / turns + (turn < period_us % turns);
    if (!port->scan_runs || port->life_us < due_us)
        return false;
    port->scan_us = due_us;
    port->sample++;
    if (port->sense != PORT_SENSE_NONE) {
        sample_sensed(port, sample);
        return true;
    }
    struct scan_turn next = scan_next(&port->scan, cells_set(port));
    if (next.address < port->identity.n_cells)
        sample_cell(port, next.address, sample);
    else if (has_references(port) && next.address < port->identity.n_cells + N_REFERENCES)
        sample_reference(port, (uint8_t)(next.address - port->identity.n_cells), sample);
    else
        sample_supply(port, sample);
    scan_done(&port->scan, next, sample->gate_on);
    return true;
}

bool port_receive(struct port *port, uint8_t *byte)
{
    if (port->rx_first == port->rx_n)
        return false;
    *byte = port->rx[port->rx_first++];
    return true;
}

bool port_send(struct port *port, const uint8_t *bytes, uint8_t n)
{
    if (n > TX_ROOM - port->tx_n)
        return false;
    memcpy(port->tx + port->tx_n, bytes, n);
    port->tx_n += n;
    return true;
}

void port_supply(struct port *port, bool on)
{
    port->supply_on = on;
}

void port_watchdog_feed(struct port *port)
{
    port->watchdog_feeds++;
}

bool port_memory_load(struct port *port, uint8_t *bytes, uint8_t n)
{
    if (port->memory_used)
        memcpy(bytes, port->memory, n);
    return port->memory_used;
}

bool port_memory_store(struct port *port, const uint8_t *bytes, uint8_t n)
{
    if (!port->memory_works)
        return false;
    for (uint8_t i = 0; i < n; i++)
        port->now_us += port->memory[i] != bytes[i] ? MEMORY_US : 0;
    memcpy(port->memory, bytes, n);
    port->memory_used = true;
    return true;
}

uint16_t port_memory_count(struct port *port)
{
    return ++port->count;
}

_Static_assert(sizeof(struct port) <= LIBBOARD_ROOM, "LIBBOARD_ROOM is too small");

size_t libboard_size(void)
{
    return sizeof(struct port);
}

void libboard_moved(void *board)
{
    struct port *port = board;
    port->board.port = port;
}

static void boot(struct port *port, uint8_t cause)
{
    port->identity.reset_cause = cause;
    port->rx_first = port->rx_n = port->tx_n = 0;
    port->sample = 0;
    port->sense = PORT_SENSE_NONE;
    port->supply_on = false; /* the pin is an input again */
    scan_start(&port->scan, port->identity.n_cells, n_levels(port));
    port->scan_us = port->life_us;
    board_boot(&port->board, port);
}

int libboard_init(void *board, uint8_t n_cells, uint32_t serial, uint32_t scan_period_us,
                  uint32_t now_us)
{
    struct port *port = board;
    if (n_cells < 1 || n_cells > WIRE_CELLS_MAX || scan_period_us < n_cells)
        return -1;
    memset(port, 0, sizeof *port);
    port->identity.n_cells = n_cells;
    port->identity.serial = serial;
    port->identity.scan_period_us = scan_period_us;
    port->identity.measures = true;
    libboard_set_fuses(port, 0xF7, 0xC6, 0xFC);
    port->now_us = now_us;
    port->scan_runs = true;
    port->memory_works = true;
    memcpy(port->references, KNOWN_COUNTS, sizeof KNOWN_COUNTS);
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        port->switched_by[i] = i;
    boot(port, RESET_power_on);
    return 0;
}

void libboard_set_fuses(void *board, uint8_t low, uint8_t high, uint8_t extended)
{
    struct port *port = board;
    port->identity.fuses[0] = low;
    port->identity.fuses[1] = high;
    port->identity.fuses[2] = extended;
}

void libboard_set_measures(void *board, int measures)
{
    struct port *port = board;
    port->identity.measures = measures != 0;
    boot(port, RESET_power_on);
}

void libboard_reset(void *board, uint8_t cause)
{
    struct port *port = board;
    port->now_us = 0; /* like the chip's timer */
    boot(port, cause);
}

static void poll_until_read(struct port *port)
{
    do
        board_poll(&port->board);
    while (port->rx_first < port->rx_n);
    port->rx_first = port->rx_n = 0;
}

void libboard_receive(void *board, const uint8_t *bytes, size_t n)
{
    struct port *port = board;
    while (n > 0) {
        size_t part = n < RX_ROOM ? n : RX_ROOM;
        memcpy(port->rx, bytes, part);
        port->rx_first = 0;
        port->rx_n = part;
        poll_until_read(port);
        bytes += part;
        n -= part;
    }
}

size_t libboard_send(void *board, uint8_t *bytes, size_t room)
{
    struct port *port = board;
    size_t n = port->tx_n < room ? port->tx_n : room;
    memcpy(bytes, port->tx, n);
    memmove(port->tx, port->tx + n, port->tx_n - n);
    port->tx_n -= n;
    return n;
}

void libboard_rest(void *board)
{
    struct port *port = board;
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++)
        heat_start(&port->board.cells[i].heat, 0, heat_ticks(port->now_us));
}

void libboard_advance(void *board, uint32_t duration_us)
{
    struct port *port = board;
    while (duration_us > 0) {
        uint32_t step_us = duration_us < POLL_US ? duration_us : POLL_US;
        port->now_us += step_us;
        port->life_us += step_us;
        if (!port->scan_runs)
            port->scan_us = port->life_us;
        board_poll(&port->board);
        duration_us -= step_us;
    }
}

void libboard_step(void *board, uint32_t period_us, double *duty)
{
    struct port *port = board;
    for (uint8_t gate = 0; gate < port->identity.n_cells; gate++) {
        double share = level_per_255(port, gate) / 255.0 + (double)port->sensing_us[gate] / period_us;
        duty[gate] = share < 1.0 ? share : 1.0;
        port->sensing_us[gate] = 0;
    }
    libboard_advance(board, period_us);
}

uint32_t libboard_now_us(const void *board)
{
    const struct port *port = board;
    return port->now_us;
}

void libboard_set_analog(void *board, uint8_t cell, uint16_t on_counts, uint16_t off_counts,
                         uint16_t temperature_counts)
{
    struct port *port = board;
    if (cell >= WIRE_CELLS_MAX)
        return;
    port->pins[cell] = (struct pins){on_counts, off_counts, temperature_counts};
}

void libboard_set_supply(void *board, uint16_t counts)
{
    struct port *port = board;
    port->supply_counts = counts;
}

void libboard_set_relays(void *board, uint8_t k1, uint8_t k2)
{
    struct port *port = board;
    port->relays[K1] = k1;
    port->relays[K2] = k2;
}

int libboard_rail_is_alive(const void *board)
{
    return rail_counts(board) > 0;
}

void libboard_set_estop(void *board, int open)
{
    struct port *port = board;
    if (open != 0)
        open_estop(port);
    else
        port->estop_open = false;
}

void libboard_open_estop_at(void *board, uint32_t moment)
{
    struct port *port = board;
    port->moments_to_opening = moment;
}

int libboard_estop_is_open(const void *board)
{
    const struct port *port = board;
    return port->estop_open;
}

uint32_t libboard_pulses(const void *board)
{
    const struct port *port = board;
    return port->n_pulses;
}

uint32_t libboard_rises(const void *board)
{
    const struct port *port = board;
    return port->n_rises;
}

void libboard_set_late(void *board, int late)
{
    struct port *port = board;
    port->late = late != 0;
}

void libboard_set_stuck(void *board, uint8_t gate, uint8_t stuck)
{
    struct port *port = board;
    if (gate < WIRE_CELLS_MAX)
        port->stuck[gate] = stuck;
}

void libboard_set_wiring(void *board, uint8_t cell, uint8_t gate)
{
    struct port *port = board;
    if (cell < WIRE_CELLS_MAX && gate < WIRE_CELLS_MAX)
        port->switched_by[cell] = gate;
}

void libboard_flip_gate(void *board, uint8_t gate, int in_table)
{
    struct port *port = board;
    if (gate >= port->identity.n_cells)
        return;
    port->gates[gate] ^= UINT8_MAX;
    if (in_table)
        port->set[gate] ^= UINT8_MAX;
}

void libboard_set_address(void *board, uint8_t multiplexers, uint8_t low, uint8_t high)
{
    struct port *port = board;
    for (uint8_t i = 0; i < 2; i++)
        port->address[i] = multiplexers >> i & 1 ? (struct address_fault){low, high}
                                                 : (struct address_fault){0, 0};
}

void libboard_set_reference(void *board, uint8_t reference, uint16_t counts)
{
    struct port *port = board;
    if (reference < N_REFERENCES)
        port->references[reference] = counts;
}

void libboard_set_scan(void *board, int runs)
{
    struct port *port = board;
    port->scan_runs = runs != 0;
}

void libboard_gates(const void *board, uint8_t *duty_per_255)
{
    const struct port *port = board;
    for (uint8_t gate = 0; gate < port->identity.n_cells; gate++)
        duty_per_255[gate] = level_per_255(port, gate);
}

uint8_t *libboard_limits(void *board, size_t *size)
{
    struct port *port = board;
    *size = sizeof port->board.limits;
    return (uint8_t *)&port->board.limits;
}

void libboard_set_program(void *board, int intact)
{
    struct port *port = board;
    port->program_spoilt = intact == 0;
}

uint8_t *libboard_cell(void *board, uint8_t cell, size_t *size)
{
    struct port *port = board;
    *size = offsetof(struct cell, on_counts);
    return (uint8_t *)&port->board.cells[cell];
}

uint8_t *libboard_duty(void *board, uint8_t cell, size_t *size)
{
    struct port *port = board;
    *size = offsetof(struct cell, just_set) - offsetof(struct cell, duty_per_255);
    return &port->board.cells[cell].duty_per_255;
}

uint8_t *libboard_complements(void *board, size_t *size)
{
    struct port *port = board;
    *size = sizeof port->board.complement;
    return (uint8_t *)&port->board.complement;
}

uint32_t libboard_watchdog_feeds(const void *board)
{
    const struct port *port = board;
    return port->watchdog_feeds;
}

uint8_t *libboard_memory(void *board, size_t *size)
{
    struct port *port = board;
    *size = sizeof port->memory;
    return port->memory;
}

void libboard_set_memory(void *board, int works)
{
    struct port *port = board;
    port->memory_works = works != 0;
}

void libboard_set_count(void *board, uint16_t count)
{
    struct port *port = board;
    port->count = count;
}

const struct board *libboard_core(const void *board)
{
    const struct port *port = board;
    return &port->board;
}

uint16_t libboard_draw(uint32_t seed, uint32_t tick, uint16_t cell)
{
    return draw_u16(draw_start(seed, tick, cell));
}
