/* What the interfaces for C++, C and Fortran share. Not for programs.
 *
 * Calls that return int return 0, or 1 with a text in titin_muscle2_error(). There is one instance in a process. */
#ifndef TITIN_MUSCLE2_CORE_H
#define TITIN_MUSCLE2_CORE_H

#include <stdarg.h>
#include <stddef.h>
#include <titin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of the last error. */
const char *titin_muscle2_error(void);

/* Opens the instance on rank 0 of an MPI program, and in a serial program. `language` is "C", "C++" or "Fortran". */
int titin_muscle2_init(const char *language);
int titin_muscle2_finalize(void);
/* 1 if this is the process that talks: a serial program, or rank 0. */
int titin_muscle2_is_main(void);
/* 1 on another rank than 0 of an MPI program, where messages are neither sent nor received. */
int titin_muscle2_is_silent(void);
/* Fails the run with the text of the last error, writes the text to standard error, and ends the process. */
void titin_muscle2_die(void);

const char *titin_muscle2_kernel_name(void);
const char *titin_muscle2_workdir(void);
int titin_muscle2_will_stop(int *stops);

/* A property as new text, to be freed. `*text` is NULL without an error if there is no such property. */
int titin_muscle2_property(const char *name, char **text);
/* The error that there is no such property: returns 1. */
int titin_muscle2_no_property(const char *name);
/* All properties that the instance has as new text, a line `name=value` for each. */
int titin_muscle2_properties(char **text);

/* Sends an array in C order. */
int titin_muscle2_send_array(const char *port, int dtype, int rank, const int64_t *extents, const void *data);
/* Sends elements of one of the types of muscle_datatype_t, but MUSCLE_COMPLEX. */
int titin_muscle2_send(const char *port, const void *data, size_t count, int type);
int titin_muscle2_send_nil(const char *port);

/* The next message of a port, for MUSCLE_COMPLEX. Freed by titin_message_free. */
int titin_muscle2_next(const char *port, titin_message **message);
/* The elements of an array in C order, into memory for all of them. */
void titin_muscle2_copy(const titin_message *message, size_t element, void *to);
/* Receives elements as MUSCLE_Receive does. */
int titin_muscle2_receive(const char *port, void **data, size_t *count, int type);
int titin_muscle2_has_next(const char *port, int *has);

/* The barrier of the ranks of an MPI program: 0, or -1 with a record in the log. */
int titin_muscle2_barrier_init(char **barrier, size_t *length, int processes);
int titin_muscle2_barrier(const char *barrier);
void titin_muscle2_barrier_destroy(char *barrier);

/* An error of a call of C++ itself: sets the text, and returns 1. */
int titin_muscle2_refuse(const char *format, ...);

void titin_muscle2_log(int level, const char *format, va_list arguments);

#ifdef __cplusplus
}
#endif

#endif
