/* titin with Global Arrays, for C and C++: couples a global array to a field port. Only inline functions, which are compiled
 * with the program's own Global Arrays and MPI; libtitin itself knows of neither.
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
 * Each process declares what NGA_Distribution says that it owns, and its piece is sent from, and received into, where it lies.
 * All processes make these calls together. As GA's own collective calls do, titin_ga_send and titin_ga_receive begin and
 * end with GA_Sync: what others put before is sent, and what is received can be got from anywhere.
 *
 * Any global array of up to 7 dimensions will do, with blocks of its own (NGA_Create_irreg), with ghosts (which are neither
 * sent nor written), restricted to some processes, or block-cyclic (GA_Set_block_cyclic); but none with a grid of
 * processes of its own (GA_Set_block_cyclic_proc_grid and the tiled ones), and none of another process group than the default.
 */
#ifndef TITIN_GA_H
#define TITIN_GA_H

#include <stdint.h>
#include <stdio.h>

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

/* Says what is wrong with a global array. */
static inline int titin_ga_refuse(int g_a, const char *why) {
    char text[512];
    snprintf(text, sizeof text, "global array '%s': %s", GA_Inquire_name(g_a), why);
    titin_set_error(text);
    return TITIN_ERROR_USAGE;
}

/* The element type of a global array: TITIN_F64 of C_DBL and so on. 0, and an error, if titin has no such type. */
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

/* Who owns what of a global array. NULL, and an error, if titin cannot say it. Give it a region to couple only a part,
 * and hand it to titin_field_new. Free with titin_decomposition_free. With TITIN_ORDER_FORTRAN dimensions come as in
 * Fortran, the fastest one first. */
static inline titin_decomposition *titin_ga_decomposition(int g_a, int order) {
    int type, dims, failed = 0;
    int64_t given[GA_MAX_DIM], shape[GA_MAX_DIM], first[GA_MAX_DIM], last[GA_MAX_DIM];
    int64_t lower[GA_MAX_DIM] = {0}, upper[GA_MAX_DIM] = {0};
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
    NGA_Inquire64(g_a, &type, &dims, given);
    for (int i = 0; i < dims; ++i) shape[i] = given[order == TITIN_ORDER_C ? i : dims - 1 - i];
    titin_decomposition *spread = titin_decomposition_new(dims, shape);
    if (!spread) return NULL;
    /* One block of each process; or blocks dealt out in turn, which lie one after the other. */
    failed = titin_decomposition_order(spread, order);
    for (int block = GA_Nodeid(); !failed && block < (cyclic ? blocks : GA_Nnodes()); block += GA_Nnodes()) {
        NGA_Distribution64(g_a, block, first, last);
        if (first[0] < 0 || last[0] < first[0]) continue;
        for (int i = 0; i < dims; ++i) {
            const int dim = order == TITIN_ORDER_C ? i : dims - 1 - i;
            lower[i] = first[dim];
            upper[i] = last[dim] + 1;
        }
        failed = titin_decomposition_box(spread, lower, upper);
    }
    if (!failed && upper[0] == 0) failed = titin_decomposition_box(spread, lower, upper);
    if (failed) {
        titin_decomposition_free(spread);
        return NULL;
    }
    return spread;
}

static inline int titin_ga_declare(titin_port *port, int g_a, int order, titin_field **field) {
    const int dtype = titin_ga_dtype(g_a);
    titin_decomposition *spread = dtype ? titin_ga_decomposition(g_a, order) : NULL;
    const int failed = titin_field_new(port, spread, 1, &dtype, field);
    titin_decomposition_free(spread);
    return failed;
}

/* Declares that a port carries this global array, or others that are distributed alike, whole. */
static inline int titin_ga_field(titin_port *port, int g_a, titin_field **field) {
    return titin_ga_declare(port, g_a, TITIN_ORDER_C, field);
}

/* What a process owns of a global array, from titin_ga_begin to titin_ga_end. */
typedef struct titin_ga_piece {
    void *data; /* NULL if it owns nothing */
    int64_t first[GA_MAX_DIM], last[GA_MAX_DIM];
} titin_ga_piece;

static inline int titin_ga_begin(titin_field *field, int g_a, int order, titin_ga_piece *piece) {
    int64_t leading[GA_MAX_DIM] = {0}, extents[GA_MAX_DIM], strides[GA_MAX_DIM], length;
    const int dims = GA_Ndim(g_a), me = GA_Nodeid(), blocks = GA_Total_blocks(g_a), dtype = titin_ga_dtype(g_a);
    piece->data = NULL;
    if (!dtype) return titin_error_kind();
    if (blocks >= 0) {
        if (me < blocks) NGA_Access_block_segment64(g_a, me, &piece->data, &length);
        return TITIN_OK;
    }
    NGA_Distribution64(g_a, me, piece->first, piece->last);
    if (piece->first[0] < 0 || piece->last[0] < piece->first[0]) return TITIN_OK;
    NGA_Access64(g_a, piece->first, piece->last, &piece->data, leading);
    int64_t stride = titin_dtype_size(dtype);
    for (int i = dims - 1; i >= 0; --i) {
        const int dim = order == TITIN_ORDER_C ? i : dims - 1 - i;
        extents[dim] = piece->last[i] - piece->first[i] + 1;
        strides[dim] = stride;
        if (i > 0) stride *= leading[i - 1];
    }
    return titin_field_layout(field, 0, extents, strides);
}

static inline void titin_ga_end(int g_a, titin_ga_piece *piece, int written) {
    const int me = GA_Nodeid(), cyclic = GA_Total_blocks(g_a) >= 0;
    if (!piece->data) return;
    if (cyclic && written) NGA_Release_update_block_segment(g_a, me);
    else if (cyclic) NGA_Release_block_segment(g_a, me);
    else if (written) NGA_Release_update64(g_a, piece->first, piece->last);
    else NGA_Release64(g_a, piece->first, piece->last);
}

/* As titin_field_send, of a global array that is distributed as the one that the field was declared with. */
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

static inline int titin_ga_send(titin_field *field, int g_a, double timestamp, double next_timestamp) {
    return titin_ga_send_in(field, g_a, TITIN_ORDER_C, timestamp, next_timestamp);
}

/* As titin_field_receive, into a global array that is distributed so. */
static inline int titin_ga_receive_in(titin_field *field, int g_a, int order, double timeout, double *timestamp,
                                      double *next_timestamp) {
    titin_ga_piece piece;
    GA_Sync();
    int failed = titin_ga_begin(field, g_a, order, &piece);
    void *data = piece.data;
    if (!failed) failed = titin_field_receive(field, &data, timeout, timestamp, next_timestamp);
    titin_ga_end(g_a, &piece, 1);
    GA_Sync();
    return failed;
}

static inline int titin_ga_receive(titin_field *field, int g_a, double timeout, double *timestamp, double *next_timestamp) {
    return titin_ga_receive_in(field, g_a, TITIN_ORDER_C, timeout, timestamp, next_timestamp);
}

#ifdef __cplusplus
}
#endif

#endif
