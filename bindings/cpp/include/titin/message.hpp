// Messages: data with a timestamp.
#ifndef TITIN_MESSAGE_HPP
#define TITIN_MESSAGE_HPP

#include <memory>
#include <optional>
#include <string>

#include "titin/value.hpp"

namespace titin {

/// No next timestamp.
inline constexpr double no_next = TITIN_NO_NEXT;

/// A message that was received. Copies share the data, which live until the last copy is gone, past the instance.
class Message {
public:
    /// Takes over a message of the C interface.
    explicit Message(titin_message *owned) : message_(detail::check(owned), titin_message_free) {}
    /// A message that the program makes, such as a default for a port without a conduit.
    explicit Message(const Value &data, double timestamp = 0.0, double next_timestamp = no_next)
        : Message(titin_message_new(data.raw(), timestamp, next_timestamp)) {}

    /// Name of the port that received the message; empty for a message that the program has made.
    std::string port() const {
        const char *port = titin_message_port(raw());
        return port ? port : "";
    }
    /// The simulated time of the data, and of the next message on the port, if the sender has given it.
    double timestamp() const { return titin_message_timestamp(raw()); }
    std::optional<double> next_timestamp() const {
        if (!titin_message_has_next(raw())) return std::nullopt;
        return titin_message_next_timestamp(raw());
    }
    /// The kind of the data; whether there are none.
    Kind kind() const { return Kind(titin_message_kind(raw())); }
    bool is_nil() const { return kind() == Kind::Nil; }
    /// The array, if its elements have exactly this type. The View has its rank, extents and order, and lives as long as the
    /// message or a copy of it.
    template <class T>
    View<const T> array() const {
        constexpr int dtype = detail::known_dtype<T>();
        if (has_port()) detail::check(titin_message_array(raw(), dtype, TITIN_ANY, nullptr, TITIN_ANY));
        return value().template array<T>();
    }
    /// The same, for an array of these extents, some of which may be `any`, with its elements in this order.
    ///     array<double>({any}), array<double>({ny, nx}), array<double>({any, 3}, Order::Fortran)
    template <class T>
    View<const T> array(const Extents &extents, Order order = Order::C) const {
        if (!has_port()) return value().template array<T>(extents, order);
        return detail::view<T>(titin_message_array, static_cast<const titin_message *>(raw()), extents, order);
    }
    /// Name of an index of the array; empty for an index without a name.
    std::string index_name(int dimension) const { return value().index_name(dimension); }
    /// The data as a value of any kind.
    ValueView value() const { return ValueView(detail::check(titin_message_value(raw()))); }
    /// The settings overlay that came with the message; false if none came.
    ValueView settings() const { return ValueView(titin_message_settings(raw())); }
    titin_message *raw() const {
        if (!message_) throw UsageError("this titin::Message was moved from: what it was moved to has the data");
        return message_.get();
    }

private:
    /// Whether a port has received the message; errors then name the port. The message of a filter has no port. For such a
    /// message titin_message_array would fail the filter, even if the filter's body catches the error and asks for another
    /// type.
    bool has_port() const { return titin_message_port(raw()) != nullptr; }

    std::shared_ptr<titin_message> message_;
};

} // namespace titin

#endif
