/* MUSCLE 2's interface for C. An error ends the program, as in MUSCLE 2, where an exception of C++ does. */
#include "muscle2/cmuscle.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void check(int failed) {
    if (failed) titin_muscle2_die();
}

muscle_error_t MUSCLE_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    check(titin_muscle2_init("C"));
    return MUSCLE_SUCCESS;
}

void MUSCLE_Finalize(void) { check(titin_muscle2_finalize()); }

const char *MUSCLE_Kernel_Name(void) {
    const char *name = titin_muscle2_kernel_name();
    check(!name);
    return name;
}

const char *MUSCLE_Get_Property(const char *name) {
    char *text;
    check(titin_muscle2_property(name, &text));
    if (!text) check(titin_muscle2_no_property(name));
    return text;
}

int MUSCLE_Has_Property(const char *name) {
    char *text;
    check(titin_muscle2_property(name, &text));
    free(text);
    return text != NULL;
}

int MUSCLE_Will_Stop(void) {
    int stops;
    check(titin_muscle2_will_stop(&stops));
    return stops;
}

muscle_error_t MUSCLE_Send(const char *port, void *array, size_t size, muscle_datatype_t type) {
    check(titin_muscle2_send(port, array, size, (int)type));
    return MUSCLE_SUCCESS;
}

void *MUSCLE_Receive(const char *port, void *array, size_t *size, muscle_datatype_t type) {
    check(titin_muscle2_receive(port, &array, size, (int)type));
    return array;
}

void MUSCLE_Free(void *array, muscle_datatype_t type) {
    (void)type;
    free(array);
}

int MUSCLE_Barrier_Init(char **barrier, size_t *length, int processes) {
    return titin_muscle2_barrier_init(barrier, length, processes);
}

int MUSCLE_Barrier(const char *barrier) { return titin_muscle2_barrier(barrier); }

void MUSCLE_Barrier_Destroy(char *barrier) { titin_muscle2_barrier_destroy(barrier); }

void MUSCLE_Log(muscle_loglevel_t level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    titin_muscle2_log((int)level, format, arguments);
    va_end(arguments);
}

void MUSCLE_Log_Info(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    titin_muscle2_log(MUSCLE_LOG_INFO, format, arguments);
    va_end(arguments);
}

void MUSCLE_Log_String(muscle_loglevel_t level, const char *text) { MUSCLE_Log(level, "%s", text); }
