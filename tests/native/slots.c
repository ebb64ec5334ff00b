/* A hub with slots and its spokes exchange messages that are mostly like the last on their slot. The hub receives slot by slot
 * in changing orders, or from any slot, or tries.
 *
 * Argument: "hub" or "spoke". */
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { SPOKES = 3, STEPS = 2000, BURST = 4 };

/* The message with this number, from a spoke to the hub or back: its extent and its element. Every 40th has no data, and every
 * 50th is longer. */
static int64_t extent_of(int number) { return number % 50 == 49 ? 300 : 3; }
static int has_data(int number) { return number % 40 != 39; }
static double element_of(int spoke, int number, int64_t at) { return 1e6 * spoke + number + 1e-3 * (double)at; }

static void send_one(titin_port *out, int slot, int spoke, int number) {
    double data[300];
    const int64_t extent = extent_of(number);
    for (int64_t at = 0; at < extent; at++) data[at] = element_of(spoke, number, at);
    if (has_data(number)) CHECK(titin_send(out, slot, TITIN_F64, 1, &extent, data, number, TITIN_NO_NEXT) == 0);
    else CHECK(titin_send_nil(out, slot, number, TITIN_NO_NEXT, NULL) == 0);
}

static void check_one(titin_message *message, int spoke, int number) {
    CHECK(titin_message_timestamp(message) == number);
    if (has_data(number)) {
        const int64_t extent = extent_of(number);
        const double *data = titin_message_raw_data(message);
        CHECK(titin_message_dtype(message) == TITIN_F64 && titin_message_extent(message, 0) == extent);
        for (int64_t at = 0; at < extent; at++) CHECK(data[at] == element_of(spoke, number, at));
    }
    titin_message_free(message);
}

static void be_hub(titin_port *in, titin_port *out) {
    int next[SPOKES] = {0};
    titin_message *message;
    for (int step = 0; step < STEPS; step++) {
        for (int turn = 0; turn < SPOKES; turn++) send_one(out, (turn + step) % SPOKES, (turn + step) % SPOKES, step);
        CHECK(titin_send_nil(out, SPOKES, step, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE);
        for (int turn = 0; turn < SPOKES * BURST; turn++) {
            int index = 0, slot = (step % 2 ? turn : SPOKES * BURST - 1 - turn) % SPOKES;
            switch (step / 5 % 3) {
            case 0: CHECK(titin_receive_any(&in, 1, TITIN_WAIT, &index, &slot, &message) == 0); break;
            case 1: CHECK(titin_receive(in, slot, TITIN_WAIT, &message) == 0); break;
            default:
                do CHECK(titin_try_receive(in, slot, &message) == 0);
                while (!message);
            }
            CHECK(index == 0 && slot >= 0 && slot < SPOKES);
            check_one(message, slot, next[slot]++);
        }
        for (int slot = 0; slot < SPOKES; slot++) CHECK(next[slot] == (step + 1) * BURST);
    }
}

static void be_spoke(titin_port *in, titin_port *out, int spoke) {
    titin_message *message;
    for (int step = 0; step < STEPS; step++) {
        CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
        check_one(message, spoke, step);
        for (int turn = 0; turn < BURST; turn++) send_one(out, TITIN_NO_SLOT, spoke, BURST * step + turn);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const int is_hub = !strcmp(argv[1], "hub");
    titin_options *options = titin_options_new();
    titin_instance *instance;
    int again;
    /* With this option no error sticks, so the program may go on after a refused call. */
    CHECK(titin_options_exceptions(options) == 0);
    CHECK(titin_open(is_hub ? "o_i: out[]; s: in[]" : "o_i: out; s: in", options, &instance) == 0);
    titin_options_free(options);
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    if (is_hub) {
        be_hub(in, out);
    } else {
        int spoke;
        CHECK(sscanf(titin_instance_name(instance), "spoke[%d]", &spoke) == 1);
        be_spoke(in, out, spoke);
    }
    return titin_close(instance);
}
