/* Frames of bytes: COBS and CRC-16/CCITT. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

enum {
    FRAME_HEADER = 3,
    FRAME_CRC = 2,
    FRAME_PAYLOAD_MAX = WIRE_FRAME_MAX - FRAME_HEADER - FRAME_CRC,
    FRAME_SENT_MAX = WIRE_FRAME_MAX + 2, /* with the COBS byte and the delimiter */
};

struct frame_reader {
    uint8_t bytes[WIRE_FRAME_MAX];
    uint16_t crc; /* of all bytes but the last two */
    uint8_t n;
    uint8_t left; /* bytes before the next zero that COBS has removed */
    bool started;
    bool overrun; /* too many bytes: ignore all until the next delimiter */
};

uint16_t frame_crc(uint16_t crc, const uint8_t *bytes, uint8_t n);

enum frame_event { FRAME_NOTHING, FRAME_BAD, FRAME_WHOLE };

void frame_start(struct frame_reader *reader);

/* Takes one byte. After FRAME_WHOLE, reader->bytes holds header and payload, reader->n of them, until
 * frame_start. */
enum frame_event frame_take(struct frame_reader *reader, uint8_t byte);

/* Encodes header and payload into a frame, in place. */
struct frame_writer {
    uint8_t *code; /* where COBS stores the length of the next group */
    uint8_t *end;
    uint16_t crc;
    uint8_t closing; /* enum closing */
};

/* Header and payload are from frame[1] to end; after them is room for CRC and delimiter. */
void frame_open(struct frame_writer *writer, uint8_t *frame, uint8_t *end);

/* Encodes the next group, so that it can be sent while the rest is encoded. Returns the end of its bytes,
 * where the following group starts; NULL after the last. */
uint8_t *frame_group(struct frame_writer *writer);

#endif
