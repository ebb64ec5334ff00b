/* The two sides of a ping-pong or a stream over one TCP socket on the loopback interface: blocking calls, no delay, buffers
 * as the system sets them. An empty message is sent as one byte, since a stream has no empty messages. Arguments: the task.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static int wire;
static void *outgoing;
static char *incoming;

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) {
    const char *at = data;
    for (size_t left = bytes ? bytes : 1; left > 0;) {
        const ssize_t sent = send(wire, at, left, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        at += sent;
        left -= (size_t)sent;
    }
}

static const void *receive(size_t bytes) {
    char *at = incoming;
    for (size_t left = bytes ? bytes : 1; left > 0;) {
        const ssize_t got = recv(wire, at, left, 0);
        if (got <= 0) fail("recv");
        at += got;
        left -= (size_t)got;
    }
    return incoming;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "%s: five arguments are needed\n", argv[0]), 2;
    const struct task task = task_of(argv + 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    const int side = child == 0;
    pin(side);
    if (side == 0) {
        wire = accept(listener, NULL, NULL);
        if (wire < 0) fail("accept");
    } else {
        wire = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(wire, (struct sockaddr *)&address, length) != 0) fail("connect");
    }
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    outgoing = memory(task.largest);
    incoming = memory(task.largest);
    const struct medium medium = {reused, send_it, receive, nothing, 0};
    play(&medium, &task, side);
    int status = 0;
    if (side == 0) waitpid(child, &status, 0);
    return status != 0;
}
