/* The level of a river, in steps of its own length. Each step takes the rain of its time on the catchment, a third of the land. */

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <titin.h>

int main(void) {
    titin_instance *instance;
    if (titin_open("s: rain", NULL, &instance)) return titin_explain(stderr);
    int64_t ny, nx, steps;
    double dt, k, pace;
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_i64(instance, "steps", &steps);
    titin_setting_f64(instance, "dt", &dt);
    titin_setting_f64(instance, "k", &k);
    titin_setting_f64(instance, "pace", &pace);

    titin_field *rain;
    titin_decomposition *catchment = titin_decomposition_new(2, (int64_t[]){ny, nx});
    titin_decomposition_box(catchment, (int64_t[]){0, nx / 3}, (int64_t[]){ny, 2 * nx / 3});
    titin_field_new(titin_port_find(instance, "rain"), catchment, 1, (int[]){TITIN_F64}, &rain);
    titin_decomposition_free(catchment);
    const int64_t places = ny * (2 * nx / 3 - nx / 3);
    double *u = malloc((size_t)places * sizeof(double)), level = 0, t;
    const struct timespec rest = {(time_t)pace, (long)(fmod(pace, 1) * 1e9)};

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        for (int64_t step = 0; step < steps; ++step) {
            /* S: the rain at or before this time. */
            if (titin_field_receive_at(rain, (void *[]){u}, (double)step * dt, TITIN_WAIT, &t, NULL)) break;
            double sum = 0;
            for (int64_t i = 0; i < places; ++i) sum += u[i];
            level += dt * (sum / (double)places - k * level);
            printf("%.17g %.17g %.17g\n", (double)step * dt, t, level);
            nanosleep(&rest, NULL);
        }
    }
    const int failed = titin_close(instance);
    titin_field_free(rain);
    free(u);
    return failed;
}
