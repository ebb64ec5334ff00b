/* What the two programs share in which one side makes versions of an array and the other one pulls the latest now and then.
 *
 * Each element of version v is its number plus v. The first side makes so many versions as blocks.h has exchanges, each after a
 * pause, and waits for nobody else; the second side pauses between its pulls, until it has the last version. What is not timed:
 * version 0 and the first pull, with which all begin; making a version; looking whether what came is right.
 *
 * The ranks that make a version wait for each other before they keep it, as those of a solver do when they exchange their edges.
 * Else some would get far ahead on a machine with fewer cores, and a pull that has the same version of all would wait for the last.
 *
 * Two lines: "0 SECONDS" is the mean time of a pull, from when all ranks of the second side are ready until the slowest one has the
 * array; "1 SECONDS" that of what keeps a version, for the rank that it takes longest. */
#ifndef PULL_H
#define PULL_H

#include <mpi.h>

#include "blocks.h"

/* After those of the task the pauses of both sides, in milliseconds. */
#define ALL_WORDS (WORDS + 2)
enum { PULL, KEEP };

static inline void pause_for(const char *milliseconds) {
    const long long ns = (long long)(1e6 * atof(milliseconds));
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* How many pulls were timed. */
static inline int more_than_one(int pulls) {
    if (pulls < 2) fail("the first pull had the last version already: make more versions, or pause longer between them");
    return pulls - 1;
}

/* Of the slowest of these ranks, at its rank 0. */
static inline double slowest(double seconds, MPI_Comm side) {
    double most = 0;
    MPI_Reduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, side);
    return most;
}

#endif
