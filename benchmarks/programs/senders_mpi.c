/* Many senders, one receiver: empty messages in a row, taken from any source. Over MPI.
 *
 * Arguments: messages of each sender, file for the time. */
#include <mpi.h>

#include "bench.h"

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) return fprintf(stderr, "%s: two arguments are needed\n", argv[0]), 2;
    const long count = atol(argv[1]);
    for (int round = 0; round < 2; round++) {
        /* The first round has a tenth of the messages, and is not timed. */
        const long messages = round == 0 ? count / 10 : count;
        const double begin = now();
        if (rank == 0) {
            for (int to = 1; to < ranks; to++) MPI_Send(NULL, 0, MPI_BYTE, to, 0, MPI_COMM_WORLD);
            for (long i = 0; i < messages * (ranks - 1); i++)
                MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (round == 1) add_time(argv[2], ranks - 1, (now() - begin) / (double)(messages * (ranks - 1)));
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (long i = 0; i < messages; i++) MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
