/* Takes versions of a field into a global array, and follows the steps of another field. */
#include <math.h>
#include <titin_ga.h>

static void check(titin_instance *instance, int right, const char *what) {
    if (!right) titin_fail(instance, what);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    titin_instance *instance;
    if (titin_ga_open("o_i: back; s: x, y", NULL, &instance)) return titin_explain(stderr);
    int g_a = NGA_Create(C_DBL, 2, (int[]){13, 7}, "numbers", NULL), again;
    titin_field *x, *y, *back;
    titin_ga_field(titin_port_find(instance, "x"), g_a, &x);
    titin_ga_field(titin_port_find(instance, "y"), g_a, &y);
    titin_ga_field(titin_port_find(instance, "back"), g_a, &back);
    titin_reuse(instance, &again);

    double t = 0, next = 0, number;
    const double asked[] = {2.5, 1, 5.5};
    for (int i = 0; i < 3; ++i) {
        check(instance, !titin_ga_receive_at(x, g_a, asked[i], TITIN_WAIT, &t, &next), "it is there");
        check(instance, t == (i == 0 ? 2 : i == 1 ? 1 : 5), "the time of a version");
        NGA_Get(g_a, (int[]){12, 6}, (int[]){12, 6}, &number, (int[]){1});
        check(instance, number == 90 + 1000 * t, "the last number");
        GA_Sync();
    }
    check(instance, titin_ga_receive_at(x, g_a, -1, TITIN_WAIT, &t, NULL) == TITIN_ERROR_EVICTED, "before the first");
    check(instance, !titin_ga_receive(x, g_a, TITIN_WAIT, &t, NULL) && t == 5, "the latest");
    check(instance, !titin_ga_receive(y, g_a, TITIN_WAIT, &t, NULL) && isnan(t), "a step that is not coupled");
    check(instance, !titin_ga_receive(y, g_a, TITIN_WAIT, &t, NULL) && t == 1, "a step that is");
    titin_ga_send(back, g_a, 0, TITIN_NO_NEXT);
    titin_field_withdraw(back);

    const int failed = titin_close(instance);
    if (failed) titin_explain(stderr);
    titin_field_free(x), titin_field_free(y), titin_field_free(back);
    GA_Terminate();
    MPI_Finalize();
    return failed;
}
