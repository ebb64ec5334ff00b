/* The redistribution by hand in one MPI job, in one of two ways:
 * - alltoallv: both sides pack into a buffer and unpack from one, and MPI_Alltoallv moves the buffer;
 * - isend: a derived type for each partner, and MPI_Isend and MPI_Irecv from array to array.
 * The elements that each rank shares with each other rank are computed beforehand, as runs of elements, and not timed.
 * Arguments: number of senders, alltoallv|isend, file for the times. */
#include <mpi.h>

#include "redistribution.h"

/* The elements of the local array that go to one partner, as runs. */
struct runs {
    int64_t count, *at, *length;
};

/* The exchanges of this rank with all partners, in one case. */
struct plan {
    int partners, first, fields; /* first: the rank of the first partner among all */
    struct runs *runs;
    double **arrays;
    int *counts, *places, *none; /* of alltoallv */
    double *buffer;
    MPI_Datatype *types; /* of isend: a partner's part of one field */
    MPI_Request *requests;
};

/* The elements that this rank shares with another rank, in the order of the global array, as runs of this rank's array. */
static struct runs shared(int64_t n, enum pattern pattern, int second, int rank, int ranks, int partner, int partners) {
    const int rows = has_rows(pattern, second), cyclic = is_cyclic(pattern, second);
    const int their_rows = has_rows(pattern, !second), their_cyclic = is_cyclic(pattern, !second);
    const int64_t own = extent_of(n, ranks, rank, cyclic), height = rows ? own : n, width = rows ? n : own;
    char *theirs = calloc((size_t)n, 1);
    for (int64_t i = 0; i < extent_of(n, partners, partner, their_cyclic); i++) {
        theirs[index_of(n, partners, partner, their_cyclic, i)] = 1;
    }
    struct runs found = {0, malloc((size_t)(2 * n + height * (n / BLOCK + 2)) * sizeof(int64_t)), NULL};
    found.length = malloc((size_t)(2 * n + height * (n / BLOCK + 2)) * sizeof(int64_t));
    for (int64_t i = 0; i < height; i++) {
        const int64_t row = rows ? index_of(n, ranks, rank, cyclic, i) : i;
        if (their_rows && !theirs[row]) continue;
        int64_t last = -1;
        for (int64_t j = 0; j < width; j++) {
            const int64_t column = rows ? j : index_of(n, ranks, rank, cyclic, j);
            if (!their_rows && !theirs[column]) continue;
            if (last == i * width + j - 1 && last >= 0) {
                found.length[found.count - 1]++;
            } else {
                found.at[found.count] = i * width + j;
                found.length[found.count++] = 1;
            }
            last = i * width + j;
        }
    }
    free(theirs);
    return found;
}

/* The derived type for one block, for equal runs at equal distances, or for any runs. */
static MPI_Datatype type_of(const struct runs *runs) {
    int regular = 1;
    for (int64_t k = 1; k < runs->count; k++) {
        regular = regular && runs->length[k] == runs->length[0] && runs->at[k] - runs->at[k - 1] == runs->at[1] - runs->at[0];
    }
    const int count = (int)runs->count;
    int *lengths = calloc((size_t)count + 1, sizeof(int)), *at = calloc((size_t)count + 1, sizeof(int));
    for (int k = 0; k < count; k++) lengths[k] = (int)runs->length[k], at[k] = (int)runs->at[k];
    MPI_Datatype type, found;
    if (regular && count > 0) {
        MPI_Type_vector(count, lengths[0], count > 1 ? at[1] - at[0] : lengths[0], MPI_DOUBLE, &type);
        MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){(MPI_Aint)sizeof(double) * at[0]}, type, &found);
        MPI_Type_free(&type);
    } else {
        MPI_Type_indexed(count, lengths, at, MPI_DOUBLE, &found);
    }
    MPI_Type_commit(&found);
    free(lengths), free(at);
    return found;
}

