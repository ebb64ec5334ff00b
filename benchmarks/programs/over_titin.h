/* Shared by the programs over titin. */
#ifndef OVER_TITIN_H
#define OVER_TITIN_H

#include <stdio.h>
#include <stdlib.h>
#include <titin.h>

static inline void must(int status) {
    if (status != 0) exit(titin_explain(stderr));
}

#endif
