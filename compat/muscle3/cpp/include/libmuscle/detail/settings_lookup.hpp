// Which settings an instance sees, and by which names.
#ifndef TITIN_LIBMUSCLE_DETAIL_SETTINGS_LOOKUP_HPP
#define TITIN_LIBMUSCLE_DETAIL_SETTINGS_LOOKUP_HPP

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <ymmsl/identity.hpp>
#include <ymmsl/settings.hpp>

namespace libmuscle {
namespace detail {

/// The names under which a program can ask for settings: those of one part, and those below the instance without it.
inline std::vector<std::string> names_for(const ymmsl::Reference &instance, const ymmsl::Settings &settings) {
    std::set<std::string> names;
    for (const auto &setting : settings) {
        const ymmsl::Reference &name = setting.first;
        if (name.length() == 1) names.insert(std::string(name));
        else if (name.length() > instance.length() && std::equal(instance.begin(), instance.end(), name.begin()))
            names.insert(std::string(ymmsl::Reference(name.begin() + static_cast<long>(instance.length()), name.end())));
    }
    return {names.begin(), names.end()};
}

/// The setting of the most specific name: `macro[3].dt`, then `macro.dt`, then `dt`; nullptr without one.
inline const ymmsl::SettingValue *setting_for(const ymmsl::Reference &instance, const std::string &name,
                                              const ymmsl::Settings &settings) {
    for (std::size_t parts = instance.length() + 1; parts-- > 0;) {
        const ymmsl::Reference known =
            parts ? ymmsl::Reference(instance.begin(), instance.begin() + static_cast<long>(parts)) + ymmsl::Reference(name)
                  : ymmsl::Reference(name);
        if (settings.contains(known)) return &settings.at(known);
    }
    return nullptr;
}

} // namespace detail
} // namespace libmuscle

#endif
