/* A slow receiver of any of two ports. One sender sends without a pause, the other sends one message.
 *
 * Argument: "many", "one" or "receiver". */
#include <string.h>
#include <time.h>

#include "check.h"

enum { MANY = 400, SOON = 150 };

static void be_receiver(titin_instance *instance) {
    titin_port *ports[] = {titin_port_find(instance, "many"), titin_port_find(instance, "one")};
    int came = -1;
    for (int count = 0; count < MANY + 1; count++) {
        titin_message *message;
        int index, slot;
        CHECK(titin_receive_any(ports, 2, TITIN_WAIT, &index, &slot, &message) == 0);
        titin_message_free(message);
        if (index == 1) came = count;
        /* Longer than a sender spins: a sender that sleeps has its messages brought to the inbox. */
        if (came < 0) nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
    }
    if (came > SOON) {
        fprintf(stderr, "the one message came behind %d others\n", came);
        exit(1);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const int is_receiver = !strcmp(argv[1], "receiver"), sent = strcmp(argv[1], "many") ? 1 : MANY;
    titin_instance *instance;
    int again;
    CHECK(titin_open(is_receiver ? "s: many one" : "o_i: out", NULL, &instance) == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again);
    if (is_receiver) {
        be_receiver(instance);
    } else {
        titin_port *out = titin_port_find(instance, "out");
        /* The one message comes when messages of the other sender wait. */
        if (sent == 1) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        for (int number = 0; number < sent; number++) CHECK(titin_send_nil(out, TITIN_NO_SLOT, number, TITIN_NO_NEXT, NULL) == 0);
        /* The end of the sender would bring its message to the inbox. */
        if (sent == 1) nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    }
    return titin_close(instance);
}
