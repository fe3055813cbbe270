/* ATmega328P at 16 MHz, 5 V. Timer 1 counts half microseconds: it is the clock, and its compare
 * interrupt steps the bit-angle modulation. Converter and UART run from interrupts too, so that the
 * main loop need not be fast. */
#include "port.h"

#include <avr/boot.h>
#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <string.h>
#include <util/atomic.h>
#include <util/delay.h>

#include "loop.h"
#include "pins.h"
#include "scan.h"

enum {
    SLOTS = 8,
    DUTY_WHOLE = 255,
    SOONEST_TICKS = 16,
    UNIT_TICKS = 32, /* 16 us for the lowest bit: 245 Hz over all */
    RX_ROOM = 64,    /* powers of two */
    TX_ROOM = 256,
    SAMPLE_TICKS = 500,    /* 250 us per cell */
    SCAN_PERIOD_US = 6500, /* at most: 3250, and 3000 if all cells switch; conversions are repeated */
    SETTLE_US = 20,
    HELD_US = 24, /* a conversion takes its sample within 20 us */
    SENSE_TICKS = 330, /* 165 us: settling, a conversion, the sample of the next one */
    SENSE_WAIT = 18, /* readings, longer than a period of the modulation */
    MEMORY_AT = 0,
    SERIAL_AT = 64,
    COUNT_AT = 68,
    TIMER_INTERRUPTS = 1 << OCIE1A | 1 << OCIE1B | 1 << TOIE1,
};

static const uint16_t OVERFLOW_US = 32768; /* of timer 1 */

struct slot {
    uint8_t b, c, d;
};

struct port {
    /* Levels of the ports in the slot of each bit of the duty. One table is in use; the next one is built in
     * the other. */
    struct slot tables[2][SLOTS];
    struct slot *slots;
    bool modulated; /* some duty is between off and on */
    uint16_t slot_ticks;
    uint32_t overflow_us; /* of timer 1 */
    uint8_t slot;
    uint8_t edges; /* counter of possible gate changes */
    uint8_t edges_at_start;
    struct scan scan;
    struct scan_turn turn; /* of the reading in progress */
    uint16_t current_counts;
    uint8_t sense;      /* requested cell, or PORT_SENSE_NONE */
    uint8_t sense_wait; /* readings for which it waits for its gate */
    bool sensing;       /* the reading in progress was requested */
    bool gate_on, gate_high;
    bool temperature_next;
    bool sampling;     /* a reading has begun and is not yet in `sample` */
    bool turn_due;     /* the time of the next reading came while this one was in progress */
    bool sample_ready; /* `sample` is ready for the core */
    bool sample_held;  /* the next reading is complete, but `sample` has not been taken yet */
    bool estop_seen;
    struct port_sample sample;
    uint8_t rx_first, rx_end, tx_first, tx_end;
    uint8_t rx[RX_ROOM];
    uint8_t tx[TX_ROOM];
};

/* Interrupt routines take no argument, so the chip's only port is a global. */
static volatile struct port the_port;
static struct board the_board;
static uint8_t reset_flags __attribute__((section(".noinit")));

/* Runs first. The watchdog always has its shortest time, 16 ms, with which it already runs by fuse (WDTON) or
 * after a watchdog reset. It is never off. */
void save_reset_flags(void) __attribute__((naked, used, section(".init3")));
void save_reset_flags(void)
{
    reset_flags = MCUSR;
    if (reset_flags == 0) /* a boot loader has cleared it: Optiboot passes it in r2 */
        __asm__ __volatile__("sts %0, r2" : : "i"(&reset_flags));
    MCUSR = 0;
    wdt_enable(WDTO_15MS);
}

/* A host searches an image for this, to know what `identify` will return after flashing. The CRC is that of all
 * bytes but its own. */
static const struct {
    char tag[8];
    uint32_t wire_hash, firmware_hash;
    uint16_t crc;
} IMAGE PROGMEM = {"HILBOARD", WIRE_HASH, FIRMWARE_HASH, PROGRAM_CRC};

