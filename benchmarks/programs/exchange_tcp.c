/* Both sides send at once and receive. Each message goes in equal parts over several sockets with a thread for each, as
 * in MPWide, but without MPWide's pacing, and in pieces of a MiB.
 *
 * Arguments: sockets, exchanges, file for the times, and sizes in bytes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PIECE (KIB * KIB)
#define MOST 128

struct part {
    int wire;
    char *from, *to;
    size_t send_left, receive_left;
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void *exchange(void *argument) {
    struct part *part = argument;
    while (part->send_left || part->receive_left) {
        struct pollfd ready = {part->wire, 0, 0};
        if (part->send_left) ready.events |= POLLOUT;
        if (part->receive_left) ready.events |= POLLIN;
        if (poll(&ready, 1, -1) < 0) fail("poll");
        if (part->receive_left && ready.revents & POLLIN) {
            const ssize_t got = recv(part->wire, part->to, least(part->receive_left, PIECE), MSG_DONTWAIT);
            if (got <= 0) fail("recv");
            part->to += got;
            part->receive_left -= (size_t)got;
        }
        if (part->send_left && ready.revents & POLLOUT) {
            const ssize_t sent = send(part->wire, part->from, least(part->send_left, PIECE), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) fail("send");
            part->from += sent;
            part->send_left -= (size_t)sent;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "%s: four arguments or more are needed\n", argv[0]), 2;
    const int sockets = atoi(argv[1]);
    const long count = atol(argv[2]);
    if (sockets < 1 || sockets > MOST) return fprintf(stderr, "%d sockets, at most %d\n", sockets, MOST), 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, MOST) != 0) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0) fail("getsockname");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    const int side = child == 0;
    int wires[MOST];
    /* Sockets are connected one after the other, so both ends have them in the same order. */
    for (int i = 0; i < sockets; i++) {
        wires[i] = side == 0 ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
        if (side == 1 && connect(wires[i], (struct sockaddr *)&address, length) != 0) fail("connect");
        if (wires[i] < 0) fail("accept");
        setsockopt(wires[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    FILE *times = side == 0 ? create(argv[3]) : NULL;
    for (int i = 4; i < argc; i++) {
        const size_t bytes = (size_t)atoll(argv[i]);
        char *data = memory(bytes), *other = memory(bytes);
        double begin = 0;
        for (long turn = -1; turn < count; turn++) {
            if (turn == 0) begin = now();
            data[0] = data[bytes - 1] = (char)turn;
            struct part parts[MOST];
            pthread_t threads[MOST];
            for (int k = 0; k < sockets; k++) {
                const size_t from = bytes / (size_t)sockets * (size_t)k;
                const size_t part = k == sockets - 1 ? bytes - from : bytes / (size_t)sockets;
                parts[k] = (struct part){wires[k], data + from, other + from, part, part};
                if (k > 0 && pthread_create(&threads[k], NULL, exchange, &parts[k]) != 0) fail("pthread_create");
            }
            exchange(&parts[0]);
            for (int k = 1; k < sockets; k++) pthread_join(threads[k], NULL);
            check((const unsigned char *)other, bytes, (int)turn);
        }
        if (side == 0) fprintf(times, "%zu %.9e\n", bytes, (now() - begin) / (double)count);
        free(data);
        free(other);
    }
    finish(times, argv[3]);
    int status = 0;
    if (side == 0) waitpid(child, &status, 0);
    return status != 0;
}
