/* The right program takes versions of the left program's field. The left program keeps two versions. versions.cpp and
 * versions.f90 follow the same script, so any two fit. The field back is coupled from the second step on. Its messages say
 * that versions may be given up. */
#include <math.h>
#include <string.h>

#include "check.h"

static titin_field *out, *in;

static titin_field *declare(titin_instance *instance, const char *port) {
    titin_field *field;
    titin_decomposition *whole = titin_decomposition_new(1, (int64_t[]){4});
    CHECK(titin_field_new(titin_port_find(instance, port), whole, 1, (int[]){TITIN_F64}, &field) == 0);
    titin_decomposition_free(whole);
    return field;
}

static void send(double t) {
    const double numbers[] = {t, t + 1, t + 2, t + 3};
    CHECK(titin_field_send(out, (const void *[]){numbers}, t, TITIN_NO_NEXT) == 0);
}

static void left(void) {
    double numbers[4] = {-1}, stamp = 0;
    for (int t = 0; t < 4; ++t) send(t);
    CHECK(titin_field_receive(in, (void *[]){numbers}, TITIN_WAIT, &stamp, NULL) == 0 && isnan(stamp) && numbers[0] == -1);
    CHECK(titin_field_receive(in, (void *[]){numbers}, TITIN_WAIT, &stamp, NULL) == 0 && stamp == 2 && numbers[0] == 2);
    CHECK(titin_field_withdraw(out) == 0);
}

static void right(titin_instance *instance) {
    double numbers[4], stamp, next;
    const double asked[] = {3, 2.5, 3.5};
    for (int i = 0; i < 2; ++i) {
        CHECK(titin_field_receive_at(in, (void *[]){numbers}, asked[i], TITIN_WAIT, &stamp, &next) == 0);
        CHECK(stamp == floor(asked[i]) && next == TITIN_NO_NEXT && numbers[0] == stamp && numbers[3] == stamp + 3);
    }
    CHECK(titin_field_receive_at(in, (void *[]){numbers}, 0.0, TITIN_WAIT, &stamp, &next) == TITIN_ERROR_EVICTED);
    CHECK(strstr(titin_error(), "its version at time 0 is not kept"));
    CHECK(!strcmp(titin_error_name(TITIN_ERROR_EVICTED), "TITIN_ERROR_EVICTED"));
    CHECK(titin_field_receive_at(in, (void *[]){numbers}, asked[2], 0.01, NULL, NULL) == TITIN_ERROR_TIMEOUT);
    CHECK(titin_field_receive(in, (void *[]){numbers}, TITIN_WAIT, &stamp, NULL) == 0 && stamp == 3);
    CHECK(titin_field_withdraw(in) == TITIN_ERROR_USAGE && titin_recover(instance) == 0);
    send(1);
    send(2);
    int status;
    while ((status = titin_field_receive(in, (void *[]){numbers}, TITIN_WAIT, &stamp, NULL)) == 0) CHECK(stamp == 3);
    CHECK(status == TITIN_ERROR_PORT_CLOSED);
}

int main(int argc, char **argv) {
    titin_instance *instance;
    int again;
    CHECK(argc == 2 && titin_open("o_i: out; s: in", NULL, &instance) == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again);
    out = declare(instance, "out");
    in = declare(instance, "in");
    if (!strcmp(argv[1], "left")) left();
    else right(instance);
    titin_field_free(out);
    titin_field_free(in);
    CHECK(titin_reuse(instance, &again) == 0 && !again && titin_close(instance) == 0);
    return 0;
}
