/* Receives messages with each receiving call in turn, and prints each error. All messages but the last are malformed. */
#include <string.h>

#include "check.h"

int main(int argc, char **argv) {
    titin_instance *instance;
    CHECK(argc == 2 && titin_open("s: in", NULL, &instance) == 0);
    titin_port *in = titin_port_find(instance, "in");
    int again, index, slot;
    CHECK(titin_reuse(instance, &again) == 0 && again);
    const int count = atoi(argv[1]);
    for (int i = 0; i < count; ++i) {
        titin_message *message = NULL;
        double number;
        int status = TITIN_OK;
        switch (i % 4) {
        case 0: status = titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message); break;
        case 1: status = titin_receive_any(&in, 1, TITIN_WAIT, &index, &slot, &message); break;
        case 2:
            status = titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, &number,
                                        &message);
            break;
        default:
            while (status == TITIN_OK && message == NULL) status = titin_try_receive(in, TITIN_NO_SLOT, &message);
        }
        CHECK(message == NULL && status == TITIN_ERROR_TYPE_MISMATCH);
        puts(titin_error());
        CHECK(titin_recover(instance) == 0);
    }
    titin_message *message;
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    CHECK(!strcmp(titin_value_text(titin_message_value(message), NULL), "well"));
    titin_message_free(message);
    CHECK(titin_reuse(instance, &again) == 0 && !again);
    CHECK(titin_close(instance) == 0);
    return 0;
}
