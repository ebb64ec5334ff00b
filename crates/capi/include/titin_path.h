/* titin paths: messages between two programs that share a key, without a manager and without a run.
 *
 * For a program that has a coupling of its own, and whose other end is on another host or at another site. One program
 * listens, the other one opens a path:
 *
 *     titin_path_listener *listener;                     titin_path *path;
 *     titin_path *path;                                  titin_path_open("cluster.example:4711", "mesh", NULL, &path);
 *     titin_path_listen("0.0.0.0:4711", NULL, &listener);
 *     titin_path_accept(listener, TITIN_WAIT, &path);
 *     titin_path_receive_into(path, u, sizeof u,         titin_path_send(path, u, sizeof u, TITIN_WAIT);
 *                             TITIN_WAIT, NULL);
 *     titin_path_close(path, TITIN_WAIT);                titin_path_close(path, TITIN_WAIT);
 *     titin_path_listener_free(listener);
 *
 * Both ends prove that they know the key. `titin path key FILE` makes a key; the environment variable TITIN_PATH_KEY names
 * the file. Nothing that comes before the proof is read. Paths to other hosts are encrypted, but for addresses with `tcp:`. A path
 * to a loopback address is not: where that is forwarded to another host, write `session:` before it. `relay:SITE/HOST:PORT` is
 * a program at another site, to which relays lead: the environment variable TITIN_RELAY names the folder of this site's relay.
 *
 * Rules that hold for every call here
 *
 * Errors. As in titin.h: a call that returns int returns 0, or the number of an error, and titin_error() gives the text. No
 *     error sticks. After these errors the path goes on: TITIN_ERROR_TIMEOUT, TITIN_ERROR_INTERRUPTED, TITIN_ERROR_TYPE_MISMATCH (the received message
 *     does not fit, and was dropped), TITIN_ERROR_MESSAGE_LOST (the receiver has dropped an earlier message, of which the
 *     text gives the number and the reason; or the sender has given up in the middle of a message), and TITIN_ERROR_USAGE.
 *     A send that returns TITIN_ERROR_MESSAGE_LOST has not sent its own message, unless the text is about this message; a
 *     barrier, titin_path_flush and titin_path_close have done their work. A receive or an exchange that waits returns
 *     TITIN_ERROR_MESSAGE_LOST when the receiver drops an earlier message, for which the other program perhaps waits, too.
 *     TITIN_ERROR_PORT_CLOSED: the other end has closed the path, and all of its messages were received.
 *     TITIN_ERROR_PEER_LOST: the other program is gone, which a host counts as that says for 3 s that nothing listens; or the line
 *     or the host was away for longer than titin_path_options_outage says. A line that comes back before costs time and
 *     nothing else. A plain connection is lost with its first cut: at once, or, if the host or the line is silent, within a
 *     minute while no bytes are on their way, and else when the system gives up (some 15 minutes).
 * Messages. A path carries messages both ways at once, each way in the order of the sends. A message knows its size, its
 *     element type and its shape; both ends need not agree on them beforehand. Sizes have 64 bits.
 * Waiting. Calls with a `timeout` wait for so many seconds at most, without using a core; TITIN_WAIT is for ever. A call
 *     that receives and is over time loses nothing: the next one goes on with the message. A call that sends and is over time
 *     gives the message up; if a part is on its way, the receiver gets TITIN_ERROR_MESSAGE_LOST. A send waits while 64 MiB or
 *     1024 messages are on their way that the receiving program has not taken.
 * Threads. Any thread may call. Calls that send on a path are done one after the other, and so are calls that receive.
 *     titin_path_close must be the last call on the path.
 * Forks. As in titin.h: the paths of the parent are dead in a forked child.
 */
#ifndef TITIN_PATH_H
#define TITIN_PATH_H

