// The ports of an open instance, by name, with what stays known of them once the instance is closed.
#ifndef TITIN_LIBMUSCLE_DETAIL_PORTS_HPP
#define TITIN_LIBMUSCLE_DETAIL_PORTS_HPP

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <titin.h>
#include <ymmsl/component.hpp>

#include "libmuscle/ports_description.hpp"

namespace libmuscle {
namespace detail {

/// A port of the instance. `handle` is nullptr once the instance is closed.
struct OpenPort {
    titin_port *handle;
    std::string name;
    ymmsl::Operator oper;
    bool vector, resizable, connected;
    int slots;

    explicit OpenPort(titin_port *port)
        : handle(port), name(titin_port_name(port)), oper(operator_of(port)), vector(titin_port_is_vector(port) == 1),
          resizable(titin_port_is_resizable(port) == 1), connected(titin_port_is_connected(port) == 1),
          slots(connected ? titin_port_slots(port) : 0) {
        // A vector port without a peer has no slots, and as many as the program sets.
        if (vector && !connected) resizable = true;
    }

    bool receives() const { return ymmsl::allows_receiving(oper); }
    int length() const { return handle && connected ? titin_port_slots(handle) : slots; }
    /// The port and the slot as texts name them: `in`, `in[2]`.
    std::string at(int slot) const { return slot < 0 ? name : name + "[" + std::to_string(slot) + "]"; }

private:
    static ymmsl::Operator operator_of(titin_port *port) {
        switch (titin_port_operator(port)) {
        case TITIN_F_INIT: return ymmsl::Operator::F_INIT;
        case TITIN_O_I: return ymmsl::Operator::O_I;
        case TITIN_S: return ymmsl::Operator::S;
        default: return ymmsl::Operator::O_F;
        }
    }
};

/// The number that titin has for an operator. Throws std::logic_error for an operator that titin does not have.
inline int operator_number(ymmsl::Operator op, const std::string &port) {
    switch (op) {
    case ymmsl::Operator::F_INIT: return TITIN_F_INIT;
    case ymmsl::Operator::O_I: return TITIN_O_I;
    case ymmsl::Operator::S: return TITIN_S;
    case ymmsl::Operator::O_F: return TITIN_O_F;
    default: break;
    }
    throw std::logic_error("port '" + port + "' has the operator " + ymmsl::operator_name(op) +
                           ": ports of a program have F_INIT, O_I, S or O_F");
}

class Ports {
public:
    explicit Ports(titin_instance *instance) : instance_(titin_instance_name(instance)) {
        for (int i = 0; i < titin_port_count(instance); ++i) {
            ports_.emplace_back(titin_port_at(instance, i));
            places_[ports_.back().name] = ports_.size() - 1;
        }
    }

    std::vector<OpenPort> &all() { return ports_; }

    /// Throws std::out_of_range for a name that no port has.
    OpenPort &at(const std::string &name) {
        const auto found = places_.find(name);
        if (found == places_.end()) throw std::out_of_range(missing(name));
        return ports_[found->second];
    }

    /// The port for a message: throws std::logic_error if there is none of this name, if the port is not for this, or if
    /// a slot is given, or missing, that should not be; std::runtime_error for a slot beyond the length of the port.
    OpenPort &checked(const std::string &name, int slot, bool to_send) {
        if (places_.count(name) == 0) throw std::logic_error(missing(name));
        OpenPort &port = at(name);
        if (to_send == port.receives())
            throw std::logic_error("port '" + name + "' of " + instance_ + " is a port of " + ymmsl::operator_name(port.oper) +
                                   ", which does not " + (to_send ? "send" : "receive") + " messages");
        if (slot >= 0 && !port.vector)
            throw std::logic_error("port '" + name + "' of " + instance_ + " has no slots, but slot " + std::to_string(slot) +
                                   " was given: leave it out, or declare the port as '" + name + "[]'");
        if (slot < 0 && port.vector)
            throw std::logic_error("port '" + name + "' of " + instance_ + " is a vector port: give a slot, from 0 to " +
                                   std::to_string(port.length() - 1));
        const bool may_grow = port.resizable && !to_send;
        if (slot >= 0 && port.connected && !may_grow && slot >= port.length())
            throw std::runtime_error("slot " + std::to_string(slot) + " is beyond port '" + name + "' of " + instance_ +
                                     ", which has the length " + std::to_string(port.length()) +
                                     ": slots count from 0. Look at the program, and at the multiplicities in the description");
        return port;
    }

    PortsDescription described() const {
        PortsDescription described;
        for (const OpenPort &port : ports_)
            if (port.name != "muscle_settings_in") described[port.oper].push_back(port.name);
        return described;
    }

    /// Lets go of the handles, before the instance is closed.
    void let_go() {
        for (OpenPort &port : ports_) {
            port.slots = port.length();
            port.handle = nullptr;
        }
    }

private:
    std::string missing(const std::string &name) const {
        std::string text = "there is no port '" + name + "' on " + instance_ + "; its ports are";
        for (const OpenPort &port : ports_) text += " " + port.name;
        return text + (ports_.empty() ? " none" : "");
    }

    std::string instance_;
    std::vector<OpenPort> ports_;
    std::unordered_map<std::string, std::size_t> places_;
};

} // namespace detail
} // namespace libmuscle

#endif
