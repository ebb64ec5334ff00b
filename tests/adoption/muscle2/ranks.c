#define _DEFAULT_SOURCE
/* An MPI program: rank 0 talks, and the others take no part. */
#include <mpi.h>
#include <muscle2/cmuscle.h>
#include <stdio.h>
#include <unistd.h>

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
    char *barrier;
    size_t length;
    int made = MUSCLE_Barrier_Init(&barrier, &length, size), passed = 0;
    MPI_Bcast(barrier, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);
    FILE *order = fopen("order", "a");
    setbuf(order, NULL);
    for (int step = 0; step < 3; ++step) {
        /* Rank 0 writes before the first barrier, rank 1 after it and before the second one. */
        for (int turn = 0; turn < 2; ++turn) {
            if (rank == turn) usleep(20000), fprintf(order, "%d%d", rank, rank);
            passed |= MUSCLE_Barrier(barrier);
        }
    }
    fclose(order);
    MUSCLE_Barrier_Destroy(barrier);
    printf("barrier %d %d\n", made, passed);
    if (rank == 0) printf("steps %s\n", MUSCLE_Get_Property("steps"));
    MUSCLE_Finalize();
    MPI_Finalize();
    return 0;
}
