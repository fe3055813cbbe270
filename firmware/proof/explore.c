/* Breadth-first search of every state that a board of two cells can reach from a reset by any sequence of the
 * events of an exploration (explorations.c); checks every property in each. forget() merges states that differ
 * only in values without effect on later behaviour; compare() tests that, on a sample of the merged states.
 *
 * explore [NAME [TURNS [PROPERTY]]]: the search ends when there is no new state, after this number of turns, or
 * with the turn in which a property, or this one, is violated. Without a name, it lists the explorations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorations.h"
#include "guard.h"

struct place {
    uint32_t parent;
    struct input input;
};

static uint64_t *seen; /* hashes, open addressing; 0 is free */
static size_t n_slots = 1u << 22, n_seen;
static struct place *places;
static size_t n_places, room_places;
static struct world *now, *later;
static uint32_t *now_place, *later_place;
static size_t n_now, n_later, room_later;
static uint32_t place_at_hand;
static struct input input_at_hand;
static unsigned long n_turns, n_violated[N_PROPERTIES];

static const char *const TEXTS[] = {
#define TEXT(name, text) text,
    PROPERTIES_AT_THE_PORT(TEXT) PROPERTIES_OF_A_TURN(TEXT)};
static const char *const NAMES[] = {
#define NAME(name, text) #name,
    PROPERTIES_AT_THE_PORT(NAME) PROPERTIES_OF_A_TURN(NAME)};
#define EVENT_NAME(name) #name,
#define EVENT_NAME_2(name, value) #name,
#define EVENT_NAME_4(name, first, then, other) #name,
static const char *const SAMPLE_NAMES[] = {SAMPLES(EVENT_NAME)};
static const char *const FRAME_NAMES[] = {FRAMES(EVENT_NAME)};
static const char *const ESTOP_NAMES[] = {ESTOPS(EVENT_NAME_2)};
static const char *const HEAT_NAMES[] = {HEATS(EVENT_NAME_4)};
static const char *const STEP_NAMES[] = {STEPS(EVENT_NAME_2)};

static struct input *inputs;
static size_t n_inputs;

enum { SAMPLED_IN = 2048, COMPARED_MAX = 2 };
static struct merged { /* a sample of the states, to be compared with those that are merged with them */
    uint64_t hash;
    struct world world;
    unsigned n_compared;
} *merged;
static size_t n_merged, room_merged;
static unsigned long n_compared, n_differing;

static void *must(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "no memory left\n");
        exit(2);
    }
    return memory;
}

static uint32_t age(uint32_t now, uint32_t then, uint32_t most)
{
    return now - then < most ? now - then : most;
}

/* Whether a reading can show a gate that was set but not commanded, or the gate before the last command. */
static bool in_flight_matters(void)
{
    return (exploration->samples & (UINT64_C(1) << EVENT_flipped | UINT64_C(1) << EVENT_late | UINT64_C(1) << EVENT_late_low)) != 0;
}

/* Clears values without effect on the board's behaviour or on the properties. Times become ages; all ages beyond
 * every limit become equal. */
