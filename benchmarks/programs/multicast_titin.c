/* One sender, several receivers: the time until the last receiver has answered. Over titin.
 *
 * Arguments: number of receivers, number of this program (0 for the sender, c0), share of the trips, largest size, file
 * for the times. */
#include "bench.h"
#include "over_titin.h"

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "%s: five arguments are needed\n", argv[0]), 2;
    const int receivers = atoi(argv[1]), rank = atoi(argv[2]), share = atoi(argv[3]);
    const size_t largest = (size_t)atoll(argv[4]);
    char *data = memory(largest), name[16];
    titin_instance *instance;
    titin_message *message;
    int again;
    must(titin_open(NULL, NULL, &instance));
    titin_port *out = titin_port_find(instance, "out"), *in[16];
    for (int i = 0; i < (rank == 0 ? receivers : 1) && i < 16; i++) {
        if (rank == 0) snprintf(name, sizeof name, "in%d", i);
        in[i] = titin_port_find(instance, rank == 0 ? name : "in");
    }
    must(titin_reuse(instance, &again));
    FILE *times = rank == 0 ? create(argv[5]) : NULL;
    double moment = 0;
    for (size_t bytes = 0; bytes <= largest; bytes = bytes ? bytes * 4 : KIB) {
        const int64_t extent = (int64_t)(bytes / sizeof(double));
        const long trips = multicasts(bytes, share), warm = trips / 10 + 1;
        double seconds = 0;
        for (long trip = -warm; trip < trips; trip++, moment++) {
            if (rank == 0) {
                memset(data, (int)trip, bytes);
                const double begin = now();
                must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, data, moment, TITIN_NO_NEXT));
                for (int i = 0; i < receivers; i++) {
                    must(titin_receive(in[i], TITIN_NO_SLOT, TITIN_WAIT, &message));
                    titin_message_free(message);
                }
                if (trip >= 0) seconds += now() - begin;
            } else {
                must(titin_receive(in[0], TITIN_NO_SLOT, TITIN_WAIT, &message));
                check(titin_message_raw_data(message), bytes, (int)trip);
                titin_message_free(message);
                must(titin_send_nil(out, TITIN_NO_SLOT, moment, TITIN_NO_NEXT, NULL));
            }
        }
        if (rank == 0) fprintf(times, "%zu %.9e\n", bytes, seconds / (double)trips);
    }
    finish(times, argv[5]);
    must(titin_close(instance));
    return 0;
}
