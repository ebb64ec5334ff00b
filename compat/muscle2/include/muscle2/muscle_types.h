/* The types of MUSCLE 2's interface, with the numbers that they have there. */
#ifndef TITIN_MUSCLE2_TYPES_H
#define TITIN_MUSCLE2_TYPES_H

/* Types of the elements of a message. */
typedef enum {
    MUSCLE_DOUBLE = 0,
    MUSCLE_FLOAT = 1,
    MUSCLE_INT32 = 2,
    MUSCLE_INT64 = 3,
    MUSCLE_STRING = 4,
    MUSCLE_BOOLEAN = 5,
    MUSCLE_RAW = 6,
    MUSCLE_COMPLEX = 7 /* muscle::ComplexData, in C++ only */
} muscle_datatype_t;

typedef enum {
    MUSCLE_LOG_SEVERE = 0,
    MUSCLE_LOG_WARNING = 1,
    MUSCLE_LOG_INFO = 2,
    MUSCLE_LOG_CONFIG = 3,
    MUSCLE_LOG_FINE = 4,
    MUSCLE_LOG_FINER = 5,
    MUSCLE_LOG_FINEST = 6
} muscle_loglevel_t;

/* Results of MUSCLE_Init and MUSCLE_Send. Here they are always MUSCLE_SUCCESS: an error ends the program. */
typedef enum {
    MUSCLE_SUCCESS = 0,
    MUSCLE_ERR_INTERNAL = 1,
    MUSCLE_ERR_NOMEM = 2,
    MUSCLE_ERR_NET = 3,
    MUSCLE_ERR_IO = 4,
    MUSCLE_ERR_SER = 5,
    MUSCLE_ERR_DESER = 6
} muscle_error_t;

#endif
