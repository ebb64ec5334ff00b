/* Shared by the counted ping-pongs of fields: small arrays of doubles, in rows on the ranks of side 0 and in columns on the
 * ranks of side 1. One array after the other goes there and back. */
#ifndef COUNTED_FIELD_H
#define COUNTED_FIELD_H

#include "arrays.h"
#include "counted.h"

#define HEIGHT 8
#define WIDTH 16 /* together 1 KiB */
#define MOST_FIELDS 100

/* The words of the command line: the number of fields, trips, and the file that all ranks map. */
struct task {
    int fields;
    long trips;
    const char *file;
};

#define WORDS 3

static inline struct task task_of(char **words) { return (struct task){atoi(words[0]), atol(words[1]), words[2]}; }

/* The rows or columns of a rank: lower and upper row, lower and upper column. */
static inline void box_of(struct counted_rank whose, int64_t box[4]) {
    const int divided = whose.side == 0 ? 0 : 2;
    const int64_t extent = divided == 0 ? HEIGHT : WIDTH;
    memcpy(box, (int64_t[]){0, HEIGHT, 0, WIDTH}, 4 * sizeof *box);
    for (int bound = 0; bound < 2; bound++) box[divided + bound] = begin_of(extent, whose.ranks, whose.rank + bound);
}

/* The arrays of a rank. On side 0 the arrays have their numbers from the beginning. */
static inline void arrays_new(double **arrays, int count, struct counted_rank own) {
    int64_t box[4];
    box_of(own, box);
    for (int field = 0; field < count; field++) {
        arrays[field] = doubles(count_of(box));
        if (own.side == 0) each_in(arrays[field], box, box, WIDTH, field, 1);
    }
}

/* Checks every number of a rank at the end. */
static inline void arrays_free(double **arrays, int count, struct counted_rank own) {
    int64_t box[4];
    box_of(own, box);
    for (int field = 0; field < count; field++) {
        each_in(arrays[field], box, box, WIDTH, field, 0);
        free(arrays[field]);
    }
}

#endif
