/* The two sides of a ping-pong or a stream over titin: macro.out to micro.in, and back.
 *
 * Arguments: side (0 or 1), way ("view": send and a view of what comes; "into": send and receive_into; "loan": lent
 * memory and a view), and the task. */
#include "bench.h"
#include "titin.h"

static titin_instance *instance;
static titin_port *in, *out;
static titin_message *message;
static void *outgoing, *incoming;
static double moment;

static void must(int status) {
    if (status != 0) exit(titin_explain(stderr));
}

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, data, moment++, TITIN_NO_NEXT));
}

static const void *view(size_t bytes) {
    (void)bytes;
    must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
    return titin_message_data(message);
}

static void let_go(void) { titin_message_free(message); }

static const void *into(size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    must(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, &extent, NULL, TITIN_ORDER_C, incoming, NULL));
    return incoming;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    if (argc != 8) return fprintf(stderr, "%s: seven arguments are needed\n", argv[0]), 2;
    const int side = atoi(argv[1]);
    struct medium medium = {reused, send_it, view, let_go, 0};
    const struct task task = task_of(argv + 3);
    pin(side);
    outgoing = memory(task.largest);
    if (strcmp(argv[2], "into") == 0) {
        incoming = memory(task.largest);
        medium.receive = into;
        medium.release = nothing;
    }
    must(titin_open("o_i: out; s: in", NULL, &instance));
    in = titin_port_find(instance, "in");
    out = titin_port_find(instance, "out");
    int again;
    must(titin_reuse(instance, &again));
    play(&medium, &task, side);
    must(titin_close(instance));
    return 0;
}
