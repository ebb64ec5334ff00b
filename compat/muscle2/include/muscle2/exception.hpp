// The exception of MUSCLE 2's interface for C++.
#ifndef TITIN_MUSCLE2_EXCEPTION_HPP
#define TITIN_MUSCLE2_EXCEPTION_HPP

#include <exception>
#include <stdexcept>
#include <string>

namespace muscle {

/// An error of a call. The text says what failed, and what to do. Unlike MUSCLE 2's it is not logged when it is made.
class muscle_exception : public std::runtime_error {
public:
    const int error_code;

    muscle_exception(const std::exception &error) : std::runtime_error(error.what()), error_code(0) {}
    muscle_exception(const std::string &text) : std::runtime_error(text), error_code(0) {}
    muscle_exception(const std::string &text, int code) : std::runtime_error(text), error_code(code) {}
    muscle_exception(const std::string &text, int code, bool /* silent */) : std::runtime_error(text), error_code(code) {}
};

} // namespace muscle

#endif
