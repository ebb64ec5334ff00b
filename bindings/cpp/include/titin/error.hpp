// The exceptions of titin: one class for each number of an error.
#ifndef TITIN_ERROR_HPP
#define TITIN_ERROR_HPP

#include <stdexcept>
#include <string>

#include "titin.h"

namespace titin {

/// The base of all exceptions of titin. The text says what failed, why, and what to do.
class Error : public std::runtime_error {
public:
    /// An error of this kind, TITIN_ERROR_USAGE and so on.
    Error(int kind, const std::string &text) : std::runtime_error(text), kind_(kind) {
        // An error of the headers becomes the library's last error, too: an instance that the exception leaves open fails
        // the run with this error.
        if (text != titin_error()) titin_set_error(text.c_str());
    }
    /// The number of the error, TITIN_ERROR_USAGE and so on.
    int kind() const noexcept { return kind_; }

private:
    int kind_;
};

namespace detail {
template <int Kind>
struct Kinded : Error {
    explicit Kinded(const std::string &text) : Error(Kind, text) {}
};
} // namespace detail

/// The call itself is wrong: an unknown port, a slot out of range.
struct UsageError : detail::Kinded<TITIN_ERROR_USAGE> { using Kinded::Kinded; };
/// The call is not in its place in the submodel execution loop.
struct CallOrderError : detail::Kinded<TITIN_ERROR_CALL_ORDER> { using Kinded::Kinded; };
/// A setting is missing, or does not have the type or unit that the program asked for.
struct SettingError : detail::Kinded<TITIN_ERROR_SETTING> { using Kinded::Kinded; };
/// The data do not have a type or shape that can be sent, or that the program asked for.
struct TypeMismatch : detail::Kinded<TITIN_ERROR_TYPE_MISMATCH> { using Kinded::Kinded; };
/// The time given to the call is over. The instance can still be used.
struct Timeout : detail::Kinded<TITIN_ERROR_TIMEOUT> { using Kinded::Kinded; };
/// No more messages will come, as the port's sender has finished. The instance can still be used.
struct PortClosed : detail::Kinded<TITIN_ERROR_PORT_CLOSED> { using Kinded::Kinded; };
/// Another instance has failed, or cannot be reached. The text names it.
struct PeerLost : detail::Kinded<TITIN_ERROR_PEER_LOST> { using Kinded::Kinded; };
/// Instances wait for each other in a cycle. The text shows the cycle.
struct Deadlock : detail::Kinded<TITIN_ERROR_DEADLOCK> { using Kinded::Kinded; };
/// The run cannot be joined, the manager is gone, or a link brings bytes that cannot be understood.
struct ConnectionFailed : detail::Kinded<TITIN_ERROR_CONNECTION> { using Kinded::Kinded; };
/// There is no memory for a message.
struct OutOfMemory : detail::Kinded<TITIN_ERROR_NO_MEMORY> { using Kinded::Kinded; };
/// The instance belongs to the parent process, from which this process was forked.
struct Forked : detail::Kinded<TITIN_ERROR_FORKED> { using Kinded::Kinded; };
/// An error inside titin. Please report it.
struct InternalError : detail::Kinded<TITIN_ERROR_INTERNAL> { using Kinded::Kinded; };
/// The function that on_interrupt was given wants to deal with a signal. The instance can still be used.
struct Interrupted : detail::Kinded<TITIN_ERROR_INTERRUPTED> { using Kinded::Kinded; };
/// A filter of the user's has failed, or cannot be found.
struct FilterError : detail::Kinded<TITIN_ERROR_FILTER> { using Kinded::Kinded; };
/// The instance is closed, or has failed before.
struct Closed : detail::Kinded<TITIN_ERROR_CLOSED> { using Kinded::Kinded; };
/// The sender of a field does not keep the version asked for. The instance can still be used.
struct Evicted : detail::Kinded<TITIN_ERROR_EVICTED> { using Kinded::Kinded; };
/// A message of a path was dropped by its receiver, or given up by its sender. The path can still be used.
struct MessageLost : detail::Kinded<TITIN_ERROR_MESSAGE_LOST> { using Kinded::Kinded; };

/// A member of an ensemble has failed, and the run goes on without it. The instance can still be used.
struct MemberFailed : detail::Kinded<TITIN_ERROR_MEMBER_FAILED> {
    /// Made by calls on ports.
    MemberFailed(const std::string &text, const std::string &member, int slot)
        : Kinded(text), member_(member), slot_(slot) {}
    /// The name of the failed instance, such as "micro[3]".
    const std::string &member() const noexcept { return member_; }
    /// The slot of the port to which the member is connected, or TITIN_NO_SLOT.
    int slot() const noexcept { return slot_; }

private:
    std::string member_;
    int slot_;
};

/// No error: thrown by a call of a light instance that cannot go on yet, for titin::host_steps to catch.
struct Pending {};

namespace detail {

/// Throws this thread's last error.
[[noreturn]] inline void raise() {
    const std::string text = titin_error_in("C++");
    switch (const int kind = titin_error_kind()) {
    case TITIN_ERROR_USAGE: throw UsageError(text);
    case TITIN_ERROR_CALL_ORDER: throw CallOrderError(text);
    case TITIN_ERROR_SETTING: throw SettingError(text);
    case TITIN_ERROR_TYPE_MISMATCH: throw TypeMismatch(text);
    case TITIN_ERROR_TIMEOUT: throw Timeout(text);
    case TITIN_ERROR_PORT_CLOSED: throw PortClosed(text);
    case TITIN_ERROR_PEER_LOST: throw PeerLost(text);
    case TITIN_ERROR_DEADLOCK: throw Deadlock(text);
    case TITIN_ERROR_CONNECTION: throw ConnectionFailed(text);
    case TITIN_ERROR_NO_MEMORY: throw OutOfMemory(text);
    case TITIN_ERROR_FORKED: throw Forked(text);
    case TITIN_ERROR_INTERNAL: throw InternalError(text);
    case TITIN_ERROR_INTERRUPTED: throw Interrupted(text);
    case TITIN_ERROR_FILTER: throw FilterError(text);
    case TITIN_ERROR_CLOSED: throw Closed(text);
    case TITIN_ERROR_EVICTED: throw Evicted(text);
    case TITIN_ERROR_MESSAGE_LOST: throw MessageLost(text);
    case TITIN_ERROR_MEMBER_FAILED: throw MemberFailed(text, titin_error_member(), titin_error_slot());
    default: throw Error(kind, text);
    }
}

inline void check(int status) {
    if (status == TITIN_PENDING) throw Pending();
    if (status != TITIN_OK) raise();
}

template <class T>
T *check(T *pointer) {
    if (pointer == nullptr) raise();
    return pointer;
}

} // namespace detail

/// Release of the library: "0.1.0".
inline std::string version() { return titin_version(); }

} // namespace titin

#endif
