#include "frame.h"

enum closing { PAYLOAD, CRC_APPENDED, DELIMITED };

struct crc {
    uint8_t high, low;
};

/* Works on bytes, without a table or long shifts: fast on an 8-bit processor. */
static inline struct crc step(struct crc crc, uint8_t byte)
{
    uint8_t x = crc.high ^ byte;
    x ^= (uint8_t)(x >> 4);
    return (struct crc){
        .high = (uint8_t)(crc.low ^ (uint8_t)(x << 4) ^ (uint8_t)(x >> 3)),
        .low = (uint8_t)(x ^ (uint8_t)(x << 5)),
    };
}

static inline struct crc split(uint16_t crc)
{
    return (struct crc){.high = (uint8_t)(crc >> 8), .low = (uint8_t)crc};
}

static inline uint16_t joined(struct crc crc)
{
    return (uint16_t)((uint16_t)crc.high << 8 | crc.low);
}

uint16_t frame_crc(uint16_t before, const uint8_t *bytes, uint8_t n)
{
    struct crc crc = split(before);
    for (; n > 0; n--)
        crc = step(crc, *bytes++);
    return joined(crc);
}

/* A byte decoded by COBS. The CRC lags by two bytes, because the last two are the frame's CRC. */
static void take_decoded(struct frame_reader *reader, uint8_t byte)
{
    uint8_t n = reader->n;
    if (n == WIRE_FRAME_MAX) {
        reader->overrun = true;
        return;
    }
    reader->bytes[n] = byte;
    if (n >= FRAME_CRC)
        reader->crc = frame_crc(reader->crc, &reader->bytes[n - FRAME_CRC], 1);
    reader->n = (uint8_t)(n + 1);
}

void frame_start(struct frame_reader *reader)
{
    reader->n = 0;
    reader->left = 0;
    reader->crc = WIRE_CRC_INIT;
    reader->started = false;
    reader->overrun = false;
}

static bool is_whole(const struct frame_reader *reader)
{
    if (reader->overrun || reader->left > 0 || reader->n < FRAME_HEADER + FRAME_CRC)
        return false;
    const uint8_t *crc = &reader->bytes[reader->n - FRAME_CRC];
    return crc[0] == (uint8_t)reader->crc && crc[1] == (uint8_t)(reader->crc >> 8);
}

static enum frame_event finish(struct frame_reader *reader)
{
    bool whole = is_whole(reader);
    uint8_t n = reader->n;
    frame_start(reader);
    if (whole)
        reader->n = (uint8_t)(n - FRAME_CRC);
    return whole ? FRAME_WHOLE : FRAME_BAD;
}

enum frame_event frame_take(struct frame_reader *reader, uint8_t byte)
{
    if (byte == 0)
        return reader->started ? finish(reader) : FRAME_NOTHING;
    if (reader->left > 0) {
        reader->left--;
        take_decoded(reader, byte);
        return FRAME_NOTHING;
    }
    if (reader->started)
        take_decoded(reader, 0);
    reader->started = true;
    reader->left = (uint8_t)(byte - 1);
    return FRAME_NOTHING;
}

void frame_open(struct frame_writer *writer, uint8_t *frame, uint8_t *end)
{
    writer->code = frame;
    writer->end = end;
    writer->crc = WIRE_CRC_INIT;
    writer->closing = PAYLOAD;
}

/* The first zero from here on, or the payload's end; then the CRC of the whole payload is appended. */
static uint8_t *end_of_payload(struct frame_writer *writer, uint8_t *at)
{
    struct crc crc = split(writer->crc);
    uint8_t *end = writer->end;
    for (; at != end; at++) {
        uint8_t byte = *at;
        crc = step(crc, byte);
        if (byte == 0) {
            writer->crc = joined(crc);
            return at;
        }
    }
    end[0] = crc.low;
    end[1] = crc.high;
    writer->end = end + FRAME_CRC;
    writer->closing = CRC_APPENDED;
    return at;
}

uint8_t *frame_group(struct frame_writer *writer)
{
    uint8_t *code = writer->code;
    uint8_t *at = code + 1;
    if (writer->closing == DELIMITED)
        return NULL;
    if (writer->closing == PAYLOAD)
        at = end_of_payload(writer, at);
    if (writer->closing == CRC_APPENDED)
        while (at != writer->end && *at != 0)
            at++;
    *code = (uint8_t)(at - code);
    writer->code = at;
    if (at == writer->end) {
        *at = 0;
        writer->closing = DELIMITED;
        return at + 1;
    }
    return at;
}
