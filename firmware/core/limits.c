#include "limits.h"

#include "frame.h"

enum { STORED = WIRE_SIZE_limits + FRAME_CRC };

#define SET_DEFAULT(type, name, normal, lowest, highest) limits->name = (wire_##type)(normal);

/* Wide enough for every type of the table. */
static bool outside(int64_t value, int64_t lowest, int64_t highest)
{
    return value < lowest || value > highest;
}

#define IF_OUTSIDE(type, name, normal, lowest, highest) \
    if (outside(limits->name, lowest, highest))         \
        return false;

void limits_default(struct wire_limits *limits)
{
    WIRE_LIMITS(SET_DEFAULT)
}

#define NUMBER(type, name, normal, lowest, highest) NUMBER_##name,
enum { WIRE_LIMITS(NUMBER) };

#define CASE_ENTRY(type, name, normal, lowest, highest) \
    case NUMBER_##name:                                 \
        value = (uint32_t)limits->name;                 \
        size = sizeof limits->name;                     \
        break;

uint16_t limits_crc_entry(uint16_t crc, const struct wire_limits *limits, uint8_t entry)
{
    uint32_t value = 0;
    uint8_t size = 0;
    switch (entry) {
        WIRE_LIMITS(CASE_ENTRY)
    default:
        break;
    }
    for (; size > 0; size--, value >>= 8) {
        uint8_t byte = (uint8_t)value;
        crc = frame_crc(crc, &byte, 1);
    }
    return crc;
}

uint16_t limits_crc(const struct wire_limits *limits)
{
    uint16_t crc = WIRE_CRC_INIT;
    for (uint8_t entry = 0; entry < LIMITS_ENTRIES; entry++)
        crc = limits_crc_entry(crc, limits, entry);
    return crc;
}

bool limits_sane(const struct wire_limits *limits)
{
    WIRE_LIMITS(IF_OUTSIDE)
    if (limits->sense_every_ms != 0 && limits->sense_every_ms < WIRE_SENSE_EVERY_MIN_MS)
        return false;
    return limits->temperature_counts_min < limits->temperature_counts_max;
}

bool limits_load(struct wire_limits *limits, struct port *port)
{
    uint8_t bytes[STORED];
    limits_default(limits);
    if (!port_memory_load(port, bytes, sizeof bytes))
        return true;
    uint16_t crc = frame_crc(WIRE_CRC_INIT, bytes, WIRE_SIZE_limits);
    if (bytes[WIRE_SIZE_limits] != (uint8_t)crc || bytes[WIRE_SIZE_limits + 1] != (uint8_t)(crc >> 8))
        return false;
    struct wire_limits stored;
    wire_unpack_limits(bytes, &stored);
    if (!limits_sane(&stored))
        return false;
    *limits = stored;
    return true;
}

bool limits_store(const struct wire_limits *limits, struct port *port)
{
    uint8_t bytes[STORED];
    uint8_t *end = wire_pack_limits(bytes, limits);
    uint16_t crc = frame_crc(WIRE_CRC_INIT, bytes, WIRE_SIZE_limits);
    end[0] = (uint8_t)crc;
    end[1] = (uint8_t)(crc >> 8);
    return port_memory_store(port, bytes, sizeof bytes);
}
