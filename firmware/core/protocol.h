/* The only definition of the protocol between host and driver board. hil/devices/board/protocol.py parses this
 * file; it accepts only comments, integer constants and the tables below.
 *
 * A frame is COBS(header, payload, CRC) followed by 0x00. The header is version, message code and
 * sequence number, one byte each; integers are little endian; the CRC is CRC-16/CCITT (polynomial
 * 0x1021, most significant bit first) over header and payload, little endian too. The board answers
 * every intact command with exactly one frame, which repeats the command's sequence number, and sends
 * nothing else.
 *
 * Sequence numbers. A host numbers its commands consecutively. A command that changes something is executed if
 * its number is 1 to WIRE_AHEAD_MAX above the last accepted one, so that frames may get lost; any other is
 * answered `replayed` and changes nothing. `identity` contains the last accepted number. Arming starts a 24-bit
 * number: the `arming` of its answer (upper 16 bits) and the sequence number of its command. The set commands
 * carry the upper 16 bits, which increase by one when the sequence number passes from 255 to 0, so no frame of
 * an arming is executed twice. A frame of another arming is answered `other_arming`: it switches nothing and
 * does not feed the dead-man. `disarm` is executed from any host with any number.
 *
 * F(type, name) is an integer, A(type, name, n) an array of n, N(layout, name) another layout.
 * Lists of cells have WIRE_CELLS_MAX entries; a mask has cell i in bit i.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#define WIRE_VERSION 5
#define WIRE_CELLS_MAX 16
#define WIRE_CELLS_PER_STATUS 2
#define WIRE_FUSES 3 /* bytes: low, high, extended */
#define WIRE_CRC_INIT 0xFFFF
#define WIRE_FRAME_MAX 128 /* bytes before COBS; below 254, so that COBS needs one more byte */
#define WIRE_AHEAD_MAX 127
#define WIRE_PROBABILITY_ONE 65535 /* certain; a smaller value p is p / 65536 */
#define WIRE_HEAT_TO_ARM 8         /* arming requires that at most 1/8 of a cell's heat budget is used */
#define WIRE_DUTY_MIN_PER_255 16   /* a smaller duty is too short to measure the current */
#define WIRE_SENSED 128            /* first_cell of a status that has a reading of resistance instead */
#define WIRE_FAULTS_MEASURED 41952 /* the faults that a build without currents and temperatures cannot find */
#define WIRE_SENSE_EVERY_MIN_MS 20 /* a smaller sense_every_ms other than 0 is a bad_value */

/* C(name, code, answer): a command; its payload is the table of its name, if there is one. */
#define WIRE_COMMANDS(C)             \
    C(identify, 0x01, identity)      \
    C(read, 0x02, readings)          \
    C(set_mask, 0x03, status)        \
    C(set_duties, 0x04, status)      \
    C(broadcast, 0x05, status)       \
    C(arm, 0x06, armed)              \
    C(disarm, 0x07, status)          \
    C(clear_faults, 0x08, status)    \
    C(set_limits, 0x09, status)

/* C(name, code) */
#define WIRE_ANSWERS(C)  \
    C(identity, 0x81)    \
    C(readings, 0x82)    \
    C(status, 0x83)      \
    C(armed, 0x84)

/* A set command is valid for valid_for_ms, at most hold_max_ms; then all cells go off. A duty is 0 or at
 * least WIRE_DUTY_MIN_PER_255; any other is a bad_value. */
#define WIRE_SET_MASK(F, A, N) \
    F(u16, arming)             \
    F(u8, valid_for_ms)        \
    F(u16, cells_on)

#define WIRE_SET_DUTIES(F, A, N) \
    F(u16, arming)               \
    F(u8, valid_for_ms)          \
    A(u8, duty_per_255, WIRE_CELLS_MAX)

/* Each cell that is off goes on with probability p, each cell that is on goes off with q. A cell's draw
 * depends on seed, tick and first_cell + its number. A tick not above the last one since arming causes
 * no draw, but counts as a command. */
