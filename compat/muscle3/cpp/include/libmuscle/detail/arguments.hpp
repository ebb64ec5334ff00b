// What the command line and the environment say about the instance and its run.
#ifndef TITIN_LIBMUSCLE_DETAIL_ARGUMENTS_HPP
#define TITIN_LIBMUSCLE_DETAIL_ARGUMENTS_HPP

#include <cstdlib>
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

/// Added to an error of joining the run at this address.
inline std::string advice(const std::string &manager) {
    if (manager.compare(0, 4, "tcp:") != 0) return "";
    return ". If " + manager + " is a manager of MUSCLE3, start the model by titin: titin run, titin manager, or the muscle_manager"
                              " of titin-muscle3. A program that was built with titin cannot join a run of MUSCLE3";
}

} // namespace detail
} // namespace libmuscle

#endif