static void forget_board(struct world *w)
{
    struct board *b = &w->board;
    const uint32_t now_us = w->past.now_us;
    const struct wire_limits *limits = &w->past.limits;
    bool armed = b->state == STATE_armed;
    bool flips = (exploration->frames >> EVENT_flip_limit & 1) != 0;
    b->commanded_us = armed ? age(now_us, b->commanded_us, (limits->silence_max_ms + 1u) * 1000) : 0;
    b->fault_bits = (uint16_t)((b->fault_bits & (FAULT_estop_open | FAULT_scan_stale | FAULT_limits_corrupt)) |
                               (b->fault_bits != 0 ? FAULT_host_silent : 0));
    memset(&b->complement, 0, sizeof b->complement); /* follows from the others */
    b->first_fault_bits = b->fault_cells = 0;
    b->trip = (struct trip){.cell = b->trip.cell == w->past.tripped};
    w->past.tripped = 0;
    b->scanned_ms = age(b->now_ms, b->scanned_ms, limits->scan_age_max_ms + 1u);
    b->ms_mark_us = b->now_us - b->ms_mark_us;
    b->bad_frames = 0;
    b->status_page = 0;
    b->supply_asked = armed ? 0 : b->supply_asked;
    b->supply_streak = b->supply_streak < GUARD_SUPPLY_READINGS ? b->supply_streak : GUARD_SUPPLY_READINGS;
    b->feed_counts = (b->feed_counts >= GUARD_SUPPLY_COUNTS) == w->past.fed;
    b->rail_dead = b->rail_dead == (w->past.cut && w->past.fed && !w->past.alive);
    b->rail_counts = (b->rail_counts >= GUARD_SUPPLY_COUNTS) == w->past.alive;
    b->served_tick = armed && b->tick_served ? b->served_tick : 0;
    b->tick_served = armed && b->tick_served;
    b->number = b->armed_number = 0; /* script.c counts from these */
    if (!flips)
        b->checked_entry = 0, b->checked_crc = 0;
    memset(b->reader.bytes, 0, sizeof b->reader.bytes); /* frames are always complete */
    uint16_t sense_age_ms = (uint16_t)((uint16_t)b->now_ms - b->sense_asked_ms);
    b->sense_asked_ms = sense_age_ms < b->sense_step_ms ? sense_age_ms : b->sense_step_ms;
    b->sensed = (struct sensed){.cell = b->sensed.cell};
    for (uint8_t i = 0; i < N_REFERENCES; i++)
        if (b->reference_streak[i] > limits->persistence_scans)
            b->reference_streak[i] = limits->persistence_scans;
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++) {
        struct cell *cell = &b->cells[i];
        for (uint8_t j = 0; j < N_CHECKS; j++)
            if (cell->streak[j] > limits->persistence_scans)
                cell->streak[j] = limits->persistence_scans;
        memset(&cell->heat, 0, sizeof cell->heat);
        uint32_t on_ms = (uint16_t)(b->now_ms - cell->on_since_ms);
        cell->on_since_ms = (uint16_t)(cell->duty_per_255 == 0 || limits->on_time_max_ms > 1000 ? 0
                                       : age(on_ms, 0, limits->on_time_max_ms + 1u));
        cell->on_counts = i >= N_CELLS || cell->on_counts == w->past.cells[i].on_counts;
        cell->current_mA = cell->sampled_mA = 0;
        cell->not_on_since_ms = 0;
        if (!in_flight_matters())
            cell->just_set = 0;
        cell->temperature_cC = 0;
    }
    b->now_us = b->now_ms = 0;
}

static void forget_past(struct past *p, bool armed)
{
    const struct wire_limits limits = p->limits;
    p->set_us = armed ? age(p->now_us, p->set_us, (limits.silence_max_ms + 1u) * 1000) : 0;
    p->hold_us = armed ? p->hold_us : 0;
    p->fed_us = armed ? age(p->now_us, p->fed_us, (limits.silence_max_ms + 1u) * 1000) : 0;
    p->scanned_us = age(p->now_us, p->scanned_us, (limits.scan_age_max_ms + 1u) * 1000);
    p->sensed_us = age(p->now_us, p->sensed_us, (limits.sense_every_ms + 1u) * 1000);
    p->closes = armed ? 0 : p->closes;
    p->wired = armed ? p->wired : 0;
    p->tick = armed ? p->tick : 0;
    for (uint8_t i = 0; i < N_CELLS; i++) {
        struct cell_past *cell = &p->cells[i];
        cell->on_us = cell->gate == 0 || limits.on_time_max_ms > 1000 ? 0
                      : age(p->now_us, cell->on_us, (limits.on_time_max_ms + 1u) * 1000);
        cell->on_counts = 0;
        if (!in_flight_matters())
            cell->n_since = IN_FLIGHT;
        if (cell->n_since == IN_FLIGHT)
            cell->before = 0;
    }
    memset(p->last_frame, 0, sizeof p->last_frame);
    p->last_n = p->last_n != 0;
    p->now_us = 0;
}

static void forget(struct world *w)
{
    forget_board(w);
    forget_past(&w->past, w->board.state == STATE_armed);
    w->port.rose = w->port.pulses = 0;
    w->port.supply_on = false; /* follows from the others */
}

