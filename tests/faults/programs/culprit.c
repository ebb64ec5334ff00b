/* Exchanges messages for a few steps and then fails in the way that the argument says. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TITIN_TESTING
#include "titin.h"

static const char *how;

static void check(int status) {
    if (status != 0) exit(titin_explain(stderr));
}

static void fail(titin_instance *instance) {
    if (strcmp(how, "exception") == 0) {
        check(titin_fail(instance, "the mesh is tangled"));
        titin_close(instance);
        exit(1);
    }
    if (strcmp(how, "exit") == 0) _exit(3);
    if (strcmp(how, "exit0") == 0) _exit(0);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    if (strcmp(how, "panic") == 0) {
        int status = titin_test_panic(instance);
        fprintf(stderr, "titin_test_panic returned %d: %s\n", status, titin_error());
        /* The error has stuck, so the close fails too. */
        status = titin_close(instance);
        fprintf(stderr, "titin_close returned %d: %s\n", status, titin_error());
        exit(status);
    }
}

int main(int argc, char **argv) {
    titin_instance *instance;
    int again;
    how = argc > 1 ? argv[1] : "";
    if (strncmp(how, "before-", 7) == 0) {
        how += 7;
        fail(NULL);
    }
    if (strcmp(how, "never") == 0) return 0;
    check(titin_open(strcmp(how, "misspelt") == 0 ? "o_i: outt; s: in" : "o_i: out; s: in", NULL, &instance));
    titin_port *out = titin_port_find(instance, "out"), *in = titin_port_find(instance, "in");
    for (titin_reuse(instance, &again); again; check(titin_reuse(instance, &again))) {
        for (int step = 0; step < 5; step++) {
            titin_message *message;
            check(titin_send_nil(out, TITIN_NO_SLOT, step, TITIN_NO_NEXT, NULL));
            check(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
            titin_message_free(message);
            if (step == 2) fail(instance);
        }
    }
    check(titin_close(instance));
    if (strncmp(how, "after-", 6) == 0) {
        how += 6;
        fail(NULL);
    }
    return 0;
}
