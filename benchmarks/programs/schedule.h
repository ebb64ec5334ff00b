/* Shared by the benchmarks of schedules. An array goes from rows to columns, TRIPS times; before the first trip no rank
 * knows the parts of the others. Rank 0 of the receiver writes lines "NUMBER SECONDS": the first trip of each case, and the
 * median of the later trips. A trip begins when rank 0 of the receiver says that it is ready, and ends when all ranks of
 * the receiver have the array. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "arrays.h"

#define EXTENT 480
#define TRIPS 7

static inline void box_of(int second, int rank, int ranks, int64_t box[4]) {
    const int64_t lower = begin_of(EXTENT, ranks, rank), upper = begin_of(EXTENT, ranks, rank + 1);
    memcpy(box, second ? (int64_t[]){0, EXTENT, lower, upper} : (int64_t[]){lower, upper, 0, EXTENT}, 4 * sizeof *box);
}

static inline void report(FILE *out, int number, double seconds[TRIPS]) {
    fprintf(out, "%d %.9e\n%d %.9e\n", 2 * number, seconds[0], 2 * number + 1, median(seconds + 1, TRIPS - 1));
}

#endif
