/* One side of a pull, as an instance of many ranks. Arguments: side (0 or 1), and the words of the task. The description
 * says that the field is pulled. */
#include <titin_mpi.h>

#include "blocks_field.h"
#include "pull.h"

static void make(const struct task *task, titin_instance *instance, const char *pause) {
    titin_field *field = declare(task, instance, "out", 0);
    int64_t box[4];
    box_of(task, 0, titin_rank(instance), box);
    double *u = doubles(count_of(box)), seconds = 0;
    for (int version = 0; version <= task->trips; version++) {
        each_in(u, box, box, task->extents[1], version, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        must(titin_field_send(field, (const void *[]){u}, version, TITIN_NO_NEXT));
        if (version > 0) seconds += now() - begin;
        pause_for(pause);
    }
    seconds = slowest(seconds, MPI_COMM_WORLD);
    if (titin_rank(instance) == 0) add_time(task->file, KEEP, seconds / task->trips);
    titin_field_free(field);
    free(u);
}

/* All ranks have the same version, as a whole. */
static void pull(const struct task *task, titin_instance *instance, const char *pause) {
    titin_field *field = declare(task, instance, "in", 1);
    int64_t box[4];
    box_of(task, 1, titin_rank(instance), box);
    double *u = doubles(count_of(box)), seconds = 0, version = 0;
    int pulls = 0;
    for (; version < task->trips; pulls++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        must(titin_field_receive(field, (void *[]){u}, TITIN_WAIT, &version, NULL));
        const double took = slowest(now() - begin, MPI_COMM_WORLD);
        if (pulls > 0) seconds += took;
        each_in(u, box, box, task->extents[1], version, 0);
        pause_for(pause);
    }
    if (titin_rank(instance) == 0) add_time(task->file, PULL, seconds / more_than_one(pulls));
    titin_field_free(field);
    free(u);
}

int main(int argc, char **argv) {
    if (argc != 2 + ALL_WORDS) return 2;
    MPI_Init(&argc, &argv);
    const int second = atoi(argv[1]);
    const struct task task = task_of(argv + 2);
    titin_instance *instance;
    must(titin_mpi_open(second ? "s: in" : "o_i: out", NULL, MPI_COMM_WORLD, &instance));
    int again;
    must(titin_reuse(instance, &again));
    (second ? pull : make)(&task, instance, argv[2 + WORDS + second]);
    must(titin_close(instance));
    MPI_Finalize();
    return 0;
}
