/* A sender of two arrays in each step, one of which compresses, and the receiver that compares them with the same arrays.
 *
 * Arguments: "sender" or "receiver", and the number of steps. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <titin.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #what, titin_error()); \
            exit(1); \
        } \
    } while (0)

enum { SIZE = 150000 };

static double smooth[SIZE];
static uint64_t noise[SIZE];

/* The arrays of a step. */
static void fill(int step) {
    uint64_t state = (uint64_t)step + 1;
    for (int i = 0; i < SIZE; i++) {
        smooth[i] = step + i / 1000;
        /* splitmix64 */
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        noise[i] = z ^ (z >> 31);
    }
}

static void send(titin_instance *instance, int steps) {
    const int64_t size = SIZE;
    titin_port *out = titin_port_find(instance, "smooth"), *loud = titin_port_find(instance, "noise");
    titin_port *back = titin_port_find(instance, "back");
    for (int step = 0; step < steps; step++) {
        fill(step);
        CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &size, smooth, step, TITIN_NO_NEXT) == 0);
        CHECK(titin_send(loud, TITIN_NO_SLOT, TITIN_U64, 1, &size, noise, step, TITIN_NO_NEXT) == 0);
        titin_message *answer;
        CHECK(titin_receive(back, TITIN_NO_SLOT, TITIN_WAIT, &answer) == 0);
        titin_message_free(answer);
    }
}

static void receive(titin_instance *instance, int steps) {
    static double got[SIZE];
    const int64_t size = SIZE;
    int64_t extent = SIZE;
    titin_port *in = titin_port_find(instance, "smooth"), *loud = titin_port_find(instance, "noise");
    titin_port *back = titin_port_find(instance, "back");
    for (int step = 0; step < steps; step++) {
        titin_message *message;
        fill(step);
        /* Both ways to receive an array. */
        if (step % 2) {
            CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, &size, NULL, TITIN_ORDER_C, got, NULL) == 0);
            CHECK(memcmp(got, smooth, sizeof smooth) == 0);
        } else {
            CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
            const double *view = titin_message_array(message, TITIN_F64, 1, &extent, TITIN_ORDER_C);
            CHECK(view && (uintptr_t)view % 64 == 0 && memcmp(view, smooth, sizeof smooth) == 0);
            titin_message_free(message);
        }
        CHECK(titin_receive(loud, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
        const uint64_t *view = titin_message_array(message, TITIN_U64, 1, &extent, TITIN_ORDER_C);
        CHECK(view && memcmp(view, noise, sizeof noise) == 0);
        titin_message_free(message);
        CHECK(titin_send(back, TITIN_NO_SLOT, TITIN_F64, 0, NULL, smooth, step, TITIN_NO_NEXT) == 0);
    }
}

int main(int argc, char **argv) {
    titin_instance *instance;
    int again;
    CHECK(argc == 3);
    const int sends = !strcmp(argv[1], "sender"), steps = atoi(argv[2]);
    const char *ports = sends ? "o_i: smooth, noise; s: back" : "s: smooth, noise; o_i: back";
    CHECK(titin_open(ports, NULL, &instance) == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again);
    if (sends)
        send(instance, steps);
    else
        receive(instance, steps);
    CHECK(titin_close(instance) == 0);
    puts("the same");
    return 0;
}
