// Conduits between components.
#ifndef TITIN_YMMSL_MODEL_HPP
#define TITIN_YMMSL_MODEL_HPP

#include <stdexcept>
#include <string>
#include <vector>

#include "ymmsl/identity.hpp"

namespace ymmsl {

/// A conduit, from "macro.out" to "micro.in".
class Conduit {
public:
    Reference sender, receiver;

    /// Throws std::invalid_argument unless both name a component and a port.
    Conduit(const std::string &from, const std::string &to) : sender(from), receiver(to) {
        for (const Reference &end : {sender, receiver})
            if (port_at(end) < 1) throw std::invalid_argument("'" + std::string(end) + "' does not name a component and a port");
    }

    explicit operator std::string() const {
        return "Conduit(" + std::string(sender) + " -> " + std::string(receiver) + ")";
    }
    bool operator==(const Conduit &other) const { return sender == other.sender && receiver == other.receiver; }
    bool operator!=(const Conduit &other) const { return !(*this == other); }

    Reference sending_component() const { return component(sender); }
    Identifier sending_port() const { return sender[port_at(sender)].identifier(); }
    /// The indices behind the port; none as a rule.
    std::vector<int> sending_slot() const { return slot(sender); }
    Reference receiving_component() const { return component(receiver); }
    Identifier receiving_port() const { return receiver[port_at(receiver)].identifier(); }
    std::vector<int> receiving_slot() const { return slot(receiver); }

private:
    // The place of the last identifier of a reference.
    static int port_at(const Reference &end) {
        int at = static_cast<int>(end.length()) - 1;
        while (at > 0 && end[at].is_index()) --at;
        return at;
    }
    static Reference component(const Reference &end) { return Reference(end.begin(), end.begin() + port_at(end)); }
    static std::vector<int> slot(const Reference &end) {
        std::vector<int> indices;
        for (auto part = end.begin() + port_at(end) + 1; part != end.end(); ++part) indices.push_back(part->index());
        return indices;
    }
};

} // namespace ymmsl

#endif
