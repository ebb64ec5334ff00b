/* A signal while a receive waits: "caller" is interrupted, handles the interruption, and goes on; "echo" answers "caller".
 * "newcomer" is interrupted while it waits to join the run. interrupted.cpp and interrupted.f90 follow the same script. */
#include <signal.h>
#include <string.h>

#include "check.h"

static volatile sig_atomic_t came;

static void note(int number) {
    (void)number;
    came = 1;
}

static int asked(void *data) {
    ++*(int *)data;
    return came;
}

static void caller(titin_instance *instance, titin_port *out, titin_port *in) {
    titin_message *message;
    int questions = 0;
    CHECK(titin_on_interrupt(instance, NULL, NULL) == TITIN_ERROR_USAGE && titin_recover(instance) == 0);
    CHECK(titin_on_interrupt(instance, asked, &questions) == 0);
    CHECK(titin_on_interrupt(instance, asked, &questions) == TITIN_ERROR_USAGE && titin_recover(instance) == 0);
    CHECK(signal(SIGUSR1, note) != SIG_ERR);
    fclose(fopen("waiting", "w"));
    /* No message is under way, so without the signal the call would never return. */
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == TITIN_ERROR_INTERRUPTED && !message);
    CHECK(came && questions > 0);
    came = 0;
    /* The interruption does not stick. */
    CHECK(titin_send_nil(out, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, NULL) == 0);
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    titin_message_free(message);
}

static void echo(titin_port *out, titin_port *in) {
    titin_message *message;
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    CHECK(titin_send_nil(out, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, NULL) == 0);
    titin_message_free(message);
}

static void newcomer(void) {
    titin_instance *instance;
    int questions = 0;
    titin_options *options = titin_options_new();
    CHECK(titin_options_interrupt(options, NULL, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_options_interrupt(options, asked, &questions) == 0);
    CHECK(signal(SIGUSR1, note) != SIG_ERR);
    fclose(fopen("waiting", "w"));
    CHECK(titin_open(NULL, options, &instance) == TITIN_ERROR_INTERRUPTED && !instance);
    CHECK(came && questions > 0);
    titin_options_free(options);
}

int main(int argc, char **argv) {
    titin_instance *instance;
    int again;
    CHECK(argc == 2);
    if (!strcmp(argv[1], "newcomer")) return newcomer(), 0;
    CHECK(titin_open(NULL, NULL, &instance) == 0);
    titin_port *out = titin_port_find(instance, "out"), *in = titin_port_find(instance, "in");
    while (titin_reuse(instance, &again) == 0 && again) {
        if (!strcmp(argv[1], "caller")) caller(instance, out, in);
        else echo(out, in);
    }
    CHECK(titin_close(instance) == 0);
    return 0;
}
