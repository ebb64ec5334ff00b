/* titin: coupling of simulation codes, from C and from every language that can call C.
 *
 * A program opens an instance, which joins the run that the environment names (`titin run` sets the environment). Then
 * the program sends and receives on ports in the order of the submodel execution loop:
 *
 *     titin_instance *instance;
 *     if (titin_open("f_init: initial_state; o_f: final_state", NULL, &instance)) return titin_explain(stderr);
 *     titin_port *in = titin_port_find(instance, "initial_state"), *out = titin_port_find(instance, "final_state");
 *     int again;
 *     while (titin_reuse(instance, &again) == 0 && again) {
 *         titin_message *msg;
 *         if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &msg)) break;
 *         int64_t n = TITIN_ANY;
 *         const double *u0 = titin_message_array(msg, TITIN_F64, 1, &n, TITIN_ORDER_C);
 *         if (!u0) break;
 *         ...
 *         titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &n, u, t, TITIN_NO_NEXT);
 *         titin_message_free(msg);
 *     }
 *     return titin_close(instance);
 *
 * Rules that hold for every call unless it says otherwise
 *
 * Errors. A call that returns int returns 0, or the number of an error. titin_error() gives the text. On an error the
 *     call sets its results to NULL, zero, or for real numbers NaN. A call that returns a pointer returns NULL on an
 *     error. No call unwinds, exits, prints (except titin_explain) or installs a signal handler.
 * Errors stick. A program need not look at each status. The first error stays with the instance: from then on calls
 *     that send, receive or reuse return the error at once, and titin_close returns the error and fails the run with
 *     it. An error of titin_message_array sticks too. Errors of calls on values do not stick: look at their results.
 *     Timeouts, interruptions and the end of a port's messages do not stick. titin_recover forgets an error that the
 *     program has dealt with. Bindings with exceptions switch sticking off (titin_options_exceptions).
 * Memory. If a call hands out a handle under `**`, or returns a pointer to an opaque type, the caller frees the handle
 *     with the function named at the call. A pointer to const belongs to the object that the call was made on, and
 *     lives as long as the object. Arguments stay the caller's, and may be changed once the call has returned;
 *     exceptions are marked. A NULL handle is an error, never a crash; freeing NULL does nothing.
 * Threads. Any thread may call. Calls on different ports of an instance may run at once. Two calls at once on one port,
 *     or two calls of titin_reuse, are an error that titin detects. titin_close must be the last call on an instance
 *     and its ports. Many threads may read a message or value at once; a value must not be read while it is built.
 * Waiting. Only titin_open, titin_reuse, titin_close, titin_host and the calls that send or receive wait. They wait
 *     without using a core, and return an error as soon as the run fails. On light instances (see "Many instances")
 *     these calls do not wait: they return TITIN_PENDING, and the program makes them again.
 * Forks. In a forked child every instance of the parent is dead: calls return TITIN_ERROR_FORKED, and frees are safe.
 *     The data of messages that the parent had may be read as long as the parent lives.
 * Text is UTF-8 and ends with a NUL, unless a length goes with it.
 */
#ifndef TITIN_H
#define TITIN_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Release of this header; titin_version has that of the library. */
#define TITIN_VERSION_MAJOR 0
#define TITIN_VERSION_MINOR 1
#define TITIN_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* An instance: one running copy of a program, as part of a run. */
typedef struct titin_instance titin_instance;
/* A port of an instance. Belongs to the instance. */
typedef struct titin_port titin_port;
/* A message that was received. Counted: titin_message_retain, titin_message_free. */
typedef struct titin_message titin_message;
/* A tree of maps, lists, text, bytes, numbers, arrays and nil. */
typedef struct titin_value titin_value;
/* How to open an instance. */
typedef struct titin_options titin_options;
/* A region of the program in the profile. */
typedef struct titin_region titin_region;
/* The output of a filter. */
typedef struct titin_output titin_output;
/* An instance that has asked to join the run. */
typedef struct titin_opening titin_opening;
/* Memory for an array that is sent without a copy. Counted: titin_loan_retain, titin_loan_free. */
typedef struct titin_loan titin_loan;
/* A list of light instances that are ready to go on, and of calls on paths that are done. */
typedef struct titin_ready titin_ready;
/* How an array is spread over the ranks of an instance. */
typedef struct titin_decomposition titin_decomposition;
/* Arrays spread over the ranks of an instance, which travel by one of its ports. */
typedef struct titin_field titin_field;

/* Errors. docs/errors.md says more about each. */
enum {
    TITIN_OK = 0,
    TITIN_ERROR_USAGE = 1,          /* the call itself is wrong: an unknown port, a slot out of range */
    TITIN_ERROR_CALL_ORDER = 2,     /* not in its place in the submodel execution loop */
    TITIN_ERROR_SETTING = 3,        /* a setting is missing, or of another type or unit */
    TITIN_ERROR_TYPE_MISMATCH = 4,  /* the data are not of the type or shape asked for */
    TITIN_ERROR_TIMEOUT = 5,        /* the time given to the call is over (does not stick) */
    TITIN_ERROR_PORT_CLOSED = 6,    /* no more messages will come, as the other end has finished (does not stick) */
    TITIN_ERROR_PEER_LOST = 7,      /* another instance has failed, or cannot be reached */
    TITIN_ERROR_DEADLOCK = 8,       /* instances wait for each other in a cycle */
    TITIN_ERROR_CONNECTION = 9,     /* the run cannot be joined, its manager is gone, or a link brings bytes that make no sense */
    TITIN_ERROR_NO_MEMORY = 10,     /* no memory for a message */
    TITIN_ERROR_FORKED = 11,        /* the instance belongs to the parent process, from which this one was forked */
    TITIN_ERROR_INTERNAL = 12,      /* an error inside titin; please report it */
    TITIN_ERROR_INTERRUPTED = 13,   /* the interrupt callback wants to deal with a signal (does not stick) */
    TITIN_ERROR_FILTER = 14,        /* a filter has failed */
    TITIN_ERROR_CLOSED = 15,        /* the instance has failed before, or is closed */
    TITIN_PENDING = 16,             /* no error: a light instance's call is to be made again (does not stick) */
    TITIN_ERROR_EVICTED = 17,       /* the sender of a field does not keep the version asked for (does not stick) */
    TITIN_ERROR_MESSAGE_LOST = 18,  /* a message of a path was dropped by its receiver, or given up by its sender */
    TITIN_ERROR_MEMBER_FAILED = 19  /* a member of an ensemble has failed, and the run goes on without it (does not stick) */
};

