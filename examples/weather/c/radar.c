/* Shows the latest rain again and again: the amount, and the mean column. */

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <titin.h>

int main(void) {
    titin_instance *instance;
    if (titin_open("s: rain", NULL, &instance)) return titin_explain(stderr);
    int64_t ny, nx;
    double pace;
    titin_setting_i64(instance, "ny", &ny);
    titin_setting_i64(instance, "nx", &nx);
    titin_setting_f64(instance, "pace", &pace);

    titin_field *rain;
    titin_decomposition *whole = titin_decomposition_new(2, (int64_t[]){ny, nx});
    titin_field_new(titin_port_find(instance, "rain"), whole, 1, (int[]){TITIN_F64}, &rain);
    titin_decomposition_free(whole);
    double *u = malloc((size_t)(ny * nx) * sizeof(double)), t;
    const struct timespec rest = {(time_t)pace, (long)(fmod(pace, 1) * 1e9)};

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* S: the latest version, until the weather has ended and its last version was taken. */
        while (titin_field_receive(rain, (void *[]){u}, TITIN_WAIT, &t, NULL) == 0) {
            double sum = 0, moment = 0;
            for (int64_t i = 0; i < ny * nx; ++i) {
                sum += u[i];
                moment += u[i] * (double)(i % nx);
            }
            printf("%.17g %.17g %.17g\n", t, sum, moment / sum);
            nanosleep(&rest, NULL);
        }
    }
    const int failed = titin_close(instance);
    titin_field_free(rain);
    free(u);
    return failed;
}
