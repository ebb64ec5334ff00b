// titin with Global Arrays, from C++17 and later: couples a global array to a field port.
//
//     titin::Instance instance("s: velocity", titin::ga::ranks());
//     titin::ga::Field velocity(instance.port("velocity"), g_a);
//     const titin::Stamps stamps = velocity.receive();
//
// Compiled with the program's own Global Arrays; libtitin does not know the library. titin_ga.h says which arrays can be
// coupled. titin.hpp does not include this header.
#ifndef TITIN_GA_HPP
#define TITIN_GA_HPP

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "titin_ga.h"
#include "titin_mpi.hpp"

namespace titin::ga {

/// Options for an instance that all processes of GA's default group open together.
inline Options ranks(Options options = Options()) {
    return mpi::ranks(GA_MPI_Comm_pgroup_default(), std::move(options));
}

/// A global array that a port carries as a whole. Each process sends or receives the part that the process owns. All
/// processes make these calls together. Sending and receiving begin and end with GA_Sync.
class Field {
public:
    /// Declares that the port carries this global array.
    Field(const Port &port, int g_a) : array_(g_a), raw_(nullptr, titin_field_free) {
        titin_field *field;
        detail::check(titin_ga_field(port.raw(), g_a, &field));
        raw_.reset(field);
    }

    /// Sends the part of each process.
    void send(double timestamp, double next_timestamp = TITIN_NO_NEXT) {
        detail::check(titin_ga_send(raw_.get(), array_, timestamp, next_timestamp));
    }
    /// Receives; of a field that is pulled the latest version.
    Stamps receive() { return receive_within(std::nullopt, TITIN_WAIT); }
    /// The same; throws Timeout after the time given.
    template <class Rep, class Period>
    Stamps receive(std::chrono::duration<Rep, Period> timeout) {
        return receive_within(std::nullopt, std::chrono::duration<double>(timeout).count());
    }
    /// Receives the version at or before a simulated time of a field that is pulled. Throws Evicted if the version is not
    /// kept, and PortClosed if no version of that time will come.
    Stamps receive_at(double at) { return receive_within(at, TITIN_WAIT); }
    /// The same; throws Timeout after the time given.
    template <class Rep, class Period>
    Stamps receive_at(double at, std::chrono::duration<Rep, Period> timeout) {
        return receive_within(at, std::chrono::duration<double>(timeout).count());
    }
    /// For the sender: no more fields follow, and all versions are given up.
    void withdraw() { detail::check(titin_field_withdraw(raw_.get())); }

    titin_field *raw() const { return raw_.get(); }

private:
    Stamps receive_within(std::optional<double> at, double timeout) {
        double timestamp, next;
        detail::check(at ? titin_ga_receive_at(raw_.get(), array_, *at, timeout, &timestamp, &next)
                         : titin_ga_receive(raw_.get(), array_, timeout, &timestamp, &next));
        return {timestamp, next == TITIN_NO_NEXT ? std::nullopt : std::optional<double>(next)};
    }

    int array_;
    std::unique_ptr<titin_field, void (*)(titin_field *)> raw_;
};

} // namespace titin::ga

#endif
