/* A cell of a ring over MPI. Arguments: turns, seconds to be idle, stem of the files. */
#include <mpi.h>

#include "ring.h"

static int next, before;

static void send_it(void) { MPI_Send(NULL, 0, MPI_BYTE, next, 0, MPI_COMM_WORLD); }

static void receive(void) { MPI_Recv(NULL, 0, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

int main(int argc, char **argv) {
    int rank, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (argc != 4) return fprintf(stderr, "%s: three arguments are needed\n", argv[0]), 2;
    const struct ring ring = {rank, atol(argv[1]), atof(argv[2]), argv[3]};
    next = (rank + 1) % count;
    before = (rank + count - 1) % count;
    go_round(&ring, send_it, receive);
    MPI_Finalize();
    return 0;
}
