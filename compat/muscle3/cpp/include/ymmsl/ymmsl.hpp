// The classes of yMMSL that programs use, as MUSCLE3 has them: settings, references, operators, ports and conduits.
#ifndef TITIN_YMMSL_HPP
#define TITIN_YMMSL_HPP

#include "ymmsl/component.hpp"
#include "ymmsl/identity.hpp"
#include "ymmsl/model.hpp"
#include "ymmsl/settings.hpp"

#endif
