/* compC, the water below: as compA in C. It sends its ten fields to compB, takes the answers as its new state, and moves it to the
 * east by a cell. This file repeats toysmp.f90, which explains the parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <titin_mpi.h>

enum { FIELDS = 10 };
enum { BEGIN, SENT, RECEIVED, COMPUTED, MARKS };

static titin_instance *instance;
static int rank, ranks;

/* The settings, and this rank's columns of the grid: first to first + width - 1. */
static int64_t nx, ny, steps, first, width;
static int aggregated, checks;

static void must(int status) {
    if (status) exit(titin_explain(stderr));
}

static void give_up(const char *text) {
    titin_fail(instance, text);
    exit(1);
}

static void open_slab(void) {
    must(titin_setting_i64(instance, "nx", &nx));
    must(titin_setting_i64(instance, "ny", &ny));
    must(titin_setting_i64(instance, "steps", &steps));
    must(titin_setting_bool(instance, "aggregated", &aggregated));
    must(titin_setting_bool(instance, "check", &checks));
    if (nx < ranks) give_up("there are more ranks than columns: raise nx, or start fewer");
    const int64_t more = nx % ranks;
    first = rank * (nx / ranks) + (rank < more ? rank : more);
    width = nx / ranks + (rank < more);
}

/* The initial state of compA, or compC. */
static double number(int of_a, int field, int64_t i, int64_t j) {
    const int64_t cells = nx * ny, place = 1 + (i + nx) % nx + j * nx;
    return (double)(of_a ? 2 * field * cells + place : -(2 * field + 1) * cells - place);
}

/* The cells of a row are neighbours in memory, as in Fortran; those of a column are not. */
static double *make_field(int field) {
    double *u = malloc((size_t)(width * ny) * sizeof *u);
    if (!u) give_up("there is no memory for a field");
    for (int64_t j = 0; j < ny; j++) {
        for (int64_t i = 0; i < width; i++) u[j * width + i] = number(0, field, first + i, j);
    }
    return u;
}

static void check(double *const *u, int64_t step) {
    static const int of[3][2] = {{0, 1}, {1, -1}, {1, -2}};
    const int sign = step % 6 < 3 ? 1 : -1;
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) {
            for (int64_t i = 0; i < width; i++) {
                const int64_t from = first + i - step % nx;
                const double a = number(1, field, from, j), c = number(0, field, from, j), found = u[field][j * width + i];
                const double wanted = sign * (of[step % 3][0] * a + of[step % 3][1] * c);
                if (found == wanted) continue;
                char text[200];
                snprintf(text, sizeof text, "before step %ld field C%d is wrong at %ld, %ld: %g, not %g", (long)step, field + 1,
                         (long)(first + i + 1), (long)(j + 1), found, wanted);
                give_up(text);
            }
        }
    }
}

/* Ten fields in one direction: each by a port of its own, or all by one port. */
struct bundle {
    int count; /* number of titin's fields: ten with an array each, or one with ten arrays */
    titin_field *fields[FIELDS];
};

static struct bundle open_bundle(const char *port) {
    titin_decomposition *columns = titin_decomposition_new(2, (int64_t[]){nx, ny});
    must(titin_decomposition_grid(columns, (int[]){ranks, 1}));
    must(titin_decomposition_order(columns, TITIN_ORDER_FORTRAN));
    int dtypes[FIELDS];
    for (int field = 0; field < FIELDS; field++) dtypes[field] = TITIN_F64;
    struct bundle bundle = {aggregated ? 1 : FIELDS, {NULL}};
    for (int k = 0; k < bundle.count; k++) {
        char name[16];
        if (aggregated) snprintf(name, sizeof name, "%s", port);
        else snprintf(name, sizeof name, "%s%d", port, k + 1);
        must(titin_field_new(titin_port_find(instance, name), columns, FIELDS / bundle.count, dtypes, &bundle.fields[k]));
    }
    titin_decomposition_free(columns);
    return bundle;
}

static void send_bundle(const struct bundle *bundle, double *const *u, double timestamp) {
    for (int k = 0; k < bundle->count; k++) {
        must(titin_field_send(bundle->fields[k], (const void *const *)(u + k), timestamp, TITIN_NO_NEXT));
    }
}

static void receive_bundle(const struct bundle *bundle, double *const *u) {
    for (int k = 0; k < bundle->count; k++) {
        must(titin_field_receive(bundle->fields[k], (void *const *)(u + k), TITIN_WAIT, NULL, NULL));
    }
}

static void close_bundle(struct bundle *bundle) {
    for (int k = 0; k < bundle->count; k++) titin_field_free(bundle->fields[k]);
}

static void move_east(double *const *u) {
    static double *east, *west;
    const size_t edge = (size_t)(FIELDS * ny);
    if (!east) east = malloc(edge * sizeof *east), west = malloc(edge * sizeof *west);
    if (!east || !west) give_up("there is no memory for an edge");
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) east[field * ny + j] = u[field][j * width + width - 1];
    }
    MPI_Sendrecv(east, (int)edge, MPI_DOUBLE, (rank + 1) % ranks, 0, west, (int)edge, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) {
            double *row = u[field] + j * width;
            memmove(row + 1, row, (size_t)(width - 1) * sizeof *row);
            row[0] = west[field * ny + j];
        }
    }
}

/* The times of each step's marks on this rank, by the clock of the host. */
static double *marks;

static void mark(int64_t step, int which) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    marks[step * MARKS + which] = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_times(void) {
    double *latest = malloc((size_t)(steps * MARKS) * sizeof *latest);
    if (!latest) give_up("there is no memory for the times");
    MPI_Reduce(marks, latest, (int)(steps * MARKS), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *out = fopen("times.csv", "w");
        if (!out) give_up("times.csv cannot be written");
        fprintf(out, "begin,sent,received,computed\n");
        for (double *at = latest; at < latest + steps * MARKS; at += MARKS) {
            fprintf(out, "%.9f,%.9f,%.9f,%.9f\n", at[BEGIN], at[SENT], at[RECEIVED], at[COMPUTED]);
        }
        if (fclose(out)) give_up("times.csv cannot be written");
    }
    free(latest);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    must(titin_mpi_open(NULL, NULL, MPI_COMM_WORLD, &instance));
    rank = titin_rank(instance), ranks = titin_ranks(instance);
    int again;
    must(titin_reuse(instance, &again));
    /* F_INIT */
    open_slab();
    struct bundle out = open_bundle("out"), in = open_bundle("in");
    double *u[FIELDS];
    for (int field = 0; field < FIELDS; field++) u[field] = make_field(field);
    marks = calloc((size_t)(steps * MARKS + 1), sizeof *marks);
    if (!marks) give_up("there is no memory for the times");

    for (int64_t step = 0; step < steps; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        mark(step, BEGIN);
        /* O_I */
        send_bundle(&out, u, (double)step);
        mark(step, SENT);
        /* S */
        receive_bundle(&in, u);
        mark(step, RECEIVED);
        move_east(u);
        mark(step, COMPUTED);
        if (checks) check(u, step + 1);
    }
    check(u, steps);
    write_times();
    close_bundle(&out);
    close_bundle(&in);
    must(titin_close(instance));
    MPI_Finalize();
    return 0;
}