#include "titin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A way to one other program. */
typedef struct titin_path titin_path;
/* A port where other programs open paths. */
typedef struct titin_path_listener titin_path_listener;
/* The key and the settings of paths. */
typedef struct titin_path_options titin_path_options;
/* A non-blocking call. */
typedef struct titin_path_request titin_path_request;
/* The layout of an array of an exchange, described as for titin_send_array. Each member may be left out, except `dtype`: an array
 * of rank 0 is a single element, NULL for the strides is for an array without gaps, and 0 is C order. The layout of n numbers in
 * a row is `{.dtype = TITIN_F64, .rank = 1, .extents = &n}`. A call does not need the layout after it has returned. */
typedef struct titin_path_layout {
    int dtype;
    int rank;
    const int64_t *extents;
    const int64_t *strides;   /* in bytes */
    int order;                /* TITIN_ORDER_C or TITIN_ORDER_FORTRAN */
    const char *const *names; /* for sending only */
} titin_path_layout;


/* ---- Options --------------------------------------------------------------------------------------------------- */

/* New options. Free with titin_path_options_free. The options are copied by the calls that take them, where NULL stands for
 * the defaults: the key in the file that TITIN_PATH_KEY names, and settings that titin chooses. */
titin_path_options *titin_path_options_new(void);
void titin_path_options_free(titin_path_options *options);
/* The key: 64 hexadecimal digits. */
int titin_path_options_key(titin_path_options *options, const char *key);
/* The file with the key. An error if everybody may read the file. */
int titin_path_options_key_file(titin_path_options *options, const char *file);
/* The settings of paths that this program opens, which hold for both ends. For 0 titin, or the operating system, chooses.
 * The number of streams (connections) over which large messages are spread, at most 256; */
int titin_path_options_streams(titin_path_options *options, int streams);
/* the most bytes per second that each end sends; */
int titin_path_options_pacing(titin_path_options *options, int64_t bytes_per_second);
/* the sizes of each stream's buffers, in bytes: those of the operating system; for a path to another host, what is kept until
 * the other end has it, and what waits until this end takes it; */
int titin_path_options_buffers(titin_path_options *options, int64_t send, int64_t receive);
/* for how many seconds titin_path_open waits for the other end (60 by default); */
int titin_path_options_patience(titin_path_options *options, double seconds);
/* and for how many seconds the line to another host may be away, before the open path is lost (60 by default). */
int titin_path_options_outage(titin_path_options *options, double seconds);
/* While a call waits on a path or listener with these options, titin calls `interrupted` ten times a second, in the thread
 * that waits. Once `interrupted` returns nonzero, the call returns TITIN_ERROR_INTERRUPTED: as with a timeout, a receive has
 * lost nothing, and a send has given its message up. `interrupted` must not make calls on the path. `data` must live as long
 * as these paths and listeners. */
int titin_path_options_interrupt(titin_path_options *options, int (*interrupted)(void *data), void *data);


/* ---- Begin and end --------------------------------------------------------------------------------------------- */

/* Opens a path to the first of these addresses where a program listens with the key: "host:port", or several of them with
 * commas. `name` tells the listening program which path it is, and may be NULL. Waits for the listening program to be there.
 * A path to another host is encrypted, and goes on after a cut, at whichever of the addresses answers then. On this host
 * (a loopback address) it is a plain connection. "session:host:port" and "tcp:host:port" choose. */
int titin_path_open(const char *addresses, const char *name, const titin_path_options *options, titin_path **path);

/* Listens at "host:port", for any number of paths of any number of streams each. The host 0.0.0.0, or [::], stands for all
 * networks of the host. For port 0 the system chooses a port. */
int titin_path_listen(const char *address, const titin_path_options *options, titin_path_listener **listener);
/* The address at which the listener was started, with its port. Lives as long as the listener. */
const char *titin_path_listener_address(const titin_path_listener *listener);
/* The next path that another program has opened. */
int titin_path_accept(titin_path_listener *listener, double timeout, titin_path **path);
/* Frees a listener, and ends the paths that were not accepted. Accepted paths live on. The port is free once those from other
 * hosts are closed too, since they come back by it after a cut. */
void titin_path_listener_free(titin_path_listener *listener);

