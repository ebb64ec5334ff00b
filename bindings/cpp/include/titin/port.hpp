// Ports and slots.
#ifndef TITIN_PORT_HPP
#define TITIN_PORT_HPP

#include <string>
#include <utility>
#include <vector>

#include "titin/error.hpp"

namespace titin {

/// Operators of the submodel execution loop.
enum Operator { F_INIT = TITIN_F_INIT, O_I = TITIN_O_I, S = TITIN_S, O_F = TITIN_O_F };

/// A port of an instance. The port lives as long as the instance.
class Port {
public:
    /// A port of the C interface. Instance::port gives the ports of an instance.
    explicit Port(titin_port *port) : port_(port) {}
    /// Name and operator.
    std::string name() const { return titin_port_name(port_); }
    Operator op() const { return Operator(titin_port_operator(port_)); }
    /// Whether the port has slots; whether their number is set at run time; whether anything is connected.
    bool is_vector() const { return titin_port_is_vector(port_) != 0; }
    bool is_resizable() const { return titin_port_is_resizable(port_) != 0; }
    bool is_connected() const { return titin_port_is_connected(port_) != 0; }
    /// The present number of slots, 1 for a port without slots.
    int slots() const { return titin_port_slots(port_); }
    /// Sets the number of slots of a sending, resizable vector port.
    void set_slots(int slots) { detail::check(titin_port_set_slots(port_, slots)); }
    titin_port *raw() const { return port_; }

private:
    titin_port *port_;
};

/// A port to send or receive by, given by name or as a Port, with a slot for a vector port: `{"out", 3}`.
class Slot {
public:
    /// A port by its name, or as a Port.
    Slot(const char *port, int slot = TITIN_NO_SLOT) : name_(port), slot_(slot) {}
    Slot(const std::string &port, int slot = TITIN_NO_SLOT) : Slot(port.c_str(), slot) {}
    Slot(const Port &port, int slot = TITIN_NO_SLOT) : port_(port.raw()), slot_(slot) {}
    /// The port and the number of the slot, TITIN_NO_SLOT for none.
    titin_port *port(titin_instance *instance) const {
        return port_ ? port_ : detail::check(titin_port_find(instance, name_));
    }
    int number() const { return slot_; }

private:
    const char *name_ = nullptr;
    titin_port *port_ = nullptr;
    int slot_;
};

/// Ports by operator: {{titin::O_I, {"state_out"}}, {titin::S, {"state_in[]"}}}; `name[]` is a vector port.
using Ports = std::vector<std::pair<Operator, std::vector<std::string>>>;

} // namespace titin

#endif
