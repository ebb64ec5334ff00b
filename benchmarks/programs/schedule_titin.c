/* One side of a field, as an instance of many ranks. Arguments: side (0 or 1), file for the times. In the first case both
 * ends have a grid of processes. In the second case each rank knows only its own box. */
#include <titin_mpi.h>

#include "over_titin.h"
#include "schedule.h"

static titin_field *declare(titin_instance *instance, const char *port, int second, int with_boxes) {
    const int rank = titin_rank(instance), ranks = titin_ranks(instance);
    titin_decomposition *spread = titin_decomposition_new(2, (int64_t[]){EXTENT, EXTENT});
    if (with_boxes) {
        int64_t box[4];
        box_of(second, rank, ranks, box);
        must(titin_decomposition_box(spread, (int64_t[]){box[0], box[2]}, (int64_t[]){box[1], box[3]}));
    } else {
        must(titin_decomposition_grid(spread, second ? (int[]){1, ranks} : (int[]){ranks, 1}));
    }
    titin_field *field;
    must(titin_field_new(titin_port_find(instance, port), spread, 1, (int[]){TITIN_F64}, &field));
    titin_decomposition_free(spread);
    return field;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    const int second = atoi(argv[1]);
    const char *ports = second ? "o_i: ready; s: in0; s: in1" : "o_i: out0; o_i: out1; s: ready";
    titin_instance *instance;
    must(titin_mpi_open(ports, NULL, MPI_COMM_WORLD, &instance));
    titin_port *ready = titin_port_find(instance, "ready");
    int again;
    must(titin_reuse(instance, &again));
    FILE *out = second && titin_rank(instance) == 0 ? create(argv[2]) : NULL;
    int64_t box[4];
    box_of(second, titin_rank(instance), titin_ranks(instance), box);
    double *u = calloc((size_t)count_of(box) + 1, sizeof *u);
    if (!second) each_of(u, box, EXTENT, 1);
    for (int number = 0; number < 2; number++) {
        char port[16];
        snprintf(port, sizeof port, "%s%d", second ? "in" : "out", number);
        titin_field *field = NULL;
        double seconds[TRIPS];
        for (int trip = 0; trip < TRIPS; trip++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = now(), stamp = number * TRIPS + trip;
            if (second) {
                must(titin_send_nil(ready, TITIN_NO_SLOT, stamp, TITIN_NO_NEXT, NULL));
            } else {
                titin_message *message;
                must(titin_receive(ready, TITIN_NO_SLOT, TITIN_WAIT, &message));
                titin_message_free(message);
            }
            if (!field) field = declare(instance, port, second, number);
            if (second) must(titin_field_receive(field, (void *[]){u}, TITIN_WAIT, NULL, NULL));
            else must(titin_field_send(field, (const void *[]){u}, stamp, TITIN_NO_NEXT));
            MPI_Barrier(MPI_COMM_WORLD);
            seconds[trip] = now() - begin;
            if (second) each_of(u, box, EXTENT, 0);
        }
        if (out) report(out, number, seconds);
        titin_field_free(field);
    }
    finish(out, argv[2]);
    free(u);
    must(titin_close(instance));
    MPI_Finalize();
    return 0;
}
