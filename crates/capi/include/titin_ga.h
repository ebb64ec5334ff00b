/* titin with Global Arrays, for C and C++: couples a global array to a field port. All functions are inline, and are
 * compiled with the program's own Global Arrays and MPI, which libtitin does not know.
 *
 *     MPI_Init(&argc, &argv);
 *     GA_Initialize();
 *     int g_a = NGA_Create(C_DBL, 2, (int[]){ny, nx}, "velocity", NULL);
 *     titin_instance *instance;
 *     titin_ga_open("s: velocity", NULL, &instance);
 *     titin_field *field;
 *     titin_ga_field(titin_port_find(instance, "velocity"), g_a, &field);
 *     ...
 *     titin_ga_receive(field, g_a, TITIN_WAIT, &t, NULL);
 *
 * Each process declares the part that it owns by NGA_Distribution. The part is sent from, and received into, its own memory.
 * All processes make these calls together. Calls that send or receive begin and end with GA_Sync, as GA's own collective calls:
 * elements that others put before are sent, and received elements can be got from any process.
 *
 * Any global array of up to 7 dimensions can be coupled: with irregular blocks (NGA_Create_irreg), with ghosts (which are
 * neither sent nor written), restricted to some processes, or block-cyclic (GA_Set_block_cyclic). Arrays with a grid of
 * processes given by the program (GA_Set_block_cyclic_proc_grid, and tiled ones) and arrays of another process group than the
 * default cannot.
 */
#ifndef TITIN_GA_H
#define TITIN_GA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <ga.h>
#include <ga-mpi.h>
#include <macdecls.h>

#include "titin_mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As titin_open, by all processes of GA's default group together. */
static inline int titin_ga_open(const char *ports, titin_options *options, titin_instance **instance) {
    return titin_mpi_open(ports, options, GA_MPI_Comm_pgroup_default(), instance);
}

/* Sets the error about a global array. */
static inline int titin_ga_refuse(int g_a, const char *why) {
    char text[512];
    snprintf(text, sizeof text, "global array '%s': %s", GA_Inquire_name(g_a), why);
    titin_set_error(text);
    return TITIN_ERROR_USAGE;
}

/* The element type of a global array: TITIN_F64 for C_DBL and so on. 0 and an error if titin has no such type. */
static inline int titin_ga_dtype(int g_a) {
    char why[128];
    int type, dims;
    int64_t shape[GA_MAX_DIM];
    NGA_Inquire64(g_a, &type, &dims, shape);
    switch (type) {
    case C_CHAR: return TITIN_I8;
    case C_INT: return sizeof(int) == 4 ? TITIN_I32 : TITIN_I64;
    case C_LONG: return sizeof(long) == 4 ? TITIN_I32 : TITIN_I64;
    case C_LONGLONG: return TITIN_I64;
    case C_FLOAT: return TITIN_F32;
    case C_DBL: return TITIN_F64;
    case C_SCPL: return TITIN_C64;
    case C_DCPL: return TITIN_C128;
    }
    snprintf(why, sizeof why, "its elements are of type %d of Global Arrays, which titin has not", type);
    titin_ga_refuse(g_a, why);
    return 0;
}

/* The dimension of a global array for dimension i of titin, and back: the order of Fortran is the reverse of C's. */
static inline int titin_ga_dim(int i, int dims, int order) { return order == TITIN_ORDER_C ? i : dims - 1 - i; }

/* Whether a process owns a part of a global array, and its indices: first <= index <= last. */
static inline int titin_ga_owned(int g_a, int process, int64_t *first, int64_t *last) {
    NGA_Distribution64(g_a, process, first, last);
    return first[0] >= 0 && first[0] <= last[0];
}

/* The beginnings of the blocks of a grid of processes, one dimension of GA after the other, each followed by the end. 0 if the
 * array has no such grid, since it is restricted to some processes. Processes count through a grid with the last dimension
 * fastest. */
static inline int titin_ga_bounds(int g_a, int dims, const int64_t *shape, const int *grid, int64_t *bounds) {
    int64_t first[GA_MAX_DIM], last[GA_MAX_DIM], *from = bounds;
    int processes = 1;
    for (int i = 0; i < dims; ++i) processes *= grid[i];
    if (processes > GA_Nnodes()) return 0;
    for (int i = 0, stride = processes; i < dims; ++i) {
        stride /= grid[i];
        for (int place = 0; place < grid[i]; ++place) {
            if (!titin_ga_owned(g_a, place * stride, first, last)) return 0;
            *from++ = first[i];
        }
        *from++ = shape[i];
    }
    for (int process = 0; process < GA_Nnodes(); ++process) {
        const int owned = titin_ga_owned(g_a, process, first, last);
        if (owned != (process < processes)) return 0;
        from = bounds;
        for (int i = 0, stride = processes; owned && i < dims; from += grid[i++] + 1) {
            stride /= grid[i];
            const int64_t *block = from + process / stride % grid[i];
            if (first[i] != block[0] || last[i] != block[1] - 1) return 0;
        }
    }
    return 1;
}

