/* The board under Frama-C's value analysis, by induction: a reset with any memory contents ends in a state that
 * check_board accepts; from every such state, a turn of the main loop with any answers of the port ends in such
 * a state again. CELLS: number of cells. */
#include "__fc_builtin.h"
#include "limits.h"
#include "watched.h"

#define FAULT_BIT(name, number) | 1u << (number)
static const uint16_t FAULTS_ALL = 0 WIRE_FAULTS(FAULT_BIT);

static struct board board;
static struct port port = {.board = &board};
static uint8_t n;

/*@ requires holds: ok != 0;
    assigns \nothing; */
static void invariant(bool ok)
{
    (void)ok;
}

static uint32_t any_u32(void)
{
    return Frama_C_unsigned_int_interval(0, UINT32_MAX);
}

static uint8_t any_u8(void)
{
    return (uint8_t)Frama_C_unsigned_int_interval(0, UINT8_MAX);
}

static void any_bytes(void *bytes, size_t n)
{
    Frama_C_make_unknown(bytes, n);
}

static bool any(void)
{
    return Frama_C_interval(0, 1) != 0;
}

static uint16_t any_counts(void)
{
    return (uint16_t)Frama_C_unsigned_int_interval(0, 1023);
}

void property(enum property which, bool ok)
{
    (void)which;
    (void)ok;
}

/* Any state at the beginning of a turn. */
static void check_state(void)
{
    invariant(board.state <= STATE_faulted);
    invariant(board.state == STATE_faulted || board.fault_bits == 0);
    invariant(board.fault_bits <= FAULTS_ALL);
    invariant(board.sense_cell < n);
    invariant(board.state != STATE_faulted || board.supply_asked == 0);
    for (uint8_t i = 0; i < n; i++)
        invariant(board.state == STATE_armed || board.cells[i].duty_per_255 == 0);
}

/* Everything else in this state is arbitrary. */
static void vary(void)
{
    struct port_identity identity = board.identity;
    struct frame_reader reader = board.reader;
    uint8_t state = board.state, status_page = board.status_page;
    any_bytes(&board, sizeof board);
    board.port = &port;
    board.identity = identity;
    board.reader = reader;
    board.state = state;
    board.status_page = status_page;
    board.fault_bits =
        state == STATE_faulted ? (uint16_t)Frama_C_unsigned_int_interval(0, FAULTS_ALL) : 0;
    board.limits_whole = any();
    board.memory_whole = any();
    board.scanned = any();
    board.tick_served = any();
    board.sensed_sent = any();
    board.sense_asked = any();
    board.rail_dead = any();
    board.supply_asked = state == STATE_faulted ? 0 : any_u8();
    board.sense_cell = (uint8_t)Frama_C_unsigned_int_interval(0, n - 1u);
    if (state != STATE_armed)
        for (uint8_t i = 0; i < n; i++)
            board.cells[i].duty_per_255 = 0;
}

/* At an answer of the port: merges cases, so that the core's past does not multiply them. */
static void forget(void)
{
    check_state();
    vary();
}

static void forget_bytes(void)
{
    any_bytes(&board.reader, sizeof board.reader);
    board.reader.n = (uint8_t)Frama_C_unsigned_int_interval(0, WIRE_FRAME_MAX);
    board.reader.started = any();
    board.reader.overrun = any();
}

struct port_identity answer_identity(void)
{
    struct port_identity identity;
    any_bytes(&identity, sizeof identity);
    identity.n_cells = n;
    identity.measures = any();
    return identity;
}

uint32_t answer_now_us(void)
{
    return any_u32();
}

bool answer_estop_open(void)
{
    forget();
    if (any())
        return true;
    return false;
}

void answer_gates(const uint8_t *duty_per_255, uint8_t n_cells)
{
    (void)duty_per_255, (void)n_cells;
}

void answer_refresh(void)
{
}

void answer_sense(uint8_t cell)
{
    (void)cell;
}

bool answer_sample(struct port_sample *sample)
{
    forget();
    if (!any())
        return false;
    uint8_t cell =
        (uint8_t)Frama_C_unsigned_int_interval(0, WIRE_CELLS_MAX + PORT_REFERENCES_MAX - 1);
    if (cell >= board.identity.n_cells && cell < WIRE_CELLS_MAX)
        return false;
    sample->known_counts = any_counts();
    sample->current_counts = any_counts();
    sample->temperature_counts = any_counts();
    sample->cell = cell;
    sample->gate_on = any();
    sample->gate_high = any();
    sample->sensed = cell < board.identity.n_cells && any();
    return true;
}

bool answer_byte(uint8_t *byte)
{
    forget();
    forget_bytes();
    if (!any())
        return false;
    *byte = any_u8();
    return true;
}

/* Every byte of an answer has a value. */
bool answer_send(const uint8_t *bytes, uint8_t n)
{
    for (uint8_t i = 0; i < n; i++) {
        uint8_t sent = bytes[i];
        (void)sent;
    }
    return any();
}

uint16_t answer_probe(uint8_t cell)
{
    (void)cell;
    forget();
    return any_counts();
}

bool answer_load(uint8_t *bytes, uint8_t n)
{
    if (!any())
        return false;
    for (uint8_t i = 0; i < n; i++)
        bytes[i] = any_u8();
    return true;
}

bool answer_store(const uint8_t *bytes, uint8_t n)
{
    return answer_send(bytes, n);
}

uint16_t answer_count(void)
{
    return (uint16_t)any_u32();
}

uint8_t answer_gate(uint8_t cell)
{
    (void)cell;
    return any_u8();
}

bool answer_program(void)
{
    return any();
}

void answer_watchdog(void)
{
}

/* A board in any state with the properties that all reachable states share. */
static void any_board(uint8_t state, bool high)
{
    board.port = &port;
    board.identity = answer_identity();
    forget_bytes();
    board.state = state;
    board.status_page = (uint8_t)(2 * Frama_C_unsigned_int_interval(0, (n - 1u) / 2));
    vary();
    port.high = high ? (uint16_t)Frama_C_unsigned_int_interval(1, UINT16_MAX) : 0;
    port.estop_was_open = state == STATE_armed ? false : any();
    port.pulses = 0;
    port.rose = 0;
}

/* The properties that any_board assumes. */
static void check_board(void)
{
    invariant(board.port == &port);
    invariant(board.identity.n_cells == n);
    invariant(board.reader.n <= WIRE_FRAME_MAX);
    check_state();
    invariant(board.status_page < n);
    invariant(board.status_page % 2 == 0);
    invariant(board.state != STATE_armed || !port.estop_was_open);
    property(PROPERTY_off_unless_armed, port.high == 0 || board.state == STATE_armed);
}

static void turn(uint8_t state, bool high)
{
    any_board(state, high);
    board_poll(&board);
    check_board();
}

static void boot(void)
{
    any_bytes(&board, sizeof board);
    any_bytes(&port, sizeof port);
    port.board = &board;
    port.estop_was_open = any();
    board_boot(&board, &port);
    check_board();
}

int main(void)
{
    n = CELLS;
    boot();
    turn(STATE_disarmed, false);
    turn(STATE_faulted, false);
    turn(STATE_armed, false);
    turn(STATE_armed, true);
    return 0;
}
