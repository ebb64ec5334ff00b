/* titin with MPI, for C and C++: opens an instance that is a program of many ranks. All functions are inline, and
 * are compiled with the program's own MPI, which libtitin does not know.
 *
 *     MPI_Init(&argc, &argv);
 *     titin_instance *instance;
 *     if (titin_mpi_open("f_init: initial_state; o_f: final_state", NULL, MPI_COMM_WORLD, &instance)) ...
 *
 * titin.h says what ranks do together. The communicator is used while the instance is opened (MPI_Bcast and MPI_Gather,
 * on the thread that calls), and not afterwards. Its attributes and error handlers are not changed.
 */
#ifndef TITIN_MPI_H
#define TITIN_MPI_H

#include <limits.h>
#include <mpi.h>

#include "titin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For titin_communicator: `context` points to the MPI_Comm. */
static inline int titin_mpi_broadcast(void *context, void *bytes, int64_t count) {
    if (count > INT_MAX) return MPI_ERR_COUNT;
    return MPI_Bcast(bytes, (int)count, MPI_BYTE, 0, *(MPI_Comm *)context);
}

/* For titin_communicator, as titin_mpi_broadcast. */
static inline int titin_mpi_gather(void *context, const void *mine, void *all, int64_t count) {
    if (count > INT_MAX) return MPI_ERR_COUNT;
    return MPI_Gather((void *)mine, (int)count, MPI_BYTE, all, (int)count, MPI_BYTE, 0, *(MPI_Comm *)context);
}

/* The ranks of an MPI communicator, which must exist until the instance is open. */
static inline int titin_mpi_communicator(MPI_Comm *comm, titin_communicator *communicator) {
    communicator->size = sizeof *communicator;
    communicator->context = comm;
    communicator->broadcast = titin_mpi_broadcast;
    communicator->gather = titin_mpi_gather;
    int failed = MPI_Comm_rank(*comm, &communicator->rank);
    if (!failed) failed = MPI_Comm_size(*comm, &communicator->ranks);
    if (!failed) return TITIN_OK;
    titin_set_error("the MPI communicator has no rank and size: is it MPI_COMM_NULL?");
    return TITIN_ERROR_USAGE;
}

/* As titin_options_communicator, with these ranks. */
static inline int titin_mpi_options(titin_options *options, MPI_Comm *comm) {
    titin_communicator communicator;
    const int failed = titin_mpi_communicator(comm, &communicator);
    return failed ? failed : titin_options_communicator(options, &communicator);
}

/* As titin_open, by all ranks of a communicator together. `options` may be NULL; the call sets their communicator. */
static inline int titin_mpi_open(const char *ports, titin_options *options, MPI_Comm comm, titin_instance **instance) {
    titin_options *used = options ? options : titin_options_new();
    int failed = titin_mpi_options(used, &comm);
    if (failed) *instance = NULL;
    else failed = titin_open(ports, used, instance);
    if (!options) titin_options_free(used);
    return failed;
}

#ifdef __cplusplus
}
#endif

#endif
