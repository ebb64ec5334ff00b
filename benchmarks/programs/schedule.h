/* What the benchmark of schedules shares: an array goes from rows to columns, TRIPS times; the first time nobody knows yet who has
 * what. Rank 0 of the receiver writes lines "NUMBER SECONDS": the first trip of each case and the median of the others, each from
 * when it says that it is ready until all ranks of the receiver have the array. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXTENT 480
#define TRIPS 7

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Begin of the k-th of p parts, whose sizes differ by one at most. */
static inline int64_t begin_of(int p, int k) { return EXTENT / p * k + (k < EXTENT % p ? k : EXTENT % p); }

/* What a rank has: lower and upper row, lower and upper column. */
static inline void box_of(int second, int rank, int ranks, int64_t box[4]) {
    const int64_t lower = begin_of(ranks, rank), upper = begin_of(ranks, rank + 1);
    memcpy(box, second ? (int64_t[]){0, EXTENT, lower, upper} : (int64_t[]){lower, upper, 0, EXTENT}, 4 * sizeof *box);
}

/* Each element is its own number; or is looked at whether it is. */
static inline void each(double *u, const int64_t box[4], int fill) {
    for (int64_t i = box[0]; i < box[1]; i++) {
        for (int64_t j = box[2]; j < box[3]; j++, u++) {
            const double wanted = (double)(i * EXTENT + j);
            if (fill) *u = wanted;
            else if (*u != wanted) {
                fprintf(stderr, "element %ld, %ld is %g\n", (long)i, (long)j, *u);
                exit(1);
            }
        }
    }
}

static inline int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void report(FILE *out, int number, double seconds[TRIPS]) {
    qsort(seconds + 1, TRIPS - 1, sizeof *seconds, by_size);
    fprintf(out, "%d %.9e\n%d %.9e\n", 2 * number, seconds[0], 2 * number + 1, seconds[TRIPS / 2]);
}

#endif
