/* One step of the encoder under Frama-C's value analysis. For each length of an answer and each position
 * at which a group can begin, with any bytes and any CRC, the step ends at a later position within the frame. By
 * induction, so do all steps together. */
#include "__fc_builtin.h"
#include "frame.h"
#include "message.h"

/*@ requires holds: ok != 0;
    assigns \nothing; */
static void group_property(bool ok)
{
    (void)ok;
}

enum { PAYLOAD, CRC_APPENDED, DELIMITED };

static uint8_t frame[FRAME_SENT_MAX];

static void step(uint8_t code, uint8_t end, uint8_t closing)
{
    struct frame_writer writer = {.code = frame + code, .end = frame + end, .closing = closing};
    writer.crc = (uint16_t)Frama_C_unsigned_int_interval(0, UINT16_MAX);
    Frama_C_make_unknown((char *)frame, sizeof frame);
    uint8_t *group_end = frame_group(&writer);
    group_property(group_end != NULL);
    group_property(group_end > frame + code && group_end <= frame + sizeof frame);
    group_property(frame[code] != 0);
    if (writer.closing == DELIMITED) {
        group_property(*(group_end - 1) == 0);
        group_property(frame_group(&writer) == NULL);
    } else {
        group_property(writer.code == group_end);
        group_property(writer.closing >= closing);
        group_property(writer.end == frame + end + (writer.closing == closing ? 0 : FRAME_CRC));
        group_property(writer.code < writer.end);
    }
    Frama_C_make_unknown((char *)frame, sizeof frame); /* the next step begins with any bytes */
}

static void answer(uint8_t payload)
{
    uint8_t end = (uint8_t)(1 + FRAME_HEADER + payload);
    for (uint8_t code = 0; code < end; code++)
        step(code, end, PAYLOAD);
    for (uint8_t code = 0; code < end + FRAME_CRC; code++)
        step(code, (uint8_t)(end + FRAME_CRC), CRC_APPENDED);
}

int main(void)
{
    answer(WIRE_SIZE_status);
    answer(WIRE_SIZE_armed);
    answer(WIRE_SIZE_readings);
    answer(WIRE_SIZE_identity);
    return 0;
}
