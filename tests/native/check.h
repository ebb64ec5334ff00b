/* What the programs in C share: a check that says where it failed, and with which error of titin. */
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
