/* A side of the counted ping-pong over titin. Arguments: as `counted.h` has them. */
#include "counted.h"
#include "over_titin.h"

static titin_port *in, *out;
static double moment;

static void send_array(const void *data, size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, data, moment++, TITIN_NO_NEXT));
}

static void receive_view(void *memory, size_t bytes) {
    titin_message *message;
    (void)memory, (void)bytes;
    must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
    titin_message_free(message);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const struct counted_medium medium = {send_array, receive_view, NULL};
    titin_instance *instance;
    int again;
    must(titin_open("o_i: out; s: in", NULL, &instance));
    in = titin_port_find(instance, "in");
    out = titin_port_find(instance, "out");
    must(titin_reuse(instance, &again));
    play_counted(&medium, atoi(argv[1]), argv + 2);
    must(titin_close(instance));
    return 0;
}
