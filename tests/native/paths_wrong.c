/* Wrong use of paths, and what goes wrong around them: each is an error that says what, and the path goes on. */
#include "check.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <titin_path.h>
#include <unistd.h>

/* Both ends in this process. */
static titin_path *here, *there;

static int refuses(int status, int kind, const char *text) {
    if (status == kind && strstr(titin_error(), text)) return 1;
    fprintf(stderr, "status %d: %s\n", status, titin_error());
    return 0;
}

static void keys(const char *file) {
    titin_path *path = (titin_path *)1;
    char *usual = getenv("TITIN_PATH_KEY");
    CHECK(unsetenv("TITIN_PATH_KEY") == 0);
    CHECK(refuses(titin_path_open("127.0.0.1:1", NULL, NULL, &path), TITIN_ERROR_USAGE, "set TITIN_PATH_KEY"));
    CHECK(path == NULL);
    CHECK(setenv("TITIN_PATH_KEY", usual, 1) == 0);
    titin_path_options *options = titin_path_options_new();
    CHECK(refuses(titin_path_options_key_file(options, "/nowhere"), TITIN_ERROR_USAGE, "titin path key FILE"));
    CHECK(refuses(titin_path_options_key_file(options, "."), TITIN_ERROR_USAGE, "no ordinary file"));
    CHECK(chmod(file, 0644) == 0);
    CHECK(refuses(titin_path_options_key_file(options, file), TITIN_ERROR_USAGE, "chmod 640"));
    CHECK(chmod(file, 0600) == 0);
    CHECK(titin_path_options_key_file(options, file) == 0);
    CHECK(refuses(titin_path_options_streams(options, -1), TITIN_ERROR_USAGE, "number of streams"));
    CHECK(refuses(titin_path_options_streams(options, 257), TITIN_ERROR_USAGE, "at most 256"));
    CHECK(refuses(titin_path_options_pacing(options, -1), TITIN_ERROR_USAGE, "bytes per second"));
    CHECK(refuses(titin_path_options_buffers(options, 0, -1), TITIN_ERROR_USAGE, "receive buffer"));
    CHECK(refuses(titin_path_options_patience(options, NAN), TITIN_ERROR_USAGE, "timeout"));
    CHECK(refuses(titin_path_options_outage(options, NAN), TITIN_ERROR_USAGE, "timeout"));
    CHECK(refuses(titin_path_options_key(NULL, ""), TITIN_ERROR_USAGE, "titin_path_options_new"));
    titin_path_options_free(options);
    titin_path_options_free(NULL);
}

static void addresses(const char *listening, const char *other_key) {
    titin_path *path;
    titin_path_options *options = titin_path_options_new();
    CHECK(titin_path_options_patience(options, 0.3) == 0);
    CHECK(refuses(titin_path_open("nowhere", NULL, options, &path), TITIN_ERROR_USAGE, "'nowhere' is no address"));
    CHECK(refuses(titin_path_open("", NULL, options, &path), TITIN_ERROR_USAGE, "no address was given"));
    CHECK(refuses(titin_path_open(NULL, NULL, options, &path), TITIN_ERROR_USAGE, "no addresses"));
    CHECK(refuses(titin_path_open("127.0.0.1:1", NULL, options, &path), TITIN_ERROR_CONNECTION, "127.0.0.1:1"));
    CHECK(titin_path_options_key(options, other_key) == 0);
    CHECK(refuses(titin_path_open(listening, NULL, options, &path), TITIN_ERROR_CONNECTION, "another key"));
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK(refuses(titin_path_open(listening, name, NULL, &path), TITIN_ERROR_USAGE, "1999 bytes: at most 1024"));
    titin_path_options_free(options);
    titin_path_listener *listener;
    CHECK(titin_path_listen(listening, NULL, &listener) == TITIN_ERROR_CONNECTION && !listener);
    CHECK(refuses(titin_path_accept(NULL, 0, &path), TITIN_ERROR_USAGE, "titin_path_listen"));
    titin_path_listener_free(NULL);
}

