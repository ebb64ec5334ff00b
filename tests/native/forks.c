/* A program that forks while it holds a message. "parent" goes on, and its child reads the message and touches nothing
 * else; "echo" answers. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static titin_instance *instance;
static titin_port *out, *in;

static double first(const titin_message *message) {
    const double *numbers = titin_message_array(message, TITIN_F64, 1, (int64_t[]){1}, TITIN_ORDER_C);
    CHECK(numbers);
    return *numbers;
}

static titin_message *exchange(double number) {
    titin_message *message;
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, (int64_t[]){1}, &number, number, TITIN_NO_NEXT) == 0);
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    CHECK(first(message) == number);
    return message;
}

static int sockets(void) {
    DIR *folder = opendir("/proc/self/fd");
    struct stat about;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += !fstat(atoi(entry->d_name), &about) && S_ISSOCK(about.st_mode);
    closedir(folder);
    return count;
}

/* The code of the child. The child may only read the message and free it. The child ends when the parent tells it to, long
 * after the run. */
static int child(titin_message *view, int from_parent, int to_parent) {
    titin_message *message;
    titin_instance *another;
    const double number = 0.0;
    char byte;
    int again;
    CHECK(sockets() == 0);
    CHECK(first(view) == 1.0 && titin_message_timestamp(view) == 1.0);
    CHECK(!titin_message_array(view, TITIN_F32, 1, (int64_t[]){1}, TITIN_ORDER_C) && strstr(titin_error(), "float64"));
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &number, 9.0, TITIN_NO_NEXT) == TITIN_ERROR_FORKED);
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == TITIN_ERROR_FORKED && !message);
    CHECK(titin_reuse(instance, &again) == TITIN_ERROR_FORKED && !again && strstr(titin_error(), "forked"));
    CHECK(titin_recover(instance) == TITIN_ERROR_FORKED && titin_log(instance, 20, "here") == TITIN_ERROR_FORKED);
    CHECK(titin_open(NULL, NULL, &another) == TITIN_ERROR_FORKED);
    CHECK(titin_fail(instance, "a child cannot fail its parent's run") == TITIN_ERROR_FORKED);
    titin_message_free(view);
    titin_close(instance);
    CHECK(write(to_parent, "x", 1) == 1 && read(from_parent, &byte, 1) == 1);
    _exit(0);
}

static pid_t forked;
static int to_child[2], to_parent[2];

static void parent(void) {
    titin_message *view = exchange(1.0);
    char byte;
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    forked = fork();
    if (forked == 0) child(view, to_child[0], to_parent[1]);
    CHECK(forked > 0 && close(to_parent[1]) == 0);
    for (int i = 2; i < 10; ++i) titin_message_free(exchange(i));
    CHECK(read(to_parent[0], &byte, 1) == 1);
    for (int i = 10; i < 20; ++i) titin_message_free(exchange(i));
    CHECK(first(view) == 1.0);
    titin_message_free(view);
}

static void echo(void) {
    titin_message *message;
    int status;
    while ((status = titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message)) == 0) {
        CHECK(titin_send_value(out, TITIN_NO_SLOT, titin_message_value(message), titin_message_timestamp(message),
                               TITIN_NO_NEXT, NULL) == 0);
        titin_message_free(message);
    }
    CHECK(status == TITIN_ERROR_PORT_CLOSED);
}

int main(int argc, char **argv) {
    int again, status;
    titin_options *options = titin_options_new();
    CHECK(argc == 2 && titin_options_unchecked(options, "echoes until the other end is closed") == 0);
    CHECK(titin_open(NULL, options, &instance) == 0);
    titin_options_free(options);
    out = titin_port_find(instance, "out");
    in = titin_port_find(instance, "in");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    if (!strcmp(argv[1], "parent")) parent();
    else echo();
    CHECK(titin_close(instance) == 0);
    if (forked) {
        CHECK(write(to_child[1], "x", 1) == 1);
        CHECK(waitpid(forked, &status, 0) == forked && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
