/* Both sides of an exchange of messages that are mostly like the last: a message now and then differs in type, shape, storage
 * order, announced time, memory or the call that sends it, or has no data. Each way to receive takes its turns. Some messages
 * are held while later ones come.
 *
 * Argument: the side, "left" or "right". */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { STEPS = 5000, HELD = 5, MOST = 4096 };

/* What the message of a step is. Both sides draw the same numbers, and each side has a stream of its own. */
struct draw {
    uint64_t state;
    int dtype, rank, order, size, announces, by_array, is_nil, held;
    int64_t extents[2];
};

static uint64_t next_random(struct draw *draw) {
    draw->state = draw->state * 6364136223846793005u + 1442695040888963407u;
    return draw->state >> 33;
}

static void draw_step(struct draw *draw) {
    static const int types[][2] = {{TITIN_F64, 8}, {TITIN_F32, 4}, {TITIN_I64, 8}, {TITIN_U8, 1}, {TITIN_BOOL, 1}};
    /* Most steps change nothing. */
    switch (next_random(draw) % 40) {
    case 0: {
        const int *type = types[next_random(draw) % 5];
        draw->dtype = type[0], draw->size = type[1];
        break;
    }
    case 1: draw->rank = (int)(next_random(draw) % 3); break;
    case 2: draw->extents[0] = (int64_t)(next_random(draw) % 20); break;
    case 3: draw->extents[1] = (int64_t)(next_random(draw) % 20); break;
    case 4: {
        const int64_t first = draw->extents[0];
        draw->extents[0] = draw->extents[1], draw->extents[1] = first;
        break;
    }
    case 5: draw->order = !draw->order; break;
    case 6: draw->announces = !draw->announces; break;
    case 7: draw->by_array = !draw->by_array; break;
    case 8: draw->is_nil = !draw->is_nil; break;
    }
    draw->held = next_random(draw) % 7 == 0;
}

static size_t bytes_of(const struct draw *draw) {
    size_t bytes = draw->is_nil ? 0 : (size_t)draw->size;
    for (int at = 0; at < draw->rank; at++) bytes *= (size_t)draw->extents[at];
    return bytes;
}

/* The payload of a step. A boolean is 0 or 1. */
static void fill(unsigned char *data, const struct draw *draw, int side, int step) {
    for (size_t at = 0; at < bytes_of(draw); at++) {
        data[at] = (unsigned char)(at * 7 + (size_t)step * 13 + (size_t)side * 101);
        if (draw->dtype == TITIN_BOOL) data[at] &= 1;
    }
}

static void check_data(const titin_message *message, const struct draw *draw, int side, int step) {
    static unsigned char wanted[MOST];
    fill(wanted, draw, side, step);
    const size_t bytes = bytes_of(draw);
    CHECK(titin_message_timestamp(message) == step);
    if (!draw->is_nil) {
        CHECK(titin_message_dtype(message) == draw->dtype && titin_message_rank(message) == draw->rank);
        for (int at = 0; at < draw->rank; at++) CHECK(titin_message_extent(message, at) == draw->extents[at]);
        CHECK(titin_message_nbytes(message) == (int64_t)bytes);
        CHECK(!bytes || !memcmp(titin_message_raw_data(message), wanted, bytes));
    }
    CHECK(!titin_message_has_next(message) == !draw->announces);
    CHECK(!draw->announces || titin_message_next_timestamp(message) == step + 1);
    if (draw->by_array && draw->rank > 1 && !draw->is_nil) CHECK(titin_message_order(message) == draw->order);
}

static int send_step(titin_port *out, const struct draw *draw, const void *data, double time) {
    const double next = draw->announces ? time + 1 : TITIN_NO_NEXT;
    if (draw->is_nil) return titin_send_nil(out, TITIN_NO_SLOT, time, next, NULL);
    if (draw->by_array)
        return titin_send_array(out, TITIN_NO_SLOT, draw->dtype, draw->rank, draw->extents, NULL, draw->order, NULL, data, time,
                                next, NULL);
    return titin_send(out, TITIN_NO_SLOT, draw->dtype, draw->rank, draw->extents, data, time, next);
}

/* Receives into memory, in the order of the message. Before that, memory of another shape takes no message and stays as it
 * is. */
