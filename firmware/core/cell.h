/* One cell: its command, readings, on-time and heat budget. */
#ifndef CELL_H
#define CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "heat.h"
#include "message.h"
#include "port.h"

/* The checks of a cell's readings that must fail in several samples in a row. CHECK_HIGH and CHECK_LOW count
 * only samples with the gate on: switching a cell off and on does not restart the count. */
enum check { CHECK_HIGH, CHECK_LOW, CHECK_OFF, CHECK_HOT, CHECK_RANGE, CHECK_GATE, N_CHECKS };

struct cell {
    struct heat heat;
    uint16_t on_since_ms;   /* without any break; on_time_max_ms is below 2^16 */
    uint16_t not_on_since_ms; /* complement, as of the duty: cell_is_kept compares them */
    uint16_t on_counts;     /* last sample with the gate on, or pulse */
    uint16_t current_mA;    /* last sample that agrees with the command: on, or off */
    uint16_t sampled_mA;    /* last sample, whatever the command */
    int16_t temperature_cC;
    uint8_t duty_per_255, not_duty_per_255;
    uint8_t just_set; /* number of samples that may still show the gate before the last command */
    uint8_t was_read; /* 1: since the last complete scan */
    uint8_t streak[N_CHECKS];
};

uint16_t cell_current_mA(uint16_t counts, const struct wire_limits *limits);

void cell_boot(struct cell *cell);
/* Whether no bit has changed of its command, its on-time and its heat since they were set. */
bool cell_is_kept(const struct cell *cell);
/* Call after setting its gate: the old duty counts until after the change, the new one from before it. */
void cell_command(struct cell *cell, uint8_t duty_per_255, uint16_t now_ms, uint16_t before_ticks,
                  uint16_t after_ticks);
/* Call after a pulse, which measures the present current: counts of earlier samples are cleared. */
void cell_probed(struct cell *cell, const struct heat_law *law, uint16_t counts, uint16_t now_ticks);
/* Call after a reading that port_sense requested. */
void cell_sensed(struct cell *cell, const struct wire_limits *limits, const struct heat_law *law,
                 const struct port_sample *sample, uint16_t now_ticks);
void cell_sample(struct cell *cell, const struct wire_limits *limits, const struct heat_law *law,
                 const struct port_sample *sample, uint16_t now_ticks);

#endif
