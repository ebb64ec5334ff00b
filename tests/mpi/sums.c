/* Sums the received numbers. The ranks share the numbers in turn. With arguments a rank fails in the second use: `RANK
 * kill`, `RANK fail`, `RANK exit`, or `RANK other`, which makes a call that the other ranks do not make. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <titin_mpi.h>

static void misbehave(titin_instance *instance, titin_port *in, const char *how) {
    if (!strcmp(how, "kill")) {
        usleep(100000); /* so that the manager watches all ranks by then */
        raise(SIGKILL);
    }
    if (!strcmp(how, "exit")) _exit(0);
    if (!strcmp(how, "fail")) titin_fail(instance, "the temperature is negative");
    if (!strcmp(how, "other")) {
        titin_message *message;
        titin_try_receive(in, TITIN_NO_SLOT, &message);
        titin_message_free(message);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    titin_instance *instance;
    if (titin_mpi_open("f_init: numbers; o_f: sum", NULL, MPI_COMM_WORLD, &instance)) return titin_explain(stderr);
    titin_port *in = titin_port_find(instance, "numbers"), *out = titin_port_find(instance, "sum");
    int again, uses = 0;
    while (titin_reuse(instance, &again) == 0 && again) {
        if (argc > 2 && rank == atoi(argv[1]) && uses == 1) misbehave(instance, in, argv[2]);
        titin_message *message;
        if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message)) break;
        int64_t count = TITIN_ANY;
        const double *numbers = titin_message_array(message, TITIN_F64, 1, &count, TITIN_ORDER_C);
        double mine = 0, sum = 0;
        for (int64_t i = rank; i < count; i += ranks) mine += numbers[i];
        MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        /* Only rank 0 needs the data. */
        titin_send(out, TITIN_NO_SLOT, TITIN_F64, 0, NULL, rank ? NULL : &sum, titin_message_timestamp(message), TITIN_NO_NEXT);
        titin_message_free(message);
        uses++;
    }
    int failed = titin_close(instance);
    if (failed) titin_explain(stderr);
    MPI_Finalize();
    return failed;
}
