// The ports of a program, by operator.
#ifndef TITIN_LIBMUSCLE_PORTS_DESCRIPTION_HPP
#define TITIN_LIBMUSCLE_PORTS_DESCRIPTION_HPP

#include <string>
#include <unordered_map>
#include <vector>

#include <ymmsl/component.hpp>

namespace libmuscle {

/// `{{Operator::F_INIT, {"initial_state"}}, {Operator::O_F, {"final_states[]"}}}`; `[]` makes a vector port.
using PortsDescription = std::unordered_map<ymmsl::Operator, std::vector<std::string>>;

} // namespace libmuscle

#endif
