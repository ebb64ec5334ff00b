/* Both sides send at once, and then receive, like MPW_SendRecv of MPWide: macro.out to micro.in, and back. Over titin.
 *
 * Arguments: side (0 or 1), exchanges, file for the times, and sizes in bytes. */
#include "bench.h"
#include "over_titin.h"

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "%s: four arguments or more are needed\n", argv[0]), 2;
    const int side = atoi(argv[1]);
    const long count = atol(argv[2]);
    titin_instance *instance;
    titin_message *message;
    int again;
    must(titin_open("o_i: out; s: in", NULL, &instance));
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    must(titin_reuse(instance, &again));
    FILE *times = side == 0 ? create(argv[3]) : NULL;
    double moment = 0;
    for (int i = 4; i < argc; i++) {
        const size_t bytes = (size_t)atoll(argv[i]);
        const int64_t extent = (int64_t)bytes;
        unsigned char *data = memory(bytes);
        double begin = 0;
        /* The first exchange is not counted: it allocates the memory that the others use again. */
        for (long turn = -1; turn < count; turn++, moment++) {
            if (turn == 0) begin = now();
            data[0] = data[bytes - 1] = (unsigned char)turn;
            must(titin_send(out, TITIN_NO_SLOT, TITIN_U8, 1, &extent, data, moment, TITIN_NO_NEXT));
            must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
            check(titin_message_raw_data(message), bytes, (int)turn);
            titin_message_free(message);
        }
        if (side == 0) fprintf(times, "%zu %.9e\n", bytes, (now() - begin) / (double)count);
        free(data);
    }
    finish(times, argv[3]);
    must(titin_close(instance));
    return 0;
}