static void arguments(void) {
    char bytes[8] = "", *null = NULL;
    int64_t length;
    titin_message *message = (titin_message *)1;
    CHECK(refuses(titin_path_send(NULL, bytes, 1, 0), TITIN_ERROR_USAGE, "titin_path_open"));
    CHECK(titin_path_receive(NULL, 0, &message) == TITIN_ERROR_USAGE && message == NULL);
    CHECK(titin_path_barrier(NULL, 0) == TITIN_ERROR_USAGE && titin_path_flush(NULL, 0) == TITIN_ERROR_USAGE);
    CHECK(titin_path_name(NULL) == NULL && titin_path_streams(NULL) == 0);
    CHECK(titin_path_close(NULL, 0) == 0);
    CHECK(refuses(titin_path_send(here, bytes, -1, 0), TITIN_ERROR_USAGE, "-1 bytes"));
    CHECK(refuses(titin_path_send(here, null, 1, 0), TITIN_ERROR_USAGE, "NULL was given for 1 bytes"));
    CHECK(refuses(titin_path_send(here, bytes, 1, -1), TITIN_ERROR_USAGE, "timeout"));
    CHECK(refuses(titin_path_send_array(here, 77, 0, NULL, NULL, 0, NULL, bytes, 0), TITIN_ERROR_USAGE, "dtype 77"));
    CHECK(titin_path_send_array(here, TITIN_F64, 1, (int64_t[]){INT64_MAX}, NULL, 0, NULL, bytes, 0) == TITIN_ERROR_USAGE);
    CHECK(refuses(titin_path_receive(here, 0, NULL), TITIN_ERROR_USAGE, "the message is to be written"));
    CHECK(refuses(titin_path_receive_into(here, null, 5, 0, &length), TITIN_ERROR_USAGE, "NULL was given"));
    CHECK(refuses(titin_path_exchange(here, bytes, 5, bytes + 4, 4, 0, &length), TITIN_ERROR_USAGE, "overlaps"));
    /* Two places side by side do not overlap. */
    CHECK(titin_path_send(there, "1234", 4, TITIN_WAIT) == 0);
    CHECK(titin_path_exchange(here, bytes, 4, bytes + 4, 4, TITIN_WAIT, NULL) == 0 && !memcmp(bytes + 4, "1234", 4));
    CHECK(titin_path_receive_into(there, bytes, 8, TITIN_WAIT, &length) == 0 && length == 4);
    const int64_t overlapping[] = {0};
    CHECK(refuses(titin_path_receive_array(here, TITIN_U8, 1, (int64_t[]){2}, overlapping, 0, bytes, 0), TITIN_ERROR_USAGE,
                  "share memory"));
}

