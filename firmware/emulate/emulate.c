/* The ATmega328P image under libsimavr, in lock step with the caller: bytes, pins and time.
 *
 * Additions to simavr 1.6:
 * - a byte takes ten bits in both directions (simavr counts eleven);
 * - a byte is lost if three are unread when the next one starts;
 * - the transmitter's data register is free as soon as the shift register is, so sending has no gaps;
 * - the e-stop loop overrides the pull-up;
 * - INT0 and INT1 held low are not polled in every cycle;
 * - an interrupt always ends sleep;
 * - inputs are driven again after a reset;
 * - the program can read the fuses, and WDTON keeps the watchdog on;
 * - the 16-bit registers of timer 1 share one temporary byte. */
#include <avr_adc.h>
#include <avr_eeprom.h>
#include <avr_extint.h>
#include <avr_ioport.h>
#include <avr_uart.h>
#include <sim_avr.h>
#include <sim_elf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pins.h"

enum { MHZ = 16, CYCLES_PER_BYTE = 10 * MHZ, RUN_LIMIT = 1000, ROOM = 4096, VCC_MV = 5000, PUMP_GAP_US = 20000 };
enum { PORT_B = 0x25, PORT_C = 0x28, MCUSR = 0x54, ADCSRA = 0x7A, ADEN = 0x80, ADSC = 0x40, UDR = 0xC6 }; /* addresses, bits */
enum { SPMCSR = 0x57, BLBSET = 0x08, WDTCSR = 0x60, WDCE = 0x10, WDE = 0x08, WDP = 0x27, WDTON = 0x10, RAM_START = 0x100, PAINT = 0xA5, BEHIND_MAX = 2, SOON = 1, TO_ITSELF = 0xCFFF, LAST_WORD = 0x7FFE }; /* rjmp .-2 */

enum { TCNT1_LOW = 0x84, OCR1A_LOW = 0x88, OCR1B_LOW = 0x8A, N_COMPARES = 2 }; /* the high byte follows */

struct analog {
    uint16_t on_counts, off_counts, temperature_counts;
};

struct pin {
    struct emulated *board;
    int gate;
};

struct emulated {
    avr_t *avr;
    avr_uart_t *uart;
    avr_irq_t *received, *converter; /* cached, since simavr looks its lines up at every call */
    struct pin pins[N_CELLS];
    void (*core_reset)(avr_t *);
    struct analog analog[16];
    uint64_t on_cycles[N_CELLS];
    uint64_t on_since[N_CELLS];
    bool on[N_CELLS];
    uint8_t rx[ROOM], tx[ROOM];
    avr_cycle_count_t tx_whole[ROOM]; /* arrival time of each byte at the other end */
    uint8_t arrived[BEHIND_MAX]; /* complete, but not yet in simavr's receiver */
    uint8_t n_arrived;
    uint32_t rx_first, rx_n, tx_n, lost, resets;
    avr_cycle_count_t target;    /* the caller's present time */
    avr_cycle_count_t arrived_at; /* the last byte handed out */
    avr_cycle_count_t line_free; /* the transmitter's shift register is empty from then on */
    avr_cycle_count_t opened_at; /* the e-stop loop, last */
    avr_cycle_count_t last_rise; /* of any gate */
    bool estop_open, converter_dead;
    uint8_t relays[2];           /* K1 and K2: 0 normal, 1 never closes, 2 welded */
    avr_cycle_count_t pump_since, pumped_at; /* the pump's edges: the first one, the last one; 0: none */
    avr_cycle_count_t closes, opens;         /* after the first edge and the last: pump and relay K1 together */
    uint8_t fuses[3];      /* low, high, extended */
    uint8_t vectors[4];    /* flash contents at the addresses where fuses are read */
    bool fuses_shown, setting_watchdog;
    uint8_t stuck[N_CELLS];      /* 0 normal, 1 stuck low, 2 stuck high */
    uint8_t switched_by[N_CELLS]; /* the gate that switches the current of each input */
    struct {
        uint8_t low, high;       /* bits of the address */
    } address[2];                /* of the multiplexer for currents, and for temperatures */
    struct pin_read {
        struct emulated *board;
        avr_io_read_t chip;
        void *param;
        char port;
    } pin_reads[3];
    uint8_t half; /* of a 16-bit register of timer 1: the high byte */
    avr_io_read_t read_count;
    void *count;
    struct compare {
        struct emulated *board;
        avr_io_write_t chip;
        void *param;
    } compares[N_COMPARES];
};

