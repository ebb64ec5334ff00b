/* Shared by the parallel benchmarks: arrays of doubles in rows and columns. Each rank has a box of the array: lower and
 * upper row, lower and upper column. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "common.h"

static inline double *doubles(int64_t count) { return memory((size_t)count * sizeof(double)); }

/* Begin of the k-th of p parts of n, whose sizes differ by one at most. */
static inline int64_t begin_of(int64_t n, int p, int k) { return n / p * k + (k < n % p ? k : n % p); }

static inline int64_t count_of(const int64_t box[4]) { return (box[1] - box[0]) * (box[3] - box[2]); }

/* Sets an element to the wanted number, or checks that the element has it. */
static inline void element(double *u, double wanted, int64_t row, int64_t column, int fill) {
    if (fill) *u = wanted;
    else if (*u != wanted) {
        fprintf(stderr, "element %ld, %ld is %g, not %g\n", (long)row, (long)column, *u, wanted);
        exit(1);
    }
}

/* Sets or checks a part of a box. The array has `columns` columns, and the number of each element is larger by the version.
 */
static inline void each_in(double *u, const int64_t box[4], const int64_t part[4], int64_t columns, double version, int fill) {
    for (int64_t i = part[0]; i < part[1]; i++) {
        double *row = u + (i - box[0]) * (box[3] - box[2]) - box[2];
        for (int64_t j = part[2]; j < part[3]; j++) element(row + j, (double)(i * columns + j) + version, i, j, fill);
    }
}

/* Sets or checks a whole box, of version 0. */
static inline void each_of(double *u, const int64_t box[4], int64_t columns, int fill) { each_in(u, box, box, columns, 0, fill); }

#endif
