/* Many instances on a few threads: a ring of cells. Each cell sends to two ports of the next cell at once, and receives
 * from the cell before. light.cpp and light.f90 follow the same script. */
#include <string.h>

#include "check.h"

enum { COUNT = 40, LAPS = 6 };
enum stage { REUSE, SEND, RECEIVE, PROBE };

struct cell {
    int number, lap, gave_up;
    enum stage next;
    titin_port *out, *in, *spare;
    double value;
};

/* How the run ends: "fail", or NULL for a good end. */
static const char *how;

static int step(titin_instance *instance, void *data) {
    struct cell *cell = data;
    titin_message *message;
    const int64_t one = 1;
    int again, failed;
    if (cell->next == REUSE && !cell->out) {
        cell->out = titin_port_find(instance, "out");
        cell->in = titin_port_find(instance, "in");
        cell->spare = titin_port_find(instance, "spare");
    }
    for (;;) switch (cell->next) {
    case REUSE:
        if ((failed = titin_reuse(instance, &again))) return failed;
        if (!again) {
            CHECK(cell->lap == LAPS);
            return 0;
        }
        cell->next = SEND;
        break;
    case SEND:
        /* Two conduits leave this port, and each holds one message, so the send is pending now and then. */
        cell->value = cell->number + cell->lap;
        failed = titin_send(cell->out, TITIN_NO_SLOT, TITIN_F64, 1, &one, &cell->value, cell->lap, TITIN_NO_NEXT);
        if (failed) return failed;
        if (how && cell->number == 3 && cell->lap == 1) {
            titin_set_error("the ice is too thin");
            return 1;
        }
        cell->next = RECEIVE;
        break;
    case RECEIVE:
        failed = titin_receive(cell->in, TITIN_NO_SLOT, cell->gave_up ? TITIN_WAIT : 3600.0, &message);
        if (failed == TITIN_PENDING && !cell->gave_up) {
            /* The call is given up. Another call takes its place. */
            CHECK(titin_cancel(instance, cell->in, TITIN_NO_SLOT) == 0);
            CHECK(titin_cancel(instance, NULL, TITIN_NO_SLOT) == 0);
            cell->gave_up = 1;
            break;
        }
        if (failed) return failed;
        CHECK(*(const double *)titin_message_array(message, TITIN_F64, 1, (int64_t[]){1}, TITIN_ORDER_C) ==
              (cell->number ? cell->number : COUNT) - 1 + titin_message_timestamp(message));
        titin_message_free(message);
        cell->next = PROBE;
        break;
    case PROBE:
        failed = titin_receive(cell->spare, TITIN_NO_SLOT, TITIN_WAIT, &message);
        if (failed) return failed;
        titin_message_free(message);
        cell->next = ++cell->lap < LAPS ? SEND : REUSE;
        /* Lets other instances have their turn. */
        if (cell->next == SEND && cell->lap == 3) return TITIN_PENDING;
        break;
    }
}

int main(int argc, char **argv) {
    static struct cell cells[COUNT];
    static char texts[COUNT][16];
    const char *names[COUNT], *ports[COUNT];
    titin_entry steps[COUNT];
    void *data[COUNT];
    how = argc > 1 ? argv[1] : NULL;
    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "cell_%d", i);
        cells[i].number = i;
        names[i] = texts[i];
        ports[i] = "o_i: out; s: in spare";
        steps[i] = step;
        data[i] = &cells[i];
    }
    if (titin_host_steps(COUNT, names, ports, steps, data, 3, NULL)) return titin_explain(stderr);
    puts("all are done");
    return 0;
}
