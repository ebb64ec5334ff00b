/* Light instances in the program's own event loop, which polls titin's descriptor. */
#include <poll.h>
#include <string.h>

#include "check.h"

struct half {
    const char *name, *ports;
    titin_opening *opening;
    titin_instance *instance;
    int begun, sends, done;
    /* The other half. The sender waits until the receiver has begun. */
    struct half *other;
};

/* A call that was given up does not change the next call: the next call has its own timeout. */
static void give_up(titin_instance *instance) {
    titin_port *port = titin_port_find(instance, "in");
    titin_message *message;
    for (int i = 0; i < 2; i++) {
        CHECK(titin_receive(port, TITIN_NO_SLOT, 3600.0, &message) == TITIN_PENDING);
        CHECK(titin_cancel(instance, i ? NULL : port, TITIN_NO_SLOT) == 0);
        CHECK(titin_receive(port, TITIN_NO_SLOT, 0.0, &message) == TITIN_ERROR_TIMEOUT);
    }
}

/* Goes on with an instance as far as it can. */
static int go_on(struct half *half) {
    titin_message *message;
    int again, failed;
    if (half->opening) {
        if ((failed = titin_open_end(half->opening, &half->instance))) return failed;
        half->opening = NULL;
    }
    if (!half->begun) {
        if ((failed = titin_reuse(half->instance, &again))) return failed;
        if (!half->sends) give_up(half->instance);
        CHECK(titin_skip_deadlocks(half->instance) == 0);
        half->begun = again;
    }
    if (half->sends && !half->other->begun) return TITIN_PENDING;
    if (!half->done) {
        titin_port *port = titin_port_find(half->instance, half->sends ? "out" : "in");
        failed = half->sends ? titin_send_nil(port, TITIN_NO_SLOT, 1.0, TITIN_NO_NEXT, NULL)
                             : titin_receive(port, TITIN_NO_SLOT, TITIN_WAIT, &message);
        if (failed) return failed;
        if (!half->sends) titin_message_free(message);
        half->done = 1;
    }
    return titin_close(half->instance);
}

/* Goes on with an instance. Returns whether the instance has ended, which may be at the first call if its peers are fast.
 */
static int has_ended(struct half *half) {
    const int failed = go_on(half);
    CHECK(failed == 0 || failed == TITIN_PENDING);
    if (failed == 0) half->instance = NULL;
    return failed == 0;
}

/* Gives up an opening after the manager has heard of it. This fails the run. */
static int give_up_opening(void) {
    titin_ready *ready = titin_ready_new();
    titin_options *options = titin_options_new();
    titin_opening *opening;
    titin_instance *instance;
    void *next;
    CHECK(titin_options_ready(options, ready, NULL) == 0 && titin_options_instance(options, "receiver") == 0);
    CHECK(titin_open_begin("s: in", options, &opening) == 0);
    const int failed = titin_open_end(opening, &instance);
    if (failed == TITIN_PENDING) {
        CHECK(titin_ready_next(ready, TITIN_WAIT, &next) == 0);
        titin_open_cancel(opening);
    } else {
        /* The manager was faster, so the opening has ended and only the instance can be given up. */
        CHECK(failed == 0);
        CHECK(titin_fail(instance, "let go of the instance before it had joined the run") == 0);
        CHECK(titin_close(instance) != 0);
    }
    CHECK(titin_ready_next(ready, 0.0, &next) == TITIN_ERROR_TIMEOUT);
    titin_options_free(options);
    titin_ready_free(ready);
    /* Waits until the manager is gone. */
    CHECK(getchar() == EOF);
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return give_up_opening();
    struct half halves[2] = {{.name = "receiver", .ports = "s: in"}, {.name = "sender", .ports = "o_i: out", .sends = 1}};
    titin_ready *ready = titin_ready_new();
    titin_options *options = titin_options_new();
    struct pollfd waits = {.fd = titin_ready_descriptor(ready), .events = POLLIN};
    int left = 2;
    void *next;
    CHECK(waits.fd >= 0);
    CHECK(titin_ready_next(ready, 0.0, &next) == TITIN_ERROR_TIMEOUT);
    halves[1].other = &halves[0];
    for (int i = 0; i < 2; i++) {
        CHECK(titin_options_ready(options, ready, &halves[i]) == 0);
        CHECK(titin_options_instance(options, halves[i].name) == 0);
        CHECK(titin_open(halves[i].ports, options, &halves[i].instance) == TITIN_ERROR_USAGE);
        CHECK(titin_open_begin(halves[i].ports, options, &halves[i].opening) == 0);
        left -= has_ended(&halves[i]);
    }
    CHECK(!strcmp(titin_error_name(TITIN_PENDING), "TITIN_PENDING"));
    while (left > 0) {
        CHECK(poll(&waits, 1, -1) == 1);
        while (titin_ready_next(ready, 0.0, &next) == 0) {
            for (int i = 0; i < 2; i++) {
                if (halves[i].opening || halves[i].instance) left -= has_ended(&halves[i]);
            }
        }
    }
    titin_open_cancel(NULL);
    titin_options_free(options);
    titin_ready_free(ready);
    puts("both are done");
    return 0;
}
