/* Preloaded into a process, shifts its time of day by the seconds that a shared file holds. Clocks
   that cannot be set, such as CLOCK_MONOTONIC, stay. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *shift_s;

__attribute__((constructor)) static void map_shift(void)
{
    int file = open(getenv("CLOCK_SHIFT"), O_RDONLY);
    shift_s = mmap(NULL, sizeof *shift_s, PROT_READ, MAP_SHARED, file, 0);
    if (shift_s == MAP_FAILED)
        abort();
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, t);
    if (!failed && shift_s && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += *shift_s;
    return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
