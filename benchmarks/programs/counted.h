/* A ping-pong in which no side ever waits for a message within a counted call, so that what callgrind counts there is
 * what a message costs in instructions. A number in shared memory says how many messages have been sent.
 *
 * Arguments: side (0 or 1), bytes, trips, and the file that both sides map. callgrind collects within `counted_send` or
 * `counted_receive`, as its flag --toggle-collect names. */
#ifndef COUNTED_H
#define COUNTED_H

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

/* The calls that move the messages. `receive` comes back with the data in memory, or looked at and let go of. */
struct counted_medium {
    void (*send)(const void *data, size_t bytes);
    void (*receive)(void *memory, size_t bytes);
    /* Lets a peer go on that waits within its send for this side; NULL where no send does so. */
    void (*progress)(void);
};

static __attribute__((noipa)) void counted_send(const struct counted_medium *medium, const void *data, size_t bytes) {
    medium->send(data, bytes);
}

static __attribute__((noipa)) void counted_receive(const struct counted_medium *medium, void *memory, size_t bytes) {
    medium->receive(memory, bytes);
}

/* The number of messages that both sides have sent, in a file that both map. */
static inline _Atomic long *shared_count(const char *path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) fail(path);
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail(path);
    return memory;
}

/* Waits outside of the medium, whose work would else be done here and not where it is counted. */
static inline void await(const struct counted_medium *medium, _Atomic long *count, long wanted) {
    for (long naps = 1; atomic_load(count) < wanted; naps++) {
        usleep(200);
        if (naps % 256 == 0 && medium->progress) medium->progress();
    }
}

/* One side of the ping-pong. What the first trips cost more drops out of the difference of two runs. */
static inline void play_counted(const struct counted_medium *medium, int side, char **arguments) {
    const size_t bytes = (size_t)atoll(arguments[0]);
    const long trips = atol(arguments[1]);
    _Atomic long *sent = shared_count(arguments[2]);
    char *outgoing = memory(bytes + 1), *incoming = memory(bytes + 1);
    for (long trip = 0; trip < trips; trip++) {
        if (side == 1) {
            await(medium, sent, 2 * trip + 1);
            counted_receive(medium, incoming, bytes);
        }
        counted_send(medium, outgoing, bytes);
        atomic_fetch_add(sent, 1);
        if (side == 0) {
            await(medium, sent, 2 * trip + 2);
            counted_receive(medium, incoming, bytes);
        }
    }
}

#endif
