/* MUSCLE 2's interface for C, over titin. Link with `titin config --compat muscle2 --libs`.
 *
 * An error ends the program with its text and exit code 1, and so fails the run. In an MPI program only rank 0 talks: on other
 * ranks MUSCLE_Send does nothing, MUSCLE_Receive returns NULL, and the calls for properties are errors. One thread calls. */
#ifndef TITIN_MUSCLE2_CMUSCLE_H
#define TITIN_MUSCLE2_CMUSCLE_H

#include <stddef.h>

#include "muscle_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the run of the environment, which `titin run` sets. The arguments are not changed. */
muscle_error_t MUSCLE_Init(int *argc, char ***argv);
/* Leaves the run, once the receivers hold every message. */
void MUSCLE_Finalize(void);

/* The name of the instance: "macro" or "macro[3]". Lives until MUSCLE_Finalize. */
const char *MUSCLE_Kernel_Name(void);
/* A property, which is a setting of the description, as text. The caller frees it with free(). */
const char *MUSCLE_Get_Property(const char *name);
/* 1 or 0. */
int MUSCLE_Has_Property(const char *name);
/* 1 once the time of a port has reached the property T, or max_timesteps. */
int MUSCLE_Will_Stop(void);

/* Sends `size` elements. For MUSCLE_STRING the text ends at its NUL, or after `size` bytes. */
muscle_error_t MUSCLE_Send(const char *port, void *array, size_t size, muscle_datatype_t type);
/* Receives a message. With NULL for `array` the memory is new, and freed by MUSCLE_Free. Otherwise `array` has room for `*size`
 * elements. `*size` becomes the number of elements; of a string, the number of bytes with the NUL. */
void *MUSCLE_Receive(const char *port, void *array, size_t *size, muscle_datatype_t type);
void MUSCLE_Free(void *array, muscle_datatype_t type);

/* A barrier for the ranks of an MPI program, in which waiting ranks use no core. All ranks call MUSCLE_Barrier_Init, after
 * MUSCLE_Init; rank 0's `*barrier`, with `*length` bytes, is to be broadcast by MPI_Bcast before the first MUSCLE_Barrier. The
 * calls return 0, or -1 with a record in the log. */
int MUSCLE_Barrier_Init(char **barrier, size_t *length, int processes);
int MUSCLE_Barrier(const char *barrier);
void MUSCLE_Barrier_Destroy(char *barrier);

/* Records of the run's log; before MUSCLE_Init and on other ranks than 0 they go to standard error. */
void MUSCLE_Log_Info(const char *format, ...);
void MUSCLE_Log(muscle_loglevel_t level, const char *format, ...);
void MUSCLE_Log_String(muscle_loglevel_t level, const char *text);

#ifdef __cplusplus
}
#endif

#endif
