/* The pin map; firmware/README.md shows it as a table.
 *
 * gate  0..4   PB0..PB4     high: cell on
 * gate  5      PC5
 * gate  6..10  PD3..PD7
 * gate  11     PC4
 * PB5          permit: high lets the pump at select 0 close relay K1; boot loaders blink an LED there
 * select 0..3  PC0..PC3     address of both multiplexers
 * ADC6         current multiplexer
 * ADC7         temperature multiplexer
 *              12: full scale (AVCC), 13: 4.096 V reference, 14: half of AVCC, at both
 *              15: the cells' supply through dividers: before K1 (currents), behind it (temperatures)
 * PD0, PD1     UART
 * PD2 (INT0)   e-stop loop: closed to ground, pulled up: high is open
 */
#ifndef PINS_H
#define PINS_H

/* 0: the build for an Arduino as it is sold, without multiplexers; a DIP package has no ADC6 and ADC7. */
#ifndef MEASURES
#define MEASURES 1
#endif

enum {
    N_CELLS = 12,
    GATES_B = 0x1F,
    GATES_D = 0xF8,
    GATES_C = 0x30,
    PERMIT_B = 0x20,
    SELECT_C = 0x0F,
    ESTOP_D = 0x04,
    N_REFERENCES = MEASURES ? 4 : 0, /* addresses from N_CELLS on, the last one the supply */
    REFERENCE_FULL = 1023, /* counts */
    REFERENCE_4096_MV = 839,
    REFERENCE_HALF = 512,
    ADDRESS_SUPPLY = 15,
    CHANNEL_CURRENT = 6,
    CHANNEL_TEMPERATURE = 7,
};

#endif
