/* titin: coupling of simulation codes, from C and from every language that can call C.
 *
 * A program opens an instance, which joins the run that its environment names (`titin run` sets it), and then sends
 * and receives on ports in the order of the submodel execution loop:
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
 * Errors. A call that returns int returns 0, or the number of an error; titin_error() has the text. On an error what
 *     the call would have written is set to NULL, zero, or for real numbers NaN. A call that returns a pointer returns
 *     NULL on an error. No call unwinds, exits, prints (but titin_explain) or installs a signal handler.
 * Errors stick. A program need not look at each call: the first error stays with the instance; from then on the calls
 *     that send, receive or reuse return it again at once, and titin_close returns it and fails the run with it.
 *     titin_message_array is such a call, too; those on values are not: look at what they return.
 *     A timeout, an interruption and the end of what a port receives do not stick. titin_recover forgets an error that
 *     was dealt with.
 *     Bindings with exceptions switch this off (titin_options_exceptions).
 * Memory. What a call hands out under `**` or as a plain pointer to an opaque type is the caller's to free with the
 *     function named there. Pointers to const belong to what they were asked from and live as long as that.
 *     What the caller hands in stays the caller's, and may be changed once the call has returned; three exceptions say so.
 *     A NULL handle is an error, never a crash; freeing NULL does nothing.
 * Threads. Any thread may call. Calls on different ports of an instance may run at once; two at once on one port, or
 *     two of titin_reuse, are an error that is detected. titin_close must be the last call on its instance and ports. Messages and values may
 *     be read by many threads at once; a value must not be read while it is built.
 * Waiting. Only titin_open, titin_reuse, titin_receive and its kin, titin_send and its kin, titin_close and titin_host
 *     wait. They wait without using a core, and return with an error as soon as the run fails. Light instances (see
 *     "Many instances") do not wait: there these calls return TITIN_PENDING instead, and are made again.
 * Forks. In a forked child every instance of the parent is dead: calls say so (TITIN_ERROR_FORKED), frees are safe. The data of
 *     messages that the parent had may be read, as long as the parent lives.
 * Text is UTF-8 and ends with a NUL, unless a length goes with it.
 */
#ifndef TITIN_H
#define TITIN_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TITIN_VERSION_MAJOR 0
#define TITIN_VERSION_MINOR 1
#define TITIN_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* An instance: one running copy of a program, as it takes part in a run. */
typedef struct titin_instance titin_instance;
/* A port of an instance. Belongs to the instance. */
typedef struct titin_port titin_port;
/* A message that was received. Counted: titin_message_retain, titin_message_free. */
typedef struct titin_message titin_message;
/* A tree of maps, lists, text, bytes, numbers, arrays and nil. */
typedef struct titin_value titin_value;
/* How to open an instance. */
typedef struct titin_options titin_options;
/* A region of the program's own in the profile. */
typedef struct titin_region titin_region;
/* What a filter makes of a message. */
typedef struct titin_output titin_output;
/* An instance that has asked to join the run. */
typedef struct titin_opening titin_opening;
/* Memory for an array that is to be sent from where it lies. Counted: titin_loan_retain, titin_loan_free. */
typedef struct titin_loan titin_loan;
/* A list of light instances that can go on. */
typedef struct titin_ready titin_ready;
/* How an array is spread over the ranks of an instance. */
typedef struct titin_decomposition titin_decomposition;
/* Arrays that are spread over the ranks of an instance, and travel by one of its ports. */
typedef struct titin_field titin_field;

/* Errors. docs/errors.md says more about each. */
enum {
    TITIN_OK = 0,
    TITIN_ERROR_USAGE = 1,          /* the call itself is wrong: an unknown port, a slot out of range */
    TITIN_ERROR_CALL_ORDER = 2,     /* not in its place in the submodel execution loop */
    TITIN_ERROR_SETTING = 3,        /* a setting is missing, or of another type or unit */
    TITIN_ERROR_TYPE_MISMATCH = 4,  /* the data are not of the type or shape asked for */
    TITIN_ERROR_TIMEOUT = 5,        /* the time given to the call is over (does not stick) */
    TITIN_ERROR_PORT_CLOSED = 6,    /* no more will come: the other end has finished, for instance (does not stick) */
    TITIN_ERROR_PEER_LOST = 7,      /* another instance has failed, or cannot be reached */
    TITIN_ERROR_DEADLOCK = 8,       /* instances wait for each other in a cycle */
    TITIN_ERROR_CONNECTION = 9,     /* the run cannot be joined, its manager is gone, or a link brings what cannot be understood */
    TITIN_ERROR_NO_MEMORY = 10,     /* no memory for a message */
    TITIN_ERROR_FORKED = 11,        /* the instance belongs to the process that this one was forked from */
    TITIN_ERROR_INTERNAL = 12,      /* an error inside titin; please report it */
    TITIN_ERROR_INTERRUPTED = 13,   /* the interrupt callback wants to deal with a signal (does not stick) */
    TITIN_ERROR_FILTER = 14,        /* a filter has failed */
    TITIN_ERROR_CLOSED = 15,        /* the instance has failed before, or is closed */
    TITIN_PENDING = 16,             /* no error: a light instance's call is to be made again (does not stick) */
    TITIN_ERROR_EVICTED = 17        /* the sender of a field does not keep the version asked for (does not stick) */
};