/* Waits until the other end has all messages, closes the path at both ends and frees it, also on an error. The other program
 * can still receive the messages. TITIN_ERROR_PORT_CLOSED if the other program has closed the path without having received
 * all messages. */
int titin_path_close(titin_path *path, double timeout);

/* The name that the opening program has given; "" without a name. Lives as long as the path. */
const char *titin_path_name(const titin_path *path);
/* The number of streams that carry large messages of this end. */
int titin_path_streams(const titin_path *path);
/* A figure of this end of the path since it was opened; NaN for a figure that the system does not measure. */
double titin_path_figure(const titin_path *path, int figure);
enum {
    TITIN_PATH_TIME = 0,              /* seconds for which the path has been open */
    TITIN_PATH_MESSAGES_SENT = 1,     /* a long message counts from its beginning on */
    TITIN_PATH_BYTES_SENT = 2,
    TITIN_PATH_MESSAGES_RECEIVED = 3,
    TITIN_PATH_BYTES_RECEIVED = 4,
    TITIN_PATH_SEND_RATE = 5,         /* bytes sent per second of that time */
    TITIN_PATH_RECEIVE_RATE = 6,      /* bytes received per second of that time */
    TITIN_PATH_WAITED = 7,            /* seconds for which calls have waited: for messages, room at the receiver, or the
                                       * other program. Several threads add up */
    TITIN_PATH_ROUND_TRIP = 8,        /* the round trip in seconds, as the system has averaged it: the least of the streams */
    TITIN_PATH_RETRANSMISSIONS = 9,   /* packets that this host has sent again */
    TITIN_PATH_PACING = 10,           /* the most bytes per second that this end sends; 0 without a limit */
    TITIN_PATH_SEND_BUFFER = 11,      /* the buffers of a stream, in bytes, as the system has them: Linux gives twice the */
    TITIN_PATH_RECEIVE_BUFFER = 12,   /* size that was set */
    TITIN_PATH_PIECE = 13             /* the bytes of a piece, if they were set; 0 if titin chooses */
};
/* Has this end send large messages by at most so many streams (1 to 256) from now on, and opens those that are missing: they
 * carry messages as soon as they are there, which titin_path_streams tells. For 0 titin chooses. The other end sends by as
 * many as it has set, or by all that are open if titin chooses for it. A plain connection gets more streams only as long as the
 * listener is there. */
int titin_path_set_streams(titin_path *path, int streams);
/* Has this end send large messages in pieces of so many bytes (1 KiB to 1 MiB) from now on, where several streams carry them; for 0
 * titin chooses. */
int titin_path_set_piece(titin_path *path, int64_t bytes);
/* Has this end send at most so many bytes per second from now on, by all streams together; 0 is for no limit. */
int titin_path_set_pacing(titin_path *path, int64_t bytes_per_second);
/* Sets the sizes of each stream's buffers at this end, in bytes; 0 leaves a size as it is. */
int titin_path_set_buffers(titin_path *path, int64_t send, int64_t receive);


/* ---- Sending --------------------------------------------------------------------------------------------------- */

/* Sends bytes as one message. Returns when the bytes may be changed. */
int titin_path_send(titin_path *path, const void *bytes, int64_t length, double timeout);
/* Sends the bytes of several places in memory as one message. */
int titin_path_send_parts(titin_path *path, int count, const void *const *parts, const int64_t *lengths, double timeout);
/* Sends an array, described as for titin_send_array. An array that is not contiguous is packed. */
int titin_path_send_array(titin_path *path, int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                          const char *const *names, const void *data, double timeout);


/* ---- Receiving ------------------------------------------------------------------------------------------------- */

/* Receives the next message, whose size and type need not be known. Free the message with titin_message_free; the calls of
 * titin.h read it (bytes are an array of TITIN_U8). It lives on after the path. */