/* Operators of the submodel execution loop. */
enum { TITIN_F_INIT = 1, TITIN_O_I = 2, TITIN_S = 3, TITIN_O_F = 4 };

/* Element types of arrays. TITIN_F16 and TITIN_BF16, the upper half of a float, are given as their bits, uint16_t.
 * Complex numbers are two reals, the real part first. Bool is one byte, 0 or 1: an array sent, lent, put in a value or
 * made by a filter as bool has 1 for every byte other than 0. Fields do not change bytes. */
enum {
    TITIN_BOOL = 1,
    TITIN_I8 = 2,
    TITIN_I16 = 3,
    TITIN_I32 = 4,
    TITIN_I64 = 5,
    TITIN_U8 = 6,
    TITIN_U16 = 7,
    TITIN_U32 = 8,
    TITIN_U64 = 9,
    TITIN_F16 = 10,
    TITIN_F32 = 11,
    TITIN_F64 = 12,
    TITIN_C64 = 13,
    TITIN_C128 = 14,
    TITIN_BF16 = 15
};

/* Which index varies fastest in memory: the last, as in C, or the first, as in Fortran. */
enum { TITIN_ORDER_C = 0, TITIN_ORDER_FORTRAN = 1 };

/* Kinds of values, and of the data of messages. */
enum {
    TITIN_KIND_NIL = 1,
    TITIN_KIND_BOOL = 2,
    TITIN_KIND_INT = 3,   /* fits int64_t */
    TITIN_KIND_UINT = 4,  /* above INT64_MAX */
    TITIN_KIND_FLOAT = 5,
    TITIN_KIND_TEXT = 6,
    TITIN_KIND_BYTES = 7,
    TITIN_KIND_ARRAY = 8,
    TITIN_KIND_LIST = 9,
    TITIN_KIND_MAP = 10
};

/* Types of settings. */
enum {
    TITIN_TYPE_NONE = 0, /* not set */
    TITIN_TYPE_BOOL = 1,
    TITIN_TYPE_INT = 2,
    TITIN_TYPE_FLOAT = 3,
    TITIN_TYPE_TEXT = 4, /* quantities with a unit too: "10 ms" */
    TITIN_TYPE_INTS = 5,
    TITIN_TYPE_FLOATS = 6,
    TITIN_TYPE_TABLE = 7
};

/* Levels of log records, as in Python's logging. */
enum {
    TITIN_LOG_DEBUG = 10,
    TITIN_LOG_INFO = 20,
    TITIN_LOG_WARNING = 30,
    TITIN_LOG_ERROR = 40,
    TITIN_LOG_CRITICAL = 50
};

/* What the settings overlays of messages do at an instance. Inherited, the default: titin_reuse merges those of the F_INIT
 * messages; they hold for the use, and go with the messages that it sends. Explicit: an overlay is that of its message alone.
 * It changes no setting, and goes only with messages to which the program gives it; what comes on muscle_settings_in holds
 * for the use all the same. For programs that pass on messages of several members, such as a load balancer. */
enum { TITIN_OVERLAYS_INHERITED = 0, TITIN_OVERLAYS_EXPLICIT = 1 };

/* What becomes of a call that is out of the order of the execution loop, or goes back in time. Error, the default: the call is
 * refused. Warn: the call goes on, and the run's log names the port and the place in the loop, once for each kind and port. An
 * F_INIT message that a use does not receive is dropped at the next titin_reuse, and the log counts such messages at the end.
 * titin_options_unchecked is the third strength: nothing is said. */
enum { TITIN_CHECKS_ERROR = 0, TITIN_CHECKS_WARN = 1 };

/* The ranks of a parallel program that get the data of received messages. Root only: the ranks but 0 get messages without data
 * (nil), with the timestamps and settings, so that nothing large is moved for nothing; titin_receive_into leaves their memory
 * as it is. Fields are not affected. */
enum { TITIN_RECEIVE_ALL_RANKS = 0, TITIN_RECEIVE_ROOT_ONLY = 1 };

#define TITIN_NO_SLOT (-1)          /* for ports without slots */
#define TITIN_MAX_RANK 32           /* most dimensions of an array */
#define TITIN_ANY (-1)              /* any extent, rank or order */
#define TITIN_WAIT DBL_MAX          /* a timeout: for ever */
#define TITIN_NO_NEXT (-DBL_MAX)    /* a next timestamp: not known, or there is none */


/* ---- Errors and version ---------------------------------------------------------------------------------------- */

/* The text of the last error of a call in this thread; "" if there was none. The text lives until this thread's next error. */
const char *titin_error(void);
/* The number of that error. */
int titin_error_kind(void);
/* After TITIN_ERROR_MEMBER_FAILED: the name of the failed member, such as "micro[3]", and the slot of the port to which it is
 * connected. "" and TITIN_NO_SLOT after other errors. The name lives until this thread's next error. */
const char *titin_error_member(void);
int titin_error_slot(void);
/* The same text for a program in another language: the text names calls of "C++" or "Fortran", for any other language calls
 * of C. The text lives until this thread's next error, or next call of titin_error_in. */
const char *titin_error_in(const char *language);
/* The name of an error's number: "TITIN_ERROR_USAGE". */
const char *titin_error_name(int kind);
/* Writes "titin: " and the text of the last error as a line to a stream; returns the error's number, at least 1:
 * `return titin_explain(stderr);` */
int titin_explain(FILE *stream);
/* For callbacks of the program: the text of the error that the callback returns. */
void titin_set_error(const char *text);
/* Release of the library: "0.1.0". */
const char *titin_version(void);


/* ---- Options --------------------------------------------------------------------------------------------------- */