/* Operators of the submodel execution loop. */
enum { TITIN_F_INIT = 1, TITIN_O_I = 2, TITIN_S = 3, TITIN_O_F = 4 };

/* Element types of arrays. TITIN_F16 and TITIN_BF16, the upper half of a float, are given as their bits, uint16_t.
 * Complex numbers are two reals, the real part first. Bool is one byte, 0 or 1: what is
 * sent, lent, put in a value or made by a filter as bool has 1 for every other byte than 0. Arrays of fields go as they are. */
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

/* What a value or a message is. A message is nil, an array, or any of the others. */
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

#define TITIN_NO_SLOT (-1)          /* for ports without slots */
#define TITIN_MAX_RANK 32           /* most dimensions of an array */
#define TITIN_ANY (-1)              /* an extent, rank or order that is wanted: any */
#define TITIN_WAIT DBL_MAX          /* a timeout: for ever */
#define TITIN_NO_NEXT (-DBL_MAX)    /* a next timestamp: not known, or there is none */


/* ---- Errors and version ---------------------------------------------------------------------------------------- */

/* The text of the last error of a call in this thread; "" if there was none. Lives until this thread's next error. */
const char *titin_error(void);
/* The number of that error. */
int titin_error_kind(void);
/* The name of an error's number: "TITIN_ERROR_USAGE". */
const char *titin_error_name(int kind);
/* Writes "titin: " and that text as a line to a stream; returns its number, at least 1: `return titin_explain(stderr);` */
int titin_explain(FILE *stream);
/* For callbacks of yours that titin calls: the text that goes with the error that you return. */
void titin_set_error(const char *text);
/* Release of the library: "0.1.0". */
const char *titin_version(void);


/* ---- Options --------------------------------------------------------------------------------------------------- */

/* New options, all as by default. Free with titin_options_free, after titin_open if you like. */
titin_options *titin_options_new(void);
void titin_options_free(titin_options *options);
/* The instance to be, in place of TITIN_INSTANCE: "macro[3]". Needed if a process has several instances. */
int titin_options_instance(titin_options *options, const char *name);
/* The run to join, in place of TITIN_MANAGER: path of a connection file, or tcp:host:port. */
int titin_options_manager(titin_options *options, const char *manager);
/* Declares a port, as the text of titin_open does; `name[]` is a vector port. */
int titin_options_port(titin_options *options, const char *name, int op);
/* Switches the check of the order of calls off. The reason goes to the run's log, so an empty one is an error. */
int titin_options_unchecked(titin_options *options, const char *reason);
/* The language of the program, for the log: "C" by default. */
int titin_options_language(titin_options *options, const char *language);
/* For bindings that raise every error: none sticks, the run fails only by titin_fail or if titin_close fails. */
int titin_options_exceptions(titin_options *options);
/* As titin_on_interrupt, and already while titin_open waits for the manager's answer; so interrupted it fails the run, if
 * the manager has heard of the instance. `data` must live until titin_close. */
int titin_options_interrupt(titin_options *options, int (*interrupted)(void *data), void *data);


/* ---- Parallel programs ----------------------------------------------------------------------------------------- */

/* An instance may be a program of many ranks, such as one of MPI. All ranks open it, with their communicator; from then on
 * they make their calls on ports, titin_reuse and titin_close together and in the same order, and all get the same: rank 0
 * sends and receives, and what it gets all get, over links of titin's own. So waiting ranks use no core and are not inside
 * MPI, and of what several ranks send only that of rank 0 goes out. Settings, titin_log and titin_fail are each rank's own; the profile is that of rank 0.
 * titin_mpi.h fills a communicator in for MPI (titin_mpi_open); it holds for any other library, or for ranks by hand. */
typedef struct titin_communicator {
    size_t size; /* sizeof(titin_communicator) */
    int rank;    /* the calling rank, from 0 */
    int ranks;   /* how many there are */
    void *context;
    /* Gives `count` bytes of rank 0 to all; called by all ranks. Returns 0, or a number that goes into the error. */
    int (*broadcast)(void *context, void *bytes, int64_t count);
    /* Gives everybody's `count` bytes to rank 0, in the order of the ranks; elsewhere `all` is not looked at. */
    int (*gather)(void *context, const void *mine, void *all, int64_t count);
} titin_communicator;

