/* A cell of a ring over titin. Arguments: number of the cell, turns, seconds to be idle, stem of the files. */
#include "over_titin.h"
#include "ring.h"

static titin_port *in, *out;
static double moment;

static void send_it(void) { must(titin_send_nil(out, TITIN_NO_SLOT, moment++, TITIN_NO_NEXT, NULL)); }

static void receive(void) {
    titin_message *message;
    must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
    titin_message_free(message);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const struct ring ring = {atoi(argv[1]), atol(argv[2]), atof(argv[3]), argv[4]};
    titin_instance *instance;
    int again;
    must(titin_open("o_i: out; s: in", NULL, &instance));
    in = titin_port_find(instance, "in");
    out = titin_port_find(instance, "out");
    must(titin_reuse(instance, &again));
    go_round(&ring, send_it, receive);
    must(titin_close(instance));
    return 0;
}
