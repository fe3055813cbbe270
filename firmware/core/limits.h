/* The table of limits and its storage. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"
#include "port.h"

#define LIMITS_ONE(type, name, normal, lowest, highest) +1
enum { LIMITS_ENTRIES = 0 WIRE_LIMITS(LIMITS_ONE) };

void limits_default(struct wire_limits *limits);

/* CRC of the packed table: all of it, or one entry added to the CRC of the entries before it. After the last
 * entry nothing is added. */
uint16_t limits_crc(const struct wire_limits *limits);
uint16_t limits_crc_entry(uint16_t crc, const struct wire_limits *limits, uint8_t entry);

/* Whether every entry is between its lowest and highest value. */
bool limits_sane(const struct wire_limits *limits);

/* The stored limits, or the defaults on a board that has never stored any. False: the stored limits are
 * corrupt, and these are the defaults. */
bool limits_load(struct wire_limits *limits, struct port *port);
bool limits_store(const struct wire_limits *limits, struct port *port);

#endif