#define WIRE_BROADCAST(F, A, N) \
    F(u16, arming)              \
    F(u8, valid_for_ms)         \
    F(u16, p_on_per_65536)      \
    F(u16, q_off_per_65536)     \
    F(u32, tick)                \
    F(u32, seed)                \
    F(u16, first_cell)

/* limits_crc is the CRC of the limits that the host expects; cells are those with a wire. Each of them is
 * tested: it is on alone for less than a millisecond, and its current must be between current_on_min_mA and
 * current_max_mA, or arming ends in current_low or current_high. Open cells are isolated instead, up to
 * open_cells_max. Other cells cannot be switched on. Before that relay K1 closes: until the rail behind it has been
 * seen dead with the feed alive, and then alive, the answer is supply_waits, and the host asks again. K1 stays
 * closed for 0.4 s after a question. With no cells the answer is then not_armed. */
#define WIRE_ARM(F, A, N) \
    F(u16, limits_crc)    \
    F(u16, cells)

#define WIRE_SET_LIMITS(F, A, N) \
    N(limits, limits)

/* The answer to every command that changes something: command and readings in one exchange, which takes an
 * ATmega328P less than a millisecond at 1 Mbaud. Each frame has the readings of two cells from first_cell
 * on, in rotation. cells_open are the cells isolated since the last arming: found open (current_low), at
 * most open_cells_max, they stay off whatever is commanded until the board is armed again.
 *
 * With sense_every_ms above 0, at most every other frame has a reading of resistance instead, each once: from
 * first_cell = WIRE_SENSED + cell on, current_mA[0] and current_mA[1] are the counts, of 1023, of the cell's
 * current and of the supply's voltage at the same time; temperature_cC[0] is the reading's age in ms. */
#define WIRE_STATUS(F, A, N)                              \
    F(u32, time_us)                                       \
    F(u8, result)                                         \
    F(u8, state)                                          \
    F(u16, fault_bits)                                    \
    F(u16, first_fault_bits)                              \
    F(u16, fault_cells)                                   \
    F(u16, cells_on)                                      \
    F(u16, cells_open)                                    \
    F(u8, first_cell)                                     \
    A(u16, current_mA, WIRE_CELLS_PER_STATUS)             \
    A(i16, temperature_cC, WIRE_CELLS_PER_STATUS)

/* The answer to `arm`; arming is 0 if it was refused. */
#define WIRE_ARMED(F, A, N) \
    N(status, status)       \
    F(u16, arming)

/* feed_per_255 and rail_per_255 are the cells' supply before and behind relay K1, of supply_full_scale_mV.
 * heat_per_255 is the used share of a cell's heat budget, heat_max_cA2ms; 255 is all of it.
 *
 * trip_cell is the first cell that was found at fault since the faults were cleared; WIRE_CELLS_MAX: none. The
 * next two are its current and temperature in the sample that tripped: in cell_energy_high, the current that its
 * heat was counted with. */
#define WIRE_READINGS(F, A, N)               \
    F(u32, time_us)                          \
    F(u8, state)                             \
    F(u16, fault_bits)                       \
    F(u16, first_fault_bits)                 \
    F(u16, fault_cells)                      \
    F(u16, cells_open)                       \
    F(u16, bad_frames)                       \
    F(u8, feed_per_255)                      \
    F(u8, rail_per_255)                      \
    A(u8, duty_per_255, WIRE_CELLS_MAX)      \
    A(u8, heat_per_255, WIRE_CELLS_MAX)      \
    A(u16, current_mA, WIRE_CELLS_MAX)       \
    A(i16, temperature_cC, WIRE_CELLS_MAX)   \
    F(u8, trip_cell)                         \
    F(u16, trip_current_mA)                  \
    F(i16, trip_temperature_cC)

/* faults_checked are the bits of the faults that this build can find. A build that measures nothing lacks
 * WIRE_FAULTS_MEASURED; it computes the heat budget with current_max_mA while a gate is on, pulses no wire when
 * it is armed, measures no resistance, and its currents and temperatures are 0. */
