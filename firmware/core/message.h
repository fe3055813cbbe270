/* The layouts of protocol.h as structs; packing and unpacking. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdint.h>

#include "protocol.h"

typedef uint8_t wire_u8;
typedef uint16_t wire_u16;
typedef uint32_t wire_u32;
typedef int16_t wire_i16;

#define STRUCT_F(type, name) wire_##type name;
#define STRUCT_A(type, name, n) wire_##type name[n];
#define STRUCT_N(layout, name) struct wire_##layout name;
#define STRUCT_L(type, name, normal, lowest, highest) wire_##type name;
#define SIZE_F(type, name) +sizeof(wire_##type)
#define SIZE_A(type, name, n) +(n) * sizeof(wire_##type)
#define SIZE_N(layout, name) +WIRE_SIZE_##layout
#define SIZE_L(type, name, normal, lowest, highest) +sizeof(wire_##type)

/* unpack reads WIRE_SIZE_<layout> bytes; pack returns the end of what it wrote. */
#define DECLARE(layout)                                                             \
    uint8_t *wire_pack_##layout(uint8_t *at, const struct wire_##layout *message);  \
    const uint8_t *wire_unpack_##layout(const uint8_t *at, struct wire_##layout *message);
#define DECLARE_LAYOUT(layout, TABLE)                                     \
    struct wire_##layout { TABLE(STRUCT_F, STRUCT_A, STRUCT_N) };         \
    enum { WIRE_SIZE_##layout = 0 TABLE(SIZE_F, SIZE_A, SIZE_N) };        \
    DECLARE(layout)

struct wire_limits { WIRE_LIMITS(STRUCT_L) };
enum { WIRE_SIZE_limits = 0 WIRE_LIMITS(SIZE_L) };
DECLARE(limits)

#define WIRE_LAYOUTS(LAYOUT)                    \
    LAYOUT(set_mask, WIRE_SET_MASK)             \
    LAYOUT(set_duties, WIRE_SET_DUTIES)         \
    LAYOUT(broadcast, WIRE_BROADCAST)           \
    LAYOUT(arm, WIRE_ARM)                       \
    LAYOUT(set_limits, WIRE_SET_LIMITS)         \
    LAYOUT(status, WIRE_STATUS)                 \
    LAYOUT(armed, WIRE_ARMED)                   \
    LAYOUT(readings, WIRE_READINGS)             \
    LAYOUT(identity, WIRE_IDENTITY)
WIRE_LAYOUTS(DECLARE_LAYOUT)

enum { WIRE_SIZE_identify = 0, WIRE_SIZE_read = 0, WIRE_SIZE_disarm = 0, WIRE_SIZE_clear_faults = 0 };

#define ENUM_COMMAND(name, code, answer) COMMAND_##name = code,
#define ENUM_ANSWER(name, code) ANSWER_##name = code,
#define ENUM_STATE(name, number) STATE_##name = number,
#define ENUM_RESULT(name, number) RESULT_##name = number,
#define ENUM_RESET(name, number) RESET_##name = number,
#define CONST_FAULT(name, number) static const uint16_t FAULT_##name = (uint16_t)(1u << number);
enum command { WIRE_COMMANDS(ENUM_COMMAND) };
enum answer { WIRE_ANSWERS(ENUM_ANSWER) };
enum state { WIRE_STATES(ENUM_STATE) };
enum result { WIRE_RESULTS(ENUM_RESULT) };
enum reset { WIRE_RESETS(ENUM_RESET) };
WIRE_FAULTS(CONST_FAULT) /* bit 15 is too large for an enum of 16 bits */

#endif
