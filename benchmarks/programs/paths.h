/* Shared by the programs of `paths`, so that titin and its rivals are timed by the same lines: a ping-pong of messages
 * of several sizes. Each program brings its medium.
 *
 * The arguments of both sides are "here" or "there", the address, and the number of streams; "here" also has the sizes
 * with commas, the seconds for which large messages go to and fro before, the most seconds of a trip after which a larger
 * size follows, and the file for the times. It writes lines "BYTES SECONDS": the median of the trips, halved. */
#ifndef PATHS_H
#define PATHS_H

#include "common.h"

/* About how many seconds the trips of a size take, and the most trips of small and of large messages. */
#define TIMED 5.0
#define SMALL_TRIPS 10000
#define LARGE_TRIPS 10
#define SMALL ((size_t)65536)
/* The largest message with a trip that is not counted. From the next size on a trip takes long, and none is left out. */
#define WARMED ((size_t)64000000)

/* The messages that go before all others: TCP sends fast until it meets its first losses, and slower ever after. */
#define BEFORE ((size_t)16000000)

struct medium {
    void (*send)(const void *data, size_t bytes);  /* when it returns, the memory may be changed */
    void (*receive)(void *data, size_t bytes);     /* the next message, of this size */
};

/* What this side says before trips: their size, and their number; 0 at the end. */
struct head {
    int64_t bytes, trips;
};

static inline void stamp(unsigned char *data, size_t bytes, int64_t trip) {
    data[0] = data[bytes - 1] = (unsigned char)trip;
}

static inline void expect(const unsigned char *data, size_t bytes, int64_t trip) {
    if (data[0] == (unsigned char)trip && data[bytes - 1] == (unsigned char)trip) return;
    fprintf(stderr, "a message of %zu bytes holds %d and %d, not %d\n", bytes, data[0], data[bytes - 1],
            (unsigned char)trip);
    exit(1);
}

/* Makes trips, and gives the median of their seconds. */
static inline double trips_of(const struct medium *m, unsigned char *data, size_t bytes, int64_t trips) {
    static double seconds[SMALL_TRIPS];
    const struct head head = {(int64_t)bytes, trips};
    m->send(&head, sizeof head);
    for (int64_t trip = 0; trip < trips; trip++) {
        stamp(data, bytes, trip);
        const double begin = now();
        m->send(data, bytes);
        m->receive(data, bytes);
        seconds[trip] = now() - begin;
        expect(data, bytes, trip + 1);
    }
    return median(seconds, (int)trips);
}

static inline void here(const struct medium *m, const char *sizes, double before, double patience, const char *result) {
    size_t largest = before > 0 ? BEFORE : 16;
    for (const char *at = sizes; at; at = strchr(at, ',')) {
        at += *at == ',';
        const size_t bytes = (size_t)atoll(at);
        if (bytes > largest) largest = bytes;
    }
    unsigned char *data = memory(largest);
    /* Nothing on the way can compress it. */
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i + 8 <= largest; i += 8) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        memcpy(data + i, &state, 8);
    }
    FILE *out = create(result);
    for (const double begin = now(); now() - begin < before;) trips_of(m, data, BEFORE, 1);
    for (const char *at = sizes; at; at = strchr(at, ',')) {
        at += *at == ',';
        const size_t bytes = (size_t)atoll(at);
        double seconds = trips_of(m, data, bytes, bytes <= SMALL ? 3 : 1);
        const double most = bytes <= SMALL ? SMALL_TRIPS : LARGE_TRIPS;
        const double trips = TIMED / seconds < most ? TIMED / seconds : most;
        if (trips >= 2 || bytes <= WARMED) seconds = trips_of(m, data, bytes, trips < 1 ? 1 : (int64_t)trips);
        fprintf(out, "%zu %.9e\n", bytes, seconds / 2);
        if (seconds > patience) break;
    }
    const struct head end = {0, 0};
    m->send(&end, sizeof end);
    finish(out, result);
}

static inline void there(const struct medium *m) {
    struct head head;
    size_t room = 0;
    unsigned char *data = NULL;
    while (m->receive(&head, sizeof head), head.trips > 0) {
        const size_t bytes = (size_t)head.bytes;
        if (bytes > room) {
            free(data);
            data = memory(room = bytes);
        }
        for (int64_t trip = 0; trip < head.trips; trip++) {
            m->receive(data, bytes);
            expect(data, bytes, trip);
            stamp(data, bytes, trip + 1);
            m->send(data, bytes);
        }
    }
    free(data);
}

#endif
