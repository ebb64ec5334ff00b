// titin: coupling of simulation codes, from C++17 and later. Header only, over the C interface (titin.h).
//
//     titin::Instance instance({{titin::F_INIT, {"initial_state"}}, {titin::O_F, {"final_state"}}});
//     while (instance.reuse()) {
//         const auto k = instance.setting<double>("k");
//         const auto msg = instance.receive("initial_state");
//         const auto u0 = msg.array<double>();              // a view into the message
//         std::vector<double> u(u0.begin(), u0.end());
//         ...
//         instance.send("final_state", u, t);
//     }
//
// Every call that fails throws titin::Error or a derived class. titin.h says which calls wait, and which threads may call: any
// thread, but one at a time on a port or in reuse. Names of ports and settings are text that ends with a NUL (string literals,
// std::string).
//
// This header includes the others, which are in titin/: error, array, value, message, port, loan, field, options, instance,
// submodel, host, filter.
#ifndef TITIN_HPP
#define TITIN_HPP

#include "titin/error.hpp"
#include "titin/array.hpp"
#include "titin/value.hpp"
#include "titin/message.hpp"
#include "titin/port.hpp"
#include "titin/loan.hpp"
#include "titin/field.hpp"
#include "titin/options.hpp"
#include "titin/instance.hpp"
#include "titin/submodel.hpp"
#include "titin/host.hpp"
#include "titin/filter.hpp"

#endif