/* Most global arrays are cut by a grid of processes. Then each process knows the parts of all, without questions between
 * processes. 0 for other arrays. */
static inline int titin_ga_by_grid(titin_decomposition *spread, int g_a, int dims, const int64_t *shape, int order,
                                   int *failed) {
    int grid[GA_MAX_DIM], processes[GA_MAX_DIM], length = 0;
    NGA_Nblock(g_a, grid);
    for (int i = 0; i < dims; ++i) {
        length += grid[i] + 1;
        processes[titin_ga_dim(i, dims, order)] = grid[i];
    }
    int64_t *bounds = (int64_t *)malloc((size_t)length * sizeof(int64_t)), *from = bounds;
    const int regular = bounds && titin_ga_bounds(g_a, dims, shape, grid, bounds);
    if (regular) {
        *failed = titin_decomposition_grid(spread, processes);
        if (!*failed) *failed = titin_decomposition_ranks(spread, order);
        for (int i = 0; !*failed && i < dims; from += grid[i++] + 1)
            *failed = titin_decomposition_bounds(spread, titin_ga_dim(i, dims, order), grid[i] + 1, from);
    }
    free(bounds);
    return regular;
}

/* One block for each process; or blocks dealt out in turn, which lie one after the other in memory. */
static inline int titin_ga_by_boxes(titin_decomposition *spread, int g_a, int dims, int blocks, int order) {
    int64_t first[GA_MAX_DIM], last[GA_MAX_DIM], lower[GA_MAX_DIM] = {0}, upper[GA_MAX_DIM] = {0};
    int failed = 0, boxes = 0;
    for (int block = GA_Nodeid(); !failed && block < blocks; block += GA_Nnodes()) {
        if (!titin_ga_owned(g_a, block, first, last)) continue;
        for (int i = 0; i < dims; ++i) {
            lower[titin_ga_dim(i, dims, order)] = first[i];
            upper[titin_ga_dim(i, dims, order)] = last[i] + 1;
        }
        failed = titin_decomposition_box(spread, lower, upper);
        ++boxes;
    }
    /* A process that owns nothing gives an empty box. */
    return failed || boxes ? failed : titin_decomposition_box(spread, lower, upper);
}

/* The decomposition of a global array. NULL and an error for an array that cannot be coupled. Give it a region to couple only
 * a part, and hand it to titin_field_new. Free with titin_decomposition_free. With TITIN_ORDER_FORTRAN dimensions are in the
 * order of Fortran, the fastest first. */
static inline titin_decomposition *titin_ga_decomposition(int g_a, int order) {
    int type, dims, failed = 0;
    int64_t shape[GA_MAX_DIM], turned[GA_MAX_DIM];
    if (GA_Get_pgroup(g_a) != GA_Pgroup_get_default()) {
        titin_ga_refuse(g_a, "it is of another process group than the default one, whose processes are the ranks of the instance");
        return NULL;
    }
    const int blocks = GA_Total_blocks(g_a), cyclic = blocks >= 0;
    if (cyclic && GA_Uses_proc_grid(g_a)) {
        titin_ga_refuse(g_a, "it has a grid of processes of its own; couple one that is made by GA_Set_block_cyclic or without, "
                             "and copy by GA_Copy");
        return NULL;
    }
    NGA_Inquire64(g_a, &type, &dims, shape);
    for (int i = 0; i < dims; ++i) turned[titin_ga_dim(i, dims, order)] = shape[i];
    titin_decomposition *spread = titin_decomposition_new(dims, turned);
    if (!spread) return NULL;
    if (cyclic || !titin_ga_by_grid(spread, g_a, dims, shape, order, &failed))
        failed = titin_ga_by_boxes(spread, g_a, dims, cyclic ? blocks : GA_Nnodes(), order);
    if (!failed) failed = titin_decomposition_order(spread, order);
    if (!failed) return spread;
    titin_decomposition_free(spread);
    return NULL;
}

/* As titin_ga_field, with the order of the dimensions. */
static inline int titin_ga_declare(titin_port *port, int g_a, int order, titin_field **field) {
    const int dtype = titin_ga_dtype(g_a);
    titin_decomposition *spread = dtype ? titin_ga_decomposition(g_a, order) : NULL;
    const int failed = titin_field_new(port, spread, 1, &dtype, field);
    titin_decomposition_free(spread);
    return failed;
}

/* Declares that a port carries this global array as a whole, or others with the same distribution. */
static inline int titin_ga_field(titin_port *port, int g_a, titin_field **field) {
    return titin_ga_declare(port, g_a, TITIN_ORDER_C, field);
}

/* The part of a global array that a process owns, from titin_ga_begin to titin_ga_end. */
typedef struct titin_ga_piece {
    void *data; /* NULL without a part */
    int64_t first[GA_MAX_DIM], last[GA_MAX_DIM];
} titin_ga_piece;

