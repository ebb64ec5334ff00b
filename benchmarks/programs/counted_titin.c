/* A side of the counted ping-pong over titin. Arguments: side (0 or 1), bytes, trips, and the file that both sides map. */
#include "counted.h"
#include "over_titin.h"

static titin_port *in, *out;
static double *outgoing, moment;
static int64_t extent;

static void send_array(void) {
    must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, outgoing, moment++, TITIN_NO_NEXT));
}

static void receive_view(void) {
    titin_message *message;
    must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
    titin_message_free(message);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const struct counted_medium medium = {send_array, receive_view, NULL};
    const size_t bytes = (size_t)atoll(argv[2]);
    outgoing = memory(bytes);
    extent = (int64_t)(bytes / sizeof *outgoing);
    titin_instance *instance;
    int again;
    must(titin_open("o_i: out; s: in", NULL, &instance));
    in = titin_port_find(instance, "in");
    out = titin_port_find(instance, "out");
    must(titin_reuse(instance, &again));
    play_counted(&medium, (struct counted_rank){atoi(argv[1]), 0, 1}, atol(argv[3]), argv[4]);
    must(titin_close(instance));
    return 0;
}
