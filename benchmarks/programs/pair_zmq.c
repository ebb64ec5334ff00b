/* The two sides of a ping-pong or a stream over ZeroMQ, with a PAIR socket each. The receiver views messages in
 * ZeroMQ's memory.
 *
 * Arguments: the address at which the first side listens ("ipc:///path", "tcp://127.0.0.1:*"), and the task. */
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "over_zmq.h"

static void *zsocket, *outgoing;
static zmq_msg_t message;

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) { must(zmq_send(zsocket, data, bytes, 0), "zmq_send"); }

static const void *receive(size_t bytes) {
    (void)bytes;
    must(zmq_msg_init(&message), "zmq_msg_init");
    must(zmq_msg_recv(&message, zsocket, 0), "zmq_msg_recv");
    return zmq_msg_data(&message);
}

static void let_go(void) { zmq_msg_close(&message); }

int main(int argc, char **argv) {
    if (argc != 7) return fprintf(stderr, "%s: six arguments are needed\n", argv[0]), 2;
    const struct task task = task_of(argv + 2);
    char address[256];
    size_t length = sizeof address;
    int told[2];
    if (pipe(told) != 0) fail("pipe");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    const int side = child == 0;
    pin(side);
    outgoing = memory(task.largest);
    void *context = zmq_ctx_new();
    zsocket = zmq_socket(context, ZMQ_PAIR);
    if (side == 0) {
        must(zmq_bind(zsocket, argv[1]), "zmq_bind");
        must(zmq_getsockopt(zsocket, ZMQ_LAST_ENDPOINT, address, &length), "zmq_getsockopt");
        if (write(told[1], address, sizeof address) < 0) fail("pipe");
    } else {
        if (read(told[0], address, sizeof address) != (ssize_t)sizeof address) fail("pipe");
        must(zmq_connect(zsocket, address), "zmq_connect");
    }
    const struct medium medium = {reused, send_it, receive, let_go, 0};
    play(&medium, &task, side);
    zmq_close(zsocket);
    zmq_ctx_term(context);
    int status = 0;
    if (side == 0) waitpid(child, &status, 0);
    return status != 0;
}
