/* The velocity arrives in a global array, distributed as Global Arrays thought best. */

#include <titin_ga.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    titin_instance *instance;
    if (titin_ga_open("f_init: velocity", NULL, &instance)) return titin_explain(stderr);
    int64_t nx, ny;
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_i64(instance, "ny", &ny);
    int velocity = NGA_Create(C_DBL, 2, (int[]){(int)nx, (int)ny}, "velocity", NULL);
    titin_field *field;
    titin_ga_field(titin_port_find(instance, "velocity"), velocity, &field);

    /* What the squares of all numbers come to in step 1. */
    double squares = 0, t;
    for (int64_t x = 1; x <= nx; ++x)
        for (int64_t y = 1; y <= ny; ++y) squares += (double)((x - y) * (x - y));

    int again, steps = 0;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT */
        if (titin_ga_receive(field, velocity, TITIN_WAIT, &t, NULL)) break;

        /* S: anything that Global Arrays can do. */
        double corner;
        NGA_Get(velocity, (int[]){0, (int)ny - 1}, (int[]){0, (int)ny - 1}, &corner, (int[]){1});
        if (corner != t * (double)(1 - ny)) titin_fail(instance, "the velocity in the corner is wrong");
        if (GA_Ddot(velocity, velocity) != t * t * squares) titin_fail(instance, "the velocity is wrong");
        ++steps;
    }
    if (GA_Nodeid() == 0) printf("%d steps: the velocity is right in a global array of %d by %d\n", steps, (int)nx, (int)ny);
    const int failed = titin_close(instance);
    titin_field_free(field);
    GA_Terminate();
    MPI_Finalize();
    return failed;
}
