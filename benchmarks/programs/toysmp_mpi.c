/* The three components of miniapps/toysmp by hand in one MPI job. The columns that ranks share are computed beforehand, and
 * not timed.
 *
 *     toysmp_mpi RANKS_A RANKS_B NX NY STEPS separate|aggregated alltoallv|isend
 *
 * With alltoallv both sides pack into a buffer and unpack from one, whatever slabs they have. With isend each rank has one
 * partner, with the same columns. Fields go straight from array to array, which only equal numbers of ranks allow.
 * Each component writes its marks into a.csv, b.csv or c.csv, like the mini-app. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS = 10, MARKS = 4 };
enum { OF_A, OF_B, OF_C };

static int64_t nx, ny, steps;
static int aggregated, packs;

/* A component's ranks: their place among all ranks, their number, and this rank's place among them. */
static int first_of[3], ranks_of[3], role, rank;
static MPI_Comm side;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *memory(size_t bytes) {
    void *found = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
    if (!found) fail("there is no memory");
    memset(found, 0, bytes);
    return found;
}

/* First column of a component's k-th rank. */
static int64_t begin_of(int component, int k) {
    const int64_t more = nx % ranks_of[component];
    return nx / ranks_of[component] * k + (k < more ? k : more);
}

static int64_t width_of(int component, int k) { return begin_of(component, k + 1) - begin_of(component, k); }

static double number(int component, int field, int64_t i, int64_t j) {
    const int64_t cells = nx * ny, place = 1 + (i + nx) % nx + j * nx;
    return (double)(component == OF_A ? 2 * field * cells + place : -(2 * field + 1) * cells - place);
}

/* Checks every number of a component's fields at the end. */
static void check(double *const *u) {
    static const int of[2][3][2] = {{{1, 0}, {2, -3}, {1, -3}}, {{0, 1}, {1, -1}, {1, -2}}};
    const int *weights = of[role == OF_C][steps % 3], sign = steps % 6 < 3 ? 1 : -1;
    const int64_t first = begin_of(role, rank), width = width_of(role, rank);
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) {
            for (int64_t i = 0; i < width; i++) {
                const int64_t from = first + i - steps % nx;
                const double a = number(OF_A, field, from, j), c = number(OF_C, field, from, j);
                if (u[field][j * width + i] != sign * (weights[0] * a + weights[1] * c)) fail("a number is wrong in the end");
            }
        }
    }
}

/* The exchange in one direction between this rank and the ranks of another component. */
struct way {
    int sends, other;
    MPI_Comm both; /* the ranks of the two components, A or C before B */
    int *counts, *places, *none;
    double *buffer;
    MPI_Datatype all; /* ten fields where they lie */
    MPI_Request requests[FIELDS];
};

/* The columns that this rank shares with rank k of another component. `begin` is the first of them, counted from this
 * rank's first column. */
static int64_t shared(int other, int k, int64_t *begin) {
    const int64_t mine = begin_of(role, rank), theirs = begin_of(other, k);
    const int64_t low = mine > theirs ? mine : theirs, end = begin_of(role, rank + 1), their_end = begin_of(other, k + 1);
    *begin = low - mine;
    return (end < their_end ? end : their_end) - low;
}

static struct way open_way(int sends, int other, MPI_Comm both, double *const *u) {
    struct way way = {.sends = sends, .other = other, .both = both};
    const int before = role == OF_B ? 0 : ranks_of[role], all = ranks_of[role] + ranks_of[other];
    way.counts = calloc((size_t)all, sizeof(int)), way.places = calloc((size_t)all, sizeof(int));
    way.none = calloc((size_t)all, sizeof(int));
    int64_t total = 0, begin;
    for (int k = 0; k < ranks_of[other]; k++) {
        const int64_t columns = shared(other, k, &begin);
        way.counts[before + k] = columns > 0 ? (int)(columns * ny * (aggregated ? FIELDS : 1)) : 0;
        way.places[before + k] = (int)total;
        total += way.counts[before + k];
    }
    way.buffer = memory((size_t)total * sizeof(double));
    const int cells = (int)(width_of(role, rank) * ny);
    MPI_Aint at[FIELDS];
    int lengths[FIELDS];
    for (int field = 0; field < FIELDS; field++) MPI_Get_address(u[field], &at[field]), lengths[field] = cells;
    MPI_Type_create_hindexed(FIELDS, lengths, at, MPI_DOUBLE, &way.all);
    MPI_Type_commit(&way.all);
    return way;
}

