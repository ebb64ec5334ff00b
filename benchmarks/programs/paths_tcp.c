/* A ping-pong over one raw TCP socket, or over several with a thread each as in MPWide: each call starts the threads, a
 * message goes in equal parts, and one with less than 2760 bytes for each socket by fewer. Without MPWide's pieces of
 * 8 KiB and its pauses. Blocking calls, no delay, buffers as the system sets them. Arguments: as in `paths.h`; -1 is for one
 * socket that is read without waiting, over and over. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "paths.h"

#define MOST 256
#define LEAST_PART 2760

static int wires[MOST], sockets, spins;

struct part {
    int wire, sends;
    char *data;
    size_t left;
};

static void *move(void *argument) {
    struct part *part = argument;
    while (part->left) {
        const ssize_t moved = part->sends ? send(part->wire, part->data, part->left, MSG_NOSIGNAL)
                                          : recv(part->wire, part->data, part->left, spins ? MSG_DONTWAIT : 0);
        if (spins && moved < 0 && errno == EAGAIN) continue;
        if (moved <= 0) fail(part->sends ? "send" : "recv");
        part->data += moved;
        part->left -= (size_t)moved;
    }
    return NULL;
}

static void move_all(void *data, size_t bytes, int sends) {
    struct part parts[MOST];
    pthread_t threads[MOST];
    const size_t most = bytes / LEAST_PART, count = most < 1 ? 1 : most < (size_t)sockets ? most : (size_t)sockets;
    for (size_t k = 0; k < count; k++) {
        const size_t from = bytes / count * k;
        parts[k] = (struct part){wires[k], sends, (char *)data + from, k == count - 1 ? bytes - from : bytes / count};
        if (k > 0 && pthread_create(&threads[k], NULL, move, &parts[k]) != 0) fail("pthread_create");
    }
    move(&parts[0]);
    for (size_t k = 1; k < count; k++) pthread_join(threads[k], NULL);
}

static void send_it(const void *data, size_t bytes) { move_all((void *)data, bytes, 1); }
static void receive(void *data, size_t bytes) { move_all(data, bytes, 0); }

static void set_up(int wire, int number) {
    const int yes = 1;
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    wires[number] = wire;
}

/* The sockets may be accepted in another order than they were opened in, so each begins with its number. */
static void open_all(const struct sockaddr_in *address) {
    for (int32_t i = 0; i < sockets; i++) {
        int wire, tries = 0;
        while ((wire = socket(AF_INET, SOCK_STREAM, 0), connect(wire, (const void *)address, sizeof *address)) != 0) {
            if (errno != ECONNREFUSED || ++tries > 200) fail("connect");
            close(wire);
            usleep(50000);
        }
        set_up(wire, i);
        move(&(struct part){wire, 1, (char *)&i, sizeof i});
    }
}

static void accept_all(const struct sockaddr_in *address) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (const void *)address, sizeof *address) != 0 || listen(listener, MOST) != 0) fail("listen");
    for (int i = 0; i < sockets; i++) {
        const int wire = accept(listener, NULL, NULL);
        if (wire < 0) fail("accept");
        int32_t number;
        move(&(struct part){wire, 0, (char *)&number, sizeof number});
        set_up(wire, number);
    }
    close(listener);
}

int main(int argc, char **argv) {
    const int first = argc == 8 && !strcmp(argv[1], "here");
    if (!first && argc != 4) return fprintf(stderr, "%s: the arguments are those of paths.h\n", argv[0]), 2;
    char *port = strrchr(argv[2], ':');
    spins = atoi(argv[3]) == -1;
    sockets = spins ? 1 : atoi(argv[3]);
    if (!port || sockets < 1 || sockets > MOST) return fprintf(stderr, "HOST:PORT, and 1 to %d sockets\n", MOST), 2;
    *port++ = 0;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = inet_addr(argv[2])};
    const struct medium medium = {send_it, receive};
    if (first) {
        open_all(&address);
        here(&medium, argv[4], atof(argv[5]), atof(argv[6]), argv[7]);
    } else {
        accept_all(&address);
        there(&medium);
    }
    return 0;
}