static const struct gate {
    char port;
    uint8_t pin;
} GATES[N_CELLS] = {{'B', 0}, {'B', 1}, {'B', 2}, {'B', 3}, {'B', 4}, {'C', 5},
                    {'D', 3}, {'D', 4}, {'D', 5}, {'D', 6}, {'D', 7}, {'C', 4}};

/* Level of a gate's pin, including a stuck pin. */
static bool is_high(const struct emulated *e, int gate)
{
    return e->stuck[gate] == 0 ? e->on[gate] : e->stuck[gate] == 2;
}

/* The chip reads its pins back, so stuck pins are visible. */
static uint8_t read_pins(avr_t *avr, avr_io_addr_t address, void *param)
{
    struct pin_read *read = param;
    uint8_t bits = read->chip(avr, address, read->param);
    for (int i = 0; i < N_CELLS; i++) {
        if (GATES[i].port != read->port || read->board->stuck[i] == 0)
            continue;
        bits = (uint8_t)(bits & ~(1u << GATES[i].pin));
        bits = (uint8_t)(bits | (is_high(read->board, i) << GATES[i].pin));
    }
    return bits;
}

static void watch_pins(struct emulated *e)
{
    static const struct {
        char port;
        avr_io_addr_t address;
    } PINS[3] = {{'B', 0x23}, {'C', 0x26}, {'D', 0x29}};
    for (int i = 0; i < 3; i++) {
        avr_io_addr_t at = AVR_DATA_TO_IO(PINS[i].address);
        e->pin_reads[i] = (struct pin_read){e, e->avr->io[at].r.c, e->avr->io[at].r.param, PINS[i].port};
        e->avr->io[at].r.c = read_pins;
        e->avr->io[at].r.param = &e->pin_reads[i];
    }
}

/* Data sheet DS40002061, 16.3: the high byte is stored in a temporary register shared by all of timer 1. */
static void write_high(avr_t *avr, avr_io_addr_t address, uint8_t value, void *param)
{
    struct emulated *e = param;
    (void)avr;
    (void)address;
    e->half = value;
}

static void write_low(avr_t *avr, avr_io_addr_t address, uint8_t value, void *param)
{
    struct compare *compare = param;
    avr->data[address + 1] = compare->board->half;
    compare->chip(avr, address, value, compare->param);
}

static uint8_t read_count(avr_t *avr, avr_io_addr_t address, void *param)
{
    struct emulated *e = param;
    uint8_t low = e->read_count(avr, address, e->count);
    e->half = avr->data[address + 1];
    return low;
}

static void share_half(struct emulated *e)
{
    static const avr_io_addr_t LOW[N_COMPARES] = {OCR1A_LOW, OCR1B_LOW};
    avr_io_addr_t at = AVR_DATA_TO_IO(TCNT1_LOW);
    e->read_count = e->avr->io[at].r.c;
    e->count = e->avr->io[at].r.param;
    e->avr->io[at].r.c = read_count;
    e->avr->io[at].r.param = e;
    for (int i = 0; i < N_COMPARES; i++) {
        at = AVR_DATA_TO_IO(LOW[i]);
        e->compares[i] = (struct compare){e, e->avr->io[at].w.c, e->avr->io[at].w.param};
        e->avr->io[at].w.c = write_low;
        e->avr->io[at].w.param = &e->compares[i];
        e->avr->io[at + 1].w.c = write_high;
        e->avr->io[at + 1].w.param = e;
    }
}

static void drive_inputs(struct emulated *e)
{
    avr_ioport_external_t pull = {.name = 'D', .mask = ESTOP_D, .value = e->estop_open ? ESTOP_D : 0};
    avr_ioctl(e->avr, AVR_IOCTL_IOPORT_SET_EXTERNAL('D'), &pull);
    avr_raise_irq(avr_io_getirq(e->avr, AVR_IOCTL_IOPORT_GETIRQ('D'), 2), e->estop_open);
}

/* Gives simavr's receiver a byte only when it is empty. It would delay queued bytes by one byte time after each
 * read, and would lag behind a continuous stream. */
