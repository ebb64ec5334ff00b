// Options for opening an instance.
#ifndef TITIN_OPTIONS_HPP
#define TITIN_OPTIONS_HPP

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "titin/error.hpp"

namespace titin {

namespace detail {

/// A function that decides whether to interrupt a waiting call.
using Interrupt = std::function<bool()>;

/// Calls the function. An exception counts as yes, because an exception must not pass through the frames of the library.
inline int ask(void *interrupt) noexcept {
    try {
        return int((*static_cast<Interrupt *>(interrupt))());
    } catch (...) {
        return 1;
    }
}

} // namespace detail

/// What the settings overlays of messages do at an instance; see TITIN_OVERLAYS_EXPLICIT.
enum class Overlays { Inherited = TITIN_OVERLAYS_INHERITED, Explicit = TITIN_OVERLAYS_EXPLICIT };

/// What becomes of calls out of the order of the execution loop; see TITIN_CHECKS_WARN.
enum class Checks { Error = TITIN_CHECKS_ERROR, Warn = TITIN_CHECKS_WARN };

/// The ranks of a parallel program that get the data of received messages; see TITIN_RECEIVE_ROOT_ONLY.
enum class Receive { AllRanks = TITIN_RECEIVE_ALL_RANKS, RootOnly = TITIN_RECEIVE_ROOT_ONLY };

/// Options for opening an instance: `Options().instance("macro").unchecked("explores")`.
class Options {
public:
    /// The defaults.
    Options() : options_(detail::check(titin_options_new()), titin_options_free) {
        detail::check(titin_options_language(raw(), "C++"));
        detail::check(titin_options_exceptions(raw()));
    }
    /// The name of the instance, in place of TITIN_INSTANCE.
    Options &instance(const std::string &name) & { return also(titin_options_instance(raw(), name.c_str())); }
    Options &&instance(const std::string &name) && { return std::move(instance(name)); }
    /// The run to join, in place of TITIN_MANAGER.
    Options &manager(const std::string &place) & { return also(titin_options_manager(raw(), place.c_str())); }
    Options &&manager(const std::string &place) && { return std::move(manager(place)); }
    /// Switches the check of the order of calls off.
    Options &unchecked(const std::string &reason) & { return also(titin_options_unchecked(raw(), reason.c_str())); }
    Options &&unchecked(const std::string &reason) && { return std::move(unchecked(reason)); }
    /// What becomes of calls out of order.
    Options &checks(Checks strength) & { return also(titin_options_checks(raw(), static_cast<int>(strength))); }
    Options &&checks(Checks strength) && { return std::move(checks(strength)); }
    /// The ranks that get the data of messages.
    Options &receive(Receive ranks) & { return also(titin_options_receive(raw(), static_cast<int>(ranks))); }
    Options &&receive(Receive ranks) && { return std::move(receive(ranks)); }
    /// What the settings overlays of messages do.
    Options &overlays(Overlays use) & { return also(titin_options_overlays(raw(), static_cast<int>(use))); }
    Options &&overlays(Overlays use) && { return std::move(overlays(use)); }
    /// As Instance::on_interrupt, and also while the instance is opened.
    Options &on_interrupt(std::function<bool()> interrupted) & {
        interrupt_ = std::make_shared<detail::Interrupt>(std::move(interrupted));
        return also(titin_options_interrupt(raw(), detail::ask, interrupt_.get()));
    }
    Options &&on_interrupt(std::function<bool()> interrupted) && {
        return std::move(on_interrupt(std::move(interrupted)));
    }
    /// Makes the instance one of these ranks of a parallel program; for MPI titin_mpi.hpp has titin::mpi::ranks. The context must
    /// live until the instance is open: `keep` it with the options.
    Options &communicator(const titin_communicator &ranks) & { return also(titin_options_communicator(raw(), &ranks)); }
    Options &&communicator(const titin_communicator &ranks) && { return std::move(communicator(ranks)); }
    /// Keeps an object as long as the options live.
    Options &keep(std::shared_ptr<void> something) & {
        kept_ = std::move(something);
        return *this;
    }
    Options &&keep(std::shared_ptr<void> something) && { return std::move(keep(std::move(something))); }
    titin_options *raw() const { return options_.get(); }

private:
    friend class Instance;
    Options &also(int status) {
        detail::check(status);
        return *this;
    }
    std::unique_ptr<titin_options, void (*)(titin_options *)> options_;
    std::shared_ptr<detail::Interrupt> interrupt_;
    std::shared_ptr<void> kept_;
};

} // namespace titin

#endif
