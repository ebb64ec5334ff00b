/* A side of the counted ping-pong over MPI. Arguments: bytes, trips, and the file that both sides map. */
#include <mpi.h>

#include "counted.h"

static int other, bytes;
static char *outgoing, *incoming;

static void send_bytes(void) { MPI_Send(outgoing, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD); }

static void receive_bytes(void) { MPI_Recv(incoming, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void probe(void) {
    int is_there;
    MPI_Iprobe(other, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    const struct counted_medium medium = {send_bytes, receive_bytes, probe};
    int side;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &side);
    if (argc != 4) return fprintf(stderr, "%s: three arguments are needed\n", argv[0]), 2;
    other = 1 - side;
    bytes = atoi(argv[1]);
    outgoing = memory((size_t)bytes), incoming = memory((size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    play_counted(&medium, (struct counted_rank){side, 0, 1}, atol(argv[2]), argv[3]);
    MPI_Finalize();
    return 0;
}