extern const char __data_load_end[]; /* where the program ends, by the linker */

/* --- gates --- */

static void drive(const struct slot *slot)
{
    PORTB = (uint8_t)((PORTB & (uint8_t)~GATES_B) | slot->b);
    PORTC = (uint8_t)((PORTC & (uint8_t)~GATES_C) | slot->c);
    PORTD = (uint8_t)((PORTD & (uint8_t)~GATES_D) | slot->d);
}

/* Call with interrupts off before raising a gate: includes an opening that the interrupt has not handled yet. */
static bool may_drive(void)
{
    if ((PIND & ESTOP_D) != 0)
        the_port.estop_seen = true;
    return !the_port.estop_seen;
}

static void gates_off(void)
{
    PORTB &= (uint8_t)~GATES_B;
    PORTC &= (uint8_t)~GATES_C;
    PORTD &= (uint8_t)~GATES_D;
    memset(the_port.slots, 0, SLOTS * sizeof *the_port.slots);
    the_port.sense = PORT_SENSE_NONE;
    the_port.modulated = false;
    the_port.edges++;
}

ISR(TIMER1_COMPA_vect)
{
    uint8_t slot = (the_port.slot + 1) & (SLOTS - 1);
    uint16_t ticks = slot == 0 ? UNIT_TICKS : (uint16_t)(the_port.slot_ticks * 2);
    the_port.slot = slot;
    the_port.slot_ticks = ticks;
    /* Another interrupt may have delayed this one: a compare value in the past would match only after
     * 33 ms. */
    uint16_t next = (uint16_t)(OCR1A + ticks);
    uint16_t soonest = (uint16_t)(TCNT1 + SOONEST_TICKS);
    OCR1A = (int16_t)(next - soonest) < 0 ? soonest : next;
    if (the_port.modulated) {
        drive(the_port.slots + slot);
        the_port.edges++;
    }
}

void port_gates_off(struct port *port)
{
    (void)port;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) gates_off();
}

static const struct slot GATES[N_CELLS] = {
    {.b = 1 << 0}, {.b = 1 << 1}, {.b = 1 << 2}, {.b = 1 << 3}, {.b = 1 << 4}, {.c = 1 << 5},
    {.d = 1 << 3}, {.d = 1 << 4}, {.d = 1 << 5}, {.d = 1 << 6}, {.d = 1 << 7}, {.c = 1 << 4},
};

/* Bit i of the duty: the gate is high in slot i. Unrolled, because a loop would need a shift in every pass. */
static inline void add_bits(uint8_t *lane, uint8_t duty, uint8_t mask)
{
    if ((duty & 0x01) != 0)
        lane[0 * sizeof(struct slot)] |= mask;
    if ((duty & 0x02) != 0)
        lane[1 * sizeof(struct slot)] |= mask;
    if ((duty & 0x04) != 0)
        lane[2 * sizeof(struct slot)] |= mask;
    if ((duty & 0x08) != 0)
        lane[3 * sizeof(struct slot)] |= mask;
    if ((duty & 0x10) != 0)
        lane[4 * sizeof(struct slot)] |= mask;
    if ((duty & 0x20) != 0)
        lane[5 * sizeof(struct slot)] |= mask;
    if ((duty & 0x40) != 0)
        lane[6 * sizeof(struct slot)] |= mask;
    if ((duty & 0x80) != 0)
        lane[7 * sizeof(struct slot)] |= mask;
}

/* The reverse. */
static uint8_t bits_of(const uint8_t *lane, uint8_t mask)
{
    uint8_t duty = 0;
    for (uint8_t bit = 1; bit != 0; bit = (uint8_t)(bit << 1), lane += sizeof(struct slot))
        if ((*lane & mask) != 0)
            duty |= bit;
    return duty;
}

