#include "watched.h"

#include <stddef.h>

struct port_identity port_identity(struct port *port)
{
    (void)port;
    return answer_identity();
}

uint32_t port_now_us(struct port *port)
{
    (void)port;
    return answer_now_us();
}

void port_gates_off(struct port *port)
{
    port->high = 0;
    answer_gates(NULL, 0);
}

void port_gates_set(struct port *port, const uint8_t *duty_per_255, uint8_t n_cells)
{
    uint16_t high = 0;
    for (uint8_t i = 0; i < n_cells; i++)
        if (duty_per_255[i] != 0)
            high |= (uint16_t)(1u << i);
    if (high != 0)
        property(PROPERTY_off_unless_armed, port->board->state == STATE_armed);
    if ((high & (uint16_t)~port->high) != 0) {
        property(PROPERTY_no_rise_after_estop, !port->estop_was_open);
        property(PROPERTY_no_rise_after_fault, port->board->fault_bits == 0);
    }
    port->rose |= (uint16_t)(high & (uint16_t)~port->high);
    port->high = high;
    answer_gates(duty_per_255, n_cells);
}

/* Rewrites the last setting, which was checked when it was set. */
void port_gates_refresh(struct port *port)
{
    (void)port;
    answer_refresh();
}

uint16_t port_probe(struct port *port, uint8_t cell)
{
    property(PROPERTY_pulse_in_arming, port->board->state == STATE_disarmed);
    property(PROPERTY_pulse_in_arming, port->board->fault_bits == 0);
    property(PROPERTY_pulse_in_arming, port->high == 0);
    property(PROPERTY_pulse_in_arming, !port->estop_was_open);
    property(PROPERTY_pulses_bounded, port->pulses < port->board->identity.n_cells);
    port->pulses++;
    return answer_probe(cell);
}

void port_sense(struct port *port, uint8_t cell, bool wait)
{
    (void)wait;
    if (cell != PORT_SENSE_NONE) {
        property(PROPERTY_sensing_allowed, port->board->state == STATE_armed);
        property(PROPERTY_sensing_allowed, port->board->fault_bits == 0);
        property(PROPERTY_sensing_allowed, !port->estop_was_open);
    }
    answer_sense(cell);
}

bool port_estop_open(struct port *port)
{
    bool open = answer_estop_open();
    if (port->board->state == STATE_disarmed)
        port->estop_was_open = open;
    else if (open)
        port->estop_was_open = true;
    return open;
}

bool port_sample(struct port *port, struct port_sample *sample)
{
    (void)port;
    return answer_sample(sample);
}

bool port_receive(struct port *port, uint8_t *byte)
{
    (void)port;
    return answer_byte(byte);
}

bool port_send(struct port *port, const uint8_t *bytes, uint8_t n)
{
    (void)port;
    return answer_send(bytes, n);
}

uint8_t port_gate_set(struct port *port, uint8_t cell)
{
    (void)port;
    return answer_gate(cell);
}

bool port_program_intact(struct port *port)
{
    (void)port;
    return answer_program();
}

void port_supply(struct port *port, bool on)
{
    port->supply_on = on;
    property(PROPERTY_cut_with_a_fault, !on || port->board->fault_bits == 0);
    property(PROPERTY_cut_with_a_fault, !on || port->board->state == STATE_armed || port->board->supply_asked > 0);
}

void port_watchdog_feed(struct port *port)
{
    (void)port;
    answer_watchdog();
}

uint16_t port_memory_count(struct port *port)
{
    (void)port;
    return answer_count();
}

bool port_memory_load(struct port *port, uint8_t *bytes, uint8_t n)
{
    (void)port;
    return answer_load(bytes, n);
}

bool port_memory_store(struct port *port, const uint8_t *bytes, uint8_t n)
{
    (void)port;
    return answer_store(bytes, n);
}
