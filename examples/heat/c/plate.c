/* Heat spreads through a plate, of which each rank has some rows. Another program computes the loss to the air. */

#include <math.h>
#include <stdlib.h>
#include <titin_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    titin_instance *instance;
    if (titin_mpi_open("o_i: temperature; s: loss", NULL, MPI_COMM_WORLD, &instance)) return titin_explain(stderr);
    const int rank = titin_rank(instance), ranks = titin_ranks(instance);
    int64_t ny, nx;
    double d, dt, t_max;
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_f64(instance, "d", &d);
    titin_setting_f64(instance, "dt", &dt);
    titin_setting_f64(instance, "t_max", &t_max);

    /* The temperature has a halo of one on all sides; the loss has none. */
    titin_field *temperature, *loss;
    titin_decomposition *rows = titin_decomposition_new(2, (int64_t[]){ny, nx});
    titin_decomposition_grid(rows, (int[]){ranks, 1});
    titin_field_new(titin_port_find(instance, "loss"), rows, 1, (int[]){TITIN_F64}, &loss);
    titin_decomposition_halo(rows, (int64_t[]){1, 1}, (int64_t[]){1, 1});
    titin_field_new(titin_port_find(instance, "temperature"), rows, 1, (int[]){TITIN_F64}, &temperature);
    titin_decomposition_free(rows);

    /* A hot patch on a cold plate, whose rim stays cold. */
    const int64_t mine = titin_field_owned(loss, 0, NULL), width = nx + 2;
    int64_t *row = malloc((size_t)(mine + 1) * sizeof(int64_t));
    titin_field_owned(loss, 0, row);
    double *u = calloc((size_t)((mine + 2) * width), sizeof(double));
    double *next = calloc((size_t)((mine + 2) * width), sizeof(double));
    double *q = malloc((size_t)(mine * nx + 1) * sizeof(double));
    for (int64_t i = 0; i < mine; ++i)
        for (int64_t j = nx / 5; j < nx / 2; ++j)
            if (row[i] >= ny / 6 && row[i] < ny / 2) u[(i + 1) * width + j + 1] = 100.0;
    const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        for (long step = 0; step < lround(t_max / dt); ++step) {
            /* O_I */
            const double t = step * dt;
            titin_field_send(temperature, (const void *[]){u}, t, t + dt);

            /* S */
            if (titin_field_receive(loss, (void *[]){q}, TITIN_WAIT, NULL, NULL)) break;
            MPI_Sendrecv(u + width, (int)width, MPI_DOUBLE, above, 0, u + (mine + 1) * width, (int)width, MPI_DOUBLE, below,
                         0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(u + mine * width, (int)width, MPI_DOUBLE, below, 0, u, (int)width, MPI_DOUBLE, above, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int64_t i = 0; i < mine; ++i)
                for (int64_t j = 0; j < nx; ++j) {
                    const double *c = u + (i + 1) * width + j + 1;
                    next[c - u] = *c + dt * (d * ((c[-width] + c[width]) + (c[-1] + c[1]) - 4.0 * *c) - q[i * nx + j]);
                }
            double *old = u;
            u = next, next = old;
        }
    }
    const int failed = titin_close(instance);
    titin_field_free(temperature);
    titin_field_free(loss);
    free(row);
    free(u);
    free(next);
    free(q);
    MPI_Finalize();
    return failed;
}