static void arrays(void) {
    double u[4][5] = {{0}}, v[4] = {1, 2, 3, 4}, room[4];
    const int64_t four = 4, step = sizeof u[0], back = -(int64_t)sizeof u[0], none = 0;
    const titin_path_layout row = {TITIN_F64, 1, &four, .order = TITIN_ORDER_C};
    const titin_path_layout column = {TITIN_F64, 1, &four, &step, .order = TITIN_ORDER_C};
    const titin_path_layout upwards = {TITIN_F64, 1, &four, &back, .order = TITIN_ORDER_C};
    const titin_path_layout repeated = {TITIN_F64, 1, &four, &none, .order = TITIN_ORDER_C};
    const titin_path_layout unknown = {77, 1, &four, .order = TITIN_ORDER_C};
    titin_path_request *request = (titin_path_request *)1;
    titin_message *message = (titin_message *)1;
    CHECK(titin_path_exchange_array(NULL, v, &row, room, &row, 0) == TITIN_ERROR_USAGE);
    CHECK(refuses(titin_path_exchange_array(here, v, NULL, room, &row, 0), TITIN_ERROR_USAGE, "fill in a titin_path_layout"));
    CHECK(refuses(titin_path_exchange_array(here, v, &row, room, NULL, 0), TITIN_ERROR_USAGE, "fill in a titin_path_layout"));
    CHECK(refuses(titin_path_exchange_array(here, NULL, &row, room, &row, 0), TITIN_ERROR_USAGE, "NULL was given"));
    CHECK(refuses(titin_path_exchange_array(here, v, &unknown, room, &row, 0), TITIN_ERROR_USAGE, "dtype 77"));
    CHECK(refuses(titin_path_exchange_array(here, v, &row, room, &unknown, 0), TITIN_ERROR_USAGE, "dtype 77"));
    CHECK(refuses(titin_path_exchange_array(here, v, &row, room, &row, -1), TITIN_ERROR_USAGE, "timeout"));
    CHECK(refuses(titin_path_exchange_array(here, v, &row, u, &repeated, 0), TITIN_ERROR_USAGE, "elements that share memory"));
    CHECK(refuses(titin_path_exchange_array(here, v, &row, v, &row, 0), TITIN_ERROR_USAGE, "shares memory with the array to send"));
    CHECK(refuses(titin_path_exchange_array(here, &u[1][0], &row, &u[0][2], &column, 0), TITIN_ERROR_USAGE, "without overlaps"));
    CHECK(refuses(titin_path_exchange_array(here, &u[0][2], &column, &u[3][2], &upwards, 0), TITIN_ERROR_USAGE, "without overlaps"));
    CHECK(refuses(titin_path_iexchange_array(here, v, &row, v, &row, &request), TITIN_ERROR_USAGE, "without overlaps"));
    CHECK(request == NULL);
    CHECK(refuses(titin_path_iexchange_array(here, v, &row, room, &row, NULL), TITIN_ERROR_USAGE, "the request"));
    CHECK(refuses(titin_path_iexchange_array_message(here, v, NULL, &request), TITIN_ERROR_USAGE, "titin_path_layout"));
    CHECK(refuses(titin_path_exchange_array_message(here, v, NULL, 0, &message), TITIN_ERROR_USAGE, "titin_path_layout"));
    CHECK(message == NULL);
    CHECK(refuses(titin_path_exchange_array_message(here, v, &row, 0, NULL), TITIN_ERROR_USAGE, "the message"));

    /* Nothing of all that was sent. A row goes out, and comes in from below to the top of a column beside it. */
    CHECK(titin_path_send_array(there, TITIN_F64, 1, &four, NULL, TITIN_ORDER_C, NULL, v, TITIN_WAIT) == 0);
    const titin_path_layout named = {TITIN_F64, 1, &four, .names = (const char *const[]){"cell"}};
    CHECK(titin_path_exchange_array(here, &u[1][0], &named, &u[3][4], &upwards, TITIN_WAIT) == 0);
    for (int i = 0; i < 4; i++) CHECK(u[3 - i][4] == i + 1);
    CHECK(titin_path_receive(there, TITIN_WAIT, &message) == 0 && titin_message_elements(message) == 4);
    CHECK(!strcmp(titin_message_index_name(message, 0), "cell"));
    titin_message_free(message);
}