static uint64_t hash(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return h != 0 ? h : 1;
}

static void grow_seen(void);

static bool is_new(uint64_t h)
{
    if (2 * n_seen > n_slots)
        grow_seen();
    size_t i = h & (n_slots - 1);
    for (; seen[i] != 0; i = (i + 1) & (n_slots - 1))
        if (seen[i] == h)
            return false;
    seen[i] = h;
    n_seen++;
    return true;
}

static void grow_seen(void)
{
    uint64_t *old = seen;
    size_t n_old = n_slots;
    n_slots *= 2;
    n_seen = 0;
    seen = must(calloc(n_slots, sizeof *seen));
    for (size_t i = 0; i < n_old; i++)
        if (old[i] != 0)
            is_new(old[i]);
    free(old);
}

static void print_input(struct input input)
{
    fprintf(stderr, "  %-8s e-stop %-7s heat %-11s", STEP_NAMES[input.step], ESTOP_NAMES[input.estop],
            HEAT_NAMES[input.heat]);
    const char *first = SAMPLE_NAMES[input.sample], *then = FRAME_NAMES[input.frame];
    if (input.after)
        fprintf(stderr, " %s, then %s of %u%s\n", then, first, input.cell, input.mute ? ", mute" : "");
    else
        fprintf(stderr, " %s of %u, %s%s\n", first, input.cell, then, input.mute ? ", mute" : "");
}

static unsigned long n_ignored;

static void ignore(unsigned which)
{
    (void)which;
    n_ignored++;
}

static uint64_t hash_of_world(void)
{
    struct world bare;
    _Static_assert(sizeof bare % 8 == 0, "hash takes words");
    memcpy(&bare, &world, sizeof bare);
    forget(&bare);
    return hash(&bare, sizeof bare);
}

/* Where this input leads from here; 0: it cannot happen. */
static uint64_t successor(const struct world *from, struct input input)
{
    memcpy(&world, from, sizeof world);
    if (!world_admits(input))
        return 0;
    world_turn(input);
    return hash_of_world();
}

/* Two states that were merged: every input must lead to the same again. */
static void compare(const struct world *one, const struct world *other)
{
    void (*report)(unsigned) = violated;
    violated = ignore;
    for (size_t i = 0; i < n_inputs; i++) {
        n_ignored = 0;
        uint64_t a = successor(one, inputs[i]);
        unsigned long of_one = n_ignored;
        n_ignored = 0;
        uint64_t b = successor(other, inputs[i]);
        if (a == b && of_one == n_ignored)
            continue;
        n_differing++;
        if (n_differing == 1) {
            fprintf(stderr, "two states were merged that behave differently:\n");
            print_input(inputs[i]);
        }
    }
    violated = report;
    n_compared++;
}

static void sample_merged(uint64_t h, bool first)
{
    if (h % SAMPLED_IN != 0)
        return;
    if (first) {
        if (n_merged == room_merged) {
            room_merged = room_merged ? 2 * room_merged : 64;
            merged = must(realloc(merged, room_merged * sizeof *merged));
        }
        merged[n_merged++] = (struct merged){.hash = h, .world = world};
        return;
    }
    struct world here = world;
    for (size_t i = 0; i < n_merged; i++)
        if (merged[i].hash == h && merged[i].n_compared < COMPARED_MAX &&
            memcmp(&merged[i].world, &here, sizeof here) != 0) {
            merged[i].n_compared++;
            compare(&merged[i].world, &here);
        }
}

static void keep(void)
{
    uint64_t h = hash_of_world();
    bool first = is_new(h);
    sample_merged(h, first);
    if (!first)
        return;
    if (n_places == room_places) {
        room_places = room_places ? 2 * room_places : 1024;
        places = must(realloc(places, room_places * sizeof *places));
    }
    if (n_later == room_later) {
        room_later = room_later ? 2 * room_later : 1024;
        later = must(realloc(later, room_later * sizeof *later));
        later_place = must(realloc(later_place, room_later * sizeof *later_place));
    }
    memcpy(&later[n_later], &world, sizeof world);
    later_place[n_later++] = (uint32_t)n_places;
    places[n_places++] = (struct place){place_at_hand, input_at_hand};
}

