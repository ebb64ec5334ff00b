/* The cost of a message while many sockets are open, over ZeroMQ with PAIR sockets. One socket after the other carries
 * an empty message. The other side polls all sockets, and answers.
 *
 * Arguments: number of sockets, stem of the addresses ("ipc:///path"), trips, file for the time. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "over_zmq.h"

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const int count = atoi(argv[1]);
    const long trips = atol(argv[3]), warm = 2L * count;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const pid_t child = fork();
    if (child < 0) fail("fork");
    const int side = child == 0;
    pin(side);
    void *context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, count + 16);
    zmq_pollitem_t *items = calloc((size_t)count + 1, sizeof *items);
    for (int i = 0; i <= count; i++) {
        char address[256];
        snprintf(address, sizeof address, "%s%d", argv[2], i);
        items[i].socket = zmq_socket(context, ZMQ_PAIR);
        items[i].events = ZMQ_POLLIN;
        if (side == 0) must(zmq_bind(items[i].socket, address), "zmq_bind");
        else must(zmq_connect(items[i].socket, address), "zmq_connect");
    }
    /* The last socket is for the answers. */
    void *back = items[count].socket;
    double begin = 0;
    for (long trip = -warm; trip < trips; trip++) {
        if (trip == 0) begin = now();
        if (side == 0) {
            must(zmq_send(items[(trip + warm) % count].socket, NULL, 0, 0), "zmq_send");
            must(zmq_recv(back, NULL, 0, 0), "zmq_recv");
        } else {
            must(zmq_poll(items, count, -1), "zmq_poll");
            for (int i = 0; i < count; i++) {
                if (items[i].revents & ZMQ_POLLIN) must(zmq_recv(items[i].socket, NULL, 0, 0), "zmq_recv");
            }
            must(zmq_send(back, NULL, 0, 0), "zmq_send");
        }
    }
    if (side == 0) add_time(argv[4], count, (now() - begin) / (double)trips / 2);
    for (int i = 0; i <= count; i++) zmq_close(items[i].socket);
    zmq_ctx_term(context);
    if (side == 0) wait(NULL);
    return 0;
}