uint8_t port_gate_set(struct port *port, uint8_t cell)
{
    const struct slot *gate = &GATES[cell], *slots = (struct slot *)the_port.slots;
    (void)port;
    if (gate->b != 0)
        return bits_of(&slots->b, gate->b);
    return gate->d != 0 ? bits_of(&slots->d, gate->d) : bits_of(&slots->c, gate->c);
}

static void add_duty(struct slot *first, uint8_t duty, const struct slot *gate)
{
    if (gate->b != 0)
        add_bits(&first->b, duty, gate->b);
    else if (gate->d != 0)
        add_bits(&first->d, duty, gate->d);
    else
        add_bits(&first->c, duty, gate->c);
}

void port_gates_set(struct port *port, const uint8_t *duty_per_255, uint8_t n_cells)
{
    bool first_in_use = the_port.slots == the_port.tables[0];
    struct slot *slots = (struct slot *)the_port.tables[first_in_use];
    const struct slot *gate = GATES;
    uint8_t whole_b = 0, whole_c = 0, whole_d = 0;
    bool modulated = false;
    (void)port;
    for (; n_cells > 0; n_cells--, gate++) {
        uint8_t duty = *duty_per_255++;
        if (duty == DUTY_WHOLE) {
            whole_b |= gate->b;
            whole_c |= gate->c;
            whole_d |= gate->d;
        } else if (duty != 0) {
            if (!modulated)
                memset(slots, 0, SLOTS * sizeof *slots);
            add_duty(slots, duty, gate);
            modulated = true;
        }
    }
    for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
        slot->b = modulated ? slot->b | whole_b : whole_b;
        slot->c = modulated ? slot->c | whole_c : whole_c;
        slot->d = modulated ? slot->d | whole_d : whole_d;
    }
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        if (may_drive()) {
            the_port.slots = slots;
            the_port.modulated = modulated;
            drive(&slots[the_port.slot]);
            the_port.edges++;
        }
    }
}

/* A gate that is high to be measured stays so. Without the interrupt that modulates, a gate would keep the level of
 * its slot, and nothing else would notice. */
void port_gates_refresh(struct port *port)
{
    (void)port;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        struct slot levels = the_port.slots[the_port.slot];
        if (the_port.sensing) {
            const struct slot *sensed = &GATES[the_port.turn.address];
            levels.b = (uint8_t)(levels.b | (PORTB & sensed->b));
            levels.c = (uint8_t)(levels.c | (PORTC & sensed->c));
            levels.d = (uint8_t)(levels.d | (PORTD & sensed->d));
        }
        DDRB |= GATES_B | PERMIT_B;
        DDRC |= GATES_C | (MEASURES ? SELECT_C : 0);
        DDRD |= GATES_D;
        TIMSK1 = TIMER_INTERRUPTS;
        drive(&levels);
    }
}

/* --- e-stop: the interrupt switches the gates off and informs the core --- */

ISR(INT0_vect)
{
    the_port.estop_seen = true;
    gates_off();
}

bool port_estop_open(struct port *port)
{
    bool open = false;
    (void)port;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        open = the_port.estop_seen || (PIND & ESTOP_D) != 0;
        the_port.estop_seen = false;
    }
    return open;
}

/* --- scan: current, then temperature of one cell after the other, then of a reference --- */

static const uint16_t KNOWN_COUNTS[] = {REFERENCE_FULL, REFERENCE_4096_MV, REFERENCE_HALF, 0 /* the supply */};

/* Cells whose gates are on in this slot. The pins are chosen so that byte shifts are enough. */
static uint16_t cells_on(void)
{
    const struct slot *slot = &the_port.slots[the_port.slot];
    uint8_t low = (uint8_t)((slot->b & 0x1F) | (slot->c & 0x20) | (uint8_t)(slot->d << 3));
    uint8_t high = (uint8_t)((slot->d >> 5) | ((slot->c & 0x10) >> 1));
    return (uint16_t)((uint16_t)high << 8 | low);
}

