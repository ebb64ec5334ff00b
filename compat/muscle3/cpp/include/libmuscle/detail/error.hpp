// Errors of titin as exceptions.
#ifndef TITIN_LIBMUSCLE_DETAIL_ERROR_HPP
#define TITIN_LIBMUSCLE_DETAIL_ERROR_HPP

#include <stdexcept>
#include <string>
#include <typeinfo>

#include <titin.h>

namespace libmuscle {
namespace detail {

/// A number that does not fit into the type asked for.
class OutOfRange : public std::bad_cast {
public:
    const char *what() const noexcept override { return "the number does not fit into the type asked for"; }
};

/// Throws the last error of this thread: std::logic_error if the call itself is wrong, std::runtime_error otherwise.
[[noreturn]] inline void raise() {
    const int kind = titin_error_kind();
    const std::string text = titin_error_in("C++");
    if (kind == TITIN_ERROR_USAGE || kind == TITIN_ERROR_CALL_ORDER) throw std::logic_error(text);
    throw std::runtime_error(text);
}

/// Throws unless the status is 0.
inline void check(int status) {
    if (status) raise();
}

/// Throws for a null pointer, else returns the pointer.
template <class T>
T *check(T *pointer) {
    if (!pointer) raise();
    return pointer;
}

} // namespace detail
} // namespace libmuscle

#endif
