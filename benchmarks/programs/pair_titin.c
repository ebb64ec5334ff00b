/* The two sides of a ping-pong or a stream over titin: macro.out to micro.in, and back.
 *
 * Arguments: side (0, 1, or "both" in one process), way ("view": send and a view of what comes; "into": send and
 * receive_into; "loan": lent memory and a view), and the task. */
#include "bench.h"
#include "over_titin.h"

/* The state of this side. In one process each side has a thread. */
static _Thread_local titin_port *in, *out;
static _Thread_local titin_message *message;
static _Thread_local void *outgoing, *incoming;
static _Thread_local titin_loan *loan;
static _Thread_local double moment;

static char **arguments;

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    must(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, data, moment++, TITIN_NO_NEXT));
}

/* For an empty message no memory is lent. */
static void *lend(size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    if (bytes == 0) return outgoing;
    must(titin_loan_new(out, TITIN_NO_SLOT, TITIN_F64, 1, &extent, TITIN_ORDER_C, NULL, &loan));
    return titin_loan_data(loan);
}

static void send_lent(void *data, size_t bytes) {
    if (bytes == 0) send_it(data, bytes);
    else must(titin_send_loan(out, TITIN_NO_SLOT, &loan, moment++, TITIN_NO_NEXT, NULL));
}

static const void *view(size_t bytes) {
    (void)bytes;
    must(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message));
    return titin_message_raw_data(message);
}

static void let_go(void) { titin_message_free(message); }

static const void *into(size_t bytes) {
    const int64_t extent = (int64_t)(bytes / sizeof(double));
    must(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, &extent, NULL, TITIN_ORDER_C, incoming, NULL));
    return incoming;
}

static void nothing(void) {}

static void play_side(titin_instance *instance, int side) {
    struct medium medium = {reused, send_it, view, let_go, 0};
    const struct task task = task_of(arguments + 3);
    outgoing = memory(task.largest);
    if (strcmp(arguments[2], "into") == 0) {
        incoming = memory(task.largest);
        medium.receive = into;
        medium.release = nothing;
    }
    if (strcmp(arguments[2], "loan") == 0) {
        medium.payload = lend;
        medium.send = send_lent;
        medium.lends = 1;
    }
    in = titin_port_find(instance, "in");
    out = titin_port_find(instance, "out");
    int again;
    must(titin_reuse(instance, &again));
    play(&medium, &task, side);
}

static int hosted(titin_instance *instance, void *data) {
    const int side = *(const int *)data;
    pin(side);
    play_side(instance, side);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 8) return fprintf(stderr, "%s: seven arguments are needed\n", argv[0]), 2;
    arguments = argv;
    if (strcmp(argv[1], "both") == 0) {
        static int sides[] = {0, 1};
        const char *const names[] = {"c0", "c1"}, *const ports[] = {"o_i: out; s: in", "o_i: out; s: in"};
        const titin_entry entries[] = {hosted, hosted};
        void *const data[] = {&sides[0], &sides[1]};
        must(titin_host(2, names, ports, entries, data, NULL));
        return 0;
    }
    const int side = atoi(argv[1]);
    titin_instance *instance;
    pin(side);
    must(titin_open("o_i: out; s: in", NULL, &instance));
    play_side(instance, side);
    must(titin_close(instance));
    return 0;
}
