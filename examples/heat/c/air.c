/* The heat that a warm plate loses to the air. Each rank has some columns. */

#include <stdlib.h>
#include <titin_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    titin_instance *instance;
    if (titin_mpi_open("f_init: temperature; o_f: loss", NULL, MPI_COMM_WORLD, &instance)) return titin_explain(stderr);
    int64_t ny, nx;
    double k;
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_f64(instance, "k", &k);

    titin_field *temperature, *loss;
    titin_decomposition *columns = titin_decomposition_new(2, (int64_t[]){ny, nx});
    titin_decomposition_grid(columns, (int[]){1, titin_ranks(instance)});
    titin_field_new(titin_port_find(instance, "temperature"), columns, 1, (int[]){TITIN_F64}, &temperature);
    titin_field_new(titin_port_find(instance, "loss"), columns, 1, (int[]){TITIN_F64}, &loss);
    titin_decomposition_free(columns);

    const int64_t bytes = titin_field_bytes(loss, 0);
    double *u = malloc((size_t)bytes + 1), t;
    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT */
        if (titin_field_receive(temperature, (void *[]){u}, TITIN_WAIT, &t, NULL)) break;

        /* S */
        for (int64_t i = 0; i < bytes / (int64_t)sizeof(double); ++i) u[i] *= k;

        /* O_F */
        titin_field_send(loss, (const void *[]){u}, t, TITIN_NO_NEXT);
    }
    const int failed = titin_close(instance);
    titin_field_free(temperature);
    titin_field_free(loss);
    free(u);
    MPI_Finalize();
    return failed;
}
