/* The two sides of a pair in C, or a cell of a ring: sends and receives empty messages.
 *
 * Arguments: "macro" STEPS, or "micro". */
#include <string.h>

#include "over_titin.h"

int main(int argc, char **argv) {
    const int macro = argc > 2 && strcmp(argv[1], "macro") == 0;
    titin_instance *instance;
    must(titin_open(macro ? "o_i: out; s: in" : "f_init: in; o_f: out", NULL, &instance));
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    titin_message *message;
    int again;
    while (must(titin_reuse(instance, &again)), again) {
        for (long step = 0, steps = macro ? atol(argv[2]) : 1; step < steps; step++) {
            double now = (double)step;
            if (macro) must(titin_send_nil(out, TITIN_NO_SLOT, now, TITIN_NO_NEXT, NULL));
            must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
            now = titin_message_timestamp(message);
            titin_message_free(message);
            if (!macro) must(titin_send_nil(out, TITIN_NO_SLOT, now, TITIN_NO_NEXT, NULL));
        }
    }
    must(titin_close(instance));
    return 0;
}