/* New options with the defaults. Free with titin_options_free; titin_open has copied them when it returns. */
titin_options *titin_options_new(void);
void titin_options_free(titin_options *options);
/* The name of the instance, in place of TITIN_INSTANCE: "macro[3]". Needed if a process has several instances. */
int titin_options_instance(titin_options *options, const char *name);
/* The run to join, in place of TITIN_MANAGER: path of a connection file, or tcp:host:port. */
int titin_options_manager(titin_options *options, const char *manager);
/* Declares a port, as the text of titin_open does. `name[]` is a vector port. */
int titin_options_port(titin_options *options, const char *name, int op);
/* Switches the check of the order of calls off. The reason goes to the run's log, so an empty reason is an error. */
int titin_options_unchecked(titin_options *options, const char *reason);
/* What becomes of calls out of order: TITIN_CHECKS_ERROR or TITIN_CHECKS_WARN. The setting muscle_checks ("strict", "warn" or
 * "off"), if the description has it, comes before this and before titin_options_unchecked. All ranks give the same. */
int titin_options_checks(titin_options *options, int checks);
/* What settings overlays do: TITIN_OVERLAYS_INHERITED or TITIN_OVERLAYS_EXPLICIT. All ranks give the same. */
int titin_options_overlays(titin_options *options, int overlays);
/* The ranks that get the data of messages: TITIN_RECEIVE_ALL_RANKS or TITIN_RECEIVE_ROOT_ONLY. All ranks give the same. */
int titin_options_receive(titin_options *options, int ranks);
/* The language of the program, for the log: "C" by default. */
int titin_options_language(titin_options *options, const char *language);
/* For bindings that raise every error: no error sticks, and the run fails only by titin_fail or if titin_close fails. */
int titin_options_exceptions(titin_options *options);
/* As titin_on_interrupt, and also while titin_open waits for the manager's answer. An interrupted titin_open fails the run
 * if the manager has heard of the instance. `data` must live until titin_close. */
int titin_options_interrupt(titin_options *options, int (*interrupted)(void *data), void *data);


/* ---- Parallel programs ----------------------------------------------------------------------------------------- */

/* An instance may be a program of many ranks, such as one of MPI. All ranks open the instance with their communicator. From
 * then on they make their calls on ports, titin_reuse and titin_close together, in the same order, and get the same
 * results: rank 0 sends and receives, and passes on the results over links of titin. So waiting ranks use no core and are
 * not inside MPI, and only the data of rank 0 are sent. Each rank reads settings by itself, and makes calls of titin_log
 * and titin_fail by itself; the profile is the profile of rank 0. titin_mpi.h has a communicator for MPI (titin_mpi_open).
 * A program with another library fills in a communicator itself. */
typedef struct titin_communicator {
    size_t size; /* sizeof(titin_communicator) */
    int rank;    /* the calling rank, from 0 */
    int ranks;   /* how many there are */
    void *context;
    /* Gives `count` bytes of rank 0 to all ranks. All ranks call this function. Returns 0, or a number that goes into the
     * error. */
    int (*broadcast)(void *context, void *bytes, int64_t count);
    /* Gives the `count` bytes of each rank to rank 0, in the order of the ranks. Other ranks do not use `all`. */
    int (*gather)(void *context, const void *mine, void *all, int64_t count);
} titin_communicator;

/* Makes the instance one of these ranks. The communicator is copied. Only titin_open uses the communicator, on the thread
 * that calls. One rank alone is a serial program. */
int titin_options_communicator(titin_options *options, const titin_communicator *communicator);

/* The calling rank, and the number of ranks of the instance: 0 and 1 for a serial program. */
int titin_rank(const titin_instance *instance);
int titin_ranks(const titin_instance *instance);


/* ---- Fields ---------------------------------------------------------------------------------------------------- */

/* A field port carries arrays that are spread over the ranks of an instance. Each rank says which part of the whole it
 * owns. Elements go straight from the ranks that own them at the sender to the ranks that own them at the receiver.
 * Both ends may have different decompositions, numbers of ranks, halos, orders and regions. A serial program is one
 * rank, and has the whole array or a region of it.
 *
 *     titin_decomposition *rows = titin_decomposition_new(2, (int64_t[]){ny, nx});
 *     titin_decomposition_grid(rows, (int[]){ranks, 1});
 *     titin_field *field;
 *     titin_field_new(titin_port_find(instance, "out"), rows, 1, (int[]){TITIN_F64}, &field);
 *     ...
 *     titin_field_send(field, (const void *[]){u}, t, TITIN_NO_NEXT);
 *
 * All ranks make these calls together, like calls on ports. Dimensions and indices count from 0. */

/* The spread of a dimension over its processes: blocks whose sizes differ by one at most, the longer ones first (as
 * numpy.array_split); blocks of ceil(n/p), the last ones shorter or empty (BLOCK of HPF, MPI_DISTRIBUTE_BLOCK); blocks
 * of a given size, dealt out in turn (CYCLIC(b) of HPF, ScaLAPACK). */
enum { TITIN_EVEN = 1, TITIN_BLOCK = 2, TITIN_CYCLIC = 3 };

/* The decomposition of an array of this shape, 1 to 7 dimensions. At first rank 0 owns the whole array. Free the
 * decomposition when the fields are made. If a call on the decomposition has failed, titin_field_new fails too, with the
 * reason: begin with a new decomposition. */
titin_decomposition *titin_decomposition_new(int dims, const int64_t *shape);
void titin_decomposition_free(titin_decomposition *decomposition);
/* The number of processes along each dimension, over which the dimension is spread evenly. There may not be more processes
 * than ranks; further ranks own nothing. */
int titin_decomposition_grid(titin_decomposition *decomposition, const int *processes);
/* Spreads a dimension in another way. `block` is the size of TITIN_CYCLIC's blocks. */
int titin_decomposition_spread(titin_decomposition *decomposition, int dim, int spread, int64_t block);
/* Spreads a dimension by bounds: process p has the indices bounds[p] to bounds[p + 1] - 1. `count` is the number of
 * processes plus one. */
int titin_decomposition_bounds(titin_decomposition *decomposition, int dim, int count, const int64_t *bounds);
/* The order in which ranks count through the grid: TITIN_ORDER_C (the last dimension fastest, as MPI_Cart_create does;
 * by default) or TITIN_ORDER_FORTRAN. */
int titin_decomposition_ranks(titin_decomposition *decomposition, int order);
/* Boxes in place of a rule: the calling rank owns this box, lower <= index < upper, and the boxes of earlier calls. Where
 * other ranks have boxes, a rank that owns nothing gives an empty box: lower = upper. */
int titin_decomposition_box(titin_decomposition *decomposition, const int64_t *lower, const int64_t *upper);
/* Indices in place of a rule: the calling rank owns the elements with these numbers, in this order. Numbers count through
 * the array in the order of its memory (titin_decomposition_order): the last dimension fastest, or the first. */
