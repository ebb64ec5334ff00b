/* A light instance of benchmarks/many.py: sends an empty message on each sending port, and receives one on each other port.
 */
#include <stdlib.h>
#include <titin.h>

struct cell {
    int begun, sent, received;
};

int cell(titin_instance *instance, void *data) {
    struct cell **place = data, *me = *place;
    const int count = titin_port_count(instance);
    titin_message *message;
    int failed;
    if (!me) me = *place = calloc(1, sizeof *me);
    if (!me->begun) {
        if ((failed = titin_reuse(instance, &me->begun))) return failed;
    }
    for (; me->sent < count; me->sent++) {
        titin_port *port = titin_port_at(instance, me->sent);
        if (titin_port_operator(port) != TITIN_O_I) continue;
        if ((failed = titin_send_nil(port, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, NULL))) return failed;
    }
    for (; me->received < count; me->received++) {
        titin_port *port = titin_port_at(instance, me->received);
        if (titin_port_operator(port) != TITIN_S) continue;
        if ((failed = titin_receive(port, TITIN_NO_SLOT, TITIN_WAIT, &message))) return failed;
        titin_message_free(message);
    }
    free(me);
    *place = NULL;
    return 0;
}
