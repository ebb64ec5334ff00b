/* The same by hand in one MPI job: packing, MPI_Alltoallv, unpacking; who shares what with whom is worked out beforehand.
 * blocks_mpi and the words of the task */
#include "blocks.h"

/* Both ways between a buffer and the array of a rank: what it shares with each of the others, one box after the other. */
static void copy(double *u, const int64_t own[4], const int64_t (*shared)[4], int all, double *buffer, int packs) {
    for (int k = 0; k < all; k++) {
        const int64_t *box = shared[k], width = box[3] - box[2];
        for (int64_t i = box[0]; i < box[1]; i++, buffer += width) {
            double *row = u + (i - own[0]) * (own[3] - own[2]) + box[2] - own[2];
            if (packs) memcpy(buffer, row, (size_t)width * sizeof *row);
            else memcpy(row, buffer, (size_t)width * sizeof *row);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 1 + WORDS) return 2;
    MPI_Init(&argc, &argv);
    const struct task task = task_of(argv + 1);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = task.grids[0][0] * task.grids[0][1], second = place >= senders;
    const int sends = task.ways == 2 || !second, receives = task.ways == 2 || second;
    int64_t own[4], (*shared)[4] = calloc((size_t)all, sizeof *shared);
    box_of(&task, second, second ? place - senders : place, own);
    int *counts = calloc((size_t)all, sizeof(int)), *places = calloc((size_t)all, sizeof(int)), *none = calloc((size_t)all, sizeof(int));
    int total = 0;
    for (int k = 0; k < all; k++) {
        if ((k >= senders) == second) continue;
        int64_t theirs[4];
        box_of(&task, !second, second ? k : k - senders, theirs);
        for (int bound = 0; bound < 4; bound++) {
            const int64_t a = own[bound], b = theirs[bound];
            shared[k][bound] = (bound % 2 ? a < b : a > b) ? a : b;
        }
        if (shared[k][0] >= shared[k][1] || shared[k][2] >= shared[k][3]) memset(shared[k], 0, sizeof *shared);
        counts[k] = (int)count_of(shared[k]);
        places[k] = total;
        total += counts[k];
    }
    const int64_t count = count_of(own);
    double *u = memory(count), *other = memory(count), *packed = memory(count), *arrived = memory(count), begin = 0;
    each(&task, u, own, 1);
    for (int trip = -WARM; trip < task.trips; trip++) {
        if (trip == 0) {
            if (second) each(&task, other, own, 0);
            MPI_Barrier(MPI_COMM_WORLD);
            begin = now();
        }
        if (sends) copy(u, own, (const int64_t (*)[4])shared, all, packed, 1);
        MPI_Alltoallv(packed, sends ? counts : none, places, MPI_DOUBLE, arrived, receives ? counts : none, places, MPI_DOUBLE,
                      MPI_COMM_WORLD);
        if (receives) copy(other, own, (const int64_t (*)[4])shared, all, arrived, 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double seconds = now() - begin;
    if (receives) each(&task, other, own, 0);
    if (place == senders) report(&task, seconds);
    free(u), free(other), free(packed), free(arrived), free(shared), free(counts), free(places), free(none);
    MPI_Finalize();
    return 0;
}
