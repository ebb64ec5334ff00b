// Messages: data with a timestamp.
#ifndef TITIN_MESSAGE_HPP
#define TITIN_MESSAGE_HPP

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "titin/value.hpp"

namespace titin {

/// No next timestamp.
inline constexpr double no_next = TITIN_NO_NEXT;

/// A message that was received. Copies share the data, which live until the last copy is gone, past the instance.
class Message {
public:
    /// Takes a message of the C interface over, which has come by this port; errors name it.
    explicit Message(titin_message *owned, std::string port = {})
        : message_(detail::check(owned), titin_message_free), port_(std::move(port)) {}
    /// A message of one's own, such as a default for a port that nothing is connected to.
    explicit Message(const Value &data, double timestamp = 0.0, double next_timestamp = no_next)
        : Message(titin_message_new(data.raw(), timestamp, next_timestamp)) {}

    double timestamp() const { return titin_message_timestamp(raw()); }
    std::optional<double> next_timestamp() const {
        if (!titin_message_has_next(raw())) return std::nullopt;
        return titin_message_next_timestamp(raw());
    }
    Kind kind() const { return Kind(titin_message_kind(raw())); }
    bool is_nil() const { return kind() == Kind::Nil; }
    /// The array, of exactly this type of element. A view: it lives as long as this message or a copy of it.
    template <class T>
    View<const T> array() const {
        try {
            return value().template array<T>();
        } catch (const TypeMismatch &error) {
            if (port_.empty()) throw;
            throw TypeMismatch("port '" + port_ + "': " + error.what());
        }
    }
    /// Name of an index of the array; empty if it has none.
    std::string index_name(int dimension) const { return value().index_name(dimension); }
    /// The data, of whatever kind.
    ValueView value() const { return ValueView(detail::check(titin_message_value(raw()))); }
    /// The settings overlay that came with it; false if none did.
    ValueView settings() const { return ValueView(titin_message_settings(raw())); }
    titin_message *raw() const { return message_.get(); }

private:
    std::shared_ptr<titin_message> message_;
    std::string port_;
};

} // namespace titin

#endif
