/* One sender, several receivers: the time until the last receiver has answered. Over MPI, by MPI_Bcast.
 *
 * Arguments: share of the trips, largest size, file for the times. */
#include <mpi.h>

#include "bench.h"

int main(int argc, char **argv) {
    int rank, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (argc != 4) return fprintf(stderr, "%s: three arguments are needed\n", argv[0]), 2;
    const int share = atoi(argv[1]);
    const size_t largest = (size_t)atoll(argv[2]);
    char *data = memory(largest);
    FILE *times = rank == 0 ? create(argv[3]) : NULL;
    for (size_t bytes = 0; bytes <= largest; bytes = bytes ? bytes * 4 : KIB) {
        const long trips = multicasts(bytes, share), warm = trips / 10 + 1;
        double seconds = 0;
        for (long trip = -warm; trip < trips; trip++) {
            if (rank == 0) memset(data, (int)trip, bytes);
            const double begin = rank == 0 ? now() : 0;
            /* Of zero bytes MPI_Bcast sends nothing, and no receiver would wait. */
            MPI_Bcast(data, bytes ? (int)bytes : 1, MPI_BYTE, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                for (int i = 1; i < count; i++) MPI_Recv(NULL, 0, MPI_BYTE, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (trip >= 0) seconds += now() - begin;
            } else {
                check((const unsigned char *)data, bytes, (int)trip);
                MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
        if (rank == 0) fprintf(times, "%zu %.9e\n", bytes, seconds / (double)trips);
    }
    finish(times, argv[3]);
    MPI_Finalize();
    return 0;
}