/* The instance is one of these ranks. The communicator is copied, and is used by titin_open, on the thread that calls it, and
 * never again. One rank alone is a serial program. */
int titin_options_communicator(titin_options *options, const titin_communicator *communicator);

/* The calling rank, and how many the instance has: 0 and 1 for a serial program. */
int titin_rank(const titin_instance *instance);
int titin_ranks(const titin_instance *instance);


/* ---- Fields ---------------------------------------------------------------------------------------------------- */

/* A field port carries arrays that are spread over the ranks of an instance. Each rank says what it owns of the whole, and what is
 * sent goes straight from the ranks that own it to those that want it: both ends may have other decompositions, other numbers of
 * ranks, halos, orders and regions. A serial program is one rank, and has the array whole, or a region of it.
 *
 *     titin_decomposition *rows = titin_decomposition_new(2, (int64_t[]){ny, nx});
 *     titin_decomposition_grid(rows, (int[]){ranks, 1});
 *     titin_field *field;
 *     titin_field_new(titin_port_find(instance, "out"), rows, 1, (int[]){TITIN_F64}, &field);
 *     ...
 *     titin_field_send(field, (const void *[]){u}, t, TITIN_NO_NEXT);
 *
 * All ranks make these calls together, as those on ports. Dimensions and indices count from 0. */

/* How a dimension is spread over its processes: blocks whose sizes differ by one at most, the longer ones first (as
 * numpy.array_split); blocks of ceil(n/p), the last ones shorter or empty (BLOCK of HPF, MPI_DISTRIBUTE_BLOCK); blocks of a given
 * size, dealt out in turn (CYCLIC(b) of HPF, ScaLAPACK). */
enum { TITIN_EVEN = 1, TITIN_BLOCK = 2, TITIN_CYCLIC = 3 };

/* An array of this shape, 1 to 7 dimensions; until something else is said all of it is rank 0's. Free it when the fields are made.
 * Where a call on it has failed titin_field_new fails, too, and says why: begin again with another one. */
titin_decomposition *titin_decomposition_new(int dims, const int64_t *shape);
void titin_decomposition_free(titin_decomposition *decomposition);
/* So many processes along each dimension, over which that is spread evenly. At most as many in all as there are ranks; ranks beyond
 * own nothing. */
int titin_decomposition_grid(titin_decomposition *decomposition, const int *processes);
/* Spreads a dimension in another way. `block` is the size of TITIN_CYCLIC's blocks. */
int titin_decomposition_spread(titin_decomposition *decomposition, int dim, int spread, int64_t block);
/* Spreads it as the program does: process p has the indices bounds[p] to bounds[p + 1] - 1. `count` is one more than processes. */
int titin_decomposition_bounds(titin_decomposition *decomposition, int dim, int count, const int64_t *bounds);
/* How ranks count through the grid: TITIN_ORDER_C (the last dimension fastest, as MPI_Cart_create does; by default) or
 * TITIN_ORDER_FORTRAN. */
int titin_decomposition_ranks(titin_decomposition *decomposition, int order);
/* In place of a rule: the calling rank owns this box, lower <= index < upper, beside those that it was given before. One that
 * owns nothing, where others have boxes, gives an empty one: lower = upper. */
int titin_decomposition_box(titin_decomposition *decomposition, const int64_t *lower, const int64_t *upper);
/* In place of a rule: it owns the elements with these numbers, in this order. They count through the array as its memory does
 * (titin_decomposition_order): the last dimension fastest, or the first. */
int titin_decomposition_indices(titin_decomposition *decomposition, int64_t count, const int64_t *indices);
/* Only this region of the array is coupled. That of the other end may lie elsewhere in its array, but has the same extents. */
int titin_decomposition_region(titin_decomposition *decomposition, const int64_t *lower, const int64_t *upper);
/* The arrays of each rank have so many more elements below and above those that it owns, in each dimension. */
int titin_decomposition_halo(titin_decomposition *decomposition, const int64_t *below, const int64_t *above);
/* The order of elements in memory: TITIN_ORDER_C by default. */
int titin_decomposition_order(titin_decomposition *decomposition, int order);

/* Declares that a port carries so many arrays of these element types (TITIN_F64, ...), all spread like this, which travel together.
 * It does not wait for the other end. The decomposition is copied. */
int titin_field_new(titin_port *port, const titin_decomposition *decomposition, int arrays, const int *dtypes,
                    titin_field **field);
/* Frees the handle; the port stays one of a field. */
void titin_field_free(titin_field *field);
/* The element type of an array; 0 for one that does not exist. */
int titin_field_dtype(const titin_field *field, int array);
/* Bytes of an array on this rank, halo and all; 0 for one that does not exist. */
int64_t titin_field_bytes(const titin_field *field, int array);
/* The extents of an array on this rank, halo and all: one for each dimension. An error if arrays are flat here: where the rank has
 * several boxes, or indices of more than one dimension. */
