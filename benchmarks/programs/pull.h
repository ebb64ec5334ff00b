/* Shared by the two programs of a pull: one side makes versions of an array, and the other side pulls the latest version
 * now and then.
 *
 * Each element of version v is its number plus v. The first side makes as many versions as blocks.h has exchanges, each
 * after a pause, and does not wait for the second side. The second side pauses between its pulls, until it has the last
 * version. Not timed are version 0 and the first pull, with which all ranks begin, making a version, and checking elements.
 *
 * The ranks that make a version wait for each other before they keep the version, like the ranks of a solver that exchange
 * their edges. Otherwise some ranks would get far ahead on a machine with fewer cores, and a pull of one version from all
 * ranks would wait for the last rank.
 *
 * The programs write two lines. "0 SECONDS" is the mean time of a pull, from when all ranks of the second side are ready
 * until the slowest rank has the array. "1 SECONDS" is the mean time to keep a version, on the slowest rank. */
#ifndef PULL_H
#define PULL_H

#include <mpi.h>

#include "blocks.h"

/* The words of the task are followed by the pauses of both sides, in milliseconds. */
#define ALL_WORDS (WORDS + 2)
enum { PULL, KEEP };

static inline void pause_for(const char *milliseconds) {
    const long long ns = (long long)(1e6 * atof(milliseconds));
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* The number of timed pulls. */
static inline int more_than_one(int pulls) {
    if (pulls < 2) fail("the first pull had the last version already: make more versions, or pause longer between them");
    return pulls - 1;
}

/* The seconds of the slowest rank, on rank 0. */
static inline double slowest(double seconds, MPI_Comm side) {
    double most = 0;
    MPI_Reduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, side);
    return most;
}

#endif
