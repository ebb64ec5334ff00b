/* Two instances on threads of one process, with vector ports, a filter of our own, and what else a host can do. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "titin.h"

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);         \
            titin_explain(stderr);                                          \
            titin_set_error(#condition);                                    \
            return 1;                                                       \
        }                                                                   \
    } while (0)

enum { SLOTS = 3 };

static int sender(titin_instance *instance, void *data) {
    titin_port *out = titin_port_find(instance, "out"), *wide = titin_port_find(instance, "wide");
    const double values[2] = {1.5, 2.5};
    const int64_t extents[1] = {2};
    double dt;
    int again;
    CHECK(data == NULL && strcmp(titin_instance_name(instance), "sender") == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again == 1);
    CHECK(titin_setting_quantity(instance, "dt", "ms", &dt) == 0 && fabs(dt - 500.0) < 1e-12);
    CHECK(titin_setting_type(instance, "nothing") == TITIN_TYPE_NONE);
    /* An unknown slot is an error that sticks until we say that we have dealt with it. */
    CHECK(titin_port_is_vector(wide) && titin_port_is_resizable(wide));
    CHECK(titin_port_set_slots(wide, SLOTS) == 0 && titin_port_slots(wide) == SLOTS);
    CHECK(titin_send_nil(wide, SLOTS, 0.0, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_send_nil(wide, 0, 0.0, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_recover(instance) == 0);
    for (int slot = 0; slot < SLOTS; slot++) {
        CHECK(titin_send_nil(wide, slot, (double)slot, TITIN_NO_NEXT, NULL) == 0);
    }
    titin_region *region = titin_region_begin(instance, "send");
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, extents, values, 1.0, TITIN_NO_NEXT) == 0);
    CHECK(titin_region_end(instance, region) == 0);
    CHECK(titin_log(instance, 20, "all is sent") == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again == 0);
    return 0;
}

static int receiver(titin_instance *instance, void *data) {
    titin_port *in = titin_port_find(instance, "in"), *wide = titin_port_find(instance, "wide");
    titin_message *message;
    double values[2];
    const int64_t extents[1] = {2};
    int again, index, slot;
    CHECK(*(const char *)data == 'r');
    CHECK(titin_reuse(instance, &again) == 0 && again == 1);
    for (int expected = SLOTS - 1; expected >= 0; expected--) {
        CHECK(titin_receive(wide, expected, TITIN_WAIT, &message) == 0);
        CHECK(titin_message_timestamp(message) == (double)expected && titin_message_has_next(message) == 0);
        titin_message_free(message);
    }
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, extents, NULL, TITIN_ORDER_C, values,
                             &message) == 0);
    /* The filter has doubled them on the way. */
    CHECK(values[0] == 3.0 && values[1] == 5.0);
    titin_message_free(message);
    /* The sender lives until we are done with it, so nothing ends this wait but ourselves. */
    CHECK(titin_receive(in, TITIN_NO_SLOT, 0.01, &message) != 0);
    CHECK(titin_error_kind() == TITIN_ERROR_TIMEOUT || titin_error_kind() == TITIN_ERROR_PORT_CLOSED);
    titin_port *ports[2] = {in, wide};
    CHECK(titin_receive_any(ports, 2, TITIN_WAIT, &index, &slot, &message) == TITIN_ERROR_PORT_CLOSED);
    return 0;
}

int main(void) {
    static char role[] = "receiver";
    const char *names[2] = {"sender", "receiver"};
    const char *ports[2] = {"o_i: out wide[]", "s: in wide[]"};
    const titin_entry entries[2] = {sender, receiver};
    void *data[2] = {NULL, role};
    if (titin_host(2, names, ports, entries, data, NULL) != 0) return titin_explain(stderr);
    puts("both are done");
    return 0;
}
