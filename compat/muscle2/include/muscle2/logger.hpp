// Records of the run's log, with formats as for printf.
#ifndef TITIN_MUSCLE2_LOGGER_HPP
#define TITIN_MUSCLE2_LOGGER_HPP

#include <cstdarg>

#include "detail/core.h"
#include "muscle_types.h"

namespace muscle {

/// Levels below `info` go to the log as records for debugging. Before env::init, and on other ranks than 0, records go to
/// standard error, `config` and below nowhere.
class logger {
public:
#define TITIN_MUSCLE2_LEVEL(name, level)                                                                                       \
    static void name(const char *format, ...) {                                                                                \
        std::va_list arguments;                                                                                                \
        va_start(arguments, format);                                                                                           \
        titin_muscle2_log(level, format, arguments);                                                                           \
        va_end(arguments);                                                                                                     \
    }
    TITIN_MUSCLE2_LEVEL(severe, MUSCLE_LOG_SEVERE)
    TITIN_MUSCLE2_LEVEL(warning, MUSCLE_LOG_WARNING)
    TITIN_MUSCLE2_LEVEL(info, MUSCLE_LOG_INFO)
    TITIN_MUSCLE2_LEVEL(config, MUSCLE_LOG_CONFIG)
    TITIN_MUSCLE2_LEVEL(fine, MUSCLE_LOG_FINE)
    TITIN_MUSCLE2_LEVEL(finer, MUSCLE_LOG_FINER)
    TITIN_MUSCLE2_LEVEL(finest, MUSCLE_LOG_FINEST)
#undef TITIN_MUSCLE2_LEVEL

    static void log_message(muscle_loglevel_t level, const char *format, ...) {
        std::va_list arguments;
        va_start(arguments, format);
        titin_muscle2_log(level, format, arguments);
        va_end(arguments);
    }
    /// The log takes every record of an open instance; `titin logs` chooses.
    static bool isLoggable(muscle_loglevel_t level) { return titin_muscle2_is_main() || level <= MUSCLE_LOG_INFO; }
};

} // namespace muscle

#endif
