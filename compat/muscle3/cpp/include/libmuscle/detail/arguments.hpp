// What the command line and the environment say about the instance and its run.
#ifndef TITIN_LIBMUSCLE_DETAIL_ARGUMENTS_HPP
#define TITIN_LIBMUSCLE_DETAIL_ARGUMENTS_HPP

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace libmuscle {
namespace detail {

/// The value of `--muscle-NAME=` on the command line, else of the environment variable; empty for neither.
inline std::string argument(int argc, const char *const argv[], const std::string &name, const char *variable) {
    const std::string option = "--muscle-" + name + "=";
    for (int i = 1; i < argc && argv[i]; ++i) {
        const std::string given = argv[i];
        if (given.compare(0, option.size(), option) == 0) return given.substr(option.size());
    }
    const char *value = variable ? std::getenv(variable) : nullptr;
    return value ? value : "";
}

/// Throws std::runtime_error if this is the address of a manager of MUSCLE3: one of titin's comes with a secret.
inline void refuse_muscle3(const std::string &manager) {
    if (manager.compare(0, 4, "tcp:") != 0 || std::getenv("TITIN_SECRET")) return;
    throw std::runtime_error(
        manager + " is a MUSCLE3 manager, and this program was built with titin: start the model by titin's `muscle_manager`"
                  " (of titin-muscle3) or by `titin run`, or build the program with MUSCLE3's own library");
}

/// Added to an error of joining a run, if neither the command line nor the environment names the instance.
inline std::string advice(const std::string &instance) {
    if (!instance.empty() || std::getenv("TITIN_INSTANCE")) return "";
    return ". Or start the model by `muscle_manager --start-all`, or give --muscle-instance=NAME and --muscle-manager=LOCATION";
}

} // namespace detail
} // namespace libmuscle

#endif
