/* Receives the messages of test_wanted.py, and asks for each message as its own type and as every other type. */
#include <string.h>

#include "check.h"

static titin_instance *instance;
static titin_port *in;

/* Checks the error of the last call: these words, and the sender of the message. The instance goes on. */
static void refused(const char *expected, const char *found) {
    int again;
    CHECK(titin_error_kind() == TITIN_ERROR_TYPE_MISMATCH);
    CHECK(strstr(titin_error(), "port 'in', message from sender.out: expected an array of ") == titin_error());
    CHECK(strstr(titin_error(), expected) && strstr(titin_error(), found));
    /* The error has stuck. */
    CHECK(titin_reuse(instance, &again) == TITIN_ERROR_TYPE_MISMATCH && !again);
    CHECK(titin_recover(instance) == 0);
}

static void refuse(const titin_message *message, int dtype, int rank, const int64_t *wanted, int order, const char *expected,
                   const char *found) {
    int64_t extents[TITIN_MAX_RANK];
    for (int i = 0; i < rank; i++) extents[i] = wanted[i];
    CHECK(titin_message_array(message, dtype, rank, extents, order) == NULL);
    for (int i = 0; i < rank; i++) CHECK(extents[i] == (wanted[i] == TITIN_ANY ? 0 : wanted[i]));
    refused(expected, found);
    for (int i = 0; i < rank; i++) extents[i] = wanted[i];
    CHECK(titin_value_array(titin_message_value(message), dtype, rank, extents, order) == NULL);
    CHECK(strstr(titin_error(), expected) && strstr(titin_error(), found));
}

static titin_message *next(void) {
    titin_message *message;
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    return message;
}

/* Two elements of each type, which are asked for as each type. */
static void types(void) {
    const int64_t any = TITIN_ANY, two = 2;
    char expected[64], found[64], room[2 * 16];
    for (int sent = TITIN_BOOL; sent <= TITIN_BF16; sent++) {
        snprintf(found, sizeof found, "found %s of shape [2]", titin_dtype_name(sent));
        for (int dtype = TITIN_BOOL; dtype <= TITIN_BF16; dtype++) {
            snprintf(expected, sizeof expected, "expected an array of %s of shape [2], ", titin_dtype_name(dtype));
            if (dtype == sent) continue;
            CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, dtype, 1, &two, NULL, TITIN_ORDER_C, room, NULL) ==
                  TITIN_ERROR_TYPE_MISMATCH);
            refused(expected, found);
        }
        titin_message *message = next();
        for (int dtype = TITIN_BOOL; dtype <= TITIN_BF16; dtype++) {
            int64_t n = TITIN_ANY;
            snprintf(expected, sizeof expected, "expected an array of %s of rank 1, ", titin_dtype_name(dtype));
            if (dtype != sent) refuse(message, dtype, 1, &any, TITIN_ORDER_C, expected, found);
            else CHECK(titin_message_array(message, dtype, 1, &n, TITIN_ORDER_C) == titin_message_raw_data(message) && n == 2);
        }
        titin_message_free(message);
    }
}

/* Two rows and three columns, whose elements follow each other in this order. */
static void shapes(int order, const char *found) {
    const int64_t any[] = {TITIN_ANY, TITIN_ANY, TITIN_ANY}, turned[] = {3, 2}, part[] = {TITIN_ANY, 2};
    const char *other = order == TITIN_ORDER_C ? "of rank 2 in Fortran order, " : "of rank 2 in C order, ";
    const char *same = order == TITIN_ORDER_C ? "of shape [any, 2] in C order, " : "of shape [any, 2] in Fortran order, ";
    int64_t shape[] = {TITIN_ANY, 3};
    double room[6];
    titin_message *message;
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 2, turned, NULL, order, room, NULL));
    refused("float64 of shape [3, 2], ", "found float64 of shape [2, 3]");
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 1, (int64_t[]){6}, NULL, order, room, NULL));
    refused("float64 of shape [6], ", "found float64 of shape [2, 3]");
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, order, room, NULL));
    refused("float64, a single value, ", "found float64 of shape [2, 3]");
    /* titin_receive_into() puts each element in its place. */
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 2, (int64_t[]){2, 3}, NULL, TITIN_ORDER_C, room,
                             &message) == 0);
    CHECK(room[1] == 1.0 && room[3] == 3.0);
    refuse(message, TITIN_F64, 1, any, order, "of rank 1, ", found);
    refuse(message, TITIN_F64, 3, any, order, "of rank 3 ", found);
    refuse(message, TITIN_F64, 0, NULL, order, "a single value, ", found);
    refuse(message, TITIN_F64, 2, part, order, same, found);
    refuse(message, TITIN_F64, 2, any, order == TITIN_ORDER_C ? TITIN_ORDER_FORTRAN : TITIN_ORDER_C, other, found);
    CHECK(strstr(titin_error(), "receive it into memory of your own"));
    refuse(message, TITIN_F32, TITIN_ANY, NULL, TITIN_ANY, "an array of float32, ", "found float64 of shape [2, 3]: ");
    refuse(message, TITIN_F64, TITIN_ANY, NULL, order == TITIN_ORDER_C ? TITIN_ORDER_FORTRAN : TITIN_ORDER_C,
           order == TITIN_ORDER_C ? "float64 in Fortran order, " : "float64 in C order, ", found);
    CHECK(titin_message_array(message, TITIN_F64, TITIN_ANY, NULL, TITIN_ANY) == titin_message_raw_data(message));
    CHECK(titin_message_array(message, TITIN_F64, 2, shape, TITIN_ANY) && shape[0] == 2);
    shape[0] = TITIN_ANY;
    const double *data = titin_message_array(message, TITIN_F64, 2, shape, order);
    CHECK(shape[0] == 2 && data[1] == (order == TITIN_ORDER_C ? 1.0 : 3.0));
    titin_message_free(message);
}