int titin_field_extents(const titin_field *field, int64_t *extents);
/* Writes which indices of the whole this rank owns along a dimension, and returns how many; `indices` may be NULL. So element (i, j)
 * of what it owns, its halo not counted, is element (indices of dimension 0)[i], (indices of dimension 1)[j] of the whole. -1 is an
 * error, as above. */
int64_t titin_field_owned(const titin_field *field, int dim, int64_t *indices);
/* Says how an array lies in memory, where that is not one element after the other: its extents on this rank, halo and all, and
 * its strides in bytes, which may be negative. The pointer that the calls get is that of its first element. It holds until
 * something else is said, or NULL for both, which is one element after the other again. It counts as a call on the port: no two
 * threads at once. */
int titin_field_layout(titin_field *field, int array, const int64_t *extents, const int64_t *strides);
/* Sends what this rank owns of each array, to those that the description couples at this step (titin: fields); for who pulls a
 * version is kept. Returns when the arrays may be changed. */
int titin_field_send(titin_field *field, const void *const *arrays, double timestamp, double next_timestamp);
/* Receives what this rank owns into each array; nothing else in it is written. One that is pulled is the latest version.
 * `timestamp` and `next_timestamp` may be NULL; the second is TITIN_NO_NEXT if the sender gave none. Where the description couples
 * nothing at this step nothing is written, and
 * `*timestamp` is NaN. TITIN_ERROR_TIMEOUT once `timeout` is over, when some of it may have come: make the call again with the same
 * arrays. Where the instance has several ranks the timeout is for the announcement by rank 0 of the sender, and then the call waits. */
int titin_field_receive(titin_field *field, void *const *arrays, double timeout, double *timestamp, double *next_timestamp);
/* Of one that is pulled, the version at or before the simulated time `at`; waits until the sender has passed that time. It is
 * TITIN_ERROR_EVICTED if that version is not kept, and TITIN_ERROR_PORT_CLOSED if none at that time will come. */
int titin_field_receive_at(titin_field *field, void *const *arrays, double at, double timeout, double *timestamp,
                           double *next_timestamp);
/* The sender says that no more follows, and gives up all versions; for receivers the port is closed. */
int titin_field_withdraw(titin_field *field);


/* ---- Instances ------------------------------------------------------------------------------------------------- */

/* Opens an instance: joins the run and waits for the manager's answer.
 * `ports` declares ports: "f_init: a, b; o_i: c; s: d[]; o_f: e"; NULL with none in the options: the ports are those of
 * the description. `options` may be NULL. End the instance with titin_close. */
int titin_open(const char *ports, const titin_options *options, titin_instance **instance);

/* The two halves of titin_open, for a process with many instances: the first asks to join the run, the second waits for
 * the answer, or is TITIN_PENDING for a light instance. But then `opening` is gone after the second. titin_open_cancel is
 * in place of the second, and fails the run if the manager has heard of the instance; so does the end of a process that has
 * an opening left. */
int titin_open_begin(const char *ports, const titin_options *options, titin_opening **opening);
int titin_open_end(titin_opening *opening, titin_instance **instance);
void titin_open_cancel(titin_opening *opening);

/* Ends the instance's part in the run, waits until the receivers hold all that was sent, and frees the instance and its
 * ports; messages live on. Returns the first error that stuck, or what went wrong at the end (messages never taken, a
 * failed run); then the run fails.
 * Only with TITIN_ERROR_INTERRUPTED or TITIN_PENDING the instance is still there: call it again, or titin_fail first.
 * While another thread is in a call on the instance it is an error, the run fails, and the calls of that thread return; what they
 * use is not freed. */
int titin_close(titin_instance *instance);

/* Fails the run, with this instance as the culprit and this text as the reason. Still call titin_close, which then
 * does not wait, to free the instance. */
int titin_fail(titin_instance *instance, const char *text);

/* Begins the next use of the submodel: `*again` is 1 if there is one. Without connected F_INIT ports there is one use;
 * else it waits for the F_INIT messages, and `*again` is 0 once their senders have finished. Settings change here. */
int titin_reuse(titin_instance *instance, int *again);

/* Whether the step that begins at this time would pass the end of the use: `*stops` is 1 or 0, and 1 after an error. The use
 * begins at the latest timestamp of its F_INIT messages, at 0 without any. It lasts for the setting `t_max`, else for the
 * scale `total`; a step takes the setting `dt`, else the scale `dt`, else no time. A step may pass the end by a millionth
 * of itself, and by what sums of timesteps are rounded by. Settings with a unit, and scales, are converted to the unit of timestamps (`titin: {time_unit: ...}`, seconds unless told);
 * a number alone is in that unit. One that is negative or NaN is TITIN_ERROR_SETTING, and a step too short to change the time
 * is TITIN_ERROR_USAGE. */
