#include "explorations.h"

const struct exploration *exploration = EXPLORATIONS;

#define ONE(event) (UINT64_C(1) << EVENT_##event)
#define ALL(n) ((UINT64_C(1) << (n)) - 1)
#define CLOSED_OR_OPEN (ONE(closed) | ONE(open))
#define LIFE (ONE(no_frame) | ONE(arm) | ONE(set_both) | ONE(disarm) | ONE(clear) | ONE(reset))

/* Each level of a reading (script.c) is one count from its limit. Times beyond every limit count as one, so
 * limits are short. */
#define LIMITS_BUT                                                                                          \
    .open_cells_max = 1, .persistence_scans = 2, .current_max_mA = 1000, .current_on_min_mA = 125,      \
    .current_off_max_mA = 125, .heat_max_cA2ms = 290000, .heat_time_constant_ms = 683,                      \
    .temperature_max_cC = 7500, .temperature_counts_min = 20, .temperature_counts_max = 1000,               \
    .current_full_scale_mA = 2000, .temperature_full_scale_cC = 50000, .temperature_zero_cC = -5000,        \
    .supply_full_scale_mV = 20000
#define TIMES .silence_max_ms = 4, .hold_max_ms = 3, .scan_age_max_ms = 10, .cells_on_max = 2
#define LIMITS LIMITS_BUT, TIMES, .on_time_max_ms = 60000
#define SENSING                                                                                            \
    LIMITS_BUT, .silence_max_ms = 21, .hold_max_ms = 11, .scan_age_max_ms = 21, .cells_on_max = 1,          \
    .sense_every_ms = 20, .on_time_max_ms = 60000

