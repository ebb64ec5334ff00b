/* The two sides of a ping-pong or a stream over MPI, with reused buffers. Arguments: the task. */
#include <mpi.h>

#include "bench.h"

static int other;
static void *outgoing, *incoming;

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) { MPI_Send(data, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD); }

static const void *receive(size_t bytes) {
    MPI_Recv(incoming, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return incoming;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const struct medium medium = {reused, send_it, receive, nothing, 0};
    const struct task task = task_of(argv + 1);
    pin(rank);
    other = 1 - rank;
    outgoing = memory(task.largest);
    incoming = memory(task.largest);
    MPI_Barrier(MPI_COMM_WORLD);
    play(&medium, &task, rank);
    MPI_Finalize();
    return 0;
}
