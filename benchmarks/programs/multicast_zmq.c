/* One sender, several receivers: the time until the last receiver has answered. Over ZeroMQ: a PAIR socket for each
 * receiver, and one message that all sockets share.
 *
 * Arguments: number of receivers, stem of the addresses ("ipc:///path"), share of the trips, largest size, file for the
 * times. */
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "over_zmq.h"

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "%s: five arguments are needed\n", argv[0]), 2;
    const int receivers = atoi(argv[1]), share = atoi(argv[3]);
    const size_t largest = (size_t)atoll(argv[4]);
    int rank = 0;
    for (int i = 1; i <= receivers && rank == 0; i++) {
        const pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) rank = i;
    }
    void *context = zmq_ctx_new(), *sockets[16];
    char address[256];
    for (int i = 0; i < (rank == 0 ? receivers : 1) && i < 16; i++) {
        sockets[i] = zmq_socket(context, ZMQ_PAIR);
        snprintf(address, sizeof address, "%s%d", argv[2], rank == 0 ? i + 1 : rank);
        /* A failed connection is tried again until the other side listens. */
        if (rank == 0) must(zmq_bind(sockets[i], address), "zmq_bind");
        else must(zmq_connect(sockets[i], address), "zmq_connect");
    }
    FILE *times = rank == 0 ? create(argv[5]) : NULL;
    for (size_t bytes = 0; bytes <= largest; bytes = bytes ? bytes * 4 : KIB) {
        const long trips = multicasts(bytes, share), warm = trips / 10 + 1;
        double seconds = 0;
        for (long trip = -warm; trip < trips; trip++) {
            zmq_msg_t message, shared;
            if (rank == 0) {
                must(zmq_msg_init_size(&message, bytes), "zmq_msg_init_size");
                memset(zmq_msg_data(&message), (int)trip, bytes);
                const double begin = now();
                for (int i = 0; i < receivers; i++) {
                    must(zmq_msg_init(&shared), "zmq_msg_init");
                    must(zmq_msg_copy(&shared, &message), "zmq_msg_copy");
                    must(zmq_msg_send(&shared, sockets[i], 0), "zmq_msg_send");
                }
                for (int i = 0; i < receivers; i++) must(zmq_recv(sockets[i], NULL, 0, 0), "zmq_recv");
                if (trip >= 0) seconds += now() - begin;
                zmq_msg_close(&message);
            } else {
                must(zmq_msg_init(&message), "zmq_msg_init");
                must(zmq_msg_recv(&message, sockets[0], 0), "zmq_msg_recv");
                check(zmq_msg_data(&message), bytes, (int)trip);
                zmq_msg_close(&message);
                must(zmq_send(sockets[0], NULL, 0, 0), "zmq_send");
            }
        }
        if (rank == 0) fprintf(times, "%zu %.9e\n", bytes, seconds / (double)trips);
    }
    finish(times, argv[5]);
    for (int i = 0; i < (rank == 0 ? receivers : 1) && i < 16; i++) zmq_close(sockets[i]);
    zmq_ctx_term(context);
    if (rank == 0) while (wait(NULL) > 0) {}
    return 0;
}
