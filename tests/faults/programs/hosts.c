/* Functions that one process runs as instances, on threads of their own or as light steps. A host loads this file as a
 * library, or this file is a program with the arguments HOW-THEY-RUN HOW-MANY HOW. The culprit fails as culprit.c does; the
 * environment variable HOW or the program's last argument says how. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "titin.h"

/* The next call to make. A step makes a pending call again, so the progress of the instance must outlive the step. */
static enum { REUSE, SEND, RECEIVE } next, guests_next;
static int number;
static int is_program;
static const char *how = "";

static void fail(const char *when) {
    if (strncmp(how, when, strlen(when)) != 0) return;
    const char *way = how + strlen(when);
    if (strcmp(way, "exit") == 0) _exit(3);
    if (strcmp(way, "exit0") == 0) _exit(0);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
}

int culprit(titin_instance *instance, void *data) {
    titin_message *message;
    int again, failed;
    (void)data;
    for (;;) switch (next) {
    case REUSE:
        if ((failed = titin_reuse(instance, &again)) || !again) return failed;
        number = 0;
        next = SEND;
        break;
    case SEND:
        failed = titin_send_nil(titin_port_find(instance, "out"), TITIN_NO_SLOT, number, TITIN_NO_NEXT, NULL);
        if (failed) return failed;
        next = RECEIVE;
        break;
    case RECEIVE:
        failed = titin_receive(titin_port_find(instance, "in"), TITIN_NO_SLOT, TITIN_WAIT, &message);
        if (failed) return failed;
        titin_message_free(message);
        if (number == 2) {
            fail("");
            if (strcmp(how, "exception") == 0) {
                titin_set_error("the mesh is tangled");
                return 1;
            }
        }
        next = ++number < 5 ? SEND : REUSE;
        break;
    }
}

int guest(titin_instance *instance, void *data) {
    titin_message *message;
    int again, failed;
    (void)data;
    for (;;) {
        if (guests_next == REUSE) {
            if ((failed = titin_reuse(instance, &again)) || !again) return failed;
            guests_next = RECEIVE;
        }
        if ((failed = titin_receive(titin_port_find(instance, "in"), TITIN_NO_SLOT, TITIN_WAIT, &message))) return failed;
        titin_message_free(message);
        guests_next = REUSE;
    }
}

/* If this file is a library, `loaded` runs before the host opens an instance, and `unloaded` after all instances are
 * closed. */
__attribute__((constructor)) static void loaded(void) {
    const char *wanted = getenv("HOW");
    if (wanted) how = wanted;
    fail("before-");
}

__attribute__((destructor)) static void unloaded(void) {
    if (!is_program) fail("after-");
}

int main(int argc, char **argv) {
    const char *names[2] = {"culprit", "guest"};
    const char *ports[2] = {"o_i: out; s: in", "f_init: in"};
    const titin_entry entries[2] = {culprit, guest};
    int failed;
    is_program = 1;
    if (argc != 4) return 2;
    how = argv[3];
    fail("before-");
    if (strcmp(how, "never") == 0) return 0;
    if (strcmp(argv[1], "steps") == 0) {
        failed = titin_host_steps(atoi(argv[2]), names, ports, entries, NULL, 2, NULL);
    } else {
        failed = titin_host(atoi(argv[2]), names, ports, entries, NULL, NULL);
    }
    if (failed) return titin_explain(stderr);
    fail("after-");
    return 0;
}