static bool gate_is_high(uint8_t cell)
{
    const struct slot *gate = &GATES[cell];
    return cell < N_CELLS && ((PINB & gate->b) | (PINC & gate->c) | (PIND & gate->d)) != 0;
}

static void convert(uint8_t channel)
{
    ADMUX = (uint8_t)(1 << REFS0 | channel);
    ADCSRA |= 1 << ADSC;
}

/* Called by one of the two scan interrupts, or by the main loop while a reading is held; never by two at once. */
static struct scan *scan(void)
{
    return (struct scan *)&the_port.scan;
}

/* Raises the gate, until it is released or any gate is switched. */
static void raise_gate(uint8_t cell)
{
    const struct slot *gate = &GATES[cell];
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        PORTC = (uint8_t)((PORTC & (uint8_t)~SELECT_C) | cell);
        if (the_port.sense == cell && may_drive()) { /* not cancelled meanwhile */
            PORTB |= gate->b;
            PORTC |= gate->c;
            PORTD |= gate->d;
        }
        the_port.sense = PORT_SENSE_NONE;
        the_port.edges_at_start = the_port.edges;
    }
}

/* Call once the supply's conversion has taken its sample. */
static void release_gate(void)
{
    const struct slot *gate = &GATES[the_port.turn.address];
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        bool raised = ((PORTB & gate->b) | (PORTC & gate->c) | (PORTD & gate->d)) != 0;
        the_port.gate_on = raised && the_port.edges == the_port.edges_at_start;
        drive(&the_port.slots[the_port.slot]);
    }
}

static void sense(uint8_t cell)
{
    the_port.sensing = true;
    the_port.turn.address = cell;
    the_port.temperature_next = true;
    raise_gate(cell);
    _delay_us(SETTLE_US);
    convert(CHANNEL_CURRENT);
}

/* No gate switches before it has ended. */
static bool slot_lasts(void)
{
    uint16_t left = 0;
    if (!the_port.modulated)
        return true;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) left = (uint16_t)(OCR1A - TCNT1);
    return left > SENSE_TICKS && left < 0x8000;
}

static bool sense_begins(uint8_t cell, uint16_t on)
{
    if (cell == PORT_SENSE_NONE || !slot_lasts())
        return false;
    if (the_port.sense_wait == 0 || (on >> cell & 1u) != 0)
        return true;
    the_port.sense_wait--;
    return false;
}

static void hand_over(void);

/* Without converter: the gates alone, which are read at one moment. */
static void read_gate(void)
{
    uint16_t on = 0;
    uint8_t b = 0, c = 0, d = 0;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        on = cells_on();
        b = PINB;
        c = PINC;
        d = PIND;
    }
    struct scan_turn turn = scan_next(scan(), on);
    const struct slot *gate = &GATES[turn.address];
    *(struct scan_turn *)&the_port.turn = turn;
    the_port.gate_on = (on & turn.bit) != 0;
    the_port.gate_high = ((b & gate->b) | (c & gate->c) | (d & gate->d)) != 0;
    if (the_port.sample_ready)
        the_port.sample_held = true;
    else
        hand_over();
}

static void convert_current(void)
{
    if (!MEASURES) {
        read_gate();
        return;
    }
    the_port.edges_at_start = the_port.edges; /* before reading the gates, so that an edge in between counts */
    uint16_t on = cells_on();
    uint8_t cell = the_port.sense;
    if (sense_begins(cell, on)) {
        sense(cell);
        return;
    }
    struct scan_turn turn = scan_next(scan(), on);
    *(struct scan_turn *)&the_port.turn = turn;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) PORTC = (uint8_t)((PORTC & (uint8_t)~SELECT_C) | turn.address);
    the_port.gate_on = (on & turn.bit) != 0;
    the_port.temperature_next = true;
    convert(CHANNEL_CURRENT);
}

