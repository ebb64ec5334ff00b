/* Shared by the programs that exchange boxes of an array by hand in one MPI job: by packing, MPI_Alltoallv and unpacking,
 * or by derived types, MPI_Isend and MPI_Irecv from array to array. */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <mpi.h>

#include "arrays.h"

/* The boxes of all ranks, the box that this rank shares with each other rank, and the place of each shared box in a buffer.
 */
struct shares {
    int all;
    int64_t (*boxes)[4], (*shared)[4];
    int *counts, *places, *none;
    MPI_Datatype *types;
    MPI_Request *requests;
};

static inline struct shares shares_new(int all) {
    const size_t n = (size_t)all, box = 4 * sizeof(int64_t);
    const struct shares shares = {all, calloc(n, box), calloc(n, box), calloc(n, sizeof(int)), calloc(n, sizeof(int)),
                                  calloc(n, sizeof(int)), calloc(n, sizeof(MPI_Datatype)), calloc(2 * n, sizeof(MPI_Request))};
    return shares;
}

static inline void shares_free(struct shares *s) {
    for (int k = 0; k < s->all; k++) {
        if (s->types[k]) MPI_Type_free(&s->types[k]);
    }
    free(s->boxes), free(s->shared), free(s->counts), free(s->places), free(s->none), free(s->types), free(s->requests);
}

/* A part of a rank's box, as a derived type for the rank's array. */
static inline MPI_Datatype part_of(const int64_t box[4], const int64_t part[4]) {
    int sizes[2], subsizes[2], starts[2];
    for (int dim = 0; dim < 2; dim++) {
        sizes[dim] = (int)(box[2 * dim + 1] - box[2 * dim]);
        subsizes[dim] = (int)(part[2 * dim + 1] - part[2 * dim]);
        starts[dim] = (int)(part[2 * dim] - box[2 * dim]);
    }
    MPI_Datatype part_type;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &part_type);
    MPI_Type_commit(&part_type);
    return part_type;
}

/* Computes the intersections of a box with the boxes of these ranks. */
static inline void share(struct shares *s, const int64_t own[4], int begin, int end) {
    for (int k = begin, total = 0; k < end; k++) {
        int64_t *box = s->shared[k];
        for (int bound = 0; bound < 4; bound++) {
            const int64_t a = own[bound], b = s->boxes[k][bound];
            box[bound] = (bound % 2 ? a < b : a > b) ? a : b;
        }
        if (box[0] >= box[1] || box[2] >= box[3]) memset(box, 0, sizeof *s->shared);
        s->counts[k] = (int)count_of(box);
        s->places[k] = total;
        total += s->counts[k];
    }
}

/* Makes derived types of the intersections, for exchange_typed. */
static inline void share_types(struct shares *s, const int64_t own[4]) {
    for (int k = 0; k < s->all; k++) {
        if (s->counts[k]) s->types[k] = part_of(own, s->shared[k]);
    }
}

/* Copies the boxes that a rank shares with other ranks, one after the other: from the rank's array to a buffer, or back. */
static inline void copy(const struct shares *s, double *u, const int64_t own[4], double *buffer, int packs) {
    for (int k = 0; k < s->all; k++) {
        const int64_t *box = s->shared[k], width = box[3] - box[2];
        for (int64_t i = box[0]; i < box[1]; i++, buffer += width) {
            double *row = u + (i - own[0]) * (own[3] - own[2]) + box[2] - own[2];
            if (packs) memcpy(buffer, row, (size_t)width * sizeof *row);
            else memcpy(row, buffer, (size_t)width * sizeof *row);
        }
    }
}

/* Sends one array and receives into another; NULL stands for the array of a rank that does not send, or does not receive. */
static inline void exchange_typed(const struct shares *s, const double *out, double *in) {
    int count = 0;
    for (int k = 0; k < s->all; k++) {
        if (!s->counts[k]) continue;
        if (in) MPI_Irecv(in, 1, s->types[k], k, 0, MPI_COMM_WORLD, &s->requests[count++]);
        if (out) MPI_Isend(out, 1, s->types[k], k, 0, MPI_COMM_WORLD, &s->requests[count++]);
    }
    MPI_Waitall(count, s->requests, MPI_STATUSES_IGNORE);
}

/* Sends one array and receives into another, packed into one buffer and unpacked from another. */
static inline void exchange_packed(const struct shares *s, const int64_t own[4], double *out, double *packed, double *in,
                                   double *arrived) {
    if (out) copy(s, out, own, packed, 1);
    MPI_Alltoallv(packed, out ? s->counts : s->none, s->places, MPI_DOUBLE, arrived, in ? s->counts : s->none, s->places, MPI_DOUBLE,
                  MPI_COMM_WORLD);
    if (in) copy(s, in, own, arrived, 0);
}

#endif