int titin_will_stop(const titin_instance *instance, double timestamp, int *stops);

/* Forgets the error that has stuck: the program has dealt with it. */
int titin_recover(titin_instance *instance);

/* Name of the instance: "macro[3]". */
const char *titin_instance_name(const titin_instance *instance);
/* The directory that was current when the instance was opened; `titin run` starts each program in one of its own. */
const char *titin_workdir(const titin_instance *instance);
/* Scales that the description gives: a map with those known of "dt" and "total" (s, numbers), "dx" and "extent" (m,
 * lists with a number per dimension). */
const titin_value *titin_scale(const titin_instance *instance);
/* Sends a record to the run's log; levels above. */
int titin_log(titin_instance *instance, int level, const char *text);
/* Switches the check of the order of calls off from here on; a reason is wanted here too. */
int titin_skip_checks(titin_instance *instance, const char *reason);

/* Begins and ends a region in the profile. titin_region_end frees the region; after titin_close it does nothing else.
 * Regions may nest and overlap. */
titin_region *titin_region_begin(titin_instance *instance, const char *name);
int titin_region_end(titin_region *region);

/* While a call waits, `interrupted` is asked whenever a signal came and at least ten times a second, in the thread
 * that waits; once it returns nonzero the call returns TITIN_ERROR_INTERRUPTED. A send that is made again goes on where it
 * was. Can be set once. `data` must live until titin_close. */
int titin_on_interrupt(titin_instance *instance, int (*interrupted)(void *data), void *data);

/* Several instances in one process: opens an instance for each name, runs entry[i](instance, data[i]) in a thread of
 * its own, closes the instance when it returns, and waits for all. The first instance runs in the calling thread. An
 * entry may call titin_close itself, as its last call on the instance; the instance is still freed by titin_host.
 * An entry returns 0, or anything else to fail the run (titin_set_error says why). `ports` (text as for titin_open)
 * and `data` may be NULL, or hold NULLs. Returns the first error, not its echoes. */
typedef int (*titin_entry)(titin_instance *instance, void *data);
int titin_host(int count, const char *const *names, const char *const *ports, const titin_entry *entries,
               void *const *data, const titin_options *options);


/* ---- Many instances -------------------------------------------------------------------------------------------- */

/* A light instance takes no thread to wait in. Where another's call would wait, its call returns TITIN_PENDING at once;
 * when the instance can go on it is put on a list, and the program makes the same call again, with the same arguments.
 * What a call has done it does not do twice: a message for several receivers goes to each once, a timeout counts from the
 * first time. What was handed in may not change until the call has come to something else than TITIN_PENDING. All
 * else, errors and the search for deadlocks too, is as for other instances. One thread at a time may call. */

/* Runs many light instances on few threads, the calling one among them: steps[i](instance, data[i]) is called when
 * instance i can go on, always on the same thread. It goes on as far as it can, and returns TITIN_PENDING where a call of
 * its does (or of its own accord: then others have their turn first); 0 when all is done, and the instance is closed; or
 * anything else to fail the run. The rest is as for titin_host.
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

/* The same from a description (`titin: {host: NAME, library: PATH, function: NAME}` or `step: NAME` under a program): what
 * the program titin-host calls with the file that says which functions to run. There `data` points to a pointer of the
 * instance's own, NULL at first, and nothing declares the ports but the description. */
int titin_host_file(const char *path);

/* The same in one's own event loop. Makes the instances light that are opened with these options (by titin_open_begin):
 * `data`, which should be another one for each, is on the list when the instance can go on. */
int titin_options_ready(titin_options *options, titin_ready *ready, void *data);
titin_ready *titin_ready_new(void);
/* Only when its instances are closed. */
void titin_ready_free(titin_ready *ready);
/* Gives up a call that is pending, in place of making it again: it has not happened, and leaves nothing behind. `port` and
 * `slot` are those of the call; of titin_receive_any the first port, and TITIN_NO_SLOT. With TITIN_NO_SLOT all calls on the
 * port are given up; with NULL for the port all of the instance, those of titin_reuse and titin_close too. But a send may have
 * reached some of its receivers already: nothing else can be sent there. */
int titin_cancel(titin_instance *instance, const titin_port *port, int slot);
/* Leaves a light instance out of the search for deadlocks from here on: several tasks of the program act on it by themselves,
 * so that a call that waits says nothing of the others. Without it a task that works while another one's call is pending
 * may be taken for one that never comes, and the run fails. */
int titin_skip_deadlocks(titin_instance *instance);
/* Takes the next one that can go on; waits for it, at most `timeout` seconds (then TITIN_ERROR_TIMEOUT). One thread at a
 * time may call. */
