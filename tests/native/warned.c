/* A program whose calls out of order only make warnings: it sends before it receives, and does not receive every message.
 * warned.cpp and warned.f90 follow the same script. */
#include <string.h>

#include "check.h"

int main(void) {
    titin_options *options = titin_options_new();
    CHECK(titin_options_checks(options, 2) == TITIN_ERROR_USAGE && strstr(titin_error(), "TITIN_CHECKS_WARN"));
    CHECK(titin_options_checks(options, TITIN_CHECKS_ERROR) == 0);
    CHECK(titin_options_checks(options, TITIN_CHECKS_WARN) == 0);
    titin_instance *instance;
    CHECK(titin_open("f_init: one two; o_f: early out", options, &instance) == 0);
    titin_options_free(options);
    titin_port *one = titin_port_find(instance, "one"), *two = titin_port_find(instance, "two");
    titin_port *early = titin_port_find(instance, "early"), *out = titin_port_find(instance, "out");
    int again;
    for (int use = 0; titin_reuse(instance, &again) == 0 && again; ++use) {
        double number = 0.0;
        titin_message *message;
        titin_send(early, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &number, 0.0, TITIN_NO_NEXT);
        if (use == 1) {
            if (titin_receive(two, TITIN_NO_SLOT, TITIN_WAIT, &message)) break;
            titin_value_f64(titin_message_value(message), &number);
            titin_message_free(message);
        }
        if (titin_receive(one, TITIN_NO_SLOT, TITIN_WAIT, &message)) break;
        titin_message_free(message);
        titin_send(out, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &number, 0.0, TITIN_NO_NEXT);
    }
    return titin_close(instance);
}