/* Packs or unpacks some fields. */
static void pack(const struct way *way, double *const *u, int from, int count) {
    const int64_t width = width_of(role, rank);
    double *at = way->buffer;
    for (int k = 0; k < ranks_of[way->other]; k++) {
        int64_t begin;
        const int64_t columns = shared(way->other, k, &begin);
        if (columns <= 0) continue;
        for (int field = from; field < from + count; field++) {
            /* The columns of a partner with the same columns are contiguous. */
            const int64_t rows = columns == width ? 1 : ny, run = columns == width ? width * ny : columns;
            for (int64_t j = 0; j < rows; j++, at += run) {
                double *own = u[field] + j * width + begin;
                if (way->sends) memcpy(at, own, (size_t)run * sizeof *at);
                else memcpy(own, at, (size_t)run * sizeof *at);
            }
        }
    }
}

static void exchange_packed(const struct way *way, double *const *u) {
    const int at_once = aggregated ? FIELDS : 1;
    const int *sent = way->sends ? way->counts : way->none, *taken = way->sends ? way->none : way->counts;
    for (int field = 0; field < FIELDS; field += at_once) {
        if (way->sends) pack(way, u, field, at_once);
        MPI_Alltoallv(way->buffer, sent, way->places, MPI_DOUBLE, way->buffer, taken, way->places, MPI_DOUBLE, way->both);
        if (!way->sends) pack(way, u, field, at_once);
    }
}

/* Starts the send to, or the receive from, this rank's only partner, straight from or to the arrays. */
static void start(struct way *way, double *const *u) {
    const int partner = first_of[way->other] + rank, cells = (int)(width_of(role, rank) * ny);
    for (int k = 0; k < (aggregated ? 1 : FIELDS); k++) {
        void *where = aggregated ? MPI_BOTTOM : u[k];
        const int count = aggregated ? 1 : cells;
        const MPI_Datatype type = aggregated ? way->all : MPI_DOUBLE;
        if (way->sends) MPI_Isend(where, count, type, partner, k, MPI_COMM_WORLD, &way->requests[k]);
        else MPI_Irecv(where, count, type, partner, k, MPI_COMM_WORLD, &way->requests[k]);
    }
}

static void finish(struct way *way) { MPI_Waitall(aggregated ? 1 : FIELDS, way->requests, MPI_STATUSES_IGNORE); }

/* Exchanges in some directions: at once, or one after the other if the fields are packed. */
static void exchange(struct way *ways, double *const *const *u, int count) {
    if (packs) {
        for (int k = 0; k < count; k++) exchange_packed(&ways[k], u[k]);
        return;
    }
    for (int k = 0; k < count; k++) start(&ways[k], u[k]);
    for (int k = 0; k < count; k++) finish(&ways[k]);
}

static void combine(double *restrict a, double *restrict c, int64_t cells) {
    for (int64_t i = 0; i < cells; i++) {
        const double both = a[i] - c[i];
        a[i] = 2 * a[i] - 3 * c[i];
        c[i] = both;
    }
}

static void move_east(double *const *u, double *east, double *west) {
    const int64_t width = width_of(role, rank);
    const int count = (int)(FIELDS * ny), ranks = ranks_of[role];
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) east[field * ny + j] = u[field][j * width + width - 1];
    }
    MPI_Sendrecv(east, count, MPI_DOUBLE, (rank + 1) % ranks, 0, west, count, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, side,
                 MPI_STATUS_IGNORE);
    for (int field = 0; field < FIELDS; field++) {
        for (int64_t j = 0; j < ny; j++) {
            double *row = u[field] + j * width;
            memmove(row + 1, row, (size_t)(width - 1) * sizeof *row);
            row[0] = west[field * ny + j];
        }
    }
}

static double *marks;

