/* A program that reads and builds marked data: real numbers of single precision, and settings. marked.cpp and marked.f90
 * follow the same script. */
#include <string.h>

#include "check.h"

static void read(const titin_value *data) {
    const titin_value *one = titin_value_find(data, "single"), *two = titin_value_find(data, "double");
    const titin_value *settings = titin_value_find(data, "settings"), *map = titin_value_find(data, "map");
    double number;
    CHECK(titin_value_is_f32(one) && !titin_value_is_f32(two) && !titin_value_is_f32(map) && !titin_value_is_f32(NULL));
    CHECK(titin_value_kind(one) == TITIN_KIND_FLOAT && titin_value_f64(one, &number) == 0 && number == (double)0.1f);
    CHECK(titin_value_is_settings(settings) && !titin_value_is_settings(map) && !titin_value_is_settings(NULL));
    CHECK(titin_value_kind(settings) == TITIN_KIND_MAP && titin_value_size(settings) == 2);
    CHECK(!strcmp(titin_value_name(settings, 1), "a.b") && titin_value_item(settings, 1));
    CHECK(titin_value_f64(titin_value_find(settings, "k"), &number) == 0 && number == 2.5);
    CHECK(strstr(titin_value_summary(settings), "a map of 2 settings"));
}

int main(void) {
    titin_instance *instance;
    CHECK(titin_open("f_init: in; o_f: passed own", NULL, &instance) == 0);
    titin_port *in = titin_port_find(instance, "in");
    titin_port *passed = titin_port_find(instance, "passed"), *own = titin_port_find(instance, "own");
    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        titin_message *message;
        if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message)) break;
        read(titin_message_value(message));
        titin_send_value(passed, TITIN_NO_SLOT, titin_message_value(message), 0.0, TITIN_NO_NEXT, NULL);
        titin_message_free(message);
        titin_value *data = titin_new_map(), *settings = titin_new_settings();
        CHECK(titin_map_set(settings, "k", titin_new_f64(7.5)) == 0);
        CHECK(titin_map_set(data, "single", titin_new_f32(0.1f)) == 0 && titin_map_set(data, "settings", settings) == 0);
        titin_send_value(own, TITIN_NO_SLOT, data, 0.0, TITIN_NO_NEXT, NULL);
        titin_value_free(data);
    }
    return titin_close(instance);
}
