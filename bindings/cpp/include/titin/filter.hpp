// Filters in a shared library.
#ifndef TITIN_FILTER_HPP
#define TITIN_FILTER_HPP

#include <exception>

#include "titin/message.hpp"

namespace titin {

/// The changes of a message by a filter. The rest of the message stays unchanged.
class Output {
public:
    /// Made by titin::filter.
    explicit Output(titin_output *output) : output_(output) {}
    /// Memory for an array that replaces the data. The filter fills it.
    template <class T>
    T *array(const Extents &extents, Order order = Order::C) {
        return static_cast<T *>(detail::check(
            titin_output_array(output_, detail::known_dtype<T>(), extents.rank(), extents.data(), int(order))));
    }
    /// New data: a value of any kind.
    void value(const Value &data) { detail::check(titin_output_value(output_, data.raw())); }
    /// New timestamps.
    void timestamp(double timestamp, double next_timestamp = no_next) {
        detail::check(titin_output_timestamp(output_, timestamp, next_timestamp));
    }

private:
    titin_output *output_;
};

/// Runs the body of a filter in a shared library. No exception leaves the call:
///     extern "C" int halve(const titin_message *in, titin_output *out) {
///         return titin::filter(in, out, [](const titin::Message &message, titin::Output &output) { ... });
///     }
template <class Body>
int filter(const titin_message *in, titin_output *out, Body &&body) noexcept {
    try {
        const Message message(titin_message_retain(const_cast<titin_message *>(in)));
        Output output(out);
        body(message, output);
        return 0;
    } catch (const std::exception &error) {
        titin_set_error(error.what());
    } catch (...) {
        titin_set_error("an exception of a type that is not known");
    }
    return 1;
}

} // namespace titin

#endif
