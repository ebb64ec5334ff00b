// How to open an instance.
#ifndef TITIN_OPTIONS_HPP
#define TITIN_OPTIONS_HPP

#include <memory>
#include <string>
#include <utility>

#include "titin/error.hpp"

namespace titin {

/// How to open an instance: `Options().instance("macro").unchecked("explores")`.
class Options {
public:
    Options() : options_(detail::check(titin_options_new()), titin_options_free) {
        detail::check(titin_options_language(raw(), "C++"));
        detail::check(titin_options_exceptions(raw()));
    }
    /// The instance to be, in place of TITIN_INSTANCE.
    Options &&instance(const std::string &name) && { return also(titin_options_instance(raw(), name.c_str())); }
    /// The run to join, in place of TITIN_MANAGER.
    Options &&manager(const std::string &place) && { return also(titin_options_manager(raw(), place.c_str())); }
    /// Switches the check of the order of calls off.
    Options &&unchecked(const std::string &reason) && { return also(titin_options_unchecked(raw(), reason.c_str())); }
    titin_options *raw() const { return options_.get(); }

private:
    Options &&also(int status) {
        detail::check(status);
        return std::move(*this);
    }
    std::unique_ptr<titin_options, void (*)(titin_options *)> options_;
};

} // namespace titin

#endif
