/* The same by hand in one MPI job: all ranks tell each other their boxes, each finds what it shares with whom, and MPI_Alltoallv moves it.
 * schedule_mpi SENDERS FILE */
#include "schedule.h"

/* Both ways between the buffer and the array of a rank: what it shares with each of the others, one box after the other. */
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
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = atoi(argv[1]), second = place >= senders;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, second, place, &side);
    FILE *out = place == senders ? fopen(argv[2], "w") : NULL;
    int64_t own[4], (*boxes)[4] = malloc((size_t)all * sizeof *boxes), (*shared)[4] = calloc((size_t)all, sizeof *shared);
    box_of(second, second ? place - senders : place, second ? all - senders : senders, own);
    const size_t count = (size_t)((own[1] - own[0]) * (own[3] - own[2]));
    double *u = calloc(count + 1, sizeof *u), *buffer = calloc(count + 1, sizeof *buffer), seconds[TRIPS];
    int *counts = calloc((size_t)all, sizeof(int)), *places = calloc((size_t)all, sizeof(int)), *none = calloc((size_t)all, sizeof(int));
    if (!second) each(u, own, 1);
    for (int trip = 0; trip < TRIPS; trip++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        if (trip == 0) {
            MPI_Allgather(own, 4, MPI_INT64_T, boxes, 4, MPI_INT64_T, MPI_COMM_WORLD);
            int total = 0;
            for (int k = 0; k < all; k++) {
                if ((k >= senders) == second) continue;
                for (int bound = 0; bound < 4; bound++) {
                    const int64_t a = own[bound], b = boxes[k][bound];
                    shared[k][bound] = (bound % 2 ? a < b : a > b) ? a : b;
                }
                const int64_t rows = shared[k][1] - shared[k][0], columns = shared[k][3] - shared[k][2];
                if (rows <= 0 || columns <= 0) memset(shared[k], 0, sizeof *shared);
                else counts[k] = (int)(rows * columns);
                places[k] = total;
                total += counts[k];
            }
        }
        if (!second) copy(u, own, (const int64_t (*)[4])shared, all, buffer, 1);
        MPI_Alltoallv(buffer, second ? none : counts, places, MPI_DOUBLE, buffer, second ? counts : none, places, MPI_DOUBLE, MPI_COMM_WORLD);
        if (second) copy(u, own, (const int64_t (*)[4])shared, all, buffer, 0);
        MPI_Barrier(side);
        seconds[trip] = now() - begin;
        if (second) each(u, own, 0);
    }
    if (out) report(out, 0, seconds);
    if (out && fclose(out) != 0) perror(argv[2]);
    free(boxes), free(shared), free(u), free(buffer), free(counts), free(places), free(none);
    MPI_Finalize();
    return 0;
}