#define WIRE_IDENTITY(F, A, N)  \
    F(u32, wire_hash)           \
    F(u32, firmware_hash)       \
    F(u32, serial)              \
    F(u32, time_us)             \
    F(u8, reset_cause)          \
    F(u8, state)                \
    F(u8, seq_taken)            \
    A(u8, fuses, WIRE_FUSES)    \
    F(u8, n_cells)              \
    F(u16, faults_checked)      \
    F(u32, scan_period_us)      \
    F(u16, limits_crc)          \
    N(limits, limits)

/* L(type, name, default, lowest, highest): a limit that the board enforces and stores. A level
 * at its limit is allowed. limits_crc is the CRC of the packed table. With open_cells_max at 0 the
 * first open cell is a fault. With sense_every_ms above 0, the current of every wired cell and the supply's
 * voltage are measured at the same time about that often while the board is armed and a command is valid; a
 * cell that is off is on for 0.2 ms meanwhile. supply_full_scale_mV is for the host alone. */
#define WIRE_LIMITS(L)                                       \
    L(u8, silence_max_ms, 100, 1, 100)                       \
    L(u8, hold_max_ms, 100, 1, 100)                          \
    L(u8, cells_on_max, 12, 1, 16)                           \
    L(u8, open_cells_max, 0, 0, 16)                          \
    L(u8, persistence_scans, 2, 1, 10)                       \
    L(u8, scan_age_max_ms, 20, 10, 50)                       \
    L(u16, on_time_max_ms, 10000, 1, 60000)                  \
    L(u16, current_max_mA, 1200, 1, 1900)                    \
    L(u16, current_on_min_mA, 20, 0, 1900)                   \
    L(u16, current_off_max_mA, 20, 4, 1900)                  \
    L(u32, heat_max_cA2ms, 290000, 1, 4000000000)            \
    L(u16, heat_time_constant_ms, 683, 1, 65535)             \
    L(i16, temperature_max_cC, 9000, 0, 12000)               \
    L(u16, temperature_counts_min, 20, 1, 1022)              \
    L(u16, temperature_counts_max, 1000, 1, 1022)            \
    L(u16, current_full_scale_mA, 2000, 1, 10000)            \
    L(u16, temperature_full_scale_cC, 50000, 1, 65535)       \
    L(i16, temperature_zero_cC, -5000, -30000, 30000)        \
    L(u16, sense_every_ms, 0, 0, 60000)                      \
    L(u16, supply_full_scale_mV, 20000, 1, 65535)

/* X(name, number) */
#define WIRE_STATES(X) \
    X(disarmed, 0)     \
    X(armed, 1)        \
    X(faulted, 2)

#define WIRE_RESULTS(X)      \
    X(done, 0)               \
    X(version_differs, 1)    \
    X(unknown_command, 2)    \
    X(bad_length, 3)         \
    X(bad_value, 4)          \
    X(not_armed, 5)          \
    X(is_armed, 6)           \
    X(is_faulted, 7)         \
    X(limits_differ, 8)      \
    X(condition_present, 9)  \
    X(store_failed, 10)      \
    X(cooling, 11)           \
    X(replayed, 12)          \
    X(other_arming, 13)      \
    X(supply_waits, 14)

#define WIRE_RESETS(X) \
    X(power_on, 0)     \
    X(external, 1)     \
    X(brown_out, 2)    \
    X(watchdog, 3)

/* The bits of fault_bits; memory_corrupt lasts until a reset. A name that is also in hil/loop/interlocks.py has the same meaning there. */
#define WIRE_FAULTS(X)         \
    X(host_silent, 0)          \
    X(estop_open, 1)           \
    X(cell_on_too_long, 2)     \
    X(cell_energy_high, 3)     \
    X(too_many_cells_on, 4)    \
    X(current_high, 5)         \
    X(current_low, 6)          \
    X(current_when_off, 7)     \
    X(temperature_high, 8)     \
    X(temperature_range, 9)    \
    X(scan_stale, 10)          \
    X(limits_corrupt, 11)      \
    X(gate_stuck, 12)          \
    X(scan_untrue, 13)         \
    X(memory_corrupt, 14)      \
    X(supply_stuck, 15)

#endif
