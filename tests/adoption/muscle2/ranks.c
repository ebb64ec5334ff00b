/* An MPI program: rank 0 talks, and the others take no part. */
#include <mpi.h>
#include <muscle2/cmuscle.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size;
    double sum = 0.0, mine;
    MUSCLE_Init(&argc, &argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < 3; ++step) {
        mine = rank + step;
        MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MUSCLE_Send("out", &sum, 1, MUSCLE_DOUBLE); /* does nothing on other ranks */
        size_t count = 1;
        double back = -1.0;
        void *received = MUSCLE_Receive("in", &back, &count, MUSCLE_DOUBLE);
        MPI_Bcast(&back, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        printf("rank %d of %d: %d %g\n", rank, size, received != NULL, back);
    }
    if (rank == 0) printf("steps %s\n", MUSCLE_Get_Property("steps"));
    MUSCLE_Finalize();
    MPI_Finalize();
    return 0;
}