int titin_decomposition_indices(titin_decomposition *decomposition, int64_t count, const int64_t *indices);
/* Couples only this region of the array. The region of the other end may lie elsewhere in its array, but has the same
 * extents. */
int titin_decomposition_region(titin_decomposition *decomposition, const int64_t *lower, const int64_t *upper);
/* The widths of the halo: the rank's arrays have this number of further elements below and above its part in each
 * dimension. */
int titin_decomposition_halo(titin_decomposition *decomposition, const int64_t *below, const int64_t *above);
/* The order of elements in memory: TITIN_ORDER_C by default. */
int titin_decomposition_order(titin_decomposition *decomposition, int order);

/* Declares that a port carries a field of this number of arrays, with these element types (TITIN_F64, ...), all spread
 * in the same way, which travel together. Does not wait for the other end. The decomposition is copied. */
int titin_field_new(titin_port *port, const titin_decomposition *decomposition, int arrays, const int *dtypes,
                    titin_field **field);
/* Frees the handle. The port still carries the field. */
void titin_field_free(titin_field *field);
/* The element type of an array; 0 if there is no such array. */
int titin_field_dtype(const titin_field *field, int array);
/* Bytes of an array on this rank, with the halo; 0 if there is no such array. */
int64_t titin_field_bytes(const titin_field *field, int array);
/* The extents of an array on this rank, with the halo: one for each dimension. An error if arrays are flat here, because
 * the rank has several boxes, or indices of more than one dimension. */
int titin_field_extents(const titin_field *field, int64_t *extents);
/* Writes the indices of the whole array that this rank owns along a dimension, and returns their number; `indices` may be
 * NULL. Element (i, j) of the rank's part, without the halo, is element (indices of dimension 0)[i], (indices of dimension
 * 1)[j] of the whole. Returns -1 if arrays are flat here, and on other errors. */
int64_t titin_field_owned(const titin_field *field, int dim, int64_t *indices);
/* The layout of an array in memory, if its elements do not lie one after the other: extents on this rank, with the halo,
 * and strides in bytes, which may be negative and are multiples of the size of an element. Calls that send or receive then
 * take the pointer to the first element. The layout holds until the next call of titin_field_layout. NULL for extents and
 * strides means elements one after the other again, in the order of the field. Like other calls on a port, this call must
 * not run in two threads at once. */
int titin_field_layout(titin_field *field, int array, const int64_t *extents, const int64_t *strides);
/* Sends this rank's part of each array, to the receivers that the description couples at this step (titin: fields). For a
 * receiver that pulls, titin keeps a version. Returns when the arrays may be changed. */
int titin_field_send(titin_field *field, const void *const *arrays, double timestamp, double next_timestamp);
/* Receives this rank's part into each array, and writes no other element. Elements that share memory, in an array or in
 * two, are an error. Of a field that is pulled, the call receives the latest version. `timestamp` and `next_timestamp` may
 * be NULL; the second is TITIN_NO_NEXT if the sender gave none. Where the description couples nothing at this step, nothing
 * is written and `*timestamp` is NaN. TITIN_ERROR_TIMEOUT once `timeout` is over. A part of the field may have come by
 * then: make the call again with the same arrays. In an instance of several ranks the timeout is for the announcement by
 * rank 0 of the sender; after that the call waits. */
int titin_field_receive(titin_field *field, void *const *arrays, double timeout, double *timestamp, double *next_timestamp);
/* Receives the version at or before the simulated time `at` of a field that is pulled; waits until the sender has
 * passed that time. TITIN_ERROR_EVICTED if the version is not kept, TITIN_ERROR_PORT_CLOSED if no version of that time
 * will come. */
int titin_field_receive_at(titin_field *field, void *const *arrays, double at, double timeout, double *timestamp,
                           double *next_timestamp);
/* For the sender: no more fields follow, and all versions are given up. The port of the receivers is closed. */
int titin_field_withdraw(titin_field *field);


/* ---- Instances ------------------------------------------------------------------------------------------------- */

/* Opens an instance: joins the run and waits for the manager's answer.
 * `ports` declares ports: "f_init: a, b; o_i: c; s: d[]; o_f: e". With NULL, and no ports in the options, the instance has
 * the ports of the description. `options` may be NULL. End the instance with titin_close. */
int titin_open(const char *ports, const titin_options *options, titin_instance **instance);

/* The two halves of titin_open, for a process with many instances. titin_open_begin asks to join the run. titin_open_end
 * waits for the answer; for a light instance titin_open_end returns TITIN_PENDING instead. With any other status
 * titin_open_end frees `opening`. titin_open_cancel is called in place of titin_open_end, and fails the run if the manager
 * has heard of the instance. The end of a process with an unfinished opening fails the run, too. */
int titin_open_begin(const char *ports, const titin_options *options, titin_opening **opening);
int titin_open_end(titin_opening *opening, titin_instance **instance);
void titin_open_cancel(titin_opening *opening);

/* Ends the instance's part in the run, waits until the receivers hold every message sent, and frees the instance and its
 * ports; messages live on. Returns the first error that stuck, or an error of the end (messages never taken, a failed run);
 * with such an error the run fails. With TITIN_ERROR_INTERRUPTED or TITIN_PENDING, and only then, the instance is still
 * open: call titin_close again, or titin_fail before. While another thread is in a call on the instance, titin_close is an
 * error: the run fails, the calls of the other thread return, and the memory of these calls is not freed. */
int titin_close(titin_instance *instance);

/* Fails the run, with this instance as the culprit and this text as the reason. titin_close still has to free the instance,
 * and does not wait then. */
int titin_fail(titin_instance *instance, const char *text);

/* Begins the next use of the submodel: `*again` is 1 if there is one. Without connected F_INIT ports there is one use. With
 * connected F_INIT ports the call waits for their messages, and `*again` is 0 once the senders have finished. Settings
 * change here. */
int titin_reuse(titin_instance *instance, int *again);

/* Whether the step that begins at this time would pass the end of the use: `*stops` is 1 or 0, and 1 after an error. The
 * use begins at the latest timestamp of its F_INIT messages, or at 0 without F_INIT messages. The use lasts for the setting
 * `t_max`, else for the scale `total`. A step takes the setting `dt`, else the scale `dt`, else no time. A step may pass
 * the end by a millionth of its length, and by the rounding error of a sum of timesteps. Settings with a unit, and scales,
 * are converted to the unit of timestamps (`titin: {time_unit: ...}`, seconds unless told). A number alone is in the unit
 * of timestamps. A negative or NaN time is TITIN_ERROR_SETTING, a step too short to change the time TITIN_ERROR_USAGE. */
