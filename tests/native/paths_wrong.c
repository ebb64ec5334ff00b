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
    /* The last sockets may be closing. */
    for (int tries = 0; descriptors() > before && tries < 100; tries++) usleep(50000);
    CHECK(descriptors() <= before);
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
    given_up();
    fork_of_this();
    killed(listener, argv[0]);
    many(listener, atoi(argv[1]));
    CHECK(titin_path_close(here, TITIN_WAIT) == 0);
    CHECK(titin_path_close(there, TITIN_WAIT) == 0);
    titin_path_listener_free(listener);
}