static void pass_on(struct emulated *e)
{
    if (e->n_arrived == 0 || e->uart->input.read != e->uart->input.write)
        return;
    e->uart->cycles_per_byte = SOON;
    avr_raise_irq(e->received, e->arrived[0]);
    e->uart->cycles_per_byte = CYCLES_PER_BYTE;
    memmove(e->arrived, e->arrived + 1, --e->n_arrived);
}

/* A byte has been received; the start bit of the next one follows at once. The chip keeps two unread bytes and a
 * third in its shift register; one of the three is in simavr's receiver. */
static avr_cycle_count_t byte_arrived(avr_t *avr, avr_cycle_count_t when, void *param)
{
    struct emulated *e = param;
    (void)avr;
    if (e->rx_first == e->rx_n) /* a reset has discarded the bytes in transit */
        return 0;
    e->arrived[e->n_arrived++] = e->rx[e->rx_first++];
    pass_on(e);
    if (e->rx_first == e->rx_n)
        return 0;
    if (e->n_arrived == BEHIND_MAX) {
        e->lost++; /* overwritten in the shift register */
        e->n_arrived--;
    }
    return when + CYCLES_PER_BYTE;
}

static void on_data_register(struct avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq;
    (void)value;
    pass_on(param);
}

static void set_gate(struct emulated *e, int i, bool on)
{
    if (e->on[i])
        e->on_cycles[i] += e->avr->cycle - e->on_since[i];
    if (on && !e->on[i])
        e->last_rise = e->avr->cycle;
    e->on_since[i] = e->avr->cycle;
    e->on[i] = on;
}

static void on_gate(struct avr_irq_t *irq, uint32_t value, void *param)
{
    const struct pin *pin = param;
    (void)irq;
    set_gate(pin->board, pin->gate, value != 0);
}

static avr_cycle_count_t wake(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)avr;
    (void)when;
    (void)param;
    return 0;
}

/* A sleeping chip sleeps until the next timer event. */
static void wake_at_target(struct emulated *e)
{
    if (e->avr->cycle < e->target)
        avr_cycle_timer_register(e->avr, e->target - e->avr->cycle, wake, e);
}

static bool always_watched(const struct emulated *e)
{
    return (e->fuses[1] & WDTON) == 0;
}

static void write_watchdog(struct emulated *e, uint8_t value)
{
    avr_io_addr_t at = AVR_DATA_TO_IO(WDTCSR);
    e->avr->io[at].w.c(e->avr, WDTCSR, value, e->avr->io[at].w.param);
}

/* In the timed sequence of a program; the time-out is the shortest after a reset. */
static void keep_watchdog_on(struct emulated *e, uint8_t prescaler)
{
    e->setting_watchdog = true;
    write_watchdog(e, WDCE | WDE);
    write_watchdog(e, (uint8_t)(WDE | prescaler));
    e->setting_watchdog = false;
}

static void on_watchdog(struct avr_irq_t *irq, uint32_t value, void *param)
{
    struct emulated *e = param;
    (void)irq;
    if (always_watched(e) && !e->setting_watchdog && (value & WDE) == 0)
        keep_watchdog_on(e, (uint8_t)(value & WDP));
}

static avr_cycle_count_t hide_fuses(avr_t *avr, avr_cycle_count_t when, void *param)
{
    struct emulated *e = param;
    (void)when;
    memcpy(avr->flash, e->vectors, sizeof e->vectors);
    e->fuses_shown = false;
    return 0;
}

/* A load from program memory within three cycles reads a fuse: data sheet 27.8.9. */
static void on_program_memory(struct avr_irq_t *irq, uint32_t value, void *param)
{
    struct emulated *e = param;
    (void)irq;
    if ((value & BLBSET) == 0 || e->fuses_shown)
        return;
    uint8_t shown[4] = {e->fuses[0], 0xFF, e->fuses[2], e->fuses[1]}; /* 1: the lock bits */
    memcpy(e->vectors, e->avr->flash, sizeof e->vectors);
    memcpy(e->avr->flash, shown, sizeof shown);
    e->fuses_shown = true;
    avr_cycle_timer_register(e->avr, 4, hide_fuses, e);
}

