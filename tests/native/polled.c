/* Light instances in an event loop of one's own: polled by descriptor, as such loops do. */
#include <poll.h>
#include <string.h>

#include "check.h"

struct half {
    const char *name, *ports;
    titin_opening *opening;
    titin_instance *instance;
    int begun, sends, done;
};

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
        half->begun = again;
    }
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

int main(void) {
    struct half halves[2] = {{.name = "receiver", .ports = "s: in"}, {.name = "sender", .ports = "o_i: out", .sends = 1}};
    titin_ready *ready = titin_ready_new();
    titin_options *options = titin_options_new();
    struct pollfd waits = {.fd = titin_ready_descriptor(ready), .events = POLLIN};
    int left = 2, failed;
    void *next;
    CHECK(waits.fd >= 0);
    CHECK(titin_ready_next(ready, 0.0, &next) == TITIN_ERROR_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        CHECK(titin_options_ready(options, ready, &halves[i]) == 0);
        CHECK(titin_options_instance(options, halves[i].name) == 0);
        CHECK(titin_open(halves[i].ports, options, &halves[i].instance) == TITIN_ERROR_USAGE);
        CHECK(titin_open_begin(halves[i].ports, options, &halves[i].opening) == 0);
        failed = go_on(&halves[i]);
        CHECK(failed == TITIN_PENDING || failed == 0);
    }
    CHECK(!strcmp(titin_error_name(TITIN_PENDING), "TITIN_PENDING"));
    while (left > 0) {
        CHECK(poll(&waits, 1, -1) == 1);
        while (titin_ready_next(ready, 0.0, &next) == 0) {
            failed = go_on(next);
            CHECK(failed == 0 || failed == TITIN_PENDING);
            left -= failed == 0;
        }
    }
    titin_options_free(options);
    titin_ready_free(ready);
    puts("both are done");
    return 0;
}
