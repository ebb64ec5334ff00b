/* A bar that conducts heat, in two halves: `bar left ADDRESS` listens there, `bar right ADDRESS` opens the path. */
#include <stdio.h>
#include <string.h>
#include <titin_path.h>

enum { CELLS = 50, STEPS = 2000 };

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int left = !strcmp(argv[1], "left");
    titin_path *path;
    if (left) {
        titin_path_listener *listener;
        if (titin_path_listen(argv[2], NULL, &listener)) return titin_explain(stderr);
        if (titin_path_accept(listener, TITIN_WAIT, &path)) return titin_explain(stderr);
        titin_path_listener_free(listener);
    } else if (titin_path_open(argv[2], "bar", NULL, &path)) return titin_explain(stderr);

    /* Cells 1 to CELLS are this half's; the cells 0 and CELLS + 1 are its neighbours'. The left end is hot. */
    double u[CELLS + 2] = {0}, before[CELLS + 2];
    if (left) u[0] = 100;
    const int own = left ? CELLS : 1, other = left ? CELLS + 1 : 0;
    const titin_path_layout cell = {.dtype = TITIN_F64, .rank = 1, .extents = (const int64_t[]){1}};
    for (int step = 0; step < STEPS; step++) {
        if (titin_path_exchange_array(path, &u[own], &cell, &u[other], &cell, TITIN_WAIT)) return titin_explain(stderr);
        memcpy(before, u, sizeof u);
        for (int i = 1; i <= CELLS; i++) u[i] += 0.25 * (before[i - 1] - 2 * before[i] + before[i + 1]);
    }
    for (int i = 1; i <= CELLS; i++) printf("%.17g\n", u[i]);
    return titin_path_close(path, TITIN_WAIT) ? titin_explain(stderr) : 0;
}
