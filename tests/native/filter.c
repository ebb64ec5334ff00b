/* Own filters in a shared library: one doubles real numbers, and one delays messages. */
#include "titin.h"

int twice(const titin_message *in, titin_output *out) {
    int64_t count = TITIN_ANY;
    const double *from = titin_message_array(in, TITIN_F64, 1, &count, TITIN_ORDER_C);
    if (!from) return 1;
    double *to = titin_output_array(out, TITIN_F64, 1, &count, TITIN_ORDER_C);
    for (int64_t i = 0; i < count; i++) to[i] = 2.0 * from[i];
    return 0;
}

/* A filter that does not check that real numbers come. */
int trusting(const titin_message *in, titin_output *out) {
    int64_t count = TITIN_ANY;
    const double *from = titin_message_array(in, TITIN_F64, 1, &count, TITIN_ORDER_C);
    double *to = titin_output_array(out, TITIN_F64, 1, &count, TITIN_ORDER_C);
    for (int64_t i = 0; i < count; i++) to[i] = 2.0 * from[i];
    return 0;
}

/* A filter that ignores the errors of its calls. */
int careless(const titin_message *in, titin_output *out) {
    (void)in;
    titin_output_array(out, 99, 0, NULL, TITIN_ORDER_C);
    return 0;
}

int late(const titin_message *in, titin_output *out) {
    titin_value *text = titin_new_text("late", -1);
    const int failed = titin_output_value(out, text) ||
                       titin_output_timestamp(out, titin_message_timestamp(in) + 10.0, TITIN_NO_NEXT);
    titin_value_free(text);
    return failed;
}