int titin_path_receive(titin_path *path, double timeout, titin_message **message);
/* Receives the bytes of the next message into memory with this room, which may be larger. `length` may be NULL. */
int titin_path_receive_into(titin_path *path, void *memory, int64_t room, double timeout, int64_t *length);
/* Receives an array of this type and shape into memory described as for titin_receive_into, of either order. */
int titin_path_receive_array(titin_path *path, int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                             void *data, double timeout);
/* Receives the bytes of the next message into several places in memory, one after the other. The message may be smaller than
 * all of them. `length` may be NULL. */
int titin_path_receive_parts(titin_path *path, int count, void *const *parts, const int64_t *rooms, double timeout,
                             int64_t *length);


/* ---- Both ------------------------------------------------------------------------------------------------------ */

/* Sends bytes and receives the next message, both at once: neither waits for the other. The two places must not overlap. If
 * only the sending fails, the received message is there for the next call that receives. */
int titin_path_exchange(titin_path *path, const void *bytes, int64_t length, void *memory, int64_t room, double timeout,
                        int64_t *received);
/* The same for a message whose size is not known. */
int titin_path_exchange_message(titin_path *path, const void *bytes, int64_t length, double timeout, titin_message **message);
/* Sends an array as titin_path_send_array does, and receives one as titin_path_receive_array does, both at once. The two may
 * differ in type and shape; if they are alike, one layout does for both. No element of the one may share memory with an element
 * of the other: two columns of an array are fine. If only the sending fails, the received message is there for the next call
 * that receives. */
int titin_path_exchange_array(titin_path *path, const void *data, const titin_path_layout *data_layout, void *memory,
                              const titin_path_layout *memory_layout, double timeout);
/* Sends an array and receives a message whose size and type need not be known. */
int titin_path_exchange_array_message(titin_path *path, const void *data, const titin_path_layout *layout, double timeout,
                                      titin_message **message);

/* Waits until the other program has come to its barrier as often as this one. After a call that was over time or interrupted,
 * the next one goes on with the same barrier. */
int titin_path_barrier(titin_path *path, double timeout);
/* Waits until the other program has received all messages that this one has sent. */
int titin_path_flush(titin_path *path, double timeout);


/* ---- From one path to another ---------------------------------------------------------------------------------- */

/* Receives the next message of `from` and passes it on to `to`, piece by piece as the pieces come in, with its type and shape.
 * The bytes also go to `memory`, which has this room; for NULL the message only passes. `length` may be NULL. Programs in a
 * ring pass messages around so, with memory: a message that only passes waits until earlier sends on `to` are done. A cycle that ends in the middle of the message, by its timeout say, drops the message: both
 * other programs get TITIN_ERROR_MESSAGE_LOST. */
int titin_path_cycle(titin_path *from, titin_path *to, void *memory, int64_t room, double timeout, int64_t *length);
/* The same for a message whose size is not known. */
int titin_path_cycle_message(titin_path *from, titin_path *to, double timeout, titin_message **message);
/* Passes all messages on, both ways, until the other program of one of the two paths closes it; then its last messages have
 * gone on. Barriers do not go on. No other call uses the two paths meanwhile. A program whose message does not fit at the far
 * end gets TITIN_ERROR_MESSAGE_LOST, at the latest once a later message has gone on. A relay that is over time, interrupted or
 * cancelled drops the messages that are in the middle, as a cycle does; others are there for the next call. */
int titin_path_relay(titin_path *one, titin_path *other, double timeout);


/* ---- Without waiting ------------------------------------------------------------------------------------------- */

/* The non-blocking forms of the calls above. Each gives a request, and goes on while the program computes: a thread of titin
 * carries it on. Any number of them may be under way. On a path, calls that send are done one after the other in their order,
 * the blocking ones among them, and so are calls that receive, and barriers: a barrier does not wait for the sends before it. A
 * cycle that waits for its message holds up the later calls that receive on the one path and those that send on the other.
 *
 * Until the call is done the program must not change the memory to send, nor use the memory to receive into. The call is done
 * when titin_path_test, titin_path_wait or titin_path_wait_any says so, with success or with the error of the call; when it is
 * cancelled; and when its path is closed. Free each request with titin_path_request_free. Closing a path waits for the calls
 * that send, and ends the others, also cycles to the path whose message has not come. */
