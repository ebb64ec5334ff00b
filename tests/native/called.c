/* A micro model whose caller sends settings: as a map on muscle_settings_in, or with a message. called.cpp and called.f90
 * follow the same script. */
#include <string.h>

#include "check.h"

int main(void) {
    titin_options *options = titin_options_new();
    CHECK(titin_options_unchecked(options, "") == TITIN_ERROR_USAGE && strstr(titin_error(), "say why"));
    titin_options_free(options);

    titin_instance *instance;
    CHECK(titin_open("f_init: in; o_f: out", NULL, &instance) == 0);
    CHECK(titin_skip_checks(instance, " ") == TITIN_ERROR_USAGE && strstr(titin_error(), "say why"));
    CHECK(titin_recover(instance) == 0);
    CHECK(titin_port_count(instance) == 2);
    CHECK(!titin_port_find(instance, "muscle_settings_in") && titin_recover(instance) == 0);
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        titin_message *message;
        titin_value *overlay;
        double k;
        if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message)) break;
        titin_message_free(message);
        if (titin_setting_f64(instance, "k", &k) || titin_overlay(instance, &overlay)) break;
        const double answer[2] = {k, (double)titin_value_size(overlay)};
        const int64_t two = 2;
        titin_value_free(overlay);
        titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &two, answer, 0.0, TITIN_NO_NEXT);
    }
    if (titin_error_kind() == TITIN_ERROR_SETTING) titin_explain(stderr);
    return titin_close(instance);
}