/* If only the sending of an exchange fails, the message that has come is there for the next call. */
static void half_an_exchange(void) {
    const int64_t much = INT64_C(200) << 20, shape[] = {2, 3}, steps[] = {6 * sizeof(double), 2 * sizeof(double)};
    char *bytes = calloc(much, 1);
    const titin_path_layout large = {TITIN_U8, 1, &much, .order = TITIN_ORDER_C};
    const double numbers[2][3] = {{1, 2, 3}, {4, 5, 6}};
    /* In place, in another order, and with gaps. */
    const titin_path_layout layouts[] = {{TITIN_F64, 2, shape, .order = TITIN_ORDER_C},
                                         {TITIN_F64, 2, shape, .order = TITIN_ORDER_FORTRAN},
                                         {TITIN_F64, 2, shape, .strides = steps}};
    for (int i = 0; i < 3; i++) {
        double room[12] = {0}, turned[6] = {0};
        titin_message *message;
        titin_path_request *request;
        CHECK(titin_path_send_array(there, TITIN_F64, 2, shape, NULL, TITIN_ORDER_C, NULL, numbers, TITIN_WAIT) == 0);
        CHECK(titin_path_exchange_array(here, bytes, &large, room, &layouts[i], 0.3) == TITIN_ERROR_TIMEOUT);
        CHECK(titin_path_receive_array(here, TITIN_F64, 2, shape, NULL, TITIN_ORDER_FORTRAN, turned, TITIN_WAIT) == 0);
        for (int j = 0; j < 6; j++) CHECK(turned[j] == numbers[j % 2][j / 2]);
        CHECK(refuses(titin_path_receive(there, TITIN_WAIT, &message), TITIN_ERROR_MESSAGE_LOST, "given up"));

        /* A call that does not wait has the elements as well. */
        CHECK(titin_path_send_array(there, TITIN_F64, 2, shape, NULL, TITIN_ORDER_C, NULL, numbers, TITIN_WAIT) == 0);
        CHECK(titin_path_iexchange_array(here, bytes, &large, room, &layouts[i], &request) == 0);
        CHECK(titin_path_wait(request, 0.3) == TITIN_ERROR_TIMEOUT && titin_path_cancel(request, NULL) == 0);
        CHECK(titin_path_wait(request, TITIN_WAIT) == TITIN_ERROR_CLOSED);
        CHECK(titin_path_request_length(request) == sizeof numbers);
        titin_path_request_free(request);
        const int distances[3][2] = {{3, 1}, {1, 2}, {6, 2}};
        for (int j = 0; j < 6; j++) CHECK(room[j / 3 * distances[i][0] + j % 3 * distances[i][1]] == numbers[j / 3][j % 3]);
        CHECK(refuses(titin_path_receive(there, TITIN_WAIT, &message), TITIN_ERROR_MESSAGE_LOST, "given up"));
    }
    free(bytes);
}

/* A message of which the sender gives up a part is lost, and the next one is not. */
static void given_up(void) {
    const int64_t much = INT64_C(200) << 20;
    char *bytes = calloc(much, 1), word[6];
    titin_message *message;
    CHECK(refuses(titin_path_send(here, bytes, much, 0.2), TITIN_ERROR_TIMEOUT, "path: sending a message"));
    CHECK(refuses(titin_path_receive(there, TITIN_WAIT, &message), TITIN_ERROR_MESSAGE_LOST, "given up"));
    CHECK(titin_path_send(here, "after", 6, TITIN_WAIT) == 0);
    CHECK(titin_path_receive_into(there, word, sizeof word, TITIN_WAIT, NULL) == 0 && !strcmp(word, "after"));
    free(bytes);
}

