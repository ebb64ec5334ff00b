// Own filters in a shared library: the filters of filter.c.
#include <titin.hpp>

extern "C" int twice(const titin_message *in, titin_output *out) {
    return titin::filter(in, out, [](const titin::Message &message, titin::Output &output) {
        // A filter may try a wrong type, and goes on.
        try {
            message.array<float>();
            message.array<float>({titin::any});
        } catch (const titin::TypeMismatch &) {
        }
        const auto from = message.array<double>({titin::any});
        double *to = output.array<double>(from.extents());
        for (const double number : from) *to++ = 2.0 * number;
    });
}

extern "C" int late(const titin_message *in, titin_output *out) {
    return titin::filter(in, out, [](const titin::Message &message, titin::Output &output) {
        output.value("late");
        output.timestamp(message.timestamp() + 10.0);
    });
}