int titin_will_stop(const titin_instance *instance, double timestamp, int *stops);

/* Forgets the error that has stuck, because the program has dealt with the error. */
int titin_recover(titin_instance *instance);

/* Name of the instance: "macro[3]". */
const char *titin_instance_name(const titin_instance *instance);
/* The directory that was current when the instance was opened. `titin run` starts each program in its own directory. */
const char *titin_workdir(const titin_instance *instance);
/* The unit of timestamps, as the description has it (`titin: {time_unit: h}`): "s" unless told. */
const char *titin_time_unit(const titin_instance *instance);
/* The scales in the description: a map with "dt" and "total" (s, numbers), "dx" and "extent" (m, lists with a number per
 * dimension), as far as the description has them. */
const titin_value *titin_scale(const titin_instance *instance);
/* Sends a record to the run's log. Levels are TITIN_LOG_INFO and so on. */
int titin_log(titin_instance *instance, int level, const char *text);
/* Switches the check of the order of calls off from here on. An empty reason is an error. */
int titin_skip_checks(titin_instance *instance, const char *reason);

/* Begins and ends a region in the profile. titin_region_end frees the region; after titin_close the call does nothing else.
 * Regions may nest and overlap. */
titin_region *titin_region_begin(titin_instance *instance, const char *name);
int titin_region_end(titin_region *region);

/* While a call waits, titin calls `interrupted` after each signal and at least ten times a second, in the thread that
 * waits. Once `interrupted` returns nonzero, the call returns TITIN_ERROR_INTERRUPTED. A send that is made again continues
 * where it was interrupted. `interrupted` can be set once. `data` must live until titin_close. */
int titin_on_interrupt(titin_instance *instance, int (*interrupted)(void *data), void *data);

/* Several instances in one process: opens an instance for each name, runs entry[i](instance, data[i]) in a thread of
 * its own, closes the instance when the entry returns, and waits for all. The first instance runs in the calling
 * thread. An entry may call titin_close as its last call on the instance; titin_host still frees the instance. An entry
 * returns 0, or any other number to fail the run (titin_set_error gives the reason). `ports` (text as for titin_open)
 * and `data` may be NULL, or hold NULLs. Returns the first error, not its echoes. */
typedef int (*titin_entry)(titin_instance *instance, void *data);
int titin_host(int count, const char *const *names, const char *const *ports, const titin_entry *entries,
               void *const *data, const titin_options *options);


/* ---- Many instances -------------------------------------------------------------------------------------------- */

/* A light instance needs no thread to wait in. Where a call of an ordinary instance would wait, the call of a light
 * instance returns TITIN_PENDING at once. When the instance can go on, titin puts the instance on a list, and the program
 * makes the same call again, with the same arguments. A call does nothing twice: a message for several receivers goes to
 * each once, and a timeout counts from the first call. Arguments must not change until the call returns another status than
 * TITIN_PENDING. All other rules hold as for ordinary instances, for errors and the search for deadlocks too. One thread at
 * a time may call. */

/* Runs many light instances on few threads, the calling thread among them. When instance i can go on, titin calls
 * steps[i](instance, data[i]), always on the same thread. The step goes on as far as it can, and returns TITIN_PENDING
 * when one of its calls has returned TITIN_PENDING, or to give other instances a turn. The step returns 0 when all is
 * done, which closes the instance; any other number fails the run. The rest is as for titin_host.
 *
 *     int step(titin_instance *instance, void *data) {
 *         struct cell *cell = data;
 *         int again, failed;
 *         for (;;) switch (cell->next) {
 *         case REUSE:
 *             if ((failed = titin_reuse(instance, &again)) || !again) return failed;
 *             cell->next = SEND;
 *             break;
 *         case SEND:
 *             if ((failed = titin_send_nil(cell->out, TITIN_NO_SLOT, cell->t, TITIN_NO_NEXT, NULL))) return failed;
 *             ...
 */
int titin_host_steps(int count, const char *const *names, const char *const *ports, const titin_entry *steps,
                     void *const *data, int threads, const titin_options *options);

/* Runs the instances that a description gives to a host (`titin: {host: NAME, library: PATH, function: NAME}` or `step:
 * NAME` under a program). The program titin-host calls titin_host_file with a file that names the functions to run. `data`
 * of each function points to a pointer for the function's own use, NULL at first. The ports are those of the description. */
int titin_host_file(const char *path);

/* Light instances in an event loop of the program. Instances that are opened with these options (by titin_open_begin) are
 * light. When an instance can go on, titin puts the instance's `data` on the list; give each instance different data. */
int titin_options_ready(titin_options *options, titin_ready *ready, void *data);
titin_ready *titin_ready_new(void);
/* Frees a list. All its instances must be closed, and the requests of all its calls freed. */
void titin_ready_free(titin_ready *ready);
/* Gives up a pending call, in place of making the call again: the call has not happened, and leaves nothing behind. `port`
 * and `slot` are those of the call; for titin_receive_any give the first of its ports and TITIN_NO_SLOT. TITIN_NO_SLOT
 * gives up all calls on the port, and NULL for the port all calls on the instance, titin_reuse and titin_close too. A send
 * is an exception: the message may have reached some of its receivers already, and nothing else can be sent on that port
 * and slot. */
int titin_cancel(titin_instance *instance, const titin_port *port, int slot);
/* Leaves a light instance out of the search for deadlocks from here on. For programs whose tasks each act on the instance:
 * a pending call of one task says nothing about the others. Without titin_skip_deadlocks the search may take a working task
 * for a task that never sends, and the run fails. */
int titin_skip_deadlocks(titin_instance *instance);
/* Takes the data of the next instance that can go on, or of the next call on a path; waits at most `timeout` seconds (then TITIN_ERROR_TIMEOUT). One
 * thread at a time may call. */
int titin_ready_next(titin_ready *ready, double timeout, void **data);
/* A descriptor to poll, which is readable while the list is not empty; -1 on an error. Belongs to the list. */
int titin_ready_descriptor(const titin_ready *ready);


