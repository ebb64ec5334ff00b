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
    /// Takes a message of the C interface over.
    explicit Message(titin_message *owned) : message_(detail::check(owned), titin_message_free) {}
    /// A message of one's own, such as a default for a port that nothing is connected to.
    explicit Message(const Value &data, double timestamp = 0.0, double next_timestamp = no_next)
        : Message(titin_message_new(data.raw(), timestamp, next_timestamp)) {}

    /// Name of the port that it came by; empty for one of one's own.
    std::string port() const {
        const char *port = titin_message_port(raw());
        return port ? port : "";
    }
    double timestamp() const { return titin_message_timestamp(raw()); }
    std::optional<double> next_timestamp() const {
        if (!titin_message_has_next(raw())) return std::nullopt;
        return titin_message_next_timestamp(raw());
    }
    Kind kind() const { return Kind(titin_message_kind(raw())); }
    bool is_nil() const { return kind() == Kind::Nil; }
    /// The array, of exactly this type of element, and of whatever rank, extents and order, which a View knows: it lives as
    /// long as this message or a copy of it.
    template <class T>
    View<const T> array() const {
        constexpr int dtype = detail::known_dtype<T>();
        if (has_port()) detail::check(titin_message_array(raw(), dtype, TITIN_ANY, nullptr, TITIN_ANY));
        return value().template array<T>();
    }
    /// The same, of these extents, of which some may be `any`, and with its elements in this order.
    ///     array<double>({any}), array<double>({ny, nx}), array<double>({any, 3}, Order::Fortran)
    template <class T>
    View<const T> array(const Extents &extents, Order order = Order::C) const {
        if (!has_port()) return value().template array<T>(extents, order);
        return detail::view<T>(titin_message_array, static_cast<const titin_message *>(raw()), extents, order);
    }
    /// Name of an index of the array; empty if it has none.
    std::string index_name(int dimension) const { return value().index_name(dimension); }
    /// The data, of whatever kind.
    ValueView value() const { return ValueView(detail::check(titin_message_value(raw()))); }
    /// The settings overlay that came with it; false if none did.
    ValueView settings() const { return ValueView(titin_message_settings(raw())); }
    titin_message *raw() const {
        if (!message_) throw UsageError("this titin::Message was moved from: what it was moved to has the data");
        return message_.get();
    }

private:
    /// Whether it came by a port, which its errors name. A filter's message has none: titin_message_array fails the filter,
    /// though its body may catch the error and ask for another type.
    bool has_port() const { return titin_message_port(raw()) != nullptr; }

    std::shared_ptr<titin_message> message_;
};

} // namespace titin

#endif
