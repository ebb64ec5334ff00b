/* A filter of one's own: doubles real numbers. */
#include "titin.h"

int twice(const titin_message *in, titin_output *out) {
    const int64_t extents[1] = {titin_message_elements(in)};
    const double *from = titin_message_data(in);
    if (titin_message_dtype(in) != TITIN_F64) {
        titin_set_error("only real numbers can be doubled here");
        return 1;
    }
    double *to = titin_output_array(out, TITIN_F64, 1, extents, TITIN_ORDER_C);
    for (int64_t i = 0; i < extents[0]; i++) to[i] = 2.0 * from[i];
    return 0;
}
