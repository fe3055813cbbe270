#include "frame.h"

/* Without a table and without shifts that loop on an 8-bit processor. */
uint16_t frame_crc(uint16_t crc, const uint8_t *bytes, uint8_t n)
{
    for (; n > 0; n--) {
        crc = (uint16_t)(crc >> 8 | crc << 8);
        crc ^= *bytes++;
        crc ^= (uint16_t)((crc & 0xFFu) >> 4);
        crc ^= (uint16_t)(crc << 12);
        crc ^= (uint16_t)((crc & 0xFFu) << 5);
    }
    return crc;
}

/* Undoes COBS in place; the number of bytes, or 0. */
static uint8_t cobs_decode(uint8_t *bytes, uint8_t n)
{
    uint8_t left = 0;
    uint8_t out = 0;
    for (uint8_t i = 0; i < n; i++) {
        if (left > 0) {
            left--;
            bytes[out++] = bytes[i];
        } else {
            left = (uint8_t)(bytes[i] - 1);
            if (i > 0)
                bytes[out++] = 0;
        }
    }
    return left == 0 ? out : 0;
}

static uint8_t decode(uint8_t *bytes, uint8_t n)
{
    n = cobs_decode(bytes, n);
    if (n < FRAME_HEADER + FRAME_CRC)
        return 0;
    n = (uint8_t)(n - FRAME_CRC);
    uint16_t crc = frame_crc(WIRE_CRC_INIT, bytes, n);
    return bytes[n] == (uint8_t)crc && bytes[n + 1] == (uint8_t)(crc >> 8) ? n : 0;
}

enum frame_event frame_take(struct frame_reader *reader, uint8_t byte)
{
    if (byte != 0) {
        if (reader->n < sizeof reader->bytes)
            reader->bytes[reader->n++] = byte;
        else
            reader->overrun = 1;
        return FRAME_NOTHING;
    }
    uint8_t n = reader->n;
    uint8_t overrun = reader->overrun;
    reader->n = 0;
    reader->overrun = 0;
    if (n == 0)
        return FRAME_NOTHING;
    n = overrun ? 0 : decode(reader->bytes, n);
    if (n == 0)
        return FRAME_BAD;
    reader->n = n;
    return FRAME_WHOLE;
}

uint8_t frame_close(uint8_t frame[FRAME_SENT_MAX], uint8_t n)
{
    uint16_t crc = frame_crc(WIRE_CRC_INIT, frame + 1, n);
    frame[n + 1] = (uint8_t)crc;
    frame[n + 2] = (uint8_t)(crc >> 8);
    n = (uint8_t)(n + FRAME_CRC);
    uint8_t code_at = 0;
    for (uint8_t i = 1; i <= n; i++) {
        if (frame[i] == 0) {
            frame[code_at] = (uint8_t)(i - code_at);
            code_at = i;
        }
    }
    frame[code_at] = (uint8_t)(n + 1 - code_at);
    frame[n + 1] = 0;
    return (uint8_t)(n + 2);
}