static void on_reset(avr_t *avr)
{
    struct emulated *e = avr->custom.data;
    e->core_reset(avr);
    e->resets++;
    for (uint8_t i = 0; i < 2; i++) /* INT1 is a gate */
        avr_extint_set_strict_lvl_trig(avr, i, 0);
    avr->run_cycle_limit = RUN_LIMIT;
    e->rx_first = e->rx_n = 0;
    e->n_arrived = 0;
    e->line_free = 0;
    for (int i = 0; i < N_CELLS; i++)
        set_gate(e, i, false); /* the ports are inputs again */
    if (e->fuses_shown)
        hide_fuses(avr, 0, e);
    if (always_watched(e))
        keep_watchdog_on(e, 0);
    wake_at_target(e);
    drive_inputs(e);
}

static avr_cycle_count_t data_register_empty(avr_t *avr, avr_cycle_count_t when, void *param)
{
    struct emulated *e = param;
    (void)when;
    avr_raise_interrupt(avr, &e->uart->udrc);
    return 0;
}

/* Moves the byte to the shift register as soon as it is empty. */
static void on_sent(struct avr_irq_t *irq, uint32_t value, void *param)
{
    struct emulated *e = param;
    (void)irq;
    avr_cycle_count_t now = e->avr->cycle;
    avr_cycle_count_t start = e->line_free > now ? e->line_free : now;
    e->uart->cycles_per_byte = CYCLES_PER_BYTE;
    e->line_free = start + CYCLES_PER_BYTE;
    avr_cycle_timer_register(e->avr, start - now + SOON, data_register_empty, e);
    if (e->tx_n == ROOM)
        return;
    e->tx_whole[e->tx_n] = e->line_free;
    e->tx[e->tx_n++] = (uint8_t)value;
}

/* An edge of SEL0 pumps if PB5 permits it. */
static void on_pump(struct avr_irq_t *irq, uint32_t value, void *param)
{
    struct emulated *e = param;
    avr_cycle_count_t now = e->avr->cycle;
    (void)irq;
    (void)value;
    if ((e->avr->data[PORT_B] & PERMIT_B) == 0)
        return;
    if (e->pumped_at == 0 || now - e->pumped_at > e->opens)
        e->pump_since = now;
    e->pumped_at = now;
}

static bool is_closed(const struct emulated *e, int relay, bool driven)
{
    return e->relays[relay] == 0 ? driven : e->relays[relay] == 2;
}

static bool feed_is_alive(const struct emulated *e)
{
    return is_closed(e, 1, !e->estop_open);
}

static bool rail_is_alive(const struct emulated *e)
{
    avr_cycle_count_t now = e->avr->cycle;
    bool pulled = e->pumped_at != 0 && now - e->pumped_at <= e->opens && now - e->pump_since >= e->closes;
    return feed_is_alive(e) && is_closed(e, 0, pulled);
}

/* A conversion starts: the multiplexers connect the addressed cell. */
static void on_conversion(struct avr_irq_t *irq, uint32_t value, void *param)
{
    struct emulated *e = param;
    uint32_t channel = value >> 19; /* avr_adc_mux_t's `src` */
    (void)irq;
    int which = channel == CHANNEL_CURRENT ? 0 : 1;
    uint8_t cell = e->avr->data[PORT_C] & SELECT_C;
    cell = (uint8_t)((cell & ~e->address[which].low) | e->address[which].high);
    const struct analog *analog = &e->analog[cell];
    uint32_t counts = analog->temperature_counts;
    if (channel == CHANNEL_CURRENT)
        counts = cell < N_CELLS && is_high(e, e->switched_by[cell]) ? analog->on_counts : analog->off_counts;
    if (cell == ADDRESS_SUPPLY) {
        bool alive = channel == CHANNEL_CURRENT ? feed_is_alive(e) : rail_is_alive(e);
        counts = alive ? analog->temperature_counts : 0;
    }
    avr_raise_irq(e->converter + channel, (counts * VCC_MV + 1022) / 1023);
}

/* simavr does not wait for wall time here; it advances by `cycles` when this returns. An interrupt raised during
 * the sleep instruction ends the sleep at once; simavr would delay it. */
static void on_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
    if (!avr_has_pending_interrupts(avr))
        return;
    avr->state = cpu_Running;
    avr->cycle -= cycles;
}

static avr_io_t *find_io(avr_t *avr, const char *kind)
{
    avr_io_t *io = avr->io_port;
    while (io != NULL && strcmp(io->kind, kind) != 0)
        io = io->next;
    return io;
}

