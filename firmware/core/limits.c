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

uint16_t limits_crc(const struct wire_limits *limits)
{
    uint8_t bytes[WIRE_SIZE_limits];
    wire_pack_limits(bytes, limits);
    return frame_crc(WIRE_CRC_INIT, bytes, sizeof bytes);
}

bool limits_sane(const struct wire_limits *limits)
{
    WIRE_LIMITS(IF_OUTSIDE)
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