/* Passes on a complete reading. The next one begins at its time, or at once if that has passed. */
static void hand_over(void)
{
    struct scan_turn turn = *(struct scan_turn *)&the_port.turn;
    the_port.sample.cell = turn.address;
    the_port.sample.gate_on = the_port.gate_on;
    the_port.sample.gate_high = the_port.gate_high;
    the_port.sample.current_counts = the_port.current_counts;
    the_port.sample.temperature_counts = MEASURES ? ADC : 0;
    the_port.sample.sensed = the_port.sensing;
    if (!the_port.sensing)
        scan_done(scan(), turn, the_port.gate_on);
    the_port.sensing = false;
    the_port.sample_ready = true;
    if (the_port.turn_due) {
        the_port.turn_due = false;
        convert_current();
    } else {
        the_port.sampling = false; /* must be last: the next reading may begin from here on */
    }
}

/* This interrupt and the next one can be interrupted: a received byte must be read within two byte times. */
ISR(TIMER1_COMPB_vect, ISR_NOBLOCK)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) OCR1B += SAMPLE_TICKS; /* the registers of timer 1 share one temporary byte */
    if (the_port.sampling) {
        the_port.turn_due = true;
        return;
    }
    the_port.sampling = true;
    convert_current();
}

ISR(ADC_vect, ISR_NOBLOCK)
{
    if (!the_port.temperature_next) {
        if (the_port.sample_ready)
            the_port.sample_held = true; /* the core has not taken the previous reading yet */
        else
            hand_over();
        return;
    }
    the_port.gate_high = gate_is_high(the_port.turn.address); /* long after any edge, unless one occurs now */
    if (the_port.edges != the_port.edges_at_start && !the_port.sensing) {
        convert_current(); /* a gate may have switched during it */
        return;
    }
    the_port.current_counts = ADC;
    the_port.temperature_next = false;
    if (the_port.sensing) {
        ATOMIC_BLOCK(ATOMIC_RESTORESTATE) PORTC |= ADDRESS_SUPPLY;
        convert(CHANNEL_TEMPERATURE);
        _delay_us(HELD_US);
        release_gate();
        return;
    }
    convert(CHANNEL_TEMPERATURE);
}

bool port_sample(struct port *port, struct port_sample *sample)
{
    (void)port;
    if (!the_port.sample_ready)
        return false;
    *sample = *(struct port_sample *)&the_port.sample;
    if (MEASURES && sample->cell >= N_CELLS) {
        sample->known_counts = KNOWN_COUNTS[sample->cell - N_CELLS];
        sample->cell = (uint8_t)(sample->cell - N_CELLS + WIRE_CELLS_MAX);
    }
    the_port.sample_ready = false; /* from here on the interrupt passes readings on */
    if (the_port.sample_held) {
        the_port.sample_held = false;
        hand_over();
    }
    return true;
}

void port_sense(struct port *port, uint8_t cell, bool wait)
{
    (void)port;
    if (!MEASURES)
        return;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        the_port.sense = cell;
        the_port.sense_wait = wait ? SENSE_WAIT : 0;
    }
}

static uint16_t converted(uint8_t channel)
{
    convert(channel);
    while ((ADCSRA & 1 << ADSC) != 0) {
    }
    return ADC;
}

uint16_t port_probe(struct port *port, uint8_t cell)
{
    const struct slot *gate = &GATES[cell];
    (void)port;
    if (!MEASURES)
        return 0;
    ADCSRA &= (uint8_t) ~(1 << ADIE);
    the_port.sampling = true; /* afterwards the scan repeats its interrupted reading */
    the_port.sample_held = false;
    the_port.sensing = false;
    while ((ADCSRA & 1 << ADSC) != 0) {
    }
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        PORTC = (uint8_t)((PORTC & (uint8_t)~SELECT_C) | cell);
        if (may_drive())
            drive(gate);
    }
    _delay_us(SETTLE_US);
    uint16_t counts = converted(CHANNEL_CURRENT);
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) gates_off();
    ADCSRA |= 1 << ADIF | 1 << ADIE;
    the_port.sampling = false;
    return counts;
}

/* --- time --- */

