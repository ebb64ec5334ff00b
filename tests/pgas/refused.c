/* Declares global arrays that cannot be coupled or do not fit: `refused CASE`. */
#include <string.h>
#include <titin_ga.h>

static int made(const char *what) {
    int plane[] = {13, 7}, wide[] = {13, 8};
    if (!strcmp(what, "shape")) return NGA_Create(C_DBL, 2, wide, "wide", NULL);
    if (!strcmp(what, "type")) return NGA_Create(NGA_Register_type(24), 2, plane, "particles", NULL);
    if (!strcmp(what, "element")) return NGA_Create(C_FLOAT, 2, plane, "single", NULL);
    int g_a = GA_Create_handle();
    GA_Set_data(g_a, 2, plane, C_DBL);
    GA_Set_array_name(g_a, "odd");
    if (!strcmp(what, "grid")) GA_Set_block_cyclic_proc_grid(g_a, (int[]){3, 2}, (int[]){2, 1});
    if (!strcmp(what, "group")) GA_Set_pgroup(g_a, GA_Pgroup_create((int[]){0, 1}, 2));
    GA_Allocate(g_a);
    return g_a;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    titin_instance *instance;
    if (argc < 2 || titin_ga_open("s: x", NULL, &instance)) return titin_explain(stderr);
    int g_a = made(argv[1]), again;
    titin_field *field;
    titin_ga_field(titin_port_find(instance, "x"), g_a, &field);
    if (!strcmp(argv[1], "distribution")) g_a = NGA_Create_irreg(C_DBL, 2, (int[]){13, 7}, "b", (int[]){1, 2}, (int[]){0, 0, 2});
    if (!strcmp(argv[1], "another")) g_a = NGA_Create(C_LONG, 2, (int[]){13, 7}, "whole", NULL);
    titin_reuse(instance, &again);
    if (titin_ga_receive(field, g_a, TITIN_WAIT, NULL, NULL)) titin_fail(instance, titin_error());
    const int failed = titin_close(instance);
    GA_Terminate();
    MPI_Finalize();
    return failed;
}
