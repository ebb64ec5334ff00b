/* Many senders, one receiver: empty messages in a row, taken by receive_any. Over titin.
 *
 * Arguments: number of senders, number of this program (0 for the receiver, c0), messages of each sender, file for the
 * time. */
#include "bench.h"
#include "over_titin.h"

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "%s: four arguments are needed\n", argv[0]), 2;
    const int senders = atoi(argv[1]), number = atoi(argv[2]);
    const long count = atol(argv[3]);
    titin_instance *instance;
    titin_message *message;
    int again, index, slot;
    must(titin_open(NULL, NULL, &instance));
    titin_port **in = calloc((size_t)senders, sizeof *in), *out = titin_port_find(instance, "out");
    for (int i = 0; i < (number == 0 ? senders : 1); i++) {
        char name[16];
        snprintf(name, sizeof name, number == 0 ? "in%d" : "in", i);
        if (!(in[i] = titin_port_find(instance, name))) exit(titin_explain(stderr));
    }
    must(titin_reuse(instance, &again));
    double moment = 0;
    for (int round = 0; round < 2; round++) {
        /* The first round has a tenth of the messages, and is not timed. */
        const long messages = round == 0 ? count / 10 : count;
        const double begin = now();
        if (number == 0) {
            must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, (int64_t[]){0}, NULL, moment++, TITIN_NO_NEXT));
            for (long i = 0; i < messages * senders; i++, moment++) {
                must(titin_receive_any(in, senders, TITIN_WAIT, &index, &slot, &message));
                titin_message_free(message);
            }
            if (round == 1) add_time(argv[4], senders, (now() - begin) / (double)(messages * senders));
        } else {
            must(titin_receive(in[0], TITIN_NO_SLOT, TITIN_WAIT, &message));
            titin_message_free(message);
            for (long i = 0; i < messages; i++)
                must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, (int64_t[]){0}, NULL, moment++, TITIN_NO_NEXT));
        }
    }
    free(in);
    must(titin_close(instance));
    return 0;
}
