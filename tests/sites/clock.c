/* Preloaded, moves the clock of a process, and of all that it starts, by the seconds in CLOCK_OFF. Spans of time are as ever. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (syscall(SYS_clock_gettime, clock, now)) return -1;
    const char *off = getenv("CLOCK_OFF");
    if (off && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += atoi(off);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec fine;
    if (clock_gettime(CLOCK_REALTIME, &fine)) return -1;
    now->tv_sec = fine.tv_sec;
    now->tv_usec = fine.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec fine;
    if (clock_gettime(CLOCK_REALTIME, &fine)) return -1;
    if (now) *now = fine.tv_sec;
    return fine.tv_sec;
}
