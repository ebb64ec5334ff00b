/* Adds 1 to a field of 17 by 12 numbers in each use. Each rank owns a block of columns, in place, with a halo that must not
 * change. */
#include <stdio.h>
#include <stdlib.h>

#include <titin_mpi.h>

#define HALO 2

static int failed(void) {
    titin_explain(stderr);
    return 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, again, code = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    titin_instance *instance;
    if (titin_mpi_open("f_init: ask; o_f: answer", NULL, MPI_COMM_WORLD, &instance)) return failed();
    titin_decomposition *spread = titin_decomposition_new(2, (int64_t[]){17, 12});
    if (titin_decomposition_grid(spread, (int[]){1, ranks})) return failed();
    if (titin_decomposition_spread(spread, 1, TITIN_BLOCK, 0)) return failed();
    if (titin_decomposition_halo(spread, (int64_t[]){0, HALO}, (int64_t[]){1, 0})) return failed();
    titin_field *in, *out;
    if (titin_field_new(titin_port_find(instance, "ask"), spread, 1, (int[]){TITIN_F64}, &in)) return failed();
    if (titin_field_new(titin_port_find(instance, "answer"), spread, 1, (int[]){TITIN_F64}, &out)) return failed();
    titin_decomposition_free(spread);
    const int64_t length = titin_field_bytes(in, 0) / (int64_t)sizeof(double), width = length / 18;
    double *numbers = malloc((size_t)length * sizeof(double) + 1), time, next;
    while (!(code = titin_reuse(instance, &again)) && again) {
        for (int64_t i = 0; i < length; i++) numbers[i] = -1;
        if (titin_field_receive(in, (void *const[]){numbers}, TITIN_WAIT, &time, &next)) return failed();
        for (int64_t i = 0; i < length; i++) {
            const int owned = i / width < 17 && i % width >= HALO;
            if (!owned && numbers[i] != -1) {
                fprintf(stderr, "rank %d: element %ld of the halo was written\n", rank, (long)i);
                return 1;
            }
            if (owned) numbers[i]++;
        }
        if (titin_field_send(out, (const void *const[]){numbers}, time, TITIN_NO_NEXT)) return failed();
    }
    if (titin_close(instance)) code = failed();
    titin_field_free(in);
    titin_field_free(out);
    free(numbers);
    MPI_Finalize();
    return code;
}
