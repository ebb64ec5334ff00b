/* One side of the redistribution, as an instance of many ranks. Arguments: side (0 or 1), file for the times. */
#include <titin_mpi.h>

#include "over_titin.h"
#include "redistribution.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    const int second = atoi(argv[1]);
    char ports[512] = "";
    for (int number = 0; number < COUNT; number++) {
        char text[64];
        snprintf(text, sizeof text, "o_i: out%d; s: in%d; ", number, number);
        strcat(ports, text);
    }
    titin_instance *instance;
    must(titin_mpi_open(ports, NULL, MPI_COMM_WORLD, &instance));
    const int rank = titin_rank(instance), ranks = titin_ranks(instance);
    FILE *out = !second && rank == 0 ? create(argv[2]) : NULL;
    int again;
    must(titin_reuse(instance, &again));
    titin_field *fields[COUNT][2];
    for (int number = 0; number < COUNT; number++) {
        const int64_t n = CASES[number].extent;
        const int rows = has_rows(CASES[number].pattern, second);
        titin_decomposition *spread = titin_decomposition_new(2, (int64_t[]){n, n});
        titin_decomposition_grid(spread, rows ? (int[]){ranks, 1} : (int[]){1, ranks});
        if (is_cyclic(CASES[number].pattern, second)) titin_decomposition_spread(spread, 0, TITIN_CYCLIC, BLOCK);
        int dtypes[MOST_FIELDS];
        for (int field = 0; field < MOST_FIELDS; field++) dtypes[field] = TITIN_F64;
        for (int way = 0; way < 2; way++) {
            char port[16];
            snprintf(port, sizeof port, "%s%d", way ? "in" : "out", number);
            titin_port *found = titin_port_find(instance, port);
            must(titin_field_new(found, spread, CASES[number].fields, dtypes, &fields[number][way]));
        }
        titin_decomposition_free(spread);
    }
    for (int number = 0; number < COUNT; number++) {
        const int count = CASES[number].fields;
        double *arrays[MOST_FIELDS], seconds[64];
        for (int field = 0; field < count; field++) {
            arrays[field] = memory((size_t)titin_field_bytes(fields[number][0], 0));
            if (!second) each(arrays[field], number, field, second, rank, ranks, 1);
        }
        for (int trip = -WARM; trip < CASES[number].trips; trip++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = now();
            for (int turn = 0; turn < 2; turn++) {
                titin_field *field = fields[number][turn != second];
                if (turn == second) must(titin_field_send(field, (const void *const *)arrays, trip, TITIN_NO_NEXT));
                else must(titin_field_receive(field, (void *const *)arrays, TITIN_WAIT, NULL, NULL));
                if (turn == 0 && second && trip == -WARM) {
                    for (int k = 0; k < count; k++) each(arrays[k], number, k, second, rank, ranks, 0);
                }
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (trip >= 0) seconds[trip] = now() - begin;
        }
        for (int field = 0; field < count; field++) {
            if (!second) each(arrays[field], number, field, second, rank, ranks, 0);
            free(arrays[field]);
        }
        if (out) report(out, number, seconds);
    }
    finish(out, argv[2]);
    for (int number = 0; number < COUNT; number++) {
        titin_field_free(fields[number][0]);
        titin_field_free(fields[number][1]);
    }
    must(titin_close(instance));
    MPI_Finalize();
    return 0;
}