int titin_ready_next(titin_ready *ready, double timeout, void **data);
/* A descriptor to poll, that is readable while somebody is on the list; -1 if there is none. Belongs to the list. */
int titin_ready_descriptor(const titin_ready *ready);


/* ---- Settings -------------------------------------------------------------------------------------------------- */

/* Type of a setting, TITIN_TYPE_NONE if it is not set; no error. For defaults: read only what is set. */
int titin_setting_type(const titin_instance *instance, const char *name);
/* A real number. A whole one serves too; a quantity with a unit is an error: titin_setting_quantity says in which. */
int titin_setting_f64(titin_instance *instance, const char *name, double *value);
/* A quantity in a unit: "10 ms" read in "s" is 0.01. A number alone is taken to be in the unit already.
 * A unit that titin does not know is TITIN_ERROR_USAGE. */
int titin_setting_quantity(titin_instance *instance, const char *name, const char *unit, double *value);
int titin_setting_i64(titin_instance *instance, const char *name, int64_t *value);
/* 0 or 1. */
int titin_setting_bool(titin_instance *instance, const char *name, int *value);
/* The text lives until titin_close. */
int titin_setting_text(titin_instance *instance, const char *name, const char **value);
/* Lists, into the caller's memory. `*count` is the length; ask for it with `values` NULL. It is an error if
 * `capacity` is smaller. */
int titin_setting_f64s(titin_instance *instance, const char *name, double *values, int64_t capacity, int64_t *count);
int titin_setting_i64s(titin_instance *instance, const char *name, int64_t *values, int64_t capacity, int64_t *count);
/* A table whose rows are equally long, row by row; as for lists, with `capacity` in numbers. */
int titin_setting_table(titin_instance *instance, const char *name, double *values, int64_t capacity, int64_t *rows,
                        int64_t *columns);
/* A setting of any type; lists and tables are lists. Free with titin_value_free. */
int titin_setting_value(titin_instance *instance, const char *name, titin_value **value);
/* All settings known for this instance, as a map from full names ("macro.dt") to values, with the overlay in force.
 * Free with titin_value_free. */
int titin_settings(titin_instance *instance, titin_value **settings);
/* The overlay in force alone, as titin_reuse has fixed it. Free with titin_value_free. */
int titin_overlay(titin_instance *instance, titin_value **settings);


/* ---- Ports ----------------------------------------------------------------------------------------------------- */

/* The port of this name. Look ports up once; the handle lives until titin_close. */
titin_port *titin_port_find(titin_instance *instance, const char *name);
/* All ports: how many, and the one at an index from 0. */
int titin_port_count(const titin_instance *instance);
titin_port *titin_port_at(titin_instance *instance, int index);

const char *titin_port_name(const titin_port *port);
/* TITIN_F_INIT, TITIN_O_I, TITIN_S or TITIN_O_F. */
int titin_port_operator(const titin_port *port);
/* 1 or 0: whether it has slots; whether their number is set at run time; whether anything is connected. */
int titin_port_is_vector(const titin_port *port);
int titin_port_is_resizable(const titin_port *port);
int titin_port_is_connected(const titin_port *port);
/* Number of slots now, 1 for a port without slots. A receiver of a resizable port learns it with each message. */
int titin_port_slots(const titin_port *port);
/* Sets the number of slots of a sending, resizable vector port. */
int titin_port_set_slots(titin_port *port, int slots);


/* ---- Sending --------------------------------------------------------------------------------------------------- */

/* Every send returns when the memory handed in may be changed. It waits only while the conduit's buffer is full, or
 * until the receiver has come. On a port that nothing is connected to it does nothing. */

/* Sends an array that is contiguous in C order. `extents` may be NULL if `rank` is 0. */
int titin_send(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, const void *data,
               double timestamp, double next_timestamp);

/* Sends any array. `strides` are in bytes, one per dimension, negative ones too, from the element at all zeros, which
 * `data` points to; NULL: contiguous in `order`. Arrays that are contiguous in C or Fortran order are sent as they lie;
 * `order` decides where both hold; where neither does, the elements are packed in `order` first.
 * `names` are index names, NULL for none. `settings` is a map, the settings overlay to go with the message, NULL for
 * the one in force. */
int titin_send_array(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, const int64_t *strides,
                     int order, const char *const *names, const void *data, double timestamp, double next_timestamp,
                     const titin_value *settings);

/* Sends a message without data, and a structure (an array or nil too). `settings` as above. */
int titin_send_nil(titin_port *port, int slot, double timestamp, double next_timestamp, const titin_value *settings);
int titin_send_value(titin_port *port, int slot, const titin_value *value, double timestamp, double next_timestamp,
                     const titin_value *settings);

/* Memory for an array, lent by titin: fill it, then send it, and nothing is copied; receivers on this host read it where
 * it lies. The elements are contiguous in `order`, aligned to 64 bytes, and at first any. `names` are index names, NULL
 * for none. Does not wait. Send it with titin_send_loan, or free it with titin_loan_free, after titin_close if you like. */
