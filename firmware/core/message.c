#include "message.h"

static uint8_t *put_u8(uint8_t *at, uint8_t value)
{
    *at = value;
    return at + 1;
}

static uint8_t *put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static uint8_t *put_i16(uint8_t *at, int16_t value)
{
    return put_u16(at, (uint16_t)value);
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    return put_u16(put_u16(at, (uint16_t)value), (uint16_t)(value >> 16));
}

static const uint8_t *get_u8(const uint8_t *at, uint8_t *value)
{
    *value = at[0];
    return at + 1;
}

static const uint8_t *get_u16(const uint8_t *at, uint16_t *value)
{
    *value = (uint16_t)(at[0] | (uint16_t)at[1] << 8);
    return at + 2;
}

static const uint8_t *get_i16(const uint8_t *at, int16_t *value)
{
    uint16_t bits;
    at = get_u16(at, &bits);
    *value = (int16_t)bits;
    return at;
}

static const uint8_t *get_u32(const uint8_t *at, uint32_t *value)
{
    uint16_t low, high;
    at = get_u16(get_u16(at, &low), &high);
    *value = low | (uint32_t)high << 16;
    return at;
}

#define PACK_F(type, name) at = put_##type(at, message->name);
#define PACK_A(type, name, n) \
    for (uint8_t i = 0; i < (n); i++) at = put_##type(at, message->name[i]);
#define PACK_N(layout, name) at = wire_pack_##layout(at, &message->name);
#define PACK_L(type, name, normal, lowest, highest) PACK_F(type, name)
#define UNPACK_F(type, name) at = get_##type(at, &message->name);
#define UNPACK_A(type, name, n) \
    for (uint8_t i = 0; i < (n); i++) at = get_##type(at, &message->name[i]);
#define UNPACK_N(layout, name) at = wire_unpack_##layout(at, &message->name);
#define UNPACK_L(type, name, normal, lowest, highest) UNPACK_F(type, name)

#define DEFINE(layout, PACK, UNPACK)                                                       \
    uint8_t *wire_pack_##layout(uint8_t *at, const struct wire_##layout *message)          \
    {                                                                                      \
        PACK return at;                                                                    \
    }                                                                                      \
    const uint8_t *wire_unpack_##layout(const uint8_t *at, struct wire_##layout *message)  \
    {                                                                                      \
        UNPACK return at;                                                                  \
    }
#define DEFINE_LAYOUT(layout, TABLE) \
    DEFINE(layout, TABLE(PACK_F, PACK_A, PACK_N), TABLE(UNPACK_F, UNPACK_A, UNPACK_N))

DEFINE(limits, WIRE_LIMITS(PACK_L), WIRE_LIMITS(UNPACK_L))
WIRE_LAYOUTS(DEFINE_LAYOUT)
