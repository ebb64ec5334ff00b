/* Shared by the benchmarks of coupled blocks. An array of doubles, in blocks over a grid of processes at each side, goes
 * from the first side to the second. With two ways another array goes back at the same time. Rank 0 of the second side
 * writes a line "0 SECONDS", the mean of some exchanges. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "arrays.h"

/* The words of the command line: extents, processes of both sides along each dimension, exchanges, number of ways (1 or 2),
 * the file. */
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

/* All blocks but the last have the same size, as with BLOCK of HPF. */
static inline void box_of(const struct task *task, int second, int rank, int64_t box[4]) {
    const int *grid = task->grids[second], place[2] = {rank / grid[1], rank % grid[1]};
    for (int dim = 0; dim < 2; dim++) {
        const int64_t n = task->extents[dim], size = (n + grid[dim] - 1) / grid[dim], at = place[dim] * size;
        box[2 * dim] = at < n ? at : n;
        box[2 * dim + 1] = at + size < n ? at + size : n;
    }
}

#endif