/* Messages that are not arrays. The error names the call that reads them. */
static void others(void) {
    const char *const found[] = {"nil", "the real number 1.5: read it with titin_value_f64", "text", "a map of 1"};
    const int64_t any = TITIN_ANY;
    for (int i = 0; i < 4; i++) {
        titin_message *message = next();
        refuse(message, TITIN_F64, 1, &any, TITIN_ORDER_C, "float64 of rank 1, found ", i == 1 ? "the real number 1.5" : found[i]);
        CHECK(!titin_message_array(message, TITIN_F64, 0, NULL, TITIN_ORDER_C) && strstr(titin_error(), found[i]));
        CHECK(i != 1 || strstr(titin_error_in("C++"), "the real number 1.5: read it with value().as<double>()"));
        const titin_value *value = titin_message_value(message);
        CHECK(!titin_value_array(value, TITIN_F64, 0, NULL, TITIN_ORDER_C) && strstr(titin_error(), found[i]));
        CHECK(i != 1 || strstr(titin_error_in("Fortran"), "the real number 1.5: read it with read(x)"));
        CHECK(titin_recover(instance) == 0);
        titin_message_free(message);
    }
}

/* Calls with wrong arguments. */
static void wrong(void) {
    titin_message *message = next();
    int64_t extent = TITIN_ANY;
    CHECK(!titin_message_array(NULL, TITIN_F64, 1, &extent, TITIN_ORDER_C) && extent == 0);
    CHECK(titin_error_kind() == TITIN_ERROR_USAGE && strstr(titin_error(), "no message"));
    extent = -7;
    CHECK(!titin_message_array(message, TITIN_F64, 1, &extent, TITIN_ORDER_C) && strstr(titin_error(), "-7"));
    CHECK(!titin_message_array(message, 99, 1, &extent, TITIN_ORDER_C) && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(!titin_message_array(message, TITIN_F64, 1, &extent, 7) && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(!titin_message_array(message, TITIN_F64, 1, NULL, TITIN_ORDER_C) && strstr(titin_error(), "NULL"));
    CHECK(!titin_message_array(message, TITIN_F64, -2, NULL, TITIN_ORDER_C) && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(!titin_message_array(message, TITIN_F64, 1, &extent, -2) && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(titin_recover(instance) == 0);
    titin_message_free(message);
}

int main(void) {
    int again;
    CHECK(titin_open("f_init: in", NULL, &instance) == 0);
    in = titin_port_find(instance, "in");
    CHECK(titin_skip_checks(instance, "receives many messages in F_INIT") == 0);
    CHECK(titin_reuse(instance, &again) == 0 && again);
    types();
    shapes(TITIN_ORDER_C, "found float64 of shape [2, 3] in C order");
    shapes(TITIN_ORDER_FORTRAN, "found float64 of shape [2, 3] in Fortran order");
    others();
    wrong();
    /* With an extent of one the elements follow each other in both orders. */
    titin_message *message = next();
    CHECK(titin_message_order(message) == TITIN_ORDER_C);
    CHECK(titin_message_array(message, TITIN_F64, 2, (int64_t[]){1, 3}, TITIN_ORDER_FORTRAN));
    /* The program ignores the last error, so the error fails the run. */
    CHECK(!titin_message_array(message, TITIN_F32, 2, (int64_t[]){1, 3}, TITIN_ORDER_C));
    titin_message_free(message);
    return titin_close(instance) == TITIN_ERROR_TYPE_MISMATCH ? 3 : 0;
}
