/* The velocity arrives in a global array, with the distribution that Global Arrays has chosen. */

#include <math.h>
#include <titin_ga.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    titin_instance *instance;
    if (titin_ga_open("s: velocity", NULL, &instance)) return titin_explain(stderr);
    int64_t nx, ny, steps;
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "steps", &steps);
    int velocity = NGA_Create(C_DBL, 2, (int[]){(int)nx, (int)ny}, "velocity", NULL);
    GA_Zero(velocity);
    titin_field *field;
    titin_ga_field(titin_port_find(instance, "velocity"), velocity, &field);

    double row[ny], t;
    int again, coupled = 0, right = 0;
    while (titin_reuse(instance, &again) == 0 && again) {
        for (int64_t step = 1; step <= steps; ++step) {
            /* S: if the description couples nothing at this step, the time is NaN. */
            if (titin_ga_receive(field, velocity, TITIN_WAIT, &t, NULL)) break;
            if (isnan(t)) continue;
            ++coupled;

            /* Any call of Global Arrays: here each process gets all rows. Elements that are not coupled are zero. */
            right = 0;
            for (int x = 1; x <= nx; ++x) {
                NGA_Get(velocity, (int[]){x - 1, 0}, (int[]){x - 1, (int)ny - 1}, row, (int[]){(int)ny});
                for (int y = 1; y <= ny; ++y) {
                    if (row[y - 1] == t * (x + y)) ++right;
                    else if (row[y - 1] != 0) titin_fail(instance, "the velocity is wrong");
                }
            }
        }
    }
    if (GA_Nodeid() == 0)
        printf("velocity: %d of %d steps, %d of %d numbers, in a global array\n", coupled, (int)steps, right, (int)(nx * ny));
    const int failed = titin_close(instance);
    titin_field_free(field);
    GA_Terminate();
    MPI_Finalize();
    return failed;
}
