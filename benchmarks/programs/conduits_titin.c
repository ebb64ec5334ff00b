/* The cost of a message while many conduits are open, over titin. One conduit after the other carries an empty message.
 * The other side takes the message by receive_any, and answers.
 *
 * Arguments: side (0 or 1), number of conduits, trips, file for the time. */
#include "bench.h"
#include "over_titin.h"

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const int side = atoi(argv[1]), count = atoi(argv[2]);
    const long trips = atol(argv[3]), warm = 2L * count;
    pin(side);
    titin_instance *instance;
    titin_message *message;
    int again, index, slot;
    must(titin_open(NULL, NULL, &instance));
    titin_port **ports = calloc((size_t)count, sizeof *ports);
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, side == 0 ? "out%d" : "in%d", i);
        if (!(ports[i] = titin_port_find(instance, name))) exit(titin_explain(stderr));
    }
    titin_port *back = titin_port_find(instance, "back");
    must(titin_reuse(instance, &again));
    double begin = 0, moment = 0;
    for (long trip = -warm; trip < trips; trip++, moment++) {
        if (trip == 0) begin = now();
        if (side == 0) {
            must(titin_send_nil(ports[(trip + warm) % count], TITIN_NO_SLOT, moment, TITIN_NO_NEXT, NULL));
            must(titin_receive(back, TITIN_NO_SLOT, TITIN_WAIT, &message));
            titin_message_free(message);
        } else {
            must(titin_receive_any(ports, count, TITIN_WAIT, &index, &slot, &message));
            if (index != (trip + warm) % count) return fprintf(stderr, "conduit %d came out of turn\n", index), 1;
            titin_message_free(message);
            must(titin_send_nil(back, TITIN_NO_SLOT, moment, TITIN_NO_NEXT, NULL));
        }
    }
    if (side == 0) add_time(argv[4], count, (now() - begin) / (double)trips / 2);
    must(titin_close(instance));
    return 0;
}
