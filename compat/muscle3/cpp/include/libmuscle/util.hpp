// A value or nothing, for C++14.
#ifndef TITIN_LIBMUSCLE_UTIL_HPP
#define TITIN_LIBMUSCLE_UTIL_HPP

#include <memory>
#include <ostream>

namespace libmuscle {

/// A value of type T, or nothing.
template <class T>
class Optional {
public:
    Optional() = default;
    Optional(const T &value) : value_(new T(value)) {}
    Optional(const Optional &other) : value_(other.value_ ? new T(*other.value_) : nullptr) {}
    Optional(Optional &&) noexcept = default;
    Optional &operator=(const Optional &other) {
        value_.reset(other.value_ ? new T(*other.value_) : nullptr);
        return *this;
    }
    Optional &operator=(Optional &&) noexcept = default;

    bool is_set() const { return value_ != nullptr; }
    /// The value, which must be there.
    const T &get() const { return *value_; }
    T &get() { return *value_; }

    bool operator==(const Optional &other) const {
        return value_ && other.value_ ? *value_ == *other.value_ : !value_ && !other.value_;
    }
    bool operator!=(const Optional &other) const { return !(*this == other); }

private:
    std::unique_ptr<T> value_;
};

template <class T>
std::ostream &operator<<(std::ostream &stream, const Optional<T> &optional) {
    return optional.is_set() ? stream << optional.get() : stream << "None";
}

} // namespace libmuscle

#endif
