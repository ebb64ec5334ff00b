/* Drives the ensemble of test_members.py whose members are started again: what a failed member has not answered is sent again. */
#include <string.h>

#include "check.h"

static titin_port *out, *back;
static int failures;

static double answer(int slot, double value) {
    for (;;) {
        double twice = 0.0;
        int status = titin_send(out, slot, TITIN_F64, 0, NULL, &value, value, TITIN_NO_NEXT);
        if (status == 0) status = titin_receive_into(back, slot, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, &twice, NULL);
        if (status == 0) return twice;
        CHECK(status == TITIN_ERROR_MEMBER_FAILED && titin_error_slot() == slot);
        CHECK(strstr(titin_error(), "it is started again"));
        failures++;
    }
}

int main(void) {
    titin_instance *instance;
    int again;
    CHECK(titin_open("o_i: out[]; s: back[]", NULL, &instance) == 0);
    out = titin_port_find(instance, "out");
    back = titin_port_find(instance, "back");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    for (int step = 0; step < 4; step++)
        for (int slot = 0; slot < 2; slot++) CHECK(answer(slot, step) == 2.0 * step);
    CHECK(failures == 4);
    return titin_close(instance);
}
