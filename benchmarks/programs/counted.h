/* A ping-pong in which no side waits for a message within a counted call, so that callgrind counts only the
 * instructions of a message. A number in shared memory says which rank has its turn.
 *
 * callgrind collects within `counted_send` or `counted_receive`, as its flag --toggle-collect names. */
#ifndef COUNTED_H
#define COUNTED_H

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

/* The calls that move the messages. `receive` returns when the data are in memory, or were viewed and freed. */
struct counted_medium {
    void (*send)(void);
    void (*receive)(void);
    /* Lets a peer go on whose send waits for this side; NULL if no send waits. */
    void (*progress)(void);
};

/* A rank of one of two sides, 0 and 1. Both sides have the same number of ranks. */
struct counted_rank {
    int side, rank, ranks;
};

static __attribute__((noipa)) void counted_send(const struct counted_medium *medium) { medium->send(); }

static __attribute__((noipa)) void counted_receive(const struct counted_medium *medium) { medium->receive(); }

/* The number of turns that all ranks together have taken, in a file that all ranks map. */
static inline _Atomic long *shared_count(const char *path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) fail(path);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail(path);
    return memory;
}

/* Waits without calls of the medium: such a call would do the medium's work here, where it is not counted. */
static inline void await(const struct counted_medium *medium, _Atomic long *count, long wanted) {
    for (long naps = 1; atomic_load(count) < wanted; naps++) {
        usleep(200);
        if (naps % 256 == 0 && medium->progress) medium->progress();
    }
}

/* One rank of the ping-pong. In each trip the ranks of side 0 send, one after the other; then the ranks of side 1 receive,
 * then send; then the ranks of side 0 receive. The additional cost of the first trips drops out of the difference of two
 * runs. */
static inline void play_counted(const struct counted_medium *medium, struct counted_rank own, long trips, const char *path) {
    _Atomic long *turns = shared_count(path);
    for (long part = 0; part < 4 * trips; part++) {
        const int side = part % 4 == 1 || part % 4 == 2;
        if (side != own.side) continue;
        await(medium, turns, part * own.ranks + own.rank);
        if (part % 2) counted_receive(medium);
        else counted_send(medium);
        atomic_fetch_add(turns, 1);
    }
}

#endif
