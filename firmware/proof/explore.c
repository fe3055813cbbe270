/* Breadth-first search of every state that a board of two cells can reach from a reset by any sequence of the
 * events in events.h; checks every property in each. forget() merges states that differ only in values without
 * effect on later behaviour. Argument: maximum number of turns; without it, the search ends when there is no new
 * state or a property is violated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

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
static const char *const SCAN_NAMES[] = {SCANS(EVENT_NAME)};
static const char *const FRAME_NAMES[] = {FRAMES(EVENT_NAME)};
static const char *const ESTOP_NAMES[] = {ESTOPS(EVENT_NAME_2)};
static const char *const STEP_NAMES[] = {STEPS(EVENT_NAME_2)};

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

/* Clears values without effect on the board's behaviour or on the properties. Times become ages; all ages beyond
 * every limit become equal. */
static void forget(struct world *w)
{
    /* one more than the limits of events.c, beyond which an age makes no further difference */
    enum { OLD_COMMAND_US = 5000, OLD_SCAN_MS = 12 };
    struct board *b = &w->board;
    struct past *p = &w->past;
    bool armed = b->state == STATE_armed;
    b->commanded_us = armed ? age(b->now_us, b->commanded_us, OLD_COMMAND_US) : 0;
    b->hold_us = b->cells_on != 0 ? b->hold_us : 0;
    b->scanned_ms = age(b->now_ms, b->scanned_ms, OLD_SCAN_MS);
    b->ms_mark_us = b->now_us - b->ms_mark_us;
    b->fault_bits = (uint16_t)((b->fault_bits & (FAULT_estop_open | FAULT_scan_stale)) |
                               (b->fault_bits != 0 ? FAULT_host_silent : 0));
    b->first_fault_bits = b->fault_cells = b->bad_frames = 0;
    b->status_page = 0;
    b->number = b->armed_number = 0;            /* events.c counts from these */
    b->checked_entry = 0, b->checked_crc = 0;   /* the limits are never corrupted */
    memset(b->reader.bytes, 0, sizeof b->reader.bytes); /* frames are always complete */
    for (uint8_t i = 0; i < WIRE_CELLS_MAX; i++) {
        struct cell *cell = &b->cells[i];
        for (uint8_t j = 0; j < N_CHECKS; j++)
            if (cell->streak[j] > b->limits.persistence_scans)
                cell->streak[j] = b->limits.persistence_scans;
        memset(&cell->heat, 0, sizeof cell->heat);
        cell->on_since_ms = 0; /* no cell is on for as long as a minute */
        cell->on_counts = cell->current_mA = cell->sampled_mA = 0;
        cell->temperature_cC = 0;
    }
    p->set_us = w->port.high != 0 ? age(p->now_us, p->set_us, OLD_COMMAND_US) : 0;
    p->hold_us = w->port.high != 0 ? p->hold_us : 0;
    p->fed_us = armed ? age(p->now_us, p->fed_us, OLD_COMMAND_US) : 0;
    p->scanned_us = age(p->now_us, p->scanned_us, OLD_SCAN_MS * 1000);
    w->port.rose = w->port.pulses = 0;
    p->wired = armed ? p->wired : 0;
    p->last_set = p->last_n != 0;
    for (uint8_t i = 0; i < N_CELLS; i++) {
        p->n_high[i] = p->n_high[i] < b->limits.persistence_scans ? p->n_high[i] : 10;
        p->n_low[i] = p->n_low[i] < b->limits.persistence_scans ? p->n_low[i] : 10;
    }
    memset(p->last_frame, 0, sizeof p->last_frame);
    p->last_n = 0;
    p->now_us = b->now_us = b->now_ms = 0;
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

static void keep(void)
{
    struct world bare;
    _Static_assert(sizeof bare % 8 == 0, "hash takes words");
    memcpy(&bare, &world, sizeof bare);
    forget(&bare);
    if (!is_new(hash(&bare, sizeof bare)))
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

static void print_input(struct input input)
{
    fprintf(stderr, "  %-8s %-9s e-stop %-7s %s\n", STEP_NAMES[input.step], SCAN_NAMES[input.scan],
            ESTOP_NAMES[input.estop], FRAME_NAMES[input.frame]);
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

/* Reads of the e-stop within a turn differ only if a frame causes another read. */
static bool tells(struct input input)
{
    bool looks_again = input.frame == EVENT_clear || input.frame == EVENT_arm;
    return input.estop <= EVENT_open || looks_again;
}

static void expand(const struct world *from)
{
    struct input input;
    for (input.step = 0; input.step < N_STEPS; input.step++)
        for (input.scan = 0; input.scan < N_SCANS; input.scan++)
            for (input.estop = 0; input.estop < N_ESTOPS; input.estop++)
                for (input.frame = 0; input.frame < N_FRAMES; input.frame++) {
                    if (!tells(input))
                        continue;
                    memcpy(&world, from, sizeof world);
                    input_at_hand = input;
                    world_turn(input);
                    n_turns++;
                    keep();
                }
}

static int report(unsigned depth, bool all)
{
    int failed = 0;
    for (unsigned i = 0; i < N_PROPERTIES; i++) {
        printf("%-20s %-9s %s\n", NAMES[i], n_violated[i] ? "VIOLATED" : "holds", TEXTS[i]);
        failed |= n_violated[i] != 0;
    }
    printf("%zu states, %lu turns, %s %u turns from a reset\n", n_seen, n_turns,
           all ? "no further state after" : "stopped at", depth);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned at_most = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000, depth = 0;
    seen = must(calloc(n_slots, sizeof *seen));
    violated = on_violated;
    world_boot();
    keep();
    bool failed = false;
    while (n_later > 0 && depth < at_most && (argc > 1 || !failed)) {
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
        for (unsigned i = 0; i < N_PROPERTIES; i++)
            failed |= n_violated[i] != 0;
        fprintf(stderr, "turn %u: %zu new states\n", depth, n_later);
    }
    return report(depth, n_later == 0);
}