static struct plan plan_new(int number, int second, int place, int all, int senders) {
    const int ranks = second ? all - senders : senders, partners = all - ranks, rank = second ? place - senders : place;
    const int fields = CASES[number].fields;
    const size_t n = (size_t)all;
    struct plan plan = {.partners = partners, .first = second ? 0 : senders, .fields = fields};
    plan.runs = calloc(n, sizeof *plan.runs);
    plan.types = calloc(n, sizeof *plan.types);
    plan.requests = calloc(n * (size_t)fields, sizeof *plan.requests);
    plan.counts = calloc(n, sizeof(int)), plan.places = calloc(n, sizeof(int)), plan.none = calloc(n, sizeof(int));
    int64_t total = 0;
    for (int k = 0; k < partners; k++) {
        struct runs *runs = &plan.runs[k];
        *runs = shared(CASES[number].extent, CASES[number].pattern, second, rank, ranks, k, partners);
        plan.types[k] = type_of(runs);
        for (int64_t run = 0; run < runs->count; run++) plan.counts[plan.first + k] += (int)runs->length[run] * fields;
        plan.places[plan.first + k] = (int)total;
        total += plan.counts[plan.first + k];
    }
    plan.buffer = doubles(total);
    plan.arrays = calloc((size_t)fields, sizeof *plan.arrays);
    for (int field = 0; field < fields; field++) plan.arrays[field] = doubles(total / fields);
    return plan;
}

static void plan_free(struct plan *plan) {
    for (int k = 0; k < plan->partners; k++) {
        free(plan->runs[k].at), free(plan->runs[k].length);
        MPI_Type_free(&plan->types[k]);
    }
    for (int field = 0; field < plan->fields; field++) free(plan->arrays[field]);
    free(plan->arrays), free(plan->runs), free(plan->types), free(plan->requests), free(plan->buffer);
    free(plan->counts), free(plan->places), free(plan->none);
}

/* Copies between the arrays and the buffer: for one partner field after field, and then for the next partner. */
static void copy(const struct plan *plan, int packs) {
    double *at = plan->buffer;
    for (int k = 0; k < plan->partners; k++) {
        const struct runs *runs = &plan->runs[k];
        for (int field = 0; field < plan->fields; field++) {
            for (int64_t run = 0; run < runs->count; run++) {
                const size_t bytes = (size_t)runs->length[run] * sizeof(double);
                double *own = plan->arrays[field] + runs->at[run];
                if (packs) memcpy(at, own, bytes);
                else memcpy(own, at, bytes);
                at += runs->length[run];
            }
        }
    }
}

static void exchange_packed(const struct plan *plan, int sends) {
    if (sends) copy(plan, 1);
    MPI_Alltoallv(plan->buffer, sends ? plan->counts : plan->none, plan->places, MPI_DOUBLE, plan->buffer,
                  sends ? plan->none : plan->counts, plan->places, MPI_DOUBLE, MPI_COMM_WORLD);
    if (!sends) copy(plan, 0);
}

static void exchange_typed(const struct plan *plan, int sends) {
    int count = 0;
    for (int k = 0; k < plan->partners; k++) {
        if (plan->runs[k].count == 0) continue;
        for (int field = 0; field < plan->fields; field++) {
            double *array = plan->arrays[field];
            MPI_Request *request = &plan->requests[count++];
            if (sends) MPI_Isend(array, 1, plan->types[k], plan->first + k, field, MPI_COMM_WORLD, request);
            else MPI_Irecv(array, 1, plan->types[k], plan->first + k, field, MPI_COMM_WORLD, request);
        }
    }
    MPI_Waitall(count, plan->requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    MPI_Init(&argc, &argv);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = atoi(argv[1]), second = place >= senders, rank = second ? place - senders : place;
    const int ranks = second ? all - senders : senders, typed = strcmp(argv[2], "isend") == 0;
    FILE *out = place == 0 ? create(argv[3]) : NULL;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, second, place, &side);
    for (int number = 0; number < COUNT; number++) {
        struct plan plan = plan_new(number, second, place, all, senders);
        double seconds[64];
        for (int field = 0; field < plan.fields; field++) {
            if (!second) each(plan.arrays[field], number, field, second, rank, ranks, 1);
        }
        for (int trip = -WARM; trip < CASES[number].trips; trip++) {
            MPI_Barrier(side);
            const double begin = now();
            for (int turn = 0; turn < 2; turn++) {
                if (typed) exchange_typed(&plan, turn == second);
                else exchange_packed(&plan, turn == second);
                if (turn == 0 && second && trip == -WARM) {
                    for (int k = 0; k < plan.fields; k++) each(plan.arrays[k], number, k, second, rank, ranks, 0);
                }
            }
            MPI_Barrier(side);
            if (trip >= 0) seconds[trip] = now() - begin;
        }
        for (int field = 0; field < plan.fields; field++) {
            if (!second) each(plan.arrays[field], number, field, second, rank, ranks, 0);
        }
        plan_free(&plan);
        if (out) report(out, number, seconds);
    }
    finish(out, argv[3]);
    MPI_Finalize();
    return 0;
}
