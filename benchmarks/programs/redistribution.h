/* Shared by the benchmarks of redistribution: the cases, the parts of the ranks in each case, and the timing.
 *
 * Rank 0 of the first side writes lines "CASE SECONDS". An array goes from the first side to the second and back. A trip
 * begins when all ranks of the first side are ready, and ends when all have the array back. The seconds are half of the
 * median of some trips. */
#ifndef REDISTRIBUTION_H
#define REDISTRIBUTION_H

#include "arrays.h"

enum pattern { ROWS_TO_ROWS, ROWS_TO_COLUMNS, CYCLIC_TO_ROWS };

/* Square arrays of doubles of this extent; `fields` arrays travel together. */
static const struct { int extent; enum pattern pattern; int fields, trips; } CASES[] = {
    {1024, ROWS_TO_ROWS, 1, 60},   {1024, ROWS_TO_COLUMNS, 1, 60}, {1024, CYCLIC_TO_ROWS, 1, 60},
    {1024, ROWS_TO_ROWS, 10, 15},  {1024, ROWS_TO_COLUMNS, 10, 15}, {4096, ROWS_TO_ROWS, 1, 8},
    {4096, ROWS_TO_COLUMNS, 1, 8}, {4096, CYCLIC_TO_ROWS, 1, 8},
};
#define COUNT (int)(sizeof CASES / sizeof *CASES)
#define BLOCK 32 /* rows of a block, dealt out in turn */
#define MOST_FIELDS 10
#define WARM 2

/* Whether rows, and not columns, are spread over the ranks; and whether they are dealt out in blocks. */
static inline int has_rows(enum pattern pattern, int second) { return !(second && pattern == ROWS_TO_COLUMNS); }
static inline int is_cyclic(enum pattern pattern, int second) { return !second && pattern == CYCLIC_TO_ROWS; }

/* The number of indices that a rank has along the dimension that is spread. */
static inline int64_t extent_of(int64_t n, int p, int k, int cyclic) {
    if (!cyclic) return begin_of(n, p, k + 1) - begin_of(n, p, k);
    int64_t count = 0;
    for (int64_t at = (int64_t)k * BLOCK; at < n; at += (int64_t)p * BLOCK) count += n - at < BLOCK ? n - at : BLOCK;
    return count;
}

/* The global index of index i of the rank. */
static inline int64_t index_of(int64_t n, int p, int k, int cyclic, int64_t i) {
    return cyclic ? (i / BLOCK * p + k) * BLOCK + i % BLOCK : begin_of(n, p, k) + i;
}

/* Sets each element to its own number in the array plus a tenth of the field's number, or checks the elements. */
static inline void each(double *u, int number, int field, int second, int rank, int ranks, int fill) {
    const int64_t n = CASES[number].extent;
    const int rows = has_rows(CASES[number].pattern, second), cyclic = is_cyclic(CASES[number].pattern, second);
    const int64_t own = extent_of(n, ranks, rank, cyclic), height = rows ? own : n, width = rows ? n : own;
    for (int64_t i = 0; i < height; i++) {
        for (int64_t j = 0; j < width; j++) {
            const int64_t row = rows ? index_of(n, ranks, rank, cyclic, i) : i;
            const int64_t column = rows ? j : index_of(n, ranks, rank, cyclic, j);
            element(u + i * width + j, (double)(row * n + column) + 0.1 * field, row, column, fill);
        }
    }
}

static inline void report(FILE *out, int number, double *seconds) {
    fprintf(out, "%d %.9e\n", number, median(seconds, CASES[number].trips) / 2);
}

#endif
