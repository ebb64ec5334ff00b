/* Drives the ensemble of test_members.py, of which the member at slot 1 fails: by slot, and from any slot. */
#include <string.h>

#include "check.h"

static titin_port *out, *back;
static int slots;

static void failed(int status) {
    CHECK(status == TITIN_ERROR_MEMBER_FAILED && titin_error_kind() == TITIN_ERROR_MEMBER_FAILED);
    CHECK(!strcmp(titin_error_name(status), "TITIN_ERROR_MEMBER_FAILED"));
    CHECK(!strcmp(titin_error_member(), "micro[1]") && titin_error_slot() == 1);
    CHECK(strstr(titin_error(), "member micro[1] has failed: it ended with exit code 3"));
}

static void by_slot(void) {
    const double value = 1.0;
    for (int slot = 0; slot < slots; slot++) CHECK(titin_send(out, slot, TITIN_F64, 0, NULL, &value, 0.0, TITIN_NO_NEXT) == 0);
    for (int slot = 0; slot < slots; slot++) {
        titin_message *message;
        const int status = titin_receive(back, slot, TITIN_WAIT, &message);
        if (slot == 1) failed(status);
        else CHECK(status == 0);
        titin_message_free(message);
    }
}

static void by_any(void) {
    const double value = 2.0;
    int answers = 0, index, slot;
    titin_message *message;
    for (int to = 0; to < slots; to++) {
        const int status = titin_send(out, to, TITIN_F64, 0, NULL, &value, 1.0, TITIN_NO_NEXT);
        if (to == 1) failed(status);
        else CHECK(status == 0);
    }
    while (answers < slots - 1) {
        const int status = titin_receive_any((titin_port *[]){back}, 1, TITIN_WAIT, &index, &slot, &message);
        if (status != 0) {
            failed(status);
            continue;
        }
        CHECK(slot != 1);
        answers++;
        titin_message_free(message);
    }
}

int main(void) {
    titin_instance *instance;
    int again;
    CHECK(titin_open("o_i: out[]; s: back[]", NULL, &instance) == 0);
    out = titin_port_find(instance, "out");
    back = titin_port_find(instance, "back");
    slots = titin_port_slots(out);
    CHECK(titin_error_slot() == TITIN_NO_SLOT && !strcmp(titin_error_member(), ""));
    CHECK(titin_reuse(instance, &again) == 0 && again && slots == 4);
    by_slot();
    by_any();
    /* The error has not stuck. */
    CHECK(titin_reuse(instance, &again) == 0 && !again);
    return titin_close(instance);
}
