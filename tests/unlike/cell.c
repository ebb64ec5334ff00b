/* `cell a|b rows|columns`: one side of a pair, as cell.h says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <titin_mpi.h>

#include "cell.h"

#define MUST(call) \
    do { \
        if (call) { \
            titin_explain(stderr); \
            exit(1); \
        } \
    } while (0)

static titin_field *declare(titin_instance *instance, const char *port, const titin_decomposition *spread) {
    titin_field *field;
    MUST(titin_field_new(titin_port_find(instance, port), spread, 3, (int[]){TITIN_F64, TITIN_F32, TITIN_I32}, &field));
    return field;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 3) return 2;
    const int side = !strcmp(argv[1], "b"), rows = !strcmp(argv[2], "rows");
    titin_instance *instance;
    MUST(titin_mpi_open(NULL, NULL, MPI_COMM_WORLD, &instance));
    const int ranks = titin_ranks(instance);
    titin_decomposition *spread = titin_decomposition_new(2, (int64_t[]){NY, NX});
    MUST(titin_decomposition_grid(spread, (int[]){rows ? ranks : 1, rows ? 1 : ranks}));
    titin_field *out[MEDIA], *in[MEDIA], *last = declare(instance, "last", spread);
    for (int medium = 0; medium < MEDIA; ++medium) {
        char port[16];
        snprintf(port, sizeof port, "out_%s", media[medium]);
        out[medium] = declare(instance, port, spread);
        snprintf(port, sizeof port, "in_%s", media[medium]);
        in[medium] = declare(instance, port, spread);
    }
    titin_decomposition_free(spread);
    int64_t i[NY], j[NX];
    const int64_t ny = titin_field_owned(last, 0, i), nx = titin_field_owned(last, 1, j), size = ny * nx;
    double u[NY * NX], v[NY * NX];
    float w[NY * NX], x[NY * NX];
    int32_t k[NY * NX], m[NY * NX];
    int again;
    while (!titin_reuse(instance, &again) && again) {
        for (int64_t p = 0; p < size; ++p) {
            const int64_t row = i[p / nx], column = j[p % nx];
            u[p] = (double)((row * 259 + column * 37 + 11 * side) % 97) / 97.0;
            w[p] = (float)((row * 5 + column * 3 + 13 * side) % 31) / 31.0f;
            k[p] = (int32_t)(row * NX + column + side);
        }
        for (int step = 0; step < STEPS; ++step) {
            double mine = 0, top;
            for (int64_t p = 0; p < size; ++p) mine = u[p] > mine ? u[p] : mine;
            MPI_Allreduce(&mine, &top, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            MUST(titin_field_send(out[step % MEDIA], (const void *const[]){u, w, k}, step, TITIN_NO_NEXT));
            MUST(titin_field_receive(in[step % MEDIA], (void *const[]){v, x, m}, TITIN_WAIT, NULL, NULL));
            for (int64_t p = 0; p < size; ++p) {
                const double t = 0.75 * u[p] + 0.25 * v[p];
                u[p] = 3.9 * t * (1.0 - t) * (1.0 - 0.001 * top);
                const float r = 0.75f * w[p] + 0.25f * x[p];
                w[p] = 3.9f * r * (1.0f - r);
                k[p] = (31 * k[p] + m[p]) % 65521;
            }
        }
        MUST(titin_field_send(last, (const void *const[]){u, w, k}, STEPS, TITIN_NO_NEXT));
    }
    for (int medium = 0; medium < MEDIA; ++medium) {
        titin_field_free(out[medium]);
        titin_field_free(in[medium]);
    }
    titin_field_free(last);
    MUST(titin_close(instance));
    MPI_Finalize();
}
