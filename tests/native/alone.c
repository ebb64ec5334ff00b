/* Calls that need no run: errors of all kinds, values, and options. */
#define TITIN_TESTING
#include <string.h>

#include "check.h"

int main(void) {
    titin_instance *instance;
    CHECK(titin_error_kind() == TITIN_OK && !strcmp(titin_error(), ""));
    CHECK(titin_port_find(NULL, "x") == NULL && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(titin_open("f_int: a", NULL, &instance) == TITIN_ERROR_USAGE && instance == NULL);
    CHECK(titin_open(NULL, NULL, &instance) == TITIN_ERROR_CONNECTION && strstr(titin_error(), "TITIN_INSTANCE"));
    /* Calls with the NULL report the error of the call that returned the NULL. */
    CHECK(titin_close(instance) == TITIN_ERROR_USAGE && strstr(titin_error(), "TITIN_INSTANCE"));
    /* A call writes its results also if it fails. */
    titin_port *const ports[1] = {NULL};
    titin_message *none = (titin_message *)&instance;
    int place = 7, slot = 7, again = 7;
    CHECK(titin_receive_any(ports, 1, TITIN_WAIT, &place, &slot, &none) == TITIN_ERROR_USAGE);
    CHECK(none == NULL && place == 0 && slot == TITIN_NO_SLOT);
    CHECK(titin_reuse(NULL, &again) == TITIN_ERROR_USAGE && again == 0);
    CHECK(titin_test_panic(NULL) == TITIN_ERROR_INTERNAL && strstr(titin_error(), "panics"));
    CHECK(titin_explain(NULL) == TITIN_ERROR_INTERNAL);
    titin_value *deep = titin_new_list();
    for (int i = 0; i < 90; ++i) {
        titin_value *outer = titin_new_list();
        CHECK(titin_list_append(outer, deep) == 0);
        deep = outer;
    }
    titin_message *message = titin_message_new(deep, 1.0, TITIN_NO_NEXT);
    CHECK(message && titin_message_kind(message) == TITIN_KIND_LIST && !titin_message_settings(message));
    titin_message_free(message);
    for (int i = 0; i < 20 && deep; ++i) {
        titin_value *outer = titin_new_list();
        if (titin_list_append(outer, deep)) CHECK(strstr(titin_error(), "deep"));
        deep = outer;
    }
    titin_value_free(deep);
    int64_t extents[2] = {2, -1}, number;
    CHECK(!titin_new_array(TITIN_F64, 2, extents, NULL, 0, NULL, extents, 0) && strstr(titin_error(), "-1"));
    CHECK(!titin_new_array(99, 0, NULL, NULL, 0, NULL, extents, 0) && strstr(titin_error(), "99"));
    CHECK(!titin_new_text("\xff", 1) && strstr(titin_error(), "UTF-8"));
    titin_value *text = titin_new_text("a\0b", 3);
    CHECK(titin_value_i64(text, &number) == TITIN_ERROR_TYPE_MISMATCH);
    CHECK(titin_value_text(text, &number) && number == 3);
    titin_value_free(text);
    CHECK(titin_dtype_find("float64") == TITIN_F64 && titin_dtype_size(TITIN_C128) == 16 && !titin_dtype_name(0));
    double real;
    titin_value *large = titin_new_u64(UINT64_MAX), *exact = titin_new_i64(INT64_C(1) << 60);
    CHECK(titin_value_f64(large, &real) == TITIN_ERROR_TYPE_MISMATCH && real != real);
    CHECK(strstr(titin_error(), "18446744073709551615") && strstr(titin_error(), "float64"));
    CHECK(titin_value_f64(exact, &real) == 0 && real == 0x1p60);
    titin_value_free(large);
    titin_value_free(exact);
    titin_options *options = titin_options_new();
    const char *const unfit[] = {"1a", "a; o_f: b", "a b", "", "[]"};
    for (int i = 0; i < 5; ++i) CHECK(titin_options_port(options, unfit[i], TITIN_S) == TITIN_ERROR_USAGE);
    CHECK(titin_options_port(options, "a", 9) == TITIN_ERROR_USAGE && titin_options_exceptions(options) == 0);
    titin_options_free(options);
    return 0;
}