/* ---- Settings -------------------------------------------------------------------------------------------------- */

/* The type of a setting. A setting that is not set has TITIN_TYPE_NONE, which is no error: so a program finds out where
 * to use a default. */
int titin_setting_type(const titin_instance *instance, const char *name);
/* A real or a whole number. A quantity with a unit is an error: read the quantity with titin_setting_quantity. */
int titin_setting_f64(titin_instance *instance, const char *name, double *value);
/* A quantity in a unit: "10 ms" read in "s" is 0.01. A number alone is in `unit` already. A unit that titin does not know
 * is TITIN_ERROR_USAGE. */
int titin_setting_quantity(titin_instance *instance, const char *name, const char *unit, double *value);
/* Converts a number from a unit to another unit, by the units of settings: 1.5 "h" is 90 "min". A unit that titin does not
 * know, and two units that measure different things, are TITIN_ERROR_USAGE, and `converted` is NaN. Any thread may call. */
int titin_convert(double number, const char *unit, const char *wanted, double *converted);
/* A whole number. */
int titin_setting_i64(titin_instance *instance, const char *name, int64_t *value);
/* 0 or 1. */
int titin_setting_bool(titin_instance *instance, const char *name, int *value);
/* The text lives until titin_close. */
int titin_setting_text(titin_instance *instance, const char *name, const char **value);
/* Lists, into the caller's memory. `*count` is the length, which a call with NULL for `values` finds out. A `capacity` below
 * the length is an error. */
int titin_setting_f64s(titin_instance *instance, const char *name, double *values, int64_t capacity, int64_t *count);
int titin_setting_i64s(titin_instance *instance, const char *name, int64_t *values, int64_t capacity, int64_t *count);
/* A table with rows of the same length, row by row. As for lists; `capacity` is in numbers. */
int titin_setting_table(titin_instance *instance, const char *name, double *values, int64_t capacity, int64_t *rows,
                        int64_t *columns);
/* A setting of any type; lists and tables are lists. Free with titin_value_free. */
int titin_setting_value(titin_instance *instance, const char *name, titin_value **value);
/* All settings known for this instance, as a map from full names ("macro.dt") to values, with the overlay in force.
 * Free with titin_value_free. */
int titin_settings(titin_instance *instance, titin_value **settings);
/* The overlay in force without the settings below, as titin_reuse has fixed it. Free with titin_value_free. */
int titin_overlay(titin_instance *instance, titin_value **settings);


/* ---- Ports ----------------------------------------------------------------------------------------------------- */

/* The port of this name. Look ports up once; the handle lives until titin_close. */
titin_port *titin_port_find(titin_instance *instance, const char *name);
/* The number of ports, and the port at an index from 0. */
int titin_port_count(const titin_instance *instance);
titin_port *titin_port_at(titin_instance *instance, int index);

/* Name of the port. */
const char *titin_port_name(const titin_port *port);
/* TITIN_F_INIT, TITIN_O_I, TITIN_S or TITIN_O_F. */
int titin_port_operator(const titin_port *port);
/* 1 or 0: whether the port has slots; whether their number is set at run time; whether anything is connected. */
int titin_port_is_vector(const titin_port *port);
int titin_port_is_resizable(const titin_port *port);
int titin_port_is_connected(const titin_port *port);
/* The number of slots now, 1 for a port without slots. A receiver of a resizable port learns the number with each
 * message. */
int titin_port_slots(const titin_port *port);
/* Sets the number of slots of a sending, resizable vector port. */
int titin_port_set_slots(titin_port *port, int slots);


/* ---- Sending --------------------------------------------------------------------------------------------------- */

/* Every send returns when the caller may change the memory of the data. A send waits only while the conduit's buffer is
 * full, or until the receiver has joined. On a port without a conduit a send does nothing. */

/* Sends an array that is contiguous in C order. `extents` may be NULL if `rank` is 0. */
int titin_send(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, const void *data,
               double timestamp, double next_timestamp);

/* Sends any array. `data` points to the element whose indices are all zero. `strides` are in bytes, one per dimension, and
 * may be negative; NULL for an array that is contiguous in `order`. An array that is contiguous in C or Fortran order is
 * sent without packing. If the array is contiguous in both orders, it is sent as one in `order`. If it is contiguous in
 * neither, its elements are packed in `order` first. `names` are index names, NULL for none. `settings` is a map: the
 * settings overlay that goes with the message, NULL for the overlay in force. */
int titin_send_array(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, const int64_t *strides,
                     int order, const char *const *names, const void *data, double timestamp, double next_timestamp,
                     const titin_value *settings);

/* Sends a message without data, and a message with a value of any kind. `settings` as in titin_send_array. */
int titin_send_nil(titin_port *port, int slot, double timestamp, double next_timestamp, const titin_value *settings);
int titin_send_value(titin_port *port, int slot, const titin_value *value, double timestamp, double next_timestamp,
                     const titin_value *settings);

/* Memory for an array, lent by titin: fill the memory, then send the loan. Nothing is copied; receivers on this host read
 * the memory itself. The elements are contiguous in `order`, aligned to 64 bytes, with any values at first. `names` are
 * index names, NULL for none. Does not wait. Send the loan with titin_send_loan, or free it with titin_loan_free, even
 * after titin_close. */
int titin_loan_new(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, int order,
                   const char *const *names, titin_loan **loan);
/* The memory to fill. An error once the loan was handed to titin_send_loan, even if titin_send_loan has failed. */
void *titin_loan_data(titin_loan *loan);
/* Sends the loan on this or any other port; `settings` as in titin_send_array. Frees the loan and sets `*loan` to NULL, so
 * that using the loan again is an error. After an error the loan is still the caller's, to send again or to free. From the
 * call on the data must not change. */
int titin_send_loan(titin_port *port, int slot, titin_loan **loan, double timestamp, double next_timestamp,
                    const titin_value *settings);
/* One more owner of the memory, to read the memory later or to send it again unchanged. Each owner calls titin_loan_free
 * once, or sends the loan. Returns the loan. */
titin_loan *titin_loan_retain(titin_loan *loan);
/* Gives up one owner of the memory. */
void titin_loan_free(titin_loan *loan);
/* For languages whose arrays are only memory: the loan whose data begin at `data` and have `nbytes` bytes. Adds no owner. */
titin_loan *titin_loan_find(const void *data, int64_t nbytes);