static titin_message *receive_into(titin_port *in, const struct draw *draw, int side, int step) {
    static unsigned char memory[2 * MOST], wanted[2 * MOST];
    const int64_t more[] = {draw->rank ? draw->extents[0] + 1 : 1, draw->extents[1]};
    const int order = draw->by_array ? draw->order : TITIN_ORDER_C;
    titin_message *message;
    memset(memory, 0xcc, sizeof memory), memset(wanted, 0xcc, sizeof wanted);
    if (step % 5 == 0) {
        CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, draw->dtype, draw->rank ? draw->rank : 1, more, NULL, order,
                                 memory, &message) == TITIN_ERROR_TYPE_MISMATCH);
        CHECK(!message && !memcmp(memory, wanted, sizeof memory));
    }
    fill(wanted, draw, side, step);
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, draw->dtype, draw->rank, draw->extents, NULL, order, memory,
                             &message) == 0);
    CHECK(!memcmp(memory, wanted, sizeof memory));
    return message;
}

static titin_message *receive_step(titin_port *in, const struct draw *draw, int side, int step) {
    titin_message *message;
    int index, slot;
    switch (step / 3 % 4) {
    case 0: CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0); break;
    case 1:
        do CHECK(titin_try_receive(in, TITIN_NO_SLOT, &message) == 0);
        while (!message);
        break;
    case 2:
        CHECK(titin_receive_any(&in, 1, TITIN_WAIT, &index, &slot, &message) == 0 && index == 0 && slot == TITIN_NO_SLOT);
        break;
    default:
        if (!draw->is_nil) return receive_into(in, draw, side, step);
        CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    }
    return message;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const int side = !strcmp(argv[1], "right");
    /* With this option no error sticks, so the program may go on after a refused call. */
    titin_options *options = titin_options_new();
    titin_instance *instance;
    int again;
    CHECK(titin_options_exceptions(options) == 0 && titin_open("o_i: out; s: in", options, &instance) == 0);
    titin_options_free(options);
    titin_port *in = titin_port_find(instance, "in"), *out = titin_port_find(instance, "out");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    struct draw draws[2];
    for (int at = 0; at < 2; at++)
        draws[at] = (struct draw){.state = 17 + (uint64_t)at, .dtype = TITIN_F64, .size = 8, .rank = 1, .extents = {10, 12}};
    struct {
        titin_message *message;
        struct draw draw;
        int step;
    } held[HELD] = {0};
    static unsigned char memory[2][MOST];
    for (int step = 0; step < STEPS; step++) {
        struct draw *own = &draws[side], *other = &draws[!side];
        draw_step(&draws[0]);
        draw_step(&draws[1]);
        unsigned char *data = memory[step % 3 == 0];
        fill(data, own, side, step);
        if (step % 97 == 50) {
            CHECK(send_step(out, own, data, step - 10) == TITIN_ERROR_CALL_ORDER && strstr(titin_error(), "runs backwards"));
            CHECK(titin_send(out, TITIN_NO_SLOT, own->dtype, own->rank, own->extents, data, NAN, TITIN_NO_NEXT) ==
                      TITIN_ERROR_CALL_ORDER &&
                  strstr(titin_error(), "not a number"));
            CHECK(titin_send(out, 3, own->dtype, own->rank, own->extents, data, step, TITIN_NO_NEXT) == TITIN_ERROR_USAGE);
            const int64_t negative[] = {-1, 2};
            CHECK(titin_send(out, TITIN_NO_SLOT, own->dtype, 1, negative, data, step, TITIN_NO_NEXT) == TITIN_ERROR_USAGE);
        }
        CHECK(send_step(out, own, data, step) == 0);
        /* The memory is the program's again. */
        memset(data, 0xee, MOST);
        titin_message *message = receive_step(in, other, !side, step);
        check_data(message, other, !side, step);
        CHECK(!strcmp(titin_message_port(message), "in"));
        if (other->held) {
            const int at = step % HELD;
            if (held[at].message) {
                check_data(held[at].message, &held[at].draw, !side, held[at].step);
                titin_message_free(held[at].message);
            }
            held[at].message = message, held[at].draw = *other, held[at].step = step;
        } else {
            CHECK(titin_message_retain(message) == message);
            titin_message_free(message);
            check_data(message, other, !side, step);
            titin_message_free(message);
        }
    }
    for (int at = 0; at < HELD; at++) {
        if (!held[at].message) continue;
        check_data(held[at].message, &held[at].draw, !side, held[at].step);
        titin_message_free(held[at].message);
    }
    return titin_close(instance);
}
