/* A simulated driver board behind a pseudo-terminal, in wall time. It prints the terminal's name and
 * runs until it or its parent process ends; SIGUSR1 resets it, SIGUSR2 opens its e-stop and closes it again.
 * Cells draw CURRENT_ON at room temperature. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "libboard.h"
#include "message.h"

enum { CURRENT_ON_COUNTS = 100, ROOM_COUNTS = 153, SUPPLY_COUNTS = 409 /* 8 V of 20 */, PERIOD_MS = 1, CATCH_UP_US = 20000 /* it has not lived while this machine gave it no processor */, LEFT_US = 1000000 };

static volatile sig_atomic_t stop, reset, estop_is_open;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        reset = 1;
    else if (number == SIGUSR2)
        estop_is_open = !estop_is_open;
    else
        stop = 1;
}

static uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* A raw terminal whose other end is kept open here, so that clients can connect repeatedly. */
static int far_end = -1;

static int open_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return -1;
    far_end = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct termios settings;
    if (far_end < 0 || tcgetattr(far_end, &settings) != 0)
        return -1;
    cfmakeraw(&settings);
    return tcsetattr(far_end, TCSANOW, &settings) == 0 ? master : -1;
}

static void write_all(int file, const uint8_t *bytes, size_t n)
{
    ssize_t written = write(file, bytes, n);
    if (written < 0 && errno != EAGAIN)
        stop = 1;
}

int main(int argc, char **argv)
{
    long n_cells = argc > 1 ? strtol(argv[1], NULL, 10) : 12;
    unsigned long serial = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    void *board = calloc(1, libboard_size());
    if (n_cells < 1 || n_cells > 16 || board == NULL ||
        libboard_init(board, (uint8_t)n_cells, (uint32_t)serial, 3000, 0) != 0) {
        fprintf(stderr, "usage: board_pty [CELLS 1..16] [SERIAL]\n");
        free(board);
        return 2;
    }
    for (uint8_t i = 0; i < n_cells; i++)
        libboard_set_analog(board, i, CURRENT_ON_COUNTS, 0, ROOM_COUNTS);
    libboard_set_supply(board, SUPPLY_COUNTS);
    libboard_rest(board);
    int terminal = open_terminal();
    if (terminal < 0) {
        perror("board_pty");
        free(board);
        return 4;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    printf("%s\n", ptsname(terminal));
    fflush(stdout);
    uint64_t then_us = clock_us(), heard_us = then_us;
    int estop_was_open = 0;
    uint8_t bytes[4096];
    while (!stop) {
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        poll(&ready, 1, PERIOD_MS);
        uint64_t now_us = clock_us();
        uint64_t step_us = now_us - then_us;
        then_us = now_us;
        libboard_advance(board, (uint32_t)(step_us < CATCH_UP_US ? step_us : CATCH_UP_US));
        if (reset) {
            reset = 0;
            libboard_reset(board, RESET_watchdog);
        }
        if (estop_is_open != estop_was_open)
            libboard_set_estop(board, estop_was_open = estop_is_open);
        ssize_t n = read(terminal, bytes, sizeof bytes);
        if (n > 0) {
            libboard_receive(board, bytes, (size_t)n);
            heard_us = now_us;
        } else if (now_us - heard_us > LEFT_US) {
            ioctl(far_end, TIOCNXCL); /* a killed client would leave the line locked */
            heard_us = now_us;
        }
        size_t answered = libboard_send(board, bytes, sizeof bytes);
        if (answered > 0)
            write_all(terminal, bytes, answered);
    }
    free(board);
    return 0;
}