/* ---- Receiving ------------------------------------------------------------------------------------------------- */

/* Receives a message; waits at most `timeout` seconds (TITIN_WAIT: for ever; 0: not at all). Free with titin_message_free.
 * A malformed message is TITIN_ERROR_TYPE_MISMATCH in the call that takes the message, and is dropped: every message that a
 * call gives can be read. */
int titin_receive(titin_port *port, int slot, double timeout, titin_message **message);

/* Receives a message that has come already. If no message has come, `*message` is NULL, which is no error. */
int titin_try_receive(titin_port *port, int slot, titin_message **message);

/* Receives the next message of any of these ports, with all slots of vector ports. Ports take turns. Closed ports are passed
 * over; TITIN_ERROR_PORT_CLOSED when all are closed. `*index` is the index of the port in `ports`, `*slot` the slot or
 * TITIN_NO_SLOT. */
int titin_receive_any(titin_port *const *ports, int count, double timeout, int *index, int *slot,
                      titin_message **message);

/* Receives an array into the caller's memory, whose dtype and shape must be those of the message. `strides` and `order`
 * describe the memory as in titin_send_array; each element keeps its index. Memory of rank 0 takes a number, too. If
 * `message` is not NULL, the call also gives the message, for its timestamps. A message that does not fit
 * (TITIN_ERROR_TYPE_MISMATCH) stays in the inbox: the next call gets it. An array whose elements share memory, which
 * strides make possible, is an error. */
int titin_receive_into(titin_port *port, int slot, double timeout, int dtype, int rank, const int64_t *extents,
                       const int64_t *strides, int order, void *data, titin_message **message);


/* ---- Arrays of other libraries: DLPack ------------------------------------------------------------------------- */

/* Tensors of version 1 of DLPack, in the memory of the host. `struct DLManagedTensorVersioned` is declared by the dlpack.h that
 * comes with the other library; without it a program can still pass tensors on. A tensor in the memory of a device, of another
 * version or of an element type that is not sent is TITIN_ERROR_TYPE_MISMATCH. These calls never call a tensor's deleter: the
 * tensor stays the caller's. Free it with titin_dlpack_free. */
struct DLManagedTensorVersioned;

/* Sends the elements of a tensor, as titin_send_array does. */
int titin_send_dlpack(titin_port *port, int slot, const struct DLManagedTensorVersioned *tensor, double timestamp,
                      double next_timestamp, const titin_value *settings);
/* Receives into the memory of a tensor, as titin_receive_into does. A tensor whose flags say that it may only be read is
 * TITIN_ERROR_TYPE_MISMATCH. */
int titin_receive_into_dlpack(titin_port *port, int slot, double timeout, struct DLManagedTensorVersioned *tensor,
                              titin_message **message);
/* The array of a message as a tensor over the same memory, which may only be read, as its flags say. The memory lives until the
 * deleter is called, past titin_message_free and titin_close. Free the tensor with titin_dlpack_free, or hand it to a library
 * that calls the deleter. For a message with other data TITIN_ERROR_TYPE_MISMATCH, and `*tensor` is NULL. */
int titin_message_dlpack(titin_message *message, struct DLManagedTensorVersioned **tensor);
/* Calls the deleter of a tensor, if it has one. */
void titin_dlpack_free(struct DLManagedTensorVersioned *tensor);
/* The device of a device type of DLPack: "CUDA"; "unknown" for a number without a meaning. NULL for memory that the host can use
 * as its own, the CPU's and the pinned and managed memory of CUDA and ROCm. */
const char *titin_dlpack_device(int type);


/* ---- Messages -------------------------------------------------------------------------------------------------- */

/* One more owner of the message. Each owner calls titin_message_free once. Returns the message. The data live until the
 * last owner has freed the message, past titin_close and past the sender's end. */
titin_message *titin_message_retain(titin_message *message);
void titin_message_free(titin_message *message);
/* A message that the program makes, such as a default for a port without a conduit. */
titin_message *titin_message_new(const titin_value *value, double timestamp, double next_timestamp);

/* Name of the port that received the message; NULL for a message that the program has made. */
const char *titin_message_port(const titin_message *message);
/* The port that received the message, its slot and the sender, as errors name them: "port 'in[0]', message from micro.out";
 * NULL for a message that the program has made. */
const char *titin_message_origin(const titin_message *message);
/* The simulated time of the data. */
double titin_message_timestamp(const titin_message *message);
/* Whether there is a next timestamp, 1 or 0; and the next timestamp, TITIN_NO_NEXT if there is none. */
int titin_message_has_next(const titin_message *message);
double titin_message_next_timestamp(const titin_message *message);

/* The kind of the data: TITIN_KIND_NIL, TITIN_KIND_ARRAY or another. */
int titin_message_kind(const titin_message *message);
/* The elements of an array without a copy, if the array has this element type, rank, shape and order. `extents` has the
 * expected extent of each dimension, or TITIN_ANY, which the call replaces by the extent found. `extents` may be NULL if
 * `rank` is 0. With TITIN_ANY for `rank` the array may have any rank and extents, and `extents` is not used. With TITIN_ANY
 * for `order` the array may have either order. An array of rank 0 or 1 has both orders. The elements are aligned to 64
 * bytes and must not be changed. For any other data the call returns NULL with TITIN_ERROR_TYPE_MISMATCH, and an extent
 * that was TITIN_ANY is 0. The error sticks to the instance that received the message, and fails a filter that looks at the
 * message. A program for several types asks titin_message_dtype first. titin_receive_into takes arrays of either order. */
const void *titin_message_array(const titin_message *message, int dtype, int rank, int64_t *extents, int order);
/* Facts about an array; for other data 0, rank 0, extent 0, TITIN_ORDER_C. Strides are in bytes. */
int titin_message_dtype(const titin_message *message);
int titin_message_rank(const titin_message *message);
int64_t titin_message_extent(const titin_message *message, int dimension);
int64_t titin_message_stride(const titin_message *message, int dimension);
int titin_message_order(const titin_message *message);
/* Name of an index, NULL for an index without a name. */
const char *titin_message_index_name(const titin_message *message, int dimension);
/* The elements of an array of any type, shape and order, for programs that check these themselves; NULL for other data. */
const void *titin_message_raw_data(const titin_message *message);
/* Number of elements, and of bytes. */
int64_t titin_message_elements(const titin_message *message);
int64_t titin_message_nbytes(const titin_message *message);
/* The data as a value of any kind. Arrays and bytes are not copied. */
const titin_value *titin_message_value(const titin_message *message);
/* The settings overlay that came with the message, a map; NULL if none came. */
const titin_value *titin_message_settings(const titin_message *message);