ISR(TIMER1_OVF_vect)
{
    the_port.overflow_us += OVERFLOW_US;
}

uint32_t port_now_us(struct port *port)
{
    uint16_t ticks = 0;
    uint32_t now_us = 0;
    (void)port;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        ticks = TCNT1;
        now_us = the_port.overflow_us;
        if ((TIFR1 & 1 << TOV1) != 0 && ticks < 0x8000)
            now_us += OVERFLOW_US;
    }
    return now_us + (ticks >> 1);
}

/* --- UART --- */

ISR(USART_RX_vect)
{
    uint8_t byte = UDR0;
    uint8_t end = (the_port.rx_end + 1) & (RX_ROOM - 1);
    if (end != the_port.rx_first) {
        the_port.rx[the_port.rx_end] = byte;
        the_port.rx_end = end;
    }
}

ISR(USART_UDRE_vect)
{
    uint8_t first = the_port.tx_first;
    if (first == the_port.tx_end) {
        UCSR0B &= (uint8_t) ~(1 << UDRIE0);
        return;
    }
    UDR0 = the_port.tx[first];
    the_port.tx_first = (uint8_t)(first + 1);
}

bool port_receive(struct port *port, uint8_t *byte)
{
    (void)port;
    uint8_t first = the_port.rx_first;
    if (first == the_port.rx_end)
        return false;
    *byte = the_port.rx[first];
    the_port.rx_first = (first + 1) & (RX_ROOM - 1);
    return true;
}

bool port_send(struct port *port, const uint8_t *bytes, uint8_t n)
{
    (void)port;
    uint8_t end = the_port.tx_end;
    uint8_t used = (uint8_t)(end - the_port.tx_first);
    if (n > TX_ROOM - 1 - used)
        return false;
    for (; n > 0; n--)
        the_port.tx[end++] = *bytes++;
    the_port.tx_end = end;
    UCSR0B |= 1 << UDRIE0;
    return true;
}

/* --- supply, watchdog, memory, identity --- */

void port_supply(struct port *port, bool on)
{
    (void)port;
    if (MEASURES && on) /* one instruction each, which no interrupt divides */
        PORTB |= PERMIT_B;
    else
        PORTB &= (uint8_t)~PERMIT_B;
}

void port_watchdog_feed(struct port *port)
{
    (void)port;
    wdt_reset();
}

enum { PROGRAM_PART = 16, PROGRAM_PART_AT_START = 32 /* bytes */ };
static struct {
    uint16_t at, crc; /* of the bytes before */
    bool intact, checked; /* at least once since the reset */
} program = {.crc = WIRE_CRC_INIT, .intact = true};

static void check_program(uint8_t most)
{
    const uint16_t end = (uint16_t)__data_load_end, crc_at = (uint16_t)&IMAGE.crc;
    uint16_t at = program.at, left = (uint16_t)((at < crc_at ? crc_at : end) - at);
    uint8_t part[PROGRAM_PART_AT_START], n = (uint8_t)(left < most ? left : most);
    memcpy_P(part, (const void *)at, n);
    program.crc = frame_crc(program.crc, part, n);
    at += n;
    program.at = at == crc_at ? (uint16_t)(at + sizeof IMAGE.crc) : at;
    if (at < end)
        return;
    program.intact = program.intact && program.crc == pgm_read_word(crc_at);
    program.crc = WIRE_CRC_INIT;
    program.at = 0;
    program.checked = true;
}

bool port_program_intact(struct port *port)
{
    (void)port;
    check_program(program.checked ? PROGRAM_PART : PROGRAM_PART_AT_START);
    return program.intact;
}

bool port_memory_load(struct port *port, uint8_t *bytes, uint8_t n)
{
    (void)port;
    eeprom_read_block(bytes, (const void *)MEMORY_AT, n);
    for (uint8_t i = 0; i < n; i++)
        if (bytes[i] != 0xFF)
            return true;
    return false;
}

