/* The schedule by hand in one MPI job: all ranks tell each other their boxes, each rank computes the boxes that it shares
 * with other ranks, and MPI_Alltoallv moves the elements. Arguments: number of senders, file for the times. */
#include "by_hand.h"
#include "schedule.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = atoi(argv[1]), second = place >= senders;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, second, place, &side);
    FILE *out = place == senders ? create(argv[2]) : NULL;
    struct shares shares = shares_new(all);
    int64_t own[4];
    box_of(second, second ? place - senders : place, second ? all - senders : senders, own);
    const size_t count = (size_t)count_of(own) + 1;
    double *u = calloc(count, sizeof *u), *buffer = calloc(count, sizeof *buffer), seconds[TRIPS];
    if (!second) each_of(u, own, EXTENT, 1);
    for (int trip = 0; trip < TRIPS; trip++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        if (trip == 0) {
            MPI_Allgather(own, 4, MPI_INT64_T, shares.boxes, 4, MPI_INT64_T, MPI_COMM_WORLD);
            share(&shares, own, second ? 0 : senders, second ? senders : all);
        }
        exchange_packed(&shares, own, second ? NULL : u, buffer, second ? u : NULL, buffer);
        MPI_Barrier(side);
        seconds[trip] = now() - begin;
        if (second) each_of(u, own, EXTENT, 0);
    }
    if (out) report(out, 0, seconds);
    finish(out, argv[2]);
    free(u), free(buffer);
    shares_free(&shares);
    MPI_Finalize();
    return 0;
}