/* Only simavr's errors are printed, to standard error. */
static void say(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    if (level == LOG_ERROR)
        vfprintf(stderr, format, arguments);
}

/* From the pump's first edge to a closed K1, and from its last to an open one. */
void emulate_set_relay_times(struct emulated *e, uint32_t closes_us, uint32_t opens_us)
{
    e->closes = (avr_cycle_count_t)closes_us * MHZ;
    e->opens = (avr_cycle_count_t)opens_us * MHZ;
}

void *emulate_open(const char *elf_path)
{
    elf_firmware_t firmware = {0};
    struct emulated *e = calloc(1, sizeof *e);
    avr_global_logger_set(say);
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    if (e == NULL || avr == NULL || elf_read_firmware(elf_path, &firmware) != 0)
        return NULL;
    firmware.frequency = MHZ * 1000000u; /* the image contains neither chip nor clock */
    avr_init(avr);
    avr->frequency = MHZ * 1000000u;
    avr->vcc = avr->avcc = avr->aref = VCC_MV;
    avr->log = LOG_ERROR;
    avr_load_firmware(avr, &firmware);
    avr->frequency = MHZ * 1000000u;
    avr->vcc = avr->avcc = avr->aref = VCC_MV;
    avr->sleep = on_sleep;
    memset(avr->data + RAM_START, PAINT, avr->ramend + 1 - RAM_START);
    e->avr = avr;
    e->uart = (avr_uart_t *)find_io(avr, "uart");
    avr->custom.data = e;
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_sent, e);
    avr_irq_register_notify(avr_iomem_getirq(avr, UDR, "udr", AVR_IOMEM_IRQ_ALL), on_data_register, e);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_OUT_TRIGGER), on_conversion, e);
    avr_irq_register_notify(avr_iomem_getirq(avr, SPMCSR, "spmcsr", AVR_IOMEM_IRQ_ALL), on_program_memory, e);
    avr_irq_register_notify(avr_iomem_getirq(avr, WDTCSR, "wdtcsr", AVR_IOMEM_IRQ_ALL), on_watchdog, e);
    memcpy(e->fuses, (uint8_t[]){0xF7, 0xC6, 0xFC}, sizeof e->fuses);
    keep_watchdog_on(e, 0);
    e->received = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    e->converter = avr_io_getirq(avr, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_ADC0);
    for (int i = 0; i < N_CELLS; i++) {
        e->pins[i] = (struct pin){e, i};
        e->switched_by[i] = (uint8_t)i;
        avr_irq_register_notify(
            avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ(GATES[i].port), GATES[i].pin), on_gate,
            &e->pins[i]);
    }
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('C'), 0), on_pump, e);
    emulate_set_relay_times(e, 0, PUMP_GAP_US);
    static const uint16_t known[] = {REFERENCE_FULL, REFERENCE_4096_MV, REFERENCE_HALF};
    for (int i = 0; N_CELLS + i < ADDRESS_SUPPLY; i++)
        e->analog[N_CELLS + i] = (struct analog){known[i], known[i], known[i]};
    watch_pins(e);
    share_half(e);
    e->core_reset = avr->reset;
    avr->reset = on_reset;
    for (uint8_t i = 0; i < 2; i++) /* INT1 is a gate */
        avr_extint_set_strict_lvl_trig(avr, i, 0);
    avr->run_cycle_limit = RUN_LIMIT;
    drive_inputs(e);
    return e;
}

void emulate_close(struct emulated *e)
{
    avr_terminate(e->avr);
    free(e->avr);
    free(e);
}

/* Advances the caller's time and runs to the first instruction at or after it; 0, or -1 if the chip has
 * crashed. */
int emulate_advance(struct emulated *e, uint32_t duration_us)
{
    e->target += (avr_cycle_count_t)duration_us * MHZ;
    wake_at_target(e);
    while (e->avr->cycle < e->target) {
        avr_cycle_count_t left = e->target - e->avr->cycle;
        e->avr->run_cycle_limit = left < RUN_LIMIT ? left : RUN_LIMIT;
        if (e->converter_dead)
            e->avr->data[ADCSRA] &= (uint8_t)~ADEN;
        int state = avr_run(e->avr);
        if (state == cpu_Done || state == cpu_Crashed)
            return -1;
    }
    return 0;
}

