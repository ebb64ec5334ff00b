/* Shared by the programs of all benchmarks: a clock, memory, the file for the times, and the end of a program that has
 * failed. */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void fail(const char *what) {
    perror(what);
    exit(1);
}

static inline double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double now(void) { return seconds_of(CLOCK_MONOTONIC); }

/* Whole pages, written once, so that no page fault comes later. */
static inline void *memory(size_t bytes) {
    void *found = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
    if (!found) fail("memory");
    memset(found, 1, bytes);
    return found;
}

static inline FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) fail(path);
    return file;
}

static inline FILE *create(const char *path) { return opened(path, "w"); }

/* Closes a file; does nothing for NULL. */
static inline void finish(FILE *file, const char *path) {
    if (file && fclose(file) != 0) fail(path);
}

/* Adds a line to a file of this run. Other programs may add lines to the same file. */
static inline void add_time(const char *path, int number, double seconds) {
    FILE *file = opened(path, "a");
    fprintf(file, "%d %.9e\n", number, seconds);
    finish(file, path);
}

static inline int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of an even number of values, the lower of the two in the middle. */
static inline double median(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof *seconds, by_size);
    return seconds[(count - 1) / 2];
}

#endif