/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* New values. Free with titin_value_free; a list or map frees its entries. */
titin_value *titin_new_nil(void);
titin_value *titin_new_bool(int flag);
titin_value *titin_new_i64(int64_t number);
titin_value *titin_new_u64(uint64_t number);
titin_value *titin_new_f64(double number);
/* A real number that keeps its single precision. */
titin_value *titin_new_f32(float number);
/* `length` in bytes, or negative: up to the NUL. */
titin_value *titin_new_text(const char *text, int64_t length);
/* Bytes and arrays are copied. With `borrow` 1 the value points to the caller's memory, which must live, and not change,
 * until the value is freed. Arrays are described as for titin_send_array. An array that is not contiguous is packed, and so
 * copied even with `borrow` 1. */
titin_value *titin_new_bytes(const void *bytes, int64_t length, int borrow);
titin_value *titin_new_array(int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                             const char *const *names, const void *data, int borrow);
/* An empty list and an empty map, to be filled by titin_list_append and titin_map_set. */
titin_value *titin_new_list(void);
titin_value *titin_new_map(void);
/* A map that is marked as settings: names of settings and their values. The mark goes with the message. */
titin_value *titin_new_settings(void);
/* Put a value into a list or map, which owns the value from then on, also if the call fails. A name that the map already has
 * gets the new value. */
int titin_list_append(titin_value *list, titin_value *item);
int titin_map_set(titin_value *map, const char *name, titin_value *item);
/* Frees a value that is in no list or map. */
void titin_value_free(titin_value *value);

/* TITIN_KIND_NIL and so on; 0 for NULL. */
int titin_value_kind(const titin_value *value);
/* Whether a real number is of single precision; titin_value_f64 gives it too. Whether a map is marked as settings. */
int titin_value_is_f32(const titin_value *value);
int titin_value_is_settings(const titin_value *value);
/* A value in a few words, as errors name the value: "the real number 1.5", "a map of 2". Lives until this thread's next
 * call of titin_value_summary. */
const char *titin_value_summary(const titin_value *value);
/* The value as a bool (0 or 1) or a whole number. */
int titin_value_bool(const titin_value *value, int *flag);
int titin_value_i64(const titin_value *value, int64_t *number);
int titin_value_u64(const titin_value *value, uint64_t *number);
/* A real or a whole number. For these four calls an array of rank 0 is a number. */
int titin_value_f64(const titin_value *value, double *number);
/* Text, which may hold NULs. The length in bytes goes to `*length` if `length` is not NULL. */
const char *titin_value_text(const titin_value *value, int64_t *length);
/* Bytes; not NULL even if there are no bytes. */
const void *titin_value_bytes(const titin_value *value, int64_t *length);
/* Number of entries of a list or map, else 0. */
int64_t titin_value_size(const titin_value *value);
/* Entry of a list or map at an index from 0; name of a map's entry; entry of a map by name. NULL for a name that the map
 * does not have, which is no error. */
const titin_value *titin_value_item(const titin_value *value, int64_t index);
const char *titin_value_name(const titin_value *value, int64_t index);
const titin_value *titin_value_find(const titin_value *value, const char *name);
/* Facts and elements of an array, as for messages. The error of titin_value_array does not stick. */
const void *titin_value_array(const titin_value *value, int dtype, int rank, int64_t *extents, int order);
int titin_value_dtype(const titin_value *value);
int titin_value_rank(const titin_value *value);
int64_t titin_value_extent(const titin_value *value, int dimension);
int64_t titin_value_stride(const titin_value *value, int dimension);
int titin_value_order(const titin_value *value);
const char *titin_value_index_name(const titin_value *value, int dimension);
const void *titin_value_raw_data(const titin_value *value);
int64_t titin_value_elements(const titin_value *value);
int64_t titin_value_nbytes(const titin_value *value);

/* The bytes of an element, 0 for no type; NumPy's name of a type ("float64"), NULL for no type; the type of a name, 0 for
 * none. */
int titin_dtype_size(int dtype);
const char *titin_dtype_name(int dtype);
int titin_dtype_find(const char *name);


/* ---- Filters of one's own -------------------------------------------------------------------------------------- */

/* A filter in a shared library, named in the description under `titin: filters`, is a function of this type with C linkage.
 * The filter looks at `in` with the titin_message_ calls, changes the message with the titin_output_ calls (the rest stays
 * unchanged), and returns 0, or any other number if the filter fails (titin_set_error gives the reason). The filter runs in
 * a thread that sends or receives, perhaps in several threads at once. `out` ends with the call. `in` ends with the call,
 * too, unless titin_message_retain keeps the message: then the data live on. Link the library with `titin config --libs`. */
typedef int (*titin_filter)(const titin_message *in, titin_output *out);

/* New data of the message: memory for an array of this type and shape, contiguous in `order`, which the filter fills
 * before it returns. An array of the same rank keeps the index names. */
void *titin_output_array(titin_output *out, int dtype, int rank, const int64_t *extents, int order);
/* New data of the message: a copy of a value of any kind. */
int titin_output_value(titin_output *out, const titin_value *value);
/* New timestamps of the message. */
int titin_output_timestamp(titin_output *out, double timestamp, double next_timestamp);

/* For bindings: callbacks for filters that the description names by a function of the language ("module:function" in
 * Python). titin calls `find` when an instance is opened. `find` sets `*filter` and returns 0, or returns an error
 * (titin_set_error gives the reason). `call` is as titin_filter. `drop` frees a filter, and may be NULL. `data` must
 * outlive the instance. */
int titin_options_filters(titin_options *options, int (*find)(void *data, const char *name, void **filter),
                          int (*call)(void *filter, const titin_message *in, titin_output *out),
                          void (*drop)(void *filter), void *data);


#ifdef TITIN_TESTING
/* Panics inside the library, to show that no panic crosses the ABI: returns TITIN_ERROR_INTERNAL. The error sticks to
 * the instance, if one is given. */
int titin_test_panic(titin_instance *instance);
#endif

#ifdef __cplusplus
}
#endif

#endif
