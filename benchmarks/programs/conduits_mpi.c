/* The cost of a message among many conduits. MPI has no conduits, so tags take their place. The other side takes any
 * tag, and answers.
 *
 * Arguments: number of tags, trips, file for the time. */
#include <mpi.h>

#include "bench.h"

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) return fprintf(stderr, "%s: three arguments are needed\n", argv[0]), 2;
    const int count = atoi(argv[1]);
    const long trips = atol(argv[2]), warm = 2L * count;
    pin(rank);
    double begin = 0;
    for (long trip = -warm; trip < trips; trip++) {
        if (trip == 0) begin = now();
        if (rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, 1, (int)((trip + warm) % count), MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) add_time(argv[3], count, (now() - begin) / (double)trips / 2);
    MPI_Finalize();
    return 0;
}
