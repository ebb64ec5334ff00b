/* MUSCLE 2's procedures for Fortran, as gfortran and others name them: `call MUSCLE_Send(port, array, n, type)`.
 *
 * Texts end with a NUL, or with spaces. The lengths of texts are passed by the compiler. Numbers of elements are default
 * integers; MUSCLE_Receive takes the room of the array in its third argument, and gives the number of elements there. */
#ifndef TITIN_MUSCLE2_FORTRAN_H
#define TITIN_MUSCLE2_FORTRAN_H

#include <stddef.h>

#include "muscle_types.h"

#ifdef __cplusplus
extern "C" {
#endif

void muscle_init_(int *argc, char *argv, size_t length);
void muscle_finalize_(void);
void muscle_kernel_name_(char *result, size_t room);
void muscle_get_property_(const char *name, char *result, size_t length, size_t room);
void muscle_has_property_(const char *name, int *result, size_t length);
void muscle_will_stop_(int *result);
void muscle_send_(const char *port, void *array, int *size, int *type, size_t length);
void muscle_receive_(const char *port, void *array, int *size, int *type, size_t length);

#ifdef __cplusplus
}
#endif

#endif