int titin_loan_new(titin_port *port, int slot, int dtype, int rank, const int64_t *extents, int order,
                   const char *const *names, titin_loan **loan);
/* Where to write the elements; an error once it was handed to titin_send_loan, whatever came of that. */
void *titin_loan_data(titin_loan *loan);
/* Sends it on this or any other port; `settings` as above. It is gone then, and `*loan` NULL, so that using it again is an
 * error; after an error it is still the caller's, to send again or to free. From the call on its data must not change. */
int titin_send_loan(titin_port *port, int slot, titin_loan **loan, double timestamp, double next_timestamp,
                    const titin_value *settings);
/* One more owner of the memory, for reading it on, or for sending it again as it is; each calls titin_loan_free once, or
 * sends it. Returns the loan. */
titin_loan *titin_loan_retain(titin_loan *loan);
void titin_loan_free(titin_loan *loan);
/* For languages whose arrays are no more than their memory: the loan whose data begin here, and are so many bytes.
 * That is not one more owner. */
titin_loan *titin_loan_find(const void *data, int64_t nbytes);


/* ---- Receiving ------------------------------------------------------------------------------------------------- */

/* Receives a message; waits until one is there, at most `timeout` seconds (TITIN_WAIT: for ever; 0: not at all).
 * Free with titin_message_free. A malformed message is TITIN_ERROR_TYPE_MISMATCH in the call that takes it, whichever, and
 * is gone: a message that was received can be read. */
int titin_receive(titin_port *port, int slot, double timeout, titin_message **message);

/* Receives a message if one is there; else `*message` is NULL, and that is no error. */
int titin_try_receive(titin_port *port, int slot, titin_message **message);

/* Receives the next message of any of these ports, all slots of vector ports. Ports take turns; closed ones are passed
 * over, and it is TITIN_ERROR_PORT_CLOSED when all are. `*index` is the port's place in `ports`, `*slot` the slot or
 * TITIN_NO_SLOT. */
int titin_receive_any(titin_port *const *ports, int count, double timeout, int *index, int *slot,
                      titin_message **message);

/* Receives an array into the caller's memory, whose dtype and shape must be those of the message. `strides` and `order`
 * describe the memory as in titin_send_array; the element at an index stays at that index. Memory of rank 0 takes a
 * number of a structure too. `message` may be NULL; else the message is given too (for its timestamps). If it does not fit
 * (TITIN_ERROR_TYPE_MISMATCH), it was not taken: the next call gets it. */
int titin_receive_into(titin_port *port, int slot, double timeout, int dtype, int rank, const int64_t *extents,
                       const int64_t *strides, int order, void *data, titin_message **message);


/* ---- Messages -------------------------------------------------------------------------------------------------- */

/* One more owner of the message; each calls titin_message_free once. Returns the message. The data live until the last
 * one has, past titin_close and past the sender's end. */
titin_message *titin_message_retain(titin_message *message);
void titin_message_free(titin_message *message);
/* A message of one's own, such as a default for a port that nothing is connected to. */
titin_message *titin_message_new(const titin_value *value, double timestamp, double next_timestamp);

/* Name of the port that it came by; NULL for one of one's own. */
const char *titin_message_port(const titin_message *message);
double titin_message_timestamp(const titin_message *message);
/* 1 or 0; and the next timestamp, TITIN_NO_NEXT if there is none. */
int titin_message_has_next(const titin_message *message);
double titin_message_next_timestamp(const titin_message *message);

/* What the data are: TITIN_KIND_NIL, TITIN_KIND_ARRAY or another kind. */
int titin_message_kind(const titin_message *message);
/* The elements of an array, where they lie, if it is of this element type, rank, shape and order: `extents` says what is wanted
 * in each dimension, or TITIN_ANY, which the call replaces by what it is; it may be NULL if `rank` is 0. An array of rank 0 or 1 lies in
 * both orders. They are aligned to 64 bytes and must not be changed.
 * Where `rank` is TITIN_ANY an array of any rank and extents will do, and `extents` is not used; where `order` is TITIN_ANY either order.
 * NULL for any other data, and TITIN_ERROR_TYPE_MISMATCH; what was TITIN_ANY is 0 then. That sticks to the instance that received
 * the message, and fails the filter that looks at it; one that knows what to do with several types looks at titin_message_dtype before.
 * titin_receive_into takes arrays of either order. */
