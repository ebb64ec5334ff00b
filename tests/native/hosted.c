/* Two instances on threads of one process, with vector ports, own filters, and other features of a host. hosted.cpp and
 * hosted.f90 follow the same script. */
#include <math.h>
#include <string.h>

#include "check.h"

enum { SLOTS = 3 };

/* How the receiver fails: "return" or "say" an error; "misspelt", a name that the description does not have; "whole", whole
 * numbers come in place of real numbers. NULL: the receiver does not fail. */
static const char *how;

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
    /* The error of an unknown slot sticks until titin_recover() is called. */
    CHECK(titin_port_is_vector(wide) && titin_port_is_resizable(wide));
    CHECK(titin_port_set_slots(wide, SLOTS) == 0 && titin_port_slots(wide) == SLOTS);
    CHECK(titin_send_nil(wide, SLOTS, 0.0, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_send_nil(wide, 0, 0.0, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_recover(instance) == 0);
    for (int slot = 0; slot < SLOTS; slot++) {
        CHECK(titin_send_nil(wide, slot, slot, TITIN_NO_NEXT, NULL) == 0);
    }
    titin_region *region = titin_region_begin(instance, "send");
    const int whole = how && !strcmp(how, "whole");
    CHECK(titin_send(out, TITIN_NO_SLOT, whole ? TITIN_I64 : TITIN_F64, 1, extents, values, 1.0, TITIN_NO_NEXT) == 0);
    CHECK(titin_region_end(region) == 0);
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
    if (how && !strcmp(how, "say")) return titin_fail(instance, "the ice is too thin");
    if (how && strcmp(how, "whole")) {
        titin_set_error("the ice is too thin");
        return 1;
    }
    for (int expected = SLOTS - 1; expected >= 0; expected--) {
        CHECK(titin_receive(wide, expected, TITIN_WAIT, &message) == 0);
        /* A filter has added 10 to the time, and has replaced nil by a text. */
        CHECK(titin_message_timestamp(message) == 10.0 + expected && titin_message_has_next(message) == 0);
        CHECK(!strcmp(titin_value_text(titin_message_value(message), NULL), "late"));
        titin_message_free(message);
    }
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, extents, NULL, TITIN_ORDER_C, values,
                             &message) == 0);
    /* The filter has doubled the numbers on the way. */
    CHECK(values[0] == 3.0 && values[1] == 5.0);
    titin_message_free(message);
    /* No further message comes, so the wait ends by its timeout, or because the sender has closed. */
    CHECK(titin_receive(in, TITIN_NO_SLOT, 0.01, &message) != 0);
    CHECK(titin_error_kind() == TITIN_ERROR_TIMEOUT || titin_error_kind() == TITIN_ERROR_PORT_CLOSED);
    titin_port *ports[2] = {in, wide};
    CHECK(titin_receive_any(ports, 2, TITIN_WAIT, &index, &slot, &message) == TITIN_ERROR_PORT_CLOSED);
    return 0;
}

/* The description names these filters, and this program looks up their names. There is one filter, which only counts. */
static int found, used, dropped;

static int count(const titin_message *in, titin_output *out) {
    (void)out;
    ++used;
    return titin_message_kind(in) == TITIN_KIND_ARRAY ? 0 : 1;
}

static int find_filter(void *data, const char *name, void **filter) {
    *filter = data;
    ++found;
    if (!strcmp(name, "ours:count")) return 0;
    titin_set_error("there is no such filter here");
    return 1;
}

static int call_filter(void *filter, const titin_message *in, titin_output *out) {
    return (*(titin_filter *)filter)(in, out);
}

static void drop_filter(void *filter) {
    CHECK(*(titin_filter *)filter == count);
    ++dropped;
}

int main(int argc, char **argv) {
    static char role[] = "receiver";
    const char *names[2] = {"sender", "receiver"};
    const char *ports[2] = {"o_i: out wide[]", "s: in wide[]"};
    const titin_entry entries[2] = {sender, receiver};
    void *data[2] = {NULL, role};
    titin_filter counter = count;
    how = argc > 1 ? argv[1] : NULL;
    if (how && !strcmp(how, "misspelt")) names[1] = "reciever";
    titin_options *options = titin_options_new();
    CHECK(titin_options_filters(options, find_filter, call_filter, drop_filter, &counter) == 0);
    if (titin_host(2, names, ports, entries, data, options) != 0) return titin_explain(stderr);
    titin_options_free(options);
    CHECK(found == 1 && used == 1 && dropped == 1);
    puts("both are done");
    return 0;
}
