/* One side of coupled blocks, as an instance of many ranks. Arguments: side (0 or 1), and the words of the task. */
#include <titin_mpi.h>

#include "blocks_field.h"

int main(int argc, char **argv) {
    if (argc != 2 + WORDS) return 2;
    MPI_Init(&argc, &argv);
    const int second = atoi(argv[1]);
    const struct task task = task_of(argv + 2);
    titin_instance *instance;
    must(titin_mpi_open("o_i: out; s: in", NULL, MPI_COMM_WORLD, &instance));
    int again;
    must(titin_reuse(instance, &again));
    int64_t box[4];
    box_of(&task, second, titin_rank(instance), box);
    double *own = doubles(count_of(box)), *other = doubles(count_of(box));
    each_of(own, box, task.extents[1], 1);
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    /* With one way the second side says when it is ready, so that no array waits while an earlier array is on its way. */
    titin_field *sent = task.ways == 2 || !second ? declare(&task, instance, "out", second) : NULL;
    titin_field *received = task.ways == 2 || second ? declare(&task, instance, "in", second) : NULL;
    double begin = 0;
    for (int trip = -WARM; trip < task.trips; trip++) {
        if (trip == 0) {
            if (second) each_of(other, box, task.extents[1], 0);
            MPI_Barrier(MPI_COMM_WORLD);
            begin = now();
        }
        if (!sent) must(titin_send_nil(out, TITIN_NO_SLOT, trip, TITIN_NO_NEXT, NULL));
        if (!received) {
            titin_message *ready;
            must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &ready));
            titin_message_free(ready);
        }
        if (sent) must(titin_field_send(sent, (const void *[]){own}, trip, TITIN_NO_NEXT));
        if (received) must(titin_field_receive(received, (void *[]){other}, TITIN_WAIT, NULL, NULL));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double seconds = now() - begin;
    if (received) each_of(other, box, task.extents[1], 0);
    if (second && titin_rank(instance) == 0) add_time(task.file, 0, seconds / task.trips);
    titin_field_free(sent);
    titin_field_free(received);
    must(titin_close(instance));
    free(own), free(other);
    MPI_Finalize();
    return 0;
}
