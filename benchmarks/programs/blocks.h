/* What the benchmarks of coupled blocks share: arrays of doubles, in blocks over a grid of processes at each side, go from the first
 * side to the second, and if two are coupled another one at the same time back. Rank 0 of the second side writes a line
 * "0 SECONDS", the mean of some exchanges. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* From the command line: extents, processes of both sides along each dimension, exchanges, how many ways (1 or 2), the file. */
struct task {
    int64_t extents[2];
    int grids[2][2], trips, ways;
    const char *file;
};

#define WORDS 9
#define WARM 1

static inline struct task task_of(char **words) {
    struct task task = {{atoll(words[0]), atoll(words[1])},
                        {{atoi(words[2]), atoi(words[3])}, {atoi(words[4]), atoi(words[5])}},
                        atoi(words[6]), atoi(words[7]), words[8]};
    return task;
}

/* What a rank has: lower and upper row, lower and upper column. Blocks are of the same size but for the last, as with BLOCK of HPF. */
static inline void box_of(const struct task *task, int second, int rank, int64_t box[4]) {
    const int *grid = task->grids[second], place[2] = {rank / grid[1], rank % grid[1]};
    for (int dim = 0; dim < 2; dim++) {
        const int64_t n = task->extents[dim], size = (n + grid[dim] - 1) / grid[dim], at = place[dim] * size;
        box[2 * dim] = at < n ? at : n;
        box[2 * dim + 1] = at + size < n ? at + size : n;
    }
}

static inline int64_t count_of(const int64_t box[4]) { return (box[1] - box[0]) * (box[3] - box[2]); }

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double *memory(int64_t count) {
    double *found = aligned_alloc(4096, ((size_t)count * sizeof(double) + 4096) / 4096 * 4096);
    if (!found) exit(1);
    memset(found, 0, (size_t)count * sizeof(double));
    return found;
}

/* Each element is its own number; or is looked at whether it is. */
static inline void each(const struct task *task, double *u, const int64_t box[4], int fill) {
    for (int64_t i = box[0]; i < box[1]; i++) {
        for (int64_t j = box[2]; j < box[3]; j++, u++) {
            const double wanted = (double)(i * task->extents[1] + j);
            if (fill) *u = wanted;
            else if (*u != wanted) {
                fprintf(stderr, "element %ld, %ld is %g\n", (long)i, (long)j, *u);
                exit(1);
            }
        }
    }
}

static inline void report(const struct task *task, double seconds) {
    FILE *out = fopen(task->file, "w");
    if (!out || fprintf(out, "0 %.9e\n", seconds / task->trips) < 0 || fclose(out) != 0) perror(task->file);
}

#endif
