/* Shared by the message benchmarks in C, so that titin and its rivals are timed by the same lines: the two sides of a
 * ping-pong and of a stream. Each program brings its medium.
 *
 * The first side writes lines "BYTES SECONDS": seconds for one message, one way, which is a round trip halved, as in
 * the MUSCLE 2 paper. Payloads are rewritten for every message. From 8 KiB on each trip is timed by itself, without the
 * rewriting: the other side says by an empty message that its answer is ready. Below 8 KiB a call of the clock would
 * cost as much as the message, so all trips are timed at once, except for "singly". */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>

#include "common.h"

#define KIB ((size_t)1024)
#define LARGEST (64 * KIB * KIB)
#define TIMED_AT_ONCE (4 * KIB)
/* The least number of trips before the timed trips: memory that is used again has to be allocated first. */
#define WARM 4

/* The calls that move messages. */
struct medium {
    void *(*payload)(size_t bytes);               /* memory to fill for the next send */
    void (*send)(void *data, size_t bytes);       /* when it returns, the memory may be changed */
    const void *(*receive)(size_t bytes);         /* the data, until release */
    void (*release)(void);
    int lends;                                    /* payload() is a part of what a message costs */
};

/* The task: "ping", "singly" or "stream", whether the receiver reads every byte, the share of the trips that is made (1 for
 * all, 4 for a quarter), the largest size, and the file for the times. */
struct task {
    int stream, singly, reads, share;
    size_t largest;
    const char *result;
};

static inline struct task task_of(char **arguments) {
    struct task task = {strcmp(arguments[0], "stream") == 0, strcmp(arguments[0], "singly") == 0, atoi(arguments[1]),
                        atoi(arguments[2]), (size_t)atoll(arguments[3]), arguments[4]};
    return task;
}

/* Pins the thread to one of the cores that this process may use: the core with the number of the side. */
static inline void pin(int side) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) fail("sched_getaffinity");
    const int wanted = side % CPU_COUNT(&all);
    for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all) && seen++ == wanted) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            if (sched_setaffinity(0, sizeof one, &one) != 0) fail("sched_setaffinity");
            return;
        }
    }
}

/* Reads every byte. */
static inline void read_all(const void *data, size_t bytes) {
    const uint64_t *words = data;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / 8; i++) sum += words[i];
    __asm__ volatile("" : : "r"(sum));
}

static inline void check(const unsigned char *data, size_t bytes, int stamp) {
    if (bytes && (data[0] != (unsigned char)stamp || data[bytes - 1] != (unsigned char)stamp)) {
        fprintf(stderr, "a message of %zu bytes holds %d and %d, not %d\n", bytes, data[0], data[bytes - 1],
                (unsigned char)stamp);
        exit(1);
    }
}

static inline long trips_of(size_t bytes, int share) {
    long trips = bytes ? (long)(LARGEST / bytes) : 1000;
    trips = trips > 1000 ? 1000 : trips < 7 ? 7 : trips;
    return trips / share > 2 ? trips / share : 2;
}

/* The number of trips of a message of this size to several receivers. */
static inline long multicasts(size_t bytes, int share) {
    const long trips = bytes <= 64 * KIB ? 400 : bytes <= KIB * KIB ? 60 : 10;
    return trips / share > 2 ? trips / share : 2;
}

static inline void take(const struct medium *m, size_t bytes, int stamp, int reads) {
    const void *data = m->receive(bytes);
    if (reads) read_all(data, bytes);
    check(data, bytes, stamp);
    m->release();
}

static inline void give(const struct medium *m, size_t bytes, int stamp) {
    void *data = m->payload(bytes);
    memset(data, stamp, bytes);
    m->send(data, bytes);
}

static inline int timed_at_once(const struct task *task, size_t bytes) {
    return bytes <= TIMED_AT_ONCE && !task->singly;
}

static inline void ping(const struct medium *m, const struct task *task, size_t bytes, FILE *out) {
    const long trips = trips_of(bytes, task->share), warm = trips / 10 + WARM;
    const int at_once = timed_at_once(task, bytes);
    double seconds = 0, begin = 0;
    for (long trip = -warm; trip < trips; trip++) {
        if (trip == 0) seconds = 0;
        if (!at_once || trip == 0) begin = now();
        void *data = m->payload(bytes);
        if (!at_once && m->lends) seconds += now() - begin;
        memset(data, (int)trip, bytes);
        if (!at_once) {
            take(m, 0, 0, 0);
            begin = now();
        }
        m->send(data, bytes);
        take(m, bytes, (int)trip + 1, task->reads);
        if (!at_once) seconds += now() - begin;
    }
    if (at_once) seconds = now() - begin;
    fprintf(out, "%zu %.9e\n", bytes, seconds / (double)trips / 2);
}

static inline void pong(const struct medium *m, const struct task *task, size_t bytes) {
    const long trips = trips_of(bytes, task->share), warm = trips / 10 + WARM;
    for (long trip = -warm; trip < trips; trip++) {
        void *data = m->payload(bytes);
        memset(data, (int)trip + 1, bytes);
        if (!timed_at_once(task, bytes)) m->send(m->lends ? m->payload(0) : data, 0);
        take(m, bytes, (int)trip, task->reads);
        m->send(data, bytes);
    }
}

/* Messages one after the other, one way. The last message is answered. */
static inline void stream(const struct medium *m, const struct task *task, size_t bytes, int first, FILE *out) {
    const long count = 200000 / task->share, warm = count / 20;
    double begin = 0;
    for (long i = -warm; i < count; i++) {
        if (i == 0) begin = now();
        if (first) give(m, bytes, (int)i);
        else take(m, bytes, (int)i, task->reads);
    }
    if (first) {
        take(m, 0, 0, 0);
        fprintf(out, "%zu %.9e\n", bytes, (now() - begin) / (double)count);
    } else {
        give(m, 0, 0);
    }
}

/* One side of the task. Side 0 writes the times. */
static inline void play(const struct medium *m, const struct task *task, int side) {
    FILE *out = side == 0 ? create(task->result) : NULL;
    if (task->stream) {
        for (size_t bytes = 0; bytes <= task->largest; bytes = bytes ? bytes * 4 : 64) stream(m, task, bytes, side == 0, out);
    } else {
        for (size_t bytes = 0; bytes <= task->largest; bytes = bytes ? bytes * 2 : KIB) {
            if (side == 0) ping(m, task, bytes, out);
            else pong(m, task, bytes);
        }
    }
    finish(out, task->result);
}

#endif
