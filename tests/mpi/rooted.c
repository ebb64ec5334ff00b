/* Ranks of which the root alone gets the data of messages: the others get the timestamps, and titin_receive_into leaves their
 * memory as it is. rooted.cpp, rooted.f90 and rooted.py follow the same script. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <titin_mpi.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "rank %d: %s; last error: %s\n", rank, #what, titin_error()); \
            exit(1); \
        } \
    } while (0)

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank, again;
    MPI_Comm_rank(comm, &rank);
    titin_options *options = titin_options_new();
    CHECK(titin_options_receive(options, 2) == TITIN_ERROR_USAGE && strstr(titin_error(), "TITIN_RECEIVE_ROOT_ONLY"));
    CHECK(titin_options_receive(options, TITIN_RECEIVE_ALL_RANKS) == 0);
    CHECK(titin_options_receive(options, TITIN_RECEIVE_ROOT_ONLY) == 0);
    titin_instance *instance;
    CHECK(titin_mpi_open("f_init: ask more; o_f: answer", options, comm, &instance) == 0);
    titin_options_free(options);
    titin_port *ask = titin_port_find(instance, "ask"), *more = titin_port_find(instance, "more");
    titin_port *answer = titin_port_find(instance, "answer");
    for (double use = 0.0; titin_reuse(instance, &again) == 0 && again; ++use) {
        titin_message *message, *timed;
        int64_t extent = 3, offered = 3;
        double numbers[3] = {-1.0, -1.0, -1.0};
        CHECK(titin_receive(ask, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
        CHECK(titin_message_kind(message) == (rank ? TITIN_KIND_NIL : TITIN_KIND_ARRAY));
        CHECK(titin_message_timestamp(message) == use && titin_message_next_timestamp(message) == use + 1.0);
        CHECK(titin_value_size(titin_message_settings(message)) == 1);
        titin_message_free(message);
        CHECK(titin_receive_into(more, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, &offered, NULL, TITIN_ORDER_C, numbers, &timed) == 0);
        CHECK(titin_message_timestamp(timed) == use);
        titin_message_free(timed);
        CHECK(numbers[2] == (rank ? -1.0 : use));
        // All ranks send, or the root alone.
        if (!rank || use == 0.0)
            CHECK(titin_send(answer, TITIN_NO_SLOT, TITIN_F64, 1, &extent, numbers, use, TITIN_NO_NEXT) == 0);
    }
    const int code = titin_close(instance);
    MPI_Finalize();
    return code;
}
