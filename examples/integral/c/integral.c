/* The integral of exp(-x*x) from 0 to a limit. The ranks share the work: each adds up some of the points. */

#include <math.h>
#include <titin_mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    titin_instance *instance;
    if (titin_mpi_open("f_init: limit; o_f: integral", NULL, MPI_COMM_WORLD, &instance)) return titin_explain(stderr);
    titin_port *in = titin_port_find(instance, "limit"), *out = titin_port_find(instance, "integral");

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT: all ranks get the message that rank 0 receives. */
        int64_t points;
        titin_message *msg;
        double limit, mine = 0.0, sum = 0.0;
        titin_setting_i64(instance, "points", &points);
        if (titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, &limit, &msg)) break;

        /* S */
        const double dx = limit / (double)points;
        for (int64_t i = titin_rank(instance); i < points; i += titin_ranks(instance)) {
            const double x = ((double)i + 0.5) * dx;
            mine += exp(-x * x) * dx;
        }
        MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

        /* O_F: all ranks call send, and the data of rank 0 go out. */
        titin_value *result = titin_new_f64(sum);
        titin_send_value(out, TITIN_NO_SLOT, result, titin_message_timestamp(msg), TITIN_NO_NEXT, NULL);
        titin_value_free(result);
        titin_message_free(msg);
    }
    const int failed = titin_close(instance);
    MPI_Finalize();
    return failed;
}
