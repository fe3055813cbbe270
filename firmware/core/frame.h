/* Frames of bytes: COBS and CRC-16/CCITT. */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

#include "wire.h"

enum {
    FRAME_HEADER = 3,
    FRAME_CRC = 2,
    FRAME_PAYLOAD_MAX = WIRE_FRAME_MAX - FRAME_HEADER - FRAME_CRC,
    FRAME_SENT_MAX = WIRE_FRAME_MAX + 2, /* with the COBS byte and the delimiter */
};

struct frame_reader {
    uint8_t bytes[WIRE_FRAME_MAX + 1];
    uint8_t n;
    uint8_t overrun; /* more bytes than a frame has: nothing until the next delimiter */
};

uint16_t frame_crc(uint16_t crc, const uint8_t *bytes, uint8_t n);

enum frame_event { FRAME_NOTHING, FRAME_BAD, FRAME_WHOLE };

/* Takes one byte. After FRAME_WHOLE, reader->bytes holds header and payload, reader->n of them. */
enum frame_event frame_take(struct frame_reader *reader, uint8_t byte);

/* Frames header and payload, n bytes from frame[1] on, in place; the number of bytes to send. The
 * room behind them must take CRC and delimiter. */
uint8_t frame_close(uint8_t frame[FRAME_SENT_MAX], uint8_t n);

#endif
