/* MUSCLE 2's barrier for the ranks of an MPI program, whose waiting ranks use no core: rank 0 listens, the others connect once,
 * say a token that the program has broadcast, and then a byte at each barrier. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "internal.h"
#include "muscle2/muscle_types.h"

enum { ADDRESS = 128, HOST = 64, TOKEN = 32 };

static struct {
    int listens, server;
    int *others, count, joined; /* of rank 0: a connection for each other rank */
    int connected, own;         /* of another rank */
    char token[TOKEN + 1];
} state;

static int failed(const char *what) {
    titin_muscle2_log_text(MUSCLE_LOG_SEVERE, "the barrier of MUSCLE has failed: %s", what);
    return -1;
}

/* Reads or writes all bytes; 1 if the other end is gone. */
static int move(int socket, char *bytes, size_t count, int sends) {
    while (count) {
        ssize_t done = sends ? send(socket, bytes, count, MSG_NOSIGNAL) : recv(socket, bytes, count, 0);
        if (done <= 0) return 1;
        bytes += done;
        count -= (size_t)done;
    }
    return 0;
}

static int new_token(char *token) {
    unsigned char random[TOKEN / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return 1;
    for (int i = 0; i < TOKEN / 2; ++i) snprintf(token + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static int listen_at(char *address, int processes) {
    struct sockaddr_in place = {.sin_family = AF_INET};
    socklen_t size = sizeof place;
    char host[HOST] = "";
    state.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    state.others = calloc((size_t)processes, sizeof *state.others);
    if (state.server < 0 || !state.others || gethostname(host, sizeof host - 1) || new_token(state.token)) return 1;
    if (bind(state.server, (struct sockaddr *)&place, size) || listen(state.server, processes)) return 1;
    if (getsockname(state.server, (struct sockaddr *)&place, &size)) return 1;
    state.listens = 1;
    state.count = processes - 1;
    snprintf(address, ADDRESS, "%s %d %s", host, (int)ntohs(place.sin_port), state.token);
    return 0;
}

int titin_muscle2_barrier_init(char **barrier, size_t *length, int processes) {
    if (processes < 2) return failed("it joins two processes or more");
    if (state.listens || state.connected) return failed("there is one already: destroy it first");
    *barrier = calloc(1, ADDRESS);
    *length = ADDRESS;
    if (!*barrier) return failed("there is no memory for its address");
    return titin_muscle2_is_main() && listen_at(*barrier, processes) ? failed("rank 0 cannot listen") : 0;
}

static int connect_to(const char *barrier) {
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    char host[HOST], port[8], own[HOST] = "", address[ADDRESS];
    memcpy(address, barrier, ADDRESS - 1);
    address[ADDRESS - 1] = '\0';
    if (sscanf(address, "%63s %7s %32s", host, port, state.token) != 3)
        return failed("its address is not that of rank 0: broadcast it");
    gethostname(own, sizeof own - 1);
    if (getaddrinfo(strcmp(own, host) ? host : "127.0.0.1", port, &wanted, &found))
        return failed("the host of rank 0 has no address here");
    state.own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int lost = state.own < 0 || connect(state.own, found->ai_addr, found->ai_addrlen) || move(state.own, state.token, TOKEN, 1);
    freeaddrinfo(found);
    if (lost) return failed("rank 0 cannot be reached");
    state.connected = 1;
    return 0;
}

/* Takes the connection of another rank. A stranger that does not know the token is turned away. */
static int take_one(void) {
    struct timeval patience = {.tv_sec = 10}, for_ever = {0};
    char said[TOKEN];
    int other = accept4(state.server, NULL, NULL, SOCK_CLOEXEC);
    if (other < 0) return failed("rank 0 cannot take a connection");
    setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (move(other, said, TOKEN, 0) || memcmp(said, state.token, TOKEN)) {
        close(other);
        return 0;
    }
    setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
    state.others[state.joined++] = other;
    return 0;
}

static int barrier_of_root(void) {
    char byte = 1;
    while (state.joined < state.count)
        if (take_one()) return -1;
    for (int i = 0; i < state.count; ++i)
        if (move(state.others[i], &byte, 1, 0)) return failed("another rank has ended");
    for (int i = 0; i < state.count; ++i)
        if (move(state.others[i], &byte, 1, 1)) return failed("another rank has ended");
    return 0;
}

int titin_muscle2_barrier(const char *barrier) {
    char byte = 1;
    if (state.listens) return barrier_of_root();
    if (!barrier || titin_muscle2_is_main()) return failed("it was not initialized");
    if (!state.connected && connect_to(barrier)) return -1;
    if (move(state.own, &byte, 1, 1) || move(state.own, &byte, 1, 0)) return failed("rank 0 has ended");
    return 0;
}

void titin_muscle2_barrier_destroy(char *barrier) {
    for (int i = 0; i < state.joined; ++i) close(state.others[i]);
    if (state.listens) close(state.server);
    if (state.connected) close(state.own);
    free(state.others);
    free(barrier);
    memset(&state, 0, sizeof state);
}