const void *titin_message_array(const titin_message *message, int dtype, int rank, int64_t *extents, int order);
/* Of an array; for other data: 0, rank 0, extent 0, TITIN_ORDER_C. Strides are in bytes. */
int titin_message_dtype(const titin_message *message);
int titin_message_rank(const titin_message *message);
int64_t titin_message_extent(const titin_message *message, int dimension);
int64_t titin_message_stride(const titin_message *message, int dimension);
int titin_message_order(const titin_message *message);
/* Name of an index, NULL if it has none. */
const char *titin_message_index_name(const titin_message *message, int dimension);
/* Its elements, of whatever type, shape and order, for programs that look at these themselves; NULL for other data. */
const void *titin_message_raw_data(const titin_message *message);
/* Number of elements, and of bytes. */
int64_t titin_message_elements(const titin_message *message);
int64_t titin_message_nbytes(const titin_message *message);
/* The data as a value, of whatever kind. Arrays and bytes in it are not copied. */
const titin_value *titin_message_value(const titin_message *message);
/* The settings overlay that came with it, a map; NULL if none did. */
const titin_value *titin_message_settings(const titin_message *message);


/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* New values. Free with titin_value_free, unless they were put into a list or map, which frees them. */
titin_value *titin_new_nil(void);
titin_value *titin_new_bool(int flag);
titin_value *titin_new_i64(int64_t number);
titin_value *titin_new_u64(uint64_t number);
titin_value *titin_new_f64(double number);
/* `length` in bytes, or negative: up to the NUL. */
titin_value *titin_new_text(const char *text, int64_t length);
/* Bytes and arrays are copied, or with `borrow` 1 only pointed to: then they must live, and not change, until the value
 * is freed. Arrays are described as for titin_send_array; those that are not contiguous are packed, thus copied. */
titin_value *titin_new_bytes(const void *bytes, int64_t length, int borrow);
titin_value *titin_new_array(int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                             const char *const *names, const void *data, int borrow);
titin_value *titin_new_list(void);
titin_value *titin_new_map(void);
/* Put a value into a list or map, which owns it from then on, also if the call fails. A name that the map has already
 * gets the new value. */
int titin_list_append(titin_value *list, titin_value *item);
int titin_map_set(titin_value *map, const char *name, titin_value *item);
void titin_value_free(titin_value *value);

/* TITIN_KIND_NIL and so on; 0 for NULL. */
int titin_value_kind(const titin_value *value);
int titin_value_bool(const titin_value *value, int *flag);
int titin_value_i64(const titin_value *value, int64_t *number);
int titin_value_u64(const titin_value *value, uint64_t *number);
/* Whole numbers serve as real ones too; for these four an array of rank 0 is a number. */
int titin_value_f64(const titin_value *value, double *number);
/* Text, which may hold NULs; its length in bytes goes to `*length` if that is not NULL. */
const char *titin_value_text(const titin_value *value, int64_t *length);
/* Bytes; not NULL also if there are none. */
const void *titin_value_bytes(const titin_value *value, int64_t *length);
/* Number of entries of a list or map, else 0. */
int64_t titin_value_size(const titin_value *value);
/* Entry of a list or map at an index from 0; name of a map's entry; entry of a map by name, NULL without an error if
 * there is none. */
const titin_value *titin_value_item(const titin_value *value, int64_t index);
const char *titin_value_name(const titin_value *value, int64_t index);
const titin_value *titin_value_find(const titin_value *value, const char *name);
/* Of an array, as for messages; but the error sticks to nothing. */
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

/* Bytes of an element, 0 if there is no such type; NumPy's name of it ("float64"), NULL if there is none; the type of
 * this name, 0 if there is none. */
int titin_dtype_size(int dtype);
const char *titin_dtype_name(int dtype);
int titin_dtype_find(const char *name);


/* ---- Filters of one's own -------------------------------------------------------------------------------------- */

/* A filter in a shared library, named in the description under `titin: filters`, is a function of this type with C
 * linkage. It looks at `in` with the titin_message_ calls, says with the titin_output_ calls what becomes of it (what
 * it does not mention stays), and returns 0, or anything else if it fails (titin_set_error says why). It runs in the
 * thread that sends or receives, maybe in several at once. `out` ends with the call, and so does `in`, unless
 * titin_message_retain keeps it: then its data live on, too. Link the library with `titin config --libs`. */
typedef int (*titin_filter)(const titin_message *in, titin_output *out);

/* Data that replace those of the message: memory for an array of this type and shape, contiguous in `order`, to be
 * filled before the filter returns. Index names stay if the rank does. */
void *titin_output_array(titin_output *out, int dtype, int rank, const int64_t *extents, int order);
/* The same with a copy of a value of any kind. */
int titin_output_value(titin_output *out, const titin_value *value);
int titin_output_timestamp(titin_output *out, double timestamp, double next_timestamp);

/* For bindings: how filters that the description names by a function of the language ("module:function" in Python) are
 * found when an instance is opened, called, and let go. `find` sets `*filter` and returns 0, or returns an error
 * (titin_set_error says why); `call` is as titin_filter; `drop` may be NULL. `data` must outlive the instance. */
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
