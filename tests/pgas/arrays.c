/* Adds 1 to the numbers of global arrays of every kind in each use. Runs on four processes. */
#include <string.h>
#include <titin_ga.h>

#define CASES 9
static const char *const names[CASES] = {"even", "few", "cyclic", "uneven", "ghosts", "restricted", "line", "cube", "half"};

static int made(const char *name) {
    int plane[] = {13, 7};
    if (!strcmp(name, "even") || !strcmp(name, "half")) return NGA_Create(C_DBL, 2, plane, "even", NULL);
    if (!strcmp(name, "few")) return NGA_Create_irreg(C_INT, 2, plane, "few", (int[]){2, 1}, (int[]){0, 4, 0});
    if (!strcmp(name, "uneven")) return NGA_Create_irreg(C_LONG, 2, plane, "uneven", (int[]){2, 2}, (int[]){0, 4, 0, 6});
    if (!strcmp(name, "ghosts")) return NGA_Create_ghosts(C_FLOAT, 2, plane, (int[]){1, 2}, "ghosts", NULL);
    if (!strcmp(name, "line")) return NGA_Create(C_INT, 1, (int[]){29}, "line", NULL);
    if (!strcmp(name, "cube")) return NGA_Create(C_SCPL, 3, (int[]){5, 4, 3}, "cube", NULL);
    int g_a = GA_Create_handle();
    GA_Set_data(g_a, 2, plane, !strcmp(name, "cyclic") ? C_DBL : C_DCPL);
    if (!strcmp(name, "cyclic")) GA_Set_block_cyclic(g_a, (int[]){3, 2});
    else GA_Set_restricted(g_a, (int[]){3, 1}, 2);
    GA_Allocate(g_a);
    return g_a;
}

/* Of the array "half" only rows 2 to 8 and columns 1 to 5 are coupled. */
static int declared(titin_port *port, const char *name, int g_a, titin_field **field) {
    if (strcmp(name, "half")) return titin_ga_field(port, g_a, field);
    titin_decomposition *part = titin_ga_decomposition(g_a, TITIN_ORDER_C);
    titin_decomposition_region(part, (int64_t[]){2, 1}, (int64_t[]){9, 6});
    int failed = titin_field_new(port, part, 1, (int[]){titin_ga_dtype(g_a)}, field);
    titin_decomposition_free(part);
    return failed;
}

static void add(int g_a) {
    int type, dims, extents[GA_MAX_DIM];
    NGA_Inquire(g_a, &type, &dims, extents);
    switch (type) {
    case C_INT: GA_Add_constant(g_a, &(int){1}); break;
    case C_LONG: GA_Add_constant(g_a, &(long){1}); break;
    case C_FLOAT: GA_Add_constant(g_a, &(float){1}); break;
    case C_DBL: GA_Add_constant(g_a, &(double){1}); break;
    case C_SCPL: GA_Add_constant(g_a, &(SingleComplex){1, 0}); break;
    case C_DCPL: GA_Add_constant(g_a, &(DoubleComplex){1, 0}); break;
    }
}

/* Writes or checks the ghosts, which lie around the elements of this process. */
static void ghosts(int g_a, titin_instance *instance, int write) {
    int extents[2], leading[1], rows, columns, first[2], last[2];
    float *all;
    NGA_Distribution(g_a, GA_Nodeid(), first, last);
    rows = last[0] - first[0] + 1;
    columns = last[1] - first[1] + 1;
    NGA_Access_ghosts(g_a, extents, &all, leading);
    for (int i = 0; i < extents[0]; ++i)
        for (int j = 0; j < extents[1]; ++j) {
            if (i >= 1 && i <= rows && j >= 2 && j < 2 + columns) continue;
            if (write) all[i * leading[0] + j] = -7;
            else if (all[i * leading[0] + j] != -7) titin_fail(instance, "a ghost was written");
        }
    NGA_Release_ghosts(g_a);
}

/* Checks that nothing was written beside the coupled half. */
static void rest(int g_a, titin_instance *instance) {
    double all[13][7];
    NGA_Get(g_a, (int[]){0, 0}, (int[]){12, 6}, all, (int[]){7});
    for (int i = 0; i < 13; ++i)
        for (int j = 0; j < 7; ++j)
            if (!(i >= 2 && i < 9 && j >= 1 && j < 6) && all[i][j] != -7) titin_fail(instance, "beside the region was written");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    char ports[1024] = "f_init: ";
    for (int i = 0; i < CASES; ++i) strcat(strcat(ports, names[i]), i + 1 < CASES ? ", " : "; o_f: ");
    for (int i = 0; i < CASES; ++i) strcat(strcat(strcat(ports, names[i]), "_back"), i + 1 < CASES ? ", " : "");
    titin_instance *instance;
    if (titin_ga_open(ports, NULL, &instance)) return titin_explain(stderr);
    int arrays[CASES], again;
    titin_field *in[CASES], *out[CASES];
    for (int i = 0; i < CASES; ++i) {
        char back[32];
        snprintf(back, sizeof back, "%s_back", names[i]);
        arrays[i] = made(names[i]);
        declared(titin_port_find(instance, names[i]), names[i], arrays[i], &in[i]);
        declared(titin_port_find(instance, back), names[i], arrays[i], &out[i]);
    }
    while (!titin_reuse(instance, &again) && again) {
        double t = 0;
        for (int i = 0; i < CASES; ++i) {
            if (!strcmp(names[i], "ghosts")) ghosts(arrays[i], instance, 1);
            if (!strcmp(names[i], "half")) GA_Fill(arrays[i], &(double){-7});
            titin_ga_receive(in[i], arrays[i], TITIN_WAIT, &t, NULL);
            if (!strcmp(names[i], "ghosts")) ghosts(arrays[i], instance, 0);
            if (!strcmp(names[i], "half")) rest(arrays[i], instance);
            GA_Sync();
            add(arrays[i]);
        }
        for (int i = 0; i < CASES; ++i) titin_ga_send(out[i], arrays[i], t, TITIN_NO_NEXT);
    }
    const int failed = titin_close(instance);
    if (failed) titin_explain(stderr);
    for (int i = 0; i < CASES; ++i) titin_field_free(in[i]), titin_field_free(out[i]);
    GA_Terminate();
    MPI_Finalize();
    return failed;
}
