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

/// A program of several instances in one process: name, ports as text (or empty), what it does.
struct Guest {
    std::string name, ports;
    std::function<void(Instance &)> entry;
};

/// Opens each instance in a thread of its own, calls its entry, closes it, and waits for all. An exception in an entry
/// fails the run with its text; the first error is thrown. The options are for all of them.
inline void host(const std::vector<Guest> &guests, const Options &options = Options()) {
    std::vector<const char *> names, ports;
    std::vector<titin_entry> entries;
    std::vector<void *> data;
    const titin_entry entry = [](titin_instance *raw, void *guest) {
        try {
            Instance instance = Instance::borrow(raw);
            static_cast<const Guest *>(guest)->entry(instance);
            return 0;
        } catch (const std::exception &error) {
            // An error of titin is known already, with its kind.
            if (std::strcmp(titin_error(), error.what()) != 0) titin_set_error(error.what());
        } catch (...) {
            titin_set_error("an exception of a type that is not known");
        }
        return 1;
    };
    for (const Guest &guest : guests) {
        names.push_back(guest.name.c_str());
        ports.push_back(guest.ports.empty() ? nullptr : guest.ports.c_str());
        entries.push_back(entry);
        data.push_back(const_cast<Guest *>(&guest));
    }
    detail::check(titin_host(int(guests.size()), names.data(), ports.data(), entries.data(), data.data(),
                             options.raw()));
}

} // namespace titin

#endif
