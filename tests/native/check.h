/* The common part of the programs in C: a check that prints the place of a failure and titin's error. */
#include <stdio.h>
#include <stdlib.h>
#include <titin.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #what, titin_error()); \
            exit(1); \
        } \
    } while (0)