int titin_path_isend(titin_path *path, const void *bytes, int64_t length, titin_path_request **request);
int titin_path_isend_parts(titin_path *path, int count, const void *const *parts, const int64_t *lengths,
                           titin_path_request **request);
/* An array that is not contiguous is packed at once. */
int titin_path_isend_array(titin_path *path, int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                           const char *const *names, const void *data, titin_path_request **request);
int titin_path_ireceive(titin_path *path, titin_path_request **request);
int titin_path_ireceive_into(titin_path *path, void *memory, int64_t room, titin_path_request **request);
int titin_path_ireceive_parts(titin_path *path, int count, void *const *parts, const int64_t *rooms,
                              titin_path_request **request);
/* The elements are there when test or wait has said that the call is done. */
int titin_path_ireceive_array(titin_path *path, int dtype, int rank, const int64_t *extents, const int64_t *strides, int order,
                              void *data, titin_path_request **request);
/* If only the sending fails, the call has its error, and the message was received all the same. */
int titin_path_iexchange(titin_path *path, const void *bytes, int64_t length, void *memory, int64_t room,
                         titin_path_request **request);
int titin_path_iexchange_message(titin_path *path, const void *bytes, int64_t length, titin_path_request **request);
/* The received elements are there when test or wait has said that the call is done. */
int titin_path_iexchange_array(titin_path *path, const void *data, const titin_path_layout *data_layout, void *memory,
                               const titin_path_layout *memory_layout, titin_path_request **request);
int titin_path_iexchange_array_message(titin_path *path, const void *data, const titin_path_layout *layout,
                                       titin_path_request **request);
int titin_path_ibarrier(titin_path *path, titin_path_request **request);
int titin_path_icycle(titin_path *from, titin_path *to, void *memory, int64_t room, titin_path_request **request);
int titin_path_icycle_message(titin_path *from, titin_path *to, titin_path_request **request);
int titin_path_irelay(titin_path *one, titin_path *other, titin_path_request **request);

/* Whether the call is done. Returns the error of a call that has failed, at each test and wait. */
int titin_path_test(titin_path_request *request, int *done);
/* Waits until the call is done, and returns its error: TITIN_ERROR_CLOSED if the call was cancelled or the path closed, unless
 * the one half of an exchange had failed before with an error of its own. TITIN_ERROR_TIMEOUT and TITIN_ERROR_INTERRUPTED
 * leave the call under way. */
int titin_path_wait(titin_path_request *request, double timeout);
/* Waits until one of these calls is done, on one path or on several: `index` is its place, and the error that of the call. If
 * none is done in time, `index` is -1. An entry that is NULL is left out; if all are, it is TITIN_ERROR_USAGE. A call that is
 * done is found again: set its entry to NULL. */
int titin_path_wait_any(int count, titin_path_request *const *requests, double timeout, int *index);
/* Ends the call if it is not done (`cancelled` is 1 then, and may be NULL). Afterwards the memory is the program's again. A
 * receive loses nothing: the next one goes on with the message. A send gives its message up; if a part is on its way, the
 * receiver gets TITIN_ERROR_MESSAGE_LOST. */
int titin_path_cancel(titin_path_request *request, int *cancelled);
/* The number of bytes of the message that the call has received; -1 with an error if there is none. */
int64_t titin_path_request_length(const titin_path_request *request);
/* The message that titin_path_ireceive, titin_path_iexchange_message, titin_path_iexchange_array_message or
 * titin_path_icycle_message has received. Free it with titin_message_free. */
int titin_path_request_message(const titin_path_request *request, titin_message **message);
/* For an event loop: puts `data` on the list (titin_ready_next, titin_ready_descriptor) when the call is done. May come early:
 * test says. Several lists may be given. */
int titin_path_request_ready(titin_path_request *request, titin_ready *list, void *data);
/* Frees a request. A call that is not done is cancelled. */
void titin_path_request_free(titin_path_request *request);

#ifdef __cplusplus
}
#endif

#endif
