// Several instances in one process.
#ifndef TITIN_HOST_HPP
#define TITIN_HOST_HPP

#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "titin/instance.hpp"

namespace titin {

/// An instance of a process with several instances: name, ports as text (or empty), and the instance's function.
struct Guest {
    std::string name, ports;
    std::function<void(Instance &)> entry;
};

namespace detail {

/// The arguments of the C calls that host instances.
struct Guests {
    explicit Guests(const std::vector<Guest> &guests) : count(int(guests.size())), entries(guests.size(), enter) {
        for (const Guest &guest : guests) {
            names.push_back(guest.name.c_str());
            ports.push_back(guest.ports.empty() ? nullptr : guest.ports.c_str());
            data.push_back(const_cast<Guest *>(&guest));
        }
    }

    static int enter(titin_instance *raw, void *guest) {
        try {
            Instance instance = Instance::borrow(raw);
            static_cast<const Guest *>(guest)->entry(instance);
            return 0;
        } catch (const Pending &) {
            return TITIN_PENDING;
        } catch (const std::exception &error) {
            // If this exception is the thread's last error already, the error keeps its kind.
            if (std::strcmp(titin_error(), error.what()) != 0) titin_set_error(error.what());
        } catch (...) {
            titin_set_error("an exception of a type that is not known");
        }
        return 1;
    }

    int count;
    std::vector<const char *> names, ports;
    std::vector<titin_entry> entries;
    std::vector<void *> data;
};

} // namespace detail

/// Opens each instance in a thread of its own, calls its entry, closes the instance, and waits for all. An exception in an
/// entry fails the run with its text. Throws the first error. The options are for all instances.
inline void host(const std::vector<Guest> &guests, const Options &options = Options()) {
    detail::Guests all(guests);
    detail::check(titin_host(all.count, all.names.data(), all.ports.data(), all.entries.data(), all.data.data(),
                             options.raw()));
}

/// Runs many light instances on a few threads, the calling thread among them. An entry is called when its instance can go
/// on, each time from the beginning of the entry. So the captures of the entry must hold how far the instance has come. A
/// call that cannot go on throws Pending, which the entry does not catch. The next time the entry makes the same call
/// first, with the same data. When the entry returns the instance is closed.
inline void host_steps(const std::vector<Guest> &guests, int threads, const Options &options = Options()) {
    detail::Guests all(guests);
    detail::check(titin_host_steps(all.count, all.names.data(), all.ports.data(), all.entries.data(),
                                   all.data.data(), threads, options.raw()));
}

} // namespace titin

#endif
