/* The redistribution as one writes it by hand in one MPI job: both sides pack into a buffer and unpack from one, and
 * MPI_Alltoallv moves that. Who owns what is known beforehand, as runs of elements, and not timed.
 * redistribution_mpi SENDERS FILE */
#include <mpi.h>

#include "redistribution.h"

/* Elements of the local array that go to one partner, one run after the other. */
struct runs {
    int64_t count, *at, *length;
};

/* What this rank shares with another one, in the order of the global array, as runs of its own. */
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
            if (last == i * width + j - 1 && last >= 0 && j > 0) {
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

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = atoi(argv[1]), second = place >= senders, rank = second ? place - senders : place;
    const int ranks = second ? all - senders : senders, partners = all - ranks, first = second ? 0 : senders;
    FILE *out = place == 0 ? create(argv[2]) : NULL;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, second, place, &side);
    for (int number = 0; number < COUNT; number++) {
        const int64_t n = CASES[number].extent;
        const int fields = CASES[number].fields;
        struct runs *runs = calloc((size_t)partners, sizeof *runs);
        int *counts = calloc((size_t)all, sizeof(int)), *places = calloc((size_t)all, sizeof(int));
        int *none = calloc((size_t)all, sizeof(int));
        int64_t total = 0;
        for (int k = 0; k < partners; k++) {
            runs[k] = shared(n, CASES[number].pattern, second, rank, ranks, k, partners);
            for (int64_t run = 0; run < runs[k].count; run++) counts[first + k] += (int)runs[k].length[run] * fields;
            places[first + k] = (int)total;
            total += counts[first + k];
        }
        double *arrays[MOST_FIELDS], *buffer = doubles(total), seconds[64];
        for (int field = 0; field < fields; field++) {
            arrays[field] = doubles(total / fields);
            if (!second) each(arrays[field], number, field, second, rank, ranks, 1);
        }
        for (int trip = -WARM; trip < CASES[number].trips; trip++) {
            MPI_Barrier(side);
            const double begin = now();
            for (int turn = 0; turn < 2; turn++) {
                const int sends = turn == second;
                for (int unpacks = 0; unpacks < 2; unpacks++) {
                    if (unpacks) {
                        MPI_Alltoallv(buffer, sends ? counts : none, places, MPI_DOUBLE, buffer, sends ? none : counts, places,
                                      MPI_DOUBLE, MPI_COMM_WORLD);
                    }
                    if (unpacks == sends) continue;
                    double *at = buffer;
                    for (int k = 0; k < partners; k++) {
                        for (int field = 0; field < fields; field++) {
                            for (int64_t run = 0; run < runs[k].count; run++) {
                                const size_t bytes = (size_t)runs[k].length[run] * sizeof(double);
                                double *own = arrays[field] + runs[k].at[run];
                                if (sends) memcpy(at, own, bytes);
                                else memcpy(own, at, bytes);
                                at += runs[k].length[run];
                            }
                        }
                    }
                }
                if (turn == 0 && second && trip == -WARM) {
                    for (int k = 0; k < fields; k++) each(arrays[k], number, k, second, rank, ranks, 0);
                }
            }
            MPI_Barrier(side);
            if (trip >= 0) seconds[trip] = now() - begin;
        }
        for (int field = 0; field < fields; field++) {
            if (!second) each(arrays[field], number, field, second, rank, ranks, 0);
            free(arrays[field]);
        }
        for (int k = 0; k < partners; k++) {
            free(runs[k].at);
            free(runs[k].length);
        }
        free(runs), free(counts), free(places), free(none), free(buffer);
        if (out) report(out, number, seconds);
    }
    finish(out, argv[2]);
    MPI_Finalize();
    return 0;
}
