/* Shared by the ping-pongs of small fields, counted or timed: small arrays of doubles, in rows on the ranks of side 0 and in
 * columns on the ranks of side 1. One array after the other goes there and back. */
#ifndef SMALL_FIELD_H
#define SMALL_FIELD_H

#include "arrays.h"
#include "counted.h"

#define HEIGHT 8
#define WIDTH 16 /* together 1 KiB */
#define MOST_FIELDS 100

/* The words of the command line: `counted` or `timed`, the number of fields, the number of trips, and a file: all ranks map
 * it (counted), or it gets the time (timed). */
struct task {
    int is_timed, fields;
    long trips;
    const char *file;
};

#define WORDS 4

static inline struct task task_of(char **words) {
    return (struct task){strcmp(words[0], "timed") == 0, atoi(words[1]), atol(words[2]), words[3]};
}

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

/* One rank of the timed ping-pong. In each trip side 0 sends all fields one by one, and then receives them. The first rank
 * of side 0 writes the time of one field, one way. */
static inline void play_timed(const struct counted_medium *medium, struct counted_rank own, const struct task *task) {
    const long warm = task->trips / 10 + 2;
    double begin = 0;
    for (long trip = -warm; trip < task->trips; trip++) {
        if (trip == 0) begin = now();
        for (int half = 0; half < 2; half++) {
            for (int field = 0; field < task->fields; field++) {
                if (half == own.side) medium->send();
                else medium->receive();
            }
        }
    }
    const double seconds = (now() - begin) / (double)task->trips / 2 / task->fields;
    if (own.side == 0 && own.rank == 0) add_time(task->file, task->fields, seconds);
}

static inline void play(const struct counted_medium *medium, struct counted_rank own, const struct task *task) {
    if (task->is_timed) play_timed(medium, own, task);
    else play_counted(medium, own, task->trips, task->file);
}

#endif