/* Finds the part that this process owns, and gives its layout to the field. */
static inline int titin_ga_hold(titin_field *field, int g_a, int order, titin_ga_piece *piece) {
    int64_t leading[GA_MAX_DIM] = {0}, extents[GA_MAX_DIM], strides[GA_MAX_DIM], length;
    const int dims = GA_Ndim(g_a), me = GA_Nodeid(), blocks = GA_Total_blocks(g_a), dtype = titin_ga_dtype(g_a);
    piece->data = NULL;
    if (!dtype) return titin_error_kind();
    if (field && dtype != titin_field_dtype(field, 0)) {
        char why[128];
        snprintf(why, sizeof why, "it is of %s, but the field was declared with one of %s", titin_dtype_name(dtype),
                 titin_dtype_name(titin_field_dtype(field, 0)));
        return titin_ga_refuse(g_a, why);
    }
    if (blocks >= 0) {
        if (me < blocks) NGA_Access_block_segment64(g_a, me, &piece->data, &length);
        if (field && piece->data && length * titin_dtype_size(dtype) != titin_field_bytes(field, 0)) {
            NGA_Release_block_segment(g_a, me);
            piece->data = NULL;
            return titin_ga_refuse(g_a, "it is not distributed as the one that the field was declared with");
        }
        return TITIN_OK;
    }
    if (!titin_ga_owned(g_a, me, piece->first, piece->last)) return TITIN_OK;
    NGA_Access64(g_a, piece->first, piece->last, &piece->data, leading);
    int64_t stride = titin_dtype_size(dtype);
    for (int i = dims - 1; i >= 0; --i) {
        const int dim = titin_ga_dim(i, dims, order);
        extents[dim] = piece->last[i] - piece->first[i] + 1;
        strides[dim] = stride;
        if (i > 0) stride *= leading[i - 1];
    }
    return titin_field_layout(field, 0, extents, strides);
}

/* Called by all processes. If one of them fails, none goes on, since the others would wait for that one. */
static inline int titin_ga_begin(titin_field *field, int g_a, int order, titin_ga_piece *piece) {
    const int failed = titin_ga_hold(field, g_a, order, piece);
    int failures = failed != 0;
    GA_Igop(&failures, 1, (char *)"+");
    return failures && !failed ? titin_ga_refuse(g_a, "another process cannot take part, and says why") : failed;
}

/* Gives the part back to Global Arrays; `written` says whether its elements have changed. */
static inline void titin_ga_end(int g_a, titin_ga_piece *piece, int written) {
    const int me = GA_Nodeid(), cyclic = GA_Total_blocks(g_a) >= 0;
    if (!piece->data) return;
    if (cyclic && written) NGA_Release_update_block_segment(g_a, me);
    else if (cyclic) NGA_Release_block_segment(g_a, me);
    else if (written) NGA_Release_update64(g_a, piece->first, piece->last);
    else NGA_Release64(g_a, piece->first, piece->last);
}

/* As titin_field_send, for a global array with the distribution of the one that the field was declared with. */
static inline int titin_ga_send_in(titin_field *field, int g_a, int order, double timestamp, double next_timestamp) {
    titin_ga_piece piece;
    GA_Sync();
    int failed = titin_ga_begin(field, g_a, order, &piece);
    const void *data = piece.data;
    if (!failed) failed = titin_field_send(field, &data, timestamp, next_timestamp);
    titin_ga_end(g_a, &piece, 0);
    GA_Sync();
    return failed;
}

/* The same in C order. */
static inline int titin_ga_send(titin_field *field, int g_a, double timestamp, double next_timestamp) {
    return titin_ga_send_in(field, g_a, TITIN_ORDER_C, timestamp, next_timestamp);
}

/* As titin_field_receive, or with a time titin_field_receive_at, into a global array of that distribution. */
static inline int titin_ga_receive_in(titin_field *field, int g_a, int order, const double *at, double timeout,
                                      double *timestamp, double *next_timestamp) {
    titin_ga_piece piece;
    GA_Sync();
    int failed = titin_ga_begin(field, g_a, order, &piece);
    void *data = piece.data;
    if (!failed)
        failed = at ? titin_field_receive_at(field, &data, *at, timeout, timestamp, next_timestamp)
                    : titin_field_receive(field, &data, timeout, timestamp, next_timestamp);
    titin_ga_end(g_a, &piece, 1);
    GA_Sync();
    return failed;
}

/* As titin_field_receive, in C order. */
static inline int titin_ga_receive(titin_field *field, int g_a, double timeout, double *timestamp, double *next_timestamp) {
    return titin_ga_receive_in(field, g_a, TITIN_ORDER_C, NULL, timeout, timestamp, next_timestamp);
}

/* Receives the version at or before the simulated time `at` of a field that is pulled. */
static inline int titin_ga_receive_at(titin_field *field, int g_a, double at, double timeout, double *timestamp,
                                      double *next_timestamp) {
    return titin_ga_receive_in(field, g_a, TITIN_ORDER_C, &at, timeout, timestamp, next_timestamp);
}

#ifdef __cplusplus
}
#endif

#endif
