/* A periodic loop in C, what `hil bench` holds its own loop against, and its witness of stalls.
 *
 *   reference_loop CPU PRIORITY PERIOD_NS SPIN_NS N_TICKS LATER_THAN_NS FILE
 *
 * Absolute deadlines, SCHED_FIFO, locked memory, one CPU, a spin of SPIN_NS before the deadline,
 * missed periods skipped: as hil/loop/loop.py and hil/platform/realtime.py do it. Every tick steps a model of 22 states and writes a row of 64 columns.
 * FILE receives deadline and wake-up in ns of CLOCK_MONOTONIC, two int64 a tick, of ticks woken
 * more than LATER_THAN_NS late (-1: of all). N_TICKS 0: until SIGTERM. What the kernel granted is
 * printed. Ends with 0, or 1 and a line on standard error.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { N_STATES = 22, N_COLUMNS = 64, N_ROWS = 4096, KEPT_MAX = 1 << 20 };

static volatile sig_atomic_t stopped;
static double Ad[N_STATES][N_STATES], x[N_STATES], x_next[N_STATES];
static double rows[N_ROWS][N_COLUMNS];

static void stop(int number) {
    (void)number;
    stopped = 1;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t due_ns, int64_t spin_ns) {
    int64_t wake_ns = due_ns - spin_ns;
    struct timespec t = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0 && !stopped) {
    }
    while (now_ns() < due_ns) {
    }
}

static void tick(int64_t n, double late_s) {
    double *row = rows[n % N_ROWS];
    for (int i = 0; i < N_STATES; i++) {
        double total = 0.001;
        for (int j = 0; j < N_STATES; j++) total += Ad[i][j] * x[j];
        x_next[i] = total;
    }
    for (int i = 0; i < N_STATES; i++) x[i] = x_next[i];
    for (int i = 0; i < N_COLUMNS; i++) row[i] = x[i % N_STATES];
    row[0] = late_s;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: reference_loop CPU PRIORITY PERIOD_NS SPIN_NS N_TICKS"
                        " LATER_THAN_NS FILE\n");
        return 1;
    }
    size_t cpu = (size_t)atoi(argv[1]);
    int priority = atoi(argv[2]);
    int64_t period_ns = atoll(argv[3]), spin_ns = atoll(argv[4]);
    int64_t n_ticks = atoll(argv[5]), later_than_ns = atoll(argv[6]);
    if (period_ns < 1000) {
        fprintf(stderr, "reference_loop: a period of at least 1000 ns is needed\n");
        return 1;
    }
    int64_t n_max = later_than_ns < 0 && n_ticks > 0 ? n_ticks : KEPT_MAX;
    int64_t(*kept)[2] = calloc((size_t)n_max, sizeof *kept);
    if (!kept) {
        fprintf(stderr, "reference_loop: no memory for %lld ticks\n", (long long)n_max);
        return 1;
    }
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    for (int i = 0; i < N_STATES; i++) Ad[i][i] = 0.99;

    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    int pinned = sched_setaffinity(0, sizeof cpus, &cpus) == 0;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    int locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    struct sched_param param = {.sched_priority = priority};
    int fifo = sched_setscheduler(0, SCHED_FIFO, &param) == 0;
    printf("{\"pinned\": %d, \"locked\": %d, \"fifo\": %d}\n", pinned, locked, fifo);
    fflush(stdout);

    int64_t start_ns = now_ns() + period_ns, n = 0, n_kept = 0;
    while (!stopped && (n_ticks == 0 || n < n_ticks)) {
        int64_t deadline_ns = start_ns + n * period_ns;
        sleep_until(deadline_ns, spin_ns);
        int64_t woke_ns = now_ns(), late_ns = woke_ns - deadline_ns;
        tick(n, 1e-9 * (double)late_ns);
        if (late_ns > later_than_ns && n_kept < n_max) {
            kept[n_kept][0] = deadline_ns;
            kept[n_kept][1] = woke_ns;
            n_kept++;
        }
        int64_t due = (now_ns() - start_ns) / period_ns;
        n = due > n + 1 ? due : n + 1;
    }
    FILE *file = fopen(argv[7], "wb");
    if (!file || fwrite(kept, sizeof *kept, (size_t)n_kept, file) != (size_t)n_kept ||
        fclose(file) != 0) {
        fprintf(stderr, "reference_loop: cannot write %s\n", argv[7]);
        return 1;
    }
    return 0;
}