const struct exploration EXPLORATIONS[] = {
    {
        .name = "commands", .varies = "frames, reads of the e-stop, resets",
        .samples = ONE(no_sample) | ONE(least), .estops = ALL(N_ESTOPS),
        .frames = ALL(N_FRAMES) & ~(ONE(set_partial) | ONE(set_swapped) | ONE(set_limits_other) |
                                    ONE(set_limits_unstored) | ONE(flip_limit) | ONE(flip_law) |
                                    ONE(reset_virgin) | ONE(reset_corrupt) | ONE(reset_insane)),
        .heats = ONE(cool), .steps = ALL(N_STEPS), .measures = true, .limits = {LIMITS},
    },
    {
        .name = "currents", .varies = "currents, read cell by cell",
        .samples = ONE(no_sample) | ONE(least) | ONE(most) | ONE(low) | ONE(high) | ONE(leak),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ALL(N_STEPS), .measures = true,
        .frames = LIFE | ONE(arm_0) | ONE(set_0) | ONE(set_1), .limits = {LIMITS},
    },
    {
        .name = "gates", .varies = "pins of a cell that stick, gates set without a command, late readings",
        .samples = ONE(no_sample) | ONE(least) | ONE(stuck_low) | ONE(stuck_high) | ONE(flipped) | ONE(late),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_1) | ONE(ms_4), .one = true,
        .measures = true, .frames = LIFE | ONE(set_0) | ONE(set_none), .limits = {LIMITS},
    },
    {
        .name = "temperatures", .varies = "temperatures",
        .samples = ONE(no_sample) | ONE(least) | ONE(most) | ONE(cold) | ONE(hot) | ONE(no_sensor),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_4),
        .measures = true, .frames = LIFE, .limits = {LIMITS},
    },
    {
        .name = "references", .varies = "references of the scan",
        .samples = ONE(no_sample) | ONE(least) | ONE(reference) | ONE(reference_low) | ONE(reference_high) |
                   ONE(reference_split),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_4),
        .measures = true, .frames = LIFE, .limits = {LIMITS},
    },
    {
        .name = "duties", .varies = "partial duties, draws, readings in their off-time",
        .samples = ONE(no_sample) | ONE(least) | ONE(low) | ONE(high) | ONE(between),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_1) | ONE(ms_4),
        .measures = true,
        .frames = LIFE | ONE(set_partial) | ONE(set_swapped) | ONE(set_too_short_duty) | ONE(set_0) |
                  ONE(broadcast_on) | ONE(broadcast_off),
        .limits = {LIMITS},
    },
    {
        .name = "heat", .varies = "heat of every class, at every look at it; on-times; readings that meet frames",
        .samples = ONE(no_sample) | ONE(least), .estops = CLOSED_OR_OPEN, .heats = ALL(N_HEATS),
        .steps = ONE(at_once) | ONE(ms_1) | ONE(ms_4), .meets = true, .measures = true,
        .frames = LIFE | ONE(arm_1) | ONE(set_0) | ONE(set_none) | ONE(set_limits),
        .limits = {LIMITS_BUT, TIMES, .on_time_max_ms = 5},
    },
    {
        .name = "tables", .varies = "tables of limits, memory, a line that takes no answer",
        .samples = ONE(no_sample) | ONE(least), .estops = ONE(closed), .heats = ONE(cool),
        .steps = ONE(at_once) | ONE(ms_11), .mute = true, .measures = true,
        .frames = (LIFE | ONE(read) | ONE(identify) | ONE(set_limits) | ONE(set_limits_other) |
                   ONE(set_limits_insane) | ONE(set_limits_unstored) | ONE(reset_virgin) | ONE(reset_corrupt) |
                   ONE(reset_insane)),
        .limits = {LIMITS},
    },
    {
        .name = "flips", .varies = "bits of the table in memory that turn over",
        .samples = ONE(no_sample) | ONE(least), .estops = ONE(closed), .heats = ONE(cool),
        .steps = ONE(at_once), .measures = true,
        .frames = ONE(no_frame) | ONE(arm) | ONE(set_both) | ONE(clear) | ONE(set_limits) | ONE(flip_limit) |
                  ONE(flip_law),
        .limits = {LIMITS},
    },
    {
        .name = "apart", .varies = "cells set apart, with readings in flight",
        .samples = ONE(no_sample) | ONE(least) | ONE(low) | ONE(late) | ONE(late_low), .estops = ONE(closed),
        .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_1), .measures = true,
        .frames = ONE(no_frame) | ONE(arm) | ONE(arm_0_open) | ONE(set_both) | ONE(set_1) | ONE(broadcast_on) |
                  ONE(disarm) | ONE(clear),
        .limits = {LIMITS},
    },
    {
        .name = "sensing", .varies = "readings of resistance",
        .samples = ONE(no_sample) | ONE(least) | ONE(sensed) | ONE(sensed_low) | ONE(sensed_unsupplied) |
                   ONE(sensed_high) | ONE(sensed_off),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool) | ONE(above), .measures = true, .steps = ONE(at_once) | ONE(ms_11),
        .frames = LIFE | ONE(arm_0) | ONE(arm_0_open) | ONE(set_0) | ONE(set_1) | ONE(set_none),
        .limits = {SENSING},
    },
    {
        .name = "sensing_apart", .varies = "readings of resistance of a cell that is set apart meanwhile",
        .samples = ONE(no_sample) | ONE(least) | ONE(low) | ONE(sensed), .estops = ONE(closed),
        .heats = ONE(cool), .measures = true, .steps = ONE(at_once) | ONE(ms_11),
        .frames = ONE(no_frame) | ONE(arm) | ONE(set_0) | ONE(set_1), .limits = {SENSING},
    },
    {
        .name = "supply", .varies = "the supply before relay K1 and behind it",
        .samples = ONE(no_sample) | ONE(least) | ONE(rail_dead) | ONE(rail_alive) | ONE(unfed) | ONE(unfed_alive),
        .estops = CLOSED_OR_OPEN, .heats = ONE(cool), .steps = ONE(at_once) | ONE(ms_4), .measures = true,
        .supply = true, .frames = LIFE | ONE(arm_none) | ONE(arm_0_short) | ONE(arm_beyond), .limits = {LIMITS},
    },
    {
        .name = "arduino", .varies = "a build without sensors",
        .samples = ONE(no_sample) | ONE(least) | ONE(stuck_low) | ONE(stuck_high) | ONE(flipped) | ONE(late),
        .estops = ALL(N_ESTOPS), .heats = ONE(cool) | ONE(above), .steps = ONE(at_once) | ONE(ms_1) | ONE(ms_4),
        .frames = LIFE | ONE(arm_0) | ONE(set_0) | ONE(set_none), .limits = {LIMITS},
    },
};
const unsigned N_EXPLORATIONS = sizeof EXPLORATIONS / sizeof *EXPLORATIONS;

static bool in(uint64_t set, unsigned event)
{
    return (set >> event & 1) != 0;
}

/* Reads of the e-stop within a turn differ only if a frame causes another read. */
static bool looks_again(uint8_t frame)
{
    return frame == EVENT_clear || (frame >= EVENT_arm && frame <= EVENT_arm_1);
}

bool exploration_has(struct input input)
{
    const struct exploration *e = exploration;
    bool sample = input.sample != EVENT_no_sample, frame = input.frame != EVENT_no_frame;
    return in(e->steps, input.step) && in(e->samples, input.sample) && in(e->estops, input.estop) &&
           in(e->frames, input.frame) && in(e->heats, input.heat) && (e->mute || !input.mute) &&
           (input.estop <= EVENT_open || looks_again(input.frame)) && (sample || input.cell == 0) &&
           (!input.mute || frame) && (e->meets || !sample || !frame) && (!input.after || (sample && frame && input.frame < EVENT_flip_limit)) &&
           ((input.heat != EVENT_rises && input.heat != EVENT_falls) || input.after) &&
           input.cell < (input.sample >= EVENT_sensed || (e->one && input.sample > EVENT_least) ? 1 : N_CELLS);
}
