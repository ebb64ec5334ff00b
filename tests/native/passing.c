/* A program that passes on the settings of a member, with explicit overlays. passing.cpp and passing.f90 follow the same
 * script. */
#include <string.h>

#include "check.h"

int main(void) {
    titin_options *options = titin_options_new();
    CHECK(titin_options_overlays(options, 2) == TITIN_ERROR_USAGE && strstr(titin_error(), "TITIN_OVERLAYS_EXPLICIT"));
    CHECK(titin_options_overlays(options, TITIN_OVERLAYS_INHERITED) == 0);
    CHECK(titin_options_overlays(options, TITIN_OVERLAYS_EXPLICIT) == 0);
    titin_instance *instance;
    CHECK(titin_open("f_init: one two; o_f: passed plain", options, &instance) == 0);
    titin_options_free(options);
    titin_port *one = titin_port_find(instance, "one"), *two = titin_port_find(instance, "two");
    titin_port *passed = titin_port_find(instance, "passed"), *plain = titin_port_find(instance, "plain");
    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        titin_message *first, *second;
        titin_value *overlay;
        double k;
        if (titin_receive(one, TITIN_NO_SLOT, TITIN_WAIT, &first)) break;
        if (titin_receive(two, TITIN_NO_SLOT, TITIN_WAIT, &second)) break;
        if (titin_setting_f64(instance, "k", &k) || titin_overlay(instance, &overlay)) break;
        const double answer[2] = {k, (double)titin_value_size(overlay)};
        const int64_t extent = 2;
        titin_value_free(overlay);
        titin_send_nil(passed, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, titin_message_settings(second));
        titin_send(plain, TITIN_NO_SLOT, TITIN_F64, 1, &extent, answer, 0.0, TITIN_NO_NEXT);
        titin_message_free(first);
        titin_message_free(second);
    }
    return titin_close(instance);
}