void emulate_receive(struct emulated *e, const uint8_t *bytes, uint32_t n)
{
    bool idle = e->rx_first == e->rx_n;
    e->rx_n -= e->rx_first;
    memmove(e->rx, e->rx + e->rx_first, e->rx_n);
    e->rx_first = 0;
    for (uint32_t i = 0; i < n && e->rx_n < ROOM; i++)
        e->rx[e->rx_n++] = bytes[i];
    if (idle)
        avr_cycle_timer_register(e->avr, CYCLES_PER_BYTE, byte_arrived, e);
}

/* Number of bytes that emulate_receive would accept now. */
uint32_t emulate_receive_room(const struct emulated *e)
{
    return ROOM - (e->rx_n - e->rx_first);
}

uint32_t emulate_send(struct emulated *e, uint8_t *bytes)
{
    uint32_t n = 0;
    while (n < e->tx_n && e->tx_whole[n] <= e->avr->cycle)
        n++;
    if (n > 0)
        e->arrived_at = e->tx_whole[n - 1];
    memcpy(bytes, e->tx, n);
    e->tx_n -= n;
    memmove(e->tx, e->tx + n, e->tx_n);
    memmove(e->tx_whole, e->tx_whole + n, e->tx_n * sizeof *e->tx_whole);
    return n;
}

/* Arrival time of the last byte that emulate_send returned. */
uint64_t emulate_arrived_us(const struct emulated *e)
{
    return e->arrived_at / MHZ;
}

void emulate_set_analog(struct emulated *e, uint8_t cell, uint16_t on, uint16_t off, uint16_t temperature)
{
    if (cell < 16)
        e->analog[cell] = (struct analog){on, off, temperature};
}

/* Relay K1, which the pump closes, and K2, which opens with the e-stop: 0 normal, 1 never closes, 2 welded. */
void emulate_set_relays(struct emulated *e, uint8_t k1, uint8_t k2)
{
    e->relays[0] = k1;
    e->relays[1] = k2;
}

/* Whether the cells' rail has power now. */
int emulate_rail_is_alive(const struct emulated *e)
{
    return rail_is_alive(e);
}

void emulate_set_estop(struct emulated *e, int open)
{
    if (open != 0 && !e->estop_open)
        e->opened_at = e->avr->cycle;
    e->estop_open = open != 0;
    drive_inputs(e);
}

static avr_cycle_count_t open_now(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)avr;
    (void)when;
    emulate_set_estop(param, 1);
    return 0;
}

static avr_cycle_count_t close_now(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)avr;
    (void)when;
    emulate_set_estop(param, 0);
    return 0;
}

/* The e-stop loop opens after this many cycles, and closes again after `for_cycles`; 0: it stays open. */
void emulate_open_estop_in(struct emulated *e, uint32_t cycles, uint32_t for_cycles)
{
    avr_cycle_timer_register(e->avr, cycles, open_now, e);
    if (for_cycles > 0)
        avr_cycle_timer_register(e->avr, cycles + for_cycles, close_now, e);
}

/* Cycles from the last opening of the e-stop loop to the last rising edge of any gate; negative if that was earlier. */
int64_t emulate_last_rise(const struct emulated *e)
{
    return (int64_t)e->last_rise - (int64_t)e->opened_at;
}

/* A gate's pin: 0 normal, 1 stuck low, 2 stuck high. */
void emulate_set_stuck(struct emulated *e, uint8_t gate, uint8_t stuck)
{
    if (gate < N_CELLS)
        e->stuck[gate] = stuck;
}

/* The current of an input is switched by this gate; by its own, unless wires are swapped. */
void emulate_set_wiring(struct emulated *e, uint8_t cell, uint8_t gate)
{
    if (cell < N_CELLS && gate < N_CELLS)
        e->switched_by[cell] = gate;
}

/* Address bits stuck low and high: of the multiplexer for currents (bit 0), for temperatures (bit 1). */
void emulate_set_address(struct emulated *e, uint8_t multiplexers, uint8_t low, uint8_t high)
{
    for (int i = 0; i < 2; i++) {
        bool here = multiplexers >> i & 1;
        e->address[i].low = here ? low : 0;
        e->address[i].high = here ? high : 0;
    }
}