static void mark(int64_t step, int which) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    marks[step * MARKS + which] = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_times(void) {
    double *latest = memory((size_t)(steps * MARKS) * sizeof *latest);
    MPI_Reduce(marks, latest, (int)(steps * MARKS), MPI_DOUBLE, MPI_MAX, 0, side);
    if (rank != 0) return;
    FILE *out = fopen((const char *[]){"a.csv", "b.csv", "c.csv"}[role], "w");
    if (!out) fail("the times cannot be written");
    fprintf(out, role == OF_B ? "begin,received,computed,sent\n" : "begin,sent,received,computed\n");
    for (double *at = latest; at < latest + steps * MARKS; at += MARKS) {
        fprintf(out, "%.9f,%.9f,%.9f,%.9f\n", at[0], at[1], at[2], at[3]);
    }
    if (fclose(out)) fail("the times cannot be written");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    if (argc != 8) return 2;
    ranks_of[OF_A] = atoi(argv[1]), ranks_of[OF_B] = atoi(argv[2]), ranks_of[OF_C] = all - ranks_of[OF_A] - ranks_of[OF_B];
    first_of[OF_B] = ranks_of[OF_A], first_of[OF_C] = ranks_of[OF_A] + ranks_of[OF_B];
    nx = atoll(argv[3]), ny = atoll(argv[4]), steps = atoll(argv[5]);
    aggregated = strcmp(argv[6], "aggregated") == 0, packs = strcmp(argv[7], "alltoallv") == 0;
    if (!packs && (ranks_of[OF_A] != ranks_of[OF_B] || ranks_of[OF_C] != ranks_of[OF_B])) fail("isend needs equal numbers of ranks");
    role = place >= first_of[OF_C] ? OF_C : place >= first_of[OF_B] ? OF_B : OF_A;
    rank = place - first_of[role];
    MPI_Comm_split(MPI_COMM_WORLD, role, place, &side);
    /* The ranks of a communicator are in the order A before B, or C before B. So C gets the lower keys here. */
    MPI_Comm with_a, with_c;
    MPI_Comm_split(MPI_COMM_WORLD, role == OF_C ? MPI_UNDEFINED : 0, place, &with_a);
    MPI_Comm_split(MPI_COMM_WORLD, role == OF_A ? MPI_UNDEFINED : 0, role == OF_C ? rank : all + rank, &with_c);

    const int64_t width = width_of(role, rank), cells = width * ny;
    double *u[2][FIELDS];
    for (int set = 0; set < (role == OF_B ? 2 : 1); set++) {
        for (int field = 0; field < FIELDS; field++) {
            u[set][field] = memory((size_t)cells * sizeof(double));
            for (int64_t at = 0; at < cells && role != OF_B; at++) {
                u[set][field][at] = number(role, field, begin_of(role, rank) + at % width, at / width);
            }
        }
    }
    double *const *const sets[2] = {u[0], u[1]};
    double *east = memory((size_t)(FIELDS * ny) * sizeof *east), *west = memory((size_t)(FIELDS * ny) * sizeof *west);
    marks = memory((size_t)(steps * MARKS) * sizeof *marks);
    struct way in[2], out[2];
    const int ways = role == OF_B ? 2 : 1;
    for (int k = 0; k < ways; k++) {
        const int other = role != OF_B ? OF_B : k == 0 ? OF_A : OF_C;
        MPI_Comm both = role == OF_A || other == OF_A ? with_a : with_c;
        in[k] = open_way(0, other, both, u[k]);
        out[k] = open_way(1, other, both, u[k]);
    }

    for (int64_t step = 0; step < steps; step++) {
        MPI_Barrier(side);
        mark(step, 0);
        if (role == OF_B) {
            exchange(in, sets, 2);
            mark(step, 1);
            for (int field = 0; field < FIELDS; field++) combine(u[0][field], u[1][field], cells);
            mark(step, 2);
            exchange(out, sets, 2);
        } else {
            exchange(out, sets, 1);
            mark(step, 1);
            exchange(in, sets, 1);
            mark(step, 2);
            move_east(u[0], east, west);
        }
        mark(step, 3);
    }
    if (role != OF_B) check(u[0]);
    write_times();
    MPI_Finalize();
    return 0;
}
