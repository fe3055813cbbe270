/* The table of limits and its place in memory. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"
#include "port.h"

#define LIMITS_ONE(type, name, normal, lowest, highest) +1
enum { LIMITS_ENTRIES = 0 WIRE_LIMITS(LIMITS_ONE) };

void limits_default(struct wire_limits *limits);

/* CRC of the packed table: whole, or one entry further from that of the entries before it; behind the last
 * there is nothing to add. */
uint16_t limits_crc(const struct wire_limits *limits);
uint16_t limits_crc_entry(uint16_t crc, const struct wire_limits *limits, uint8_t entry);

/* Every entry lies between its lowest and highest value. */
bool limits_sane(const struct wire_limits *limits);

/* What was stored, or the defaults on a board that never stored any; false: what is stored is not
 * whole, and the defaults stand in for it. */
bool limits_load(struct wire_limits *limits, struct port *port);
bool limits_store(const struct wire_limits *limits, struct port *port);

#endif