static void print_way(uint32_t place)
{
    if (place == 0)
        return;
    print_way(places[place].parent);
    print_input(places[place].input);
}

static void on_violated(unsigned which)
{
    if (n_violated[which]++ != 0)
        return;
    fprintf(stderr, "%s: not so: %s\n", NAMES[which], TEXTS[which]);
    print_way(place_at_hand);
    print_input(input_at_hand);
}

static void list_inputs(void)
{
    struct input in = {0};
    for (in.step = 0; in.step < N_STEPS; in.step++)
        for (in.sample = 0; in.sample < N_SAMPLES; in.sample++)
            for (in.cell = 0; in.cell < N_CELLS; in.cell++)
                for (in.estop = 0; in.estop < N_ESTOPS; in.estop++)
                    for (in.frame = 0; in.frame < N_FRAMES; in.frame++)
                        for (in.heat = 0; in.heat < N_HEATS; in.heat++)
                            for (unsigned i = 0; i < 4; i++) {
                                in.after = (i & 1) != 0, in.mute = (i & 2) != 0;
                                if (!exploration_has(in))
                                    continue;
                                inputs = must(realloc(inputs, (n_inputs + 1) * sizeof *inputs));
                                inputs[n_inputs++] = in;
                            }
}

static void expand(const struct world *from)
{
    memcpy(&world, from, sizeof world);
    for (size_t i = 0; i < n_inputs; i++) {
        input_at_hand = inputs[i];
        if (!world_admits(input_at_hand))
            continue;
        world_turn(input_at_hand);
        n_turns++;
        keep();
        memcpy(&world, from, sizeof world);
    }
}

static int report(unsigned depth, bool all)
{
    bool failed = n_differing > 0;
    for (unsigned i = 0; i < N_PROPERTIES; i++) {
        printf("%-20s %-9s %s\n", NAMES[i], n_violated[i] ? "VIOLATED" : "holds", TEXTS[i]);
        failed |= n_violated[i] != 0;
    }
    printf("%-20s %-9s %s\n", "merged_alike", n_differing ? "VIOLATED" : "holds",
           "states that were merged behave alike, in a sample of them");
    printf("%s of core %08x: %zu states, %lu turns, %lu merged states compared, %s %u turns from a reset\n",
           exploration->name, CORE_HASH, n_seen, n_turns, n_compared, all ? "no further state after" : "stopped at",
           depth);
    return failed;
}

/* Whether this property, or any if there is none of the name, is violated. */
static bool is_violated(const char *name)
{
    for (unsigned i = 0; i < N_PROPERTIES; i++)
        if (n_violated[i] != 0 && (name == NULL || strcmp(name, NAMES[i]) == 0))
            return true;
    return false;
}

static int list_explorations(void)
{
    for (unsigned i = 0; i < N_EXPLORATIONS; i++)
        printf("%-12s %s\n", EXPLORATIONS[i].name, EXPLORATIONS[i].varies);
    return 0;
}

static bool choose(const char *name)
{
    for (unsigned i = 0; i < N_EXPLORATIONS; i++) {
        exploration = &EXPLORATIONS[i];
        if (strcmp(name, exploration->name) == 0)
            return true;
    }
    fprintf(stderr, "no such exploration: %s\n", name);
    return false;
}

int main(int argc, char **argv)
{
    unsigned at_most = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000, depth = 0;
    const char *wanted = argc > 3 ? argv[3] : NULL;
    if (argc < 2)
        return list_explorations();
    if (!choose(argv[1]))
        return 2;
    seen = must(calloc(n_slots, sizeof *seen));
    violated = on_violated;
    list_inputs();
    world_boot();
    keep();
    while (n_later > 0 && depth < at_most && !is_violated(wanted)) {
        free(now);
        free(now_place);
        now = later;
        now_place = later_place;
        n_now = n_later;
        later = NULL;
        later_place = NULL;
        n_later = room_later = 0;
        for (size_t i = 0; i < n_now; i++) {
            place_at_hand = now_place[i];
            expand(&now[i]);
        }
        depth++;
        fprintf(stderr, "turn %u: %zu new states\n", depth, n_later);
    }
    return report(depth, n_later == 0);
}
