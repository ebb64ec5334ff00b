/* Sends 1 and 2, or receives 10 and 20, which a filter makes of these numbers. */
#include <string.h>

#include "check.h"

int main(int argc, char **argv) {
    const int sends = argc > 1 && !strcmp(argv[1], "sender");
    const double numbers[2] = {1.0, 2.0};
    const int64_t two = 2;
    titin_instance *instance;
    int again;
    CHECK(titin_open(sends ? "o_f: out" : "f_init: in", NULL, &instance) == 0);
    titin_port *port = titin_port_find(instance, sends ? "out" : "in");
    while (titin_reuse(instance, &again) == 0 && again) {
        double found[2];
        if (sends) titin_send(port, TITIN_NO_SLOT, TITIN_F64, 1, &two, numbers, 0.0, TITIN_NO_NEXT);
        else CHECK(titin_receive_into(port, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, &two, NULL, TITIN_ORDER_C, found, NULL) == 0
                   && found[0] == 10.0 && found[1] == 20.0);
    }
    return titin_close(instance) == 0 ? 0 : titin_explain(stderr);
}
