/* An instance that is closed while another thread waits in a call on this instance ("caller"), and its peer ("echo"). */
#include <pthread.h>
#include <string.h>

#include "check.h"

static titin_instance *instance;
static titin_port *in;

/* Receives a message that never comes, and notes the status of the call. */
static void *receive(void *outcome) {
    titin_message *message;
    int status;
    /* The main thread tries the port until this thread waits, so the two calls may meet. */
    while ((status = titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message)) == TITIN_ERROR_USAGE)
        if (!strstr(titin_error(), "two calls at once")) break;
    *(int *)outcome = status;
    return NULL;
}

int main(int argc, char **argv) {
    int again, outcome = 0;
    titin_message *message;
    pthread_t thread;
    /* With this option no error sticks, so each call reports its own error. */
    titin_options *options = titin_options_new();
    CHECK(argc == 2 && titin_options_exceptions(options) == 0);
    const int opened = titin_open(NULL, options, &instance);
    titin_options_free(options);
    /* The run fails while the peer begins or waits. */
    const int is_peer = !strcmp(argv[1], "echo");
    if (is_peer && (opened || titin_reuse(instance, &again))) return 1;
    CHECK(opened == 0);
    in = titin_port_find(instance, "in");
    if (is_peer) {
        CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) != 0);
        return titin_close(instance);
    }
    CHECK(titin_reuse(instance, &again) == 0 && again);
    CHECK(titin_skip_checks(instance, "nothing is sent") == 0);
    CHECK(pthread_create(&thread, NULL, receive, &outcome) == 0);
    while (titin_try_receive(in, TITIN_NO_SLOT, &message) == 0) {}
    CHECK(strstr(titin_error(), "two calls at once"));
    CHECK(titin_close(instance) == TITIN_ERROR_USAGE && strstr(titin_error(), "while another thread is in a call"));
    CHECK(pthread_join(thread, NULL) == 0 && outcome != 0);
    /* The instance still exists after the refused close. */
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == TITIN_ERROR_CLOSED);
    return 7;
}