uint8_t emulate_read(const struct emulated *e, uint16_t address)
{
    return e->avr->data[address];
}

/* Writes a register of the chip as a program would. */
void emulate_write(struct emulated *e, uint16_t address, uint8_t value)
{
    avr_io_addr_t at = AVR_DATA_TO_IO(address);
    if (e->avr->io[at].w.c != NULL)
        e->avr->io[at].w.c(e->avr, address, value, e->avr->io[at].w.param);
    else
        e->avr->data[address] = value;
}

/* Stops the converter; when repaired, it completes the interrupted conversion. */
void emulate_set_converter(struct emulated *e, int works)
{
    if (works && e->converter_dead) {
        avr_adc_t *adc = (avr_adc_t *)find_io(e->avr, "adc");
        e->avr->data[ADCSRA] = (e->avr->data[ADCSRA] | ADEN) & (uint8_t)~ADSC;
        avr_raise_interrupt(e->avr, &adc->adc);
    }
    e->converter_dead = works == 0;
}

/* The program loops in one instruction; interrupts still run. */
void emulate_hang(struct emulated *e)
{
    e->avr->flash[LAST_WORD] = TO_ITSELF & 0xFF;
    e->avr->flash[LAST_WORD + 1] = TO_ITSELF >> 8;
    e->avr->pc = LAST_WORD;
    e->avr->state = cpu_Running;
}

/* Resets the processor; `cause` is one of WIRE_RESETS, whose order is that of MCUSR's bits. */
void emulate_reset(struct emulated *e, uint8_t cause)
{
    avr_reset(e->avr);
    e->avr->data[MCUSR] = (uint8_t)(1u << cause);
}

/* Low, high and extended fuses; they take effect at the next reset. */
void emulate_set_fuses(struct emulated *e, uint8_t low, uint8_t high, uint8_t extended)
{
    memcpy(e->fuses, (uint8_t[]){low, high, extended}, sizeof e->fuses);
}

/* Reads or writes the bytes of the EEPROM. */
void emulate_memory(struct emulated *e, uint8_t *bytes, uint32_t n, int write)
{
    avr_eeprom_desc_t part = {.ee = bytes, .offset = 0, .size = n};
    avr_ioctl(e->avr, write ? AVR_IOCTL_EEPROM_SET : AVR_IOCTL_EEPROM_GET, &part);
}

/* The RAM from `at` on, read or written. */
void emulate_ram(struct emulated *e, uint32_t at, uint8_t *bytes, uint32_t n, int write)
{
    uint8_t *ram = e->avr->data + RAM_START + at;
    if (write != 0)
        memcpy(ram, bytes, n);
    else
        memcpy(bytes, ram, n);
}

/* Flips bits of the flash. */
void emulate_flip_flash(struct emulated *e, uint32_t at, uint8_t bits)
{
    if (at <= e->avr->flashend)
        e->avr->flash[at] ^= bits;
}

/* The bytes of the flash. */
void emulate_flash(const struct emulated *e, uint32_t at, uint8_t *bytes, uint32_t n)
{
    memcpy(bytes, e->avr->flash + at, n);
}

/* Bytes of RAM between data and stack that have never been written; valid before the first reset. */
uint32_t emulate_untouched_ram(const struct emulated *e)
{
    uint32_t longest = 0, run = 0;
    for (uint32_t at = RAM_START; at <= e->avr->ramend; at++) {
        run = e->avr->data[at] == PAINT ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Bit i: gate i is high now. */
uint16_t emulate_gates(const struct emulated *e)
{
    uint16_t bits = 0;
    for (int i = 0; i < N_CELLS; i++)
        bits |= (uint16_t)(is_high(e, i) << i);
    return bits;
}

/* How long each gate has been high since the start. */
void emulate_on_cycles(const struct emulated *e, uint64_t *cycles)
{
    for (int i = 0; i < N_CELLS; i++)
        cycles[i] = e->on_cycles[i] + (e->on[i] ? e->avr->cycle - e->on_since[i] : 0);
}

/* The caller's time. */
uint64_t emulate_now_us(const struct emulated *e)
{
    return e->target / MHZ;
}

uint32_t emulate_lost_bytes(const struct emulated *e)
{
    return e->lost;
}

uint32_t emulate_resets(const struct emulated *e)
{
    return e->resets;
}
