/* A token goes round a ring of cells, and then rests with the first cell while the other cells wait: the time of a turn,
 * and the cost of waiting. The first cell writes "0 SECONDS" for a turn. Every cell writes its processor time while the
 * ring was idle, and the time that passed. */
#ifndef RING_H
#define RING_H

#include "common.h"

struct ring {
    int cell;
    long turns;
    double idle;
    const char *stem;
};

static inline double processor(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

static inline void go_round(const struct ring *ring, void (*send)(void), void (*receive)(void)) {
    const long warm = ring->turns / 20 + 1;
    const int first = ring->cell == 0;
    double begin = 0;
    for (long turn = -warm; turn < ring->turns; turn++) {
        if (turn == 0) begin = now();
        if (first) send();
        receive();
        if (!first) send();
    }
    const double end = now(), used = processor();
    if (first) {
        const struct timespec rest = {(time_t)ring->idle, (long)(1e9 * (ring->idle - (double)(time_t)ring->idle))};
        nanosleep(&rest, NULL);
        send();
        receive();
    } else {
        receive();
    }
    const double idle_used = processor() - used, idle_passed = now() - end;
    if (!first) send();
    char path[1024];
    snprintf(path, sizeof path, "%s.%d", ring->stem, ring->cell);
    FILE *out = create(path);
    if (first) fprintf(out, "0 %.9e\n", (end - begin) / (double)ring->turns);
    fprintf(out, "%.9e %.9e\n", idle_used, idle_passed);
    finish(out, path);
}

#endif
