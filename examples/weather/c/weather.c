/* A shower drifts over the land. Each rank has some rows. Other programs take the rain when they like. */

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <titin_mpi.h>

/* The first row of a process, of n rows that are spread evenly. */
static int64_t begin(int64_t n, int processes, int process) {
    return n / processes * process + (process < n % processes ? process : n % processes);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    titin_instance *instance;
    if (titin_mpi_open("o_i: rain", NULL, MPI_COMM_WORLD, &instance)) return titin_explain(stderr);
    const int rank = titin_rank(instance), ranks = titin_ranks(instance);
    int64_t ny, nx, steps;
    double dt, pace;
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_i64(instance, "steps", &steps);
    titin_setting_f64(instance, "dt", &dt);
    titin_setting_f64(instance, "pace", &pace);

    titin_field *rain;
    titin_decomposition *rows = titin_decomposition_new(2, (int64_t[]){ny, nx});
    titin_decomposition_grid(rows, (int[]){ranks, 1});
    titin_field_new(titin_port_find(instance, "rain"), rows, 1, (int[]){TITIN_F64}, &rain);
    titin_decomposition_free(rows);
    const int64_t first = begin(ny, ranks, rank), mine = begin(ny, ranks, rank + 1) - first;
    double *u = malloc((size_t)(mine * nx + 1) * sizeof(double));
    const struct timespec rest = {(time_t)pace, (long)(fmod(pace, 1) * 1e9)};

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        for (int64_t step = 0; step < steps; ++step) {
            for (int64_t i = 0; i < mine; ++i)
                for (int64_t j = 0; j < nx; ++j)
                    u[i * nx + j] = fmax(0.0, 20.0 - (double)llabs(first + i - 15 - step / 2) - (double)llabs(j - 2 * step));

            /* O_I */
            if (titin_field_send(rain, (const void *[]){u}, (double)step * dt, (double)(step + 1) * dt)) break;

            /* S: a pause in place of a larger model. */
            titin_region *work = titin_region_begin(instance, "work");
            nanosleep(&rest, NULL);
            titin_region_end(work);
        }
    }
    const int failed = titin_close(instance);
    titin_field_free(rain);
    free(u);
    MPI_Finalize();
    return failed;
}
