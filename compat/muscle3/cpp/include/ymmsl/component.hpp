// Operators and ports of components.
#ifndef TITIN_YMMSL_COMPONENT_HPP
#define TITIN_YMMSL_COMPONENT_HPP

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>

#include "ymmsl/identity.hpp"

namespace ymmsl {

/// Operators of the submodel execution loop. B is the operator of older models, which titin does not have.
enum class Operator { NONE = 0, F_INIT = 1, O_I = 2, S = 3, B = 4, O_F = 5 };

inline bool allows_sending(Operator op) {
    return op == Operator::NONE || op == Operator::O_I || op == Operator::B || op == Operator::O_F;
}

inline bool allows_receiving(Operator op) {
    return op == Operator::NONE || op == Operator::F_INIT || op == Operator::S || op == Operator::B;
}

inline std::string operator_name(Operator op) {
    switch (op) {
    case Operator::F_INIT: return "F_INIT";
    case Operator::O_I: return "O_I";
    case Operator::S: return "S";
    case Operator::B: return "B";
    case Operator::O_F: return "O_F";
    case Operator::NONE: break;
    }
    return "NONE";
}

/// Throws std::runtime_error for a text that names no operator.
inline Operator operator_for_name(const std::string &name) {
    for (const Operator op : {Operator::NONE, Operator::F_INIT, Operator::O_I, Operator::S, Operator::B, Operator::O_F})
        if (operator_name(op) == name) return op;
    throw std::runtime_error("there is no operator '" + name + "'");
}

/// A port of a component.
struct Port {
    Identifier name;
    Operator oper;

    Port(const Identifier &port_name, Operator port_operator) : name(port_name), oper(port_operator) {}
};

} // namespace ymmsl

namespace std {
// Compilers that know only the C++14 of its first edition have no hash of enumerations.
template <>
struct hash<ymmsl::Operator> {
    size_t operator()(ymmsl::Operator op) const noexcept { return static_cast<size_t>(op); }
};
} // namespace std

#endif