static void fork_of_this(void) {
    const pid_t child = fork();
    if (child == 0) {
        titin_message *message;
        CHECK(titin_path_send(here, "x", 1, 1) == TITIN_ERROR_FORKED);
        CHECK(titin_path_receive(here, 1, &message) == TITIN_ERROR_FORKED && !message);
        CHECK(titin_path_close(here, 1) == TITIN_ERROR_FORKED);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(titin_path_send(here, "x", 1, TITIN_WAIT) == 0);
    char byte;
    CHECK(titin_path_receive_into(there, &byte, 1, TITIN_WAIT, NULL) == 0 && byte == 'x');
}

static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* The last sockets may be closing. */
static void await_descriptors(int most) {
    for (int tries = 0; descriptors() > most && tries < 100; tries++) usleep(50000);
    CHECK(descriptors() <= most);
}

/* Opening and closing leaves no descriptor behind. */
static void many(titin_path_listener *listener, int times) {
    const char *address = titin_path_listener_address(listener);
    int before = 0;
    for (int i = 0; i < times; i++) {
        titin_path *one, *other;
        CHECK(titin_path_open(address, NULL, NULL, &one) == 0);
        CHECK(titin_path_accept(listener, TITIN_WAIT, &other) == 0);
        CHECK(titin_path_send(one, &i, sizeof i, TITIN_WAIT) == 0);
        CHECK(titin_path_close(i % 2 ? one : other, TITIN_WAIT) == 0);
        titin_path_close(i % 2 ? other : one, TITIN_WAIT);
        /* The last sockets may be closing. */
        if (i == times / 2) {
            usleep(200000);
            before = descriptors();
        }
    }
    await_descriptors(before);
}

/* A session that closes while further streams are on their way to join it leaves none of them behind. */
static void closed_while_streams_join(titin_path_listener *listener) {
    char address[100];
    snprintf(address, sizeof address, "session:%s", titin_path_listener_address(listener));
    int before = 0;
    for (int i = 0; i < 8; i++) {
        titin_path *one, *other;
        CHECK(titin_path_open(address, NULL, NULL, &one) == 0);
        CHECK(titin_path_accept(listener, TITIN_WAIT, &other) == 0);
        CHECK(titin_path_set_streams(one, i ? 100 : 2) == 0);
        CHECK(titin_path_close(one, TITIN_WAIT) == 0);
        titin_path_close(other, TITIN_WAIT);
        if (i == 0) {
            usleep(300000);
            before = descriptors();
        }
    }
    await_descriptors(before);
}

/* The other end of a path is killed. */
static void killed(titin_path_listener *listener, const char *program) {
    const char *address = titin_path_listener_address(listener);
    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, "wait", address, (char *)NULL);
        _exit(1);
    }
    titin_path *path;
    CHECK(titin_path_accept(listener, TITIN_WAIT, &path) == 0);
    char byte;
    CHECK(titin_path_receive_into(path, &byte, 1, TITIN_WAIT, NULL) == 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(refuses(titin_path_receive_into(path, &byte, 1, 30, NULL), TITIN_ERROR_PEER_LOST, "path 'short': the path is lost"));
    CHECK(titin_path_send(path, &byte, 1, 30) == TITIN_ERROR_PEER_LOST);
    CHECK(titin_path_close(path, 30) == TITIN_ERROR_PEER_LOST);
}

/* The end that is killed. */
static void wait_for_death(const char *address) {
    titin_path *path;
    CHECK(titin_path_open(address, "short", NULL, &path) == 0);
    CHECK(titin_path_send(path, "x", 1, TITIN_WAIT) == 0);
    pause();
}

int main(int argc, char **argv) {
    if (argc == 3) wait_for_death(argv[2]);
    CHECK(argc == 2);
    titin_path_listener *listener;
    CHECK(titin_path_listen("127.0.0.1:0", NULL, &listener) == 0);
    const char *address = titin_path_listener_address(listener);
    CHECK(titin_path_accept(listener, 0.05, &there) == TITIN_ERROR_TIMEOUT && !there);
    CHECK(titin_path_open(address, NULL, NULL, &here) == 0 && titin_path_accept(listener, TITIN_WAIT, &there) == 0);
    CHECK(!strcmp(titin_path_name(there), ""));
    keys(getenv("TITIN_PATH_KEY"));
    addresses(address, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    arguments();
    arrays();
    half_an_exchange();
    given_up();
    fork_of_this();
    killed(listener, argv[0]);
    many(listener, atoi(argv[1]));
    closed_while_streams_join(listener);
    CHECK(titin_path_close(here, TITIN_WAIT) == 0);
    CHECK(titin_path_close(there, TITIN_WAIT) == 0);
    titin_path_listener_free(listener);
}
