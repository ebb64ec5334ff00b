/* Shared by the programs over ZeroMQ. */
#ifndef OVER_ZMQ_H
#define OVER_ZMQ_H

#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

static inline void must(int status, const char *what) {
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

#endif