bool port_memory_store(struct port *port, const uint8_t *bytes, uint8_t n)
{
    (void)port;
    for (uint8_t i = 0; i < n; i++) {
        eeprom_update_byte((uint8_t *)(MEMORY_AT + i), bytes[i]); /* 3.4 ms if it differs */
        wdt_reset();
    }
    for (uint8_t i = 0; i < n; i++)
        if (eeprom_read_byte((const uint8_t *)(MEMORY_AT + i)) != bytes[i])
            return false;
    return true;
}

uint16_t port_memory_count(struct port *port)
{
    (void)port;
    uint16_t count = (uint16_t)(eeprom_read_word((const uint16_t *)COUNT_AT) + 1u);
    wdt_reset();
    eeprom_update_word((uint16_t *)COUNT_AT, count); /* 3.4 ms for each byte that differs, rarely both */
    wdt_reset();
    return count;
}

static uint8_t reset_cause(void)
{
    if ((reset_flags & 1 << WDRF) != 0)
        return RESET_watchdog;
    if ((reset_flags & 1 << PORF) != 0)
        return RESET_power_on;
    return (reset_flags & 1 << BORF) != 0 ? RESET_brown_out : RESET_external;
}

static uint8_t fuse(uint16_t which)
{
    uint8_t bits = 0;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) bits = boot_lock_fuse_bits_get(which);
    return bits;
}

struct port_identity port_identity(struct port *port)
{
    (void)port;
    return (struct port_identity){
        .fuses = {fuse(GET_LOW_FUSE_BITS), fuse(GET_HIGH_FUSE_BITS), fuse(GET_EXTENDED_FUSE_BITS)},
        .serial = eeprom_read_dword((const uint32_t *)SERIAL_AT),
        .scan_period_us = SCAN_PERIOD_US,
        .n_cells = N_CELLS,
        .measures = MEASURES,
        .reset_cause = reset_cause(),
    };
}

static void start(void)
{
    __asm__ __volatile__("" : : "r"(&IMAGE)); /* prevents the linker from removing it */
    DDRB = GATES_B | PERMIT_B;
    DDRC = GATES_C | (MEASURES ? SELECT_C : 0);
    DDRD = GATES_D | 1 << 1;
    PORTD = ESTOP_D; /* pulled up: a broken wire is an open loop */
    EICRA = 1 << ISC01 | 1 << ISC00;
    EIMSK = 1 << INT0;
    TCCR1B = 1 << CS11;
    the_port.slots = (struct slot *)the_port.tables[0];
    the_port.slot_ticks = UNIT_TICKS;
    the_port.sense = PORT_SENSE_NONE;
    scan_start(scan(), N_CELLS, N_REFERENCES);
    OCR1A = UNIT_TICKS;
    OCR1B = SAMPLE_TICKS;
    TIMSK1 = TIMER_INTERRUPTS;
    UBRR0 = 1;
    UCSR0A = 1 << U2X0;
    UCSR0C = 1 << UCSZ01 | 1 << UCSZ00;
    UCSR0B = 1 << RXEN0 | 1 << TXEN0 | 1 << RXCIE0;
    if (MEASURES)
        ADCSRA = 1 << ADEN | 1 << ADIE | 1 << ADPS2 | 1 << ADPS1 | 1 << ADPS0; /* 125 kHz: 104 us per conversion */
    SMCR = 1 << SE; /* idle mode: only the processor sleeps */
    sei();
}

/* Sleeps until the next interrupt, unless there is something to do. A reading ends every 250 us, so the core
 * keeps checking. */
static void doze(void)
{
    cli();
    if (the_port.rx_first == the_port.rx_end && !the_port.sample_ready && !the_port.estop_seen) {
        sei(); /* takes effect after the next instruction, so no interrupt can occur in between */
        sleep_cpu();
    }
    sei();
}

int main(void)
{
    start();
    board_boot(&the_board, (struct port *)&the_port);
    for (;;) {
        board_poll(&the_board);
        doze();
    }
}
