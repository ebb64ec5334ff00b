/* MUSCLE 2's procedures for Fortran. An error ends the program. */
#define _GNU_SOURCE
#include "muscle2/fortranmuscle.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void check(int failed) {
    if (failed) titin_muscle2_die();
}

/* A text of Fortran, up to its NUL or without the spaces at its end. The caller frees it. */
static char *text_of(const char *fortran, size_t length) {
    size_t size = strnlen(fortran, length);
    if (size == length)
        while (size && fortran[size - 1] == ' ') --size;
    char *text = strndup(fortran, size);
    if (!text) check(titin_muscle2_refuse("there is no memory for a text of %zu letters", size));
    return text;
}

/* Gives a text to Fortran, with spaces behind it. */
static void give(const char *what, const char *text, char *fortran, size_t room) {
    size_t length = strlen(text);
    if (length > room)
        check(titin_muscle2_refuse("%s, '%s', has %zu letters, and the character variable for it has room for %zu", what, text,
                                   length, room));
    memset(fortran, ' ', room);
    memcpy(fortran, text, length);
}

void muscle_init_(int *argc, char *argv, size_t length) {
    (void)argc, (void)argv, (void)length;
    check(titin_muscle2_init("Fortran"));
}

void muscle_finalize_(void) { check(titin_muscle2_finalize()); }

void muscle_kernel_name_(char *result, size_t room) {
    const char *name = titin_muscle2_kernel_name();
    check(!name);
    give("the name of the instance", name, result, room);
}

void muscle_get_property_(const char *name, char *result, size_t length, size_t room) {
    char *text = text_of(name, length), *value;
    check(titin_muscle2_property(text, &value));
    if (!value) check(titin_muscle2_no_property(text));
    give("a property", value, result, room);
    free(value);
    free(text);
}

void muscle_has_property_(const char *name, int *result, size_t length) {
    char *text = text_of(name, length), *value;
    check(titin_muscle2_property(text, &value));
    *result = value != NULL;
    free(value);
    free(text);
}

void muscle_will_stop_(int *result) { check(titin_muscle2_will_stop(result)); }

void muscle_send_(const char *port, void *array, int *size, int *type, size_t length) {
    char *name = text_of(port, length);
    if (*size < 0) check(titin_muscle2_refuse("send on port '%s' of %d elements", name, *size));
    check(titin_muscle2_send(name, array, (size_t)*size, *type));
    free(name);
}

void muscle_receive_(const char *port, void *array, int *size, int *type, size_t length) {
    char *name = text_of(port, length);
    size_t count = *size < 0 ? 0 : (size_t)*size;
    if (!array) check(titin_muscle2_refuse("receive on port '%s' into an array that is not allocated", name));
    check(titin_muscle2_receive(name, &array, &count, *type));
    if (titin_muscle2_is_main()) *size = (int)count; /* at most the room, which is an int */
    free(name);
}
