// Arrays: types of elements, shapes, memory of the program, views of received arrays.
#ifndef TITIN_ARRAY_HPP
#define TITIN_ARRAY_HPP

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

#include "titin/error.hpp"

namespace titin {

/// Which index varies fastest in memory: the last, as in C, or the first, as in Fortran.
enum class Order { C = TITIN_ORDER_C, Fortran = TITIN_ORDER_FORTRAN };

/// An element of TITIN_BF16: the upper 16 bits of a float. std::bfloat16_t if the compiler has that type, else this struct.
#if defined(__STDCPP_BFLOAT16_T__)
using bfloat16 = std::bfloat16_t;
#else
struct bfloat16 {
    bfloat16() = default;
    /// Rounds to the nearest number, and halfway between two to the even one.
    explicit bfloat16(float number) {
        std::uint32_t wide;
        std::memcpy(&wide, &number, sizeof wide);
        // A carry would turn some NaNs into an infinity. So a NaN keeps its sign and becomes quiet.
        if (number != number) bits = std::uint16_t(wide >> 16 | 0x40);
        else bits = std::uint16_t((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
    operator float() const {
        const std::uint32_t wide = std::uint32_t(bits) << 16;
        float number;
        std::memcpy(&number, &wide, sizeof number);
        return number;
    }
    std::uint16_t bits;
};
#endif

namespace detail {

/// Number of an element type; 0 if arrays of the type cannot be sent. A plain char and a wchar_t are signed here on every
/// machine, as on x86-64. Otherwise programs for different processors could not exchange them.
template <class T>
constexpr int dtype() {
    if constexpr (std::is_same_v<T, bool>) return TITIN_BOOL;
    else if constexpr (std::is_same_v<T, float>) return TITIN_F32;
    else if constexpr (std::is_same_v<T, double>) return TITIN_F64;
    else if constexpr (std::is_same_v<T, std::complex<float>>) return TITIN_C64;
    else if constexpr (std::is_same_v<T, std::complex<double>>) return TITIN_C128;
    else if constexpr (std::is_same_v<T, bfloat16>) return TITIN_BF16;
#if defined(__STDCPP_FLOAT16_T__)
    else if constexpr (std::is_same_v<T, std::float16_t>) return TITIN_F16;
#endif
    else if constexpr (std::is_same_v<T, std::byte>) return TITIN_U8;
    else if constexpr (std::is_same_v<T, char>) return TITIN_I8;
    else if constexpr (std::is_same_v<T, wchar_t>) return sizeof(T) == 4 ? TITIN_I32 : TITIN_I16;
    else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8)
        return (std::is_signed_v<T> ? TITIN_I8 : TITIN_U8) +
               (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3);
    else return 0;
}

/// Elements that are arrays of fixed size count as dimensions: std::vector<std::array<double, 3>> has rank 2.
template <class T>
struct Element {
    using Scalar = std::remove_cv_t<T>;
    static constexpr int rank = 0;
    static void extents(std::int64_t *) {}
};
template <class T, std::size_t N>
struct Element<T[N]> {
    using Scalar = typename Element<T>::Scalar;
    static constexpr int rank = 1 + Element<T>::rank;
    static void extents(std::int64_t *out) {
        out[0] = std::int64_t(N);
        Element<T>::extents(out + 1);
    }
};
template <class T, std::size_t N>
struct Element<const T[N]> : Element<T[N]> {};
template <class T, std::size_t N>
struct Element<std::array<T, N>> : Element<T[N]> {
    static_assert(sizeof(std::array<T, N>) == N * sizeof(T), "no room between elements");
};
template <class T, std::size_t N>
struct Element<const std::array<T, N>> : Element<std::array<T, N>> {};

template <class T>
inline constexpr bool is_sendable = dtype<typename Element<T>::Scalar>() != 0;

/// A copy of the elements.
template <class T>
std::vector<T> copied(const T *elements, std::size_t count) {
    try {
        // Parentheses, since braces would make a vector of two elements where a pointer converts to the type, as to bool.
        return std::vector<T>(elements, elements + count);
    } catch (const std::bad_alloc &) {
        throw OutOfMemory("no memory for a copy of " + std::to_string(count * sizeof(T)) + " bytes");
    }
}

/// As dtype; fails to compile for a type without a number.
template <class T>
constexpr int known_dtype() {
    static_assert(dtype<T>() != 0, "arrays hold bool, integers of up to 64 bits, float, double, std::complex of these, or bfloat16");
    return dtype<T>();
}

} // namespace detail

/// Extents of an array: {nx, ny} of any integers, or a container of integers.
class Extents {
public:
    struct One {
        template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
        One(T extent) : value(std::int64_t(extent)) {}
        std::int64_t value;
    };

    /// No extents, for a single element; or one for each dimension.
    Extents() = default;
    Extents(std::initializer_list<One> extents) {
        for (const One &extent : extents) push(extent.value);
    }
    template <class Range, class = decltype(std::begin(std::declval<const Range &>()))>
    explicit Extents(const Range &extents) {
        for (const auto &extent : extents) push(std::int64_t(extent));
    }

    /// Adds a dimension.
    void push(std::int64_t extent) {
        if (rank_ == TITIN_MAX_RANK) throw UsageError("an array has at most 32 dimensions, and more were given");
        values_[rank_++] = extent;
    }
    /// The number of dimensions, and their extents.
    int rank() const { return rank_; }
    const std::int64_t *data() const { return values_; }
    std::int64_t operator[](int dimension) const { return values_[dimension]; }
    /// The number of elements.
    std::int64_t elements() const {
        std::int64_t product = 1;
        for (int i = 0; i < rank_; ++i) product *= values_[i];
        return product;
    }

private:
    int rank_ = 0;
    std::int64_t values_[TITIN_MAX_RANK];
};

/// An array in the program's memory: a pointer or container, extents, and order or strides. `Span(u, {ny, nx})` gives a
/// flat container a shape. `Span(u, {n}, {stride})` has strides in elements, which may be negative for a pointer. A pointer
/// points to the element whose indices are all zero.
template <class T>
class Span {
public:
    /// A pointer or a flat container, with extents and an order, or with extents and strides in elements.
    Span(T *data, const Extents &extents, Order order = Order::C) : data_(data), extents_(extents), order_(order) {}
    Span(T *data, const Extents &extents, const Extents &strides)
        : data_(data), extents_(extents), strides_(strides), strided_(true) {
        if (strides.rank() != extents.rank()) throw UsageError("an array needs one stride for each extent");
    }
    template <class Container, class = decltype(std::data(std::declval<Container &>()))>
    Span(Container &&flat, const Extents &extents, Order order = Order::C) : Span(std::data(flat), extents, order) {
        if (std::int64_t(std::size(flat)) != extents.elements())
            throw UsageError("a container of " + std::to_string(std::size(flat)) + " elements was given for an array of " +
                             std::to_string(extents.elements()) + ": it has to have as many");
    }
    template <class Container, class = decltype(std::data(std::declval<Container &>()))>
    Span(Container &&flat, const Extents &extents, const Extents &strides) : Span(std::data(flat), extents, strides) {
        std::int64_t needed = extents.elements() > 0 ? 1 : 0;
        for (int i = 0; i < extents.rank() && needed > 0; ++i) {
            if (strides[i] < 0)
                throw UsageError("a negative stride leads out of a container; give a pointer to the element at all zeros");
            needed += (extents[i] - 1) * strides[i];
        }
        if (std::int64_t(std::size(flat)) < needed)
            throw UsageError("a container of " + std::to_string(std::size(flat)) +
                             " elements was given for an array that reaches over " + std::to_string(needed) +
                             ": it has to have at least as many");
    }

    /// What the array was made of; strides are nullptr for an array without gaps.
    T *data() const { return data_; }
    const Extents &extents() const { return extents_; }
    const Extents *strides() const { return strided_ ? &strides_ : nullptr; }
    Order order() const { return order_; }

private:
    T *data_;
    Extents extents_, strides_;
    Order order_ = Order::C;
    bool strided_ = false;
};
template <class Container, class... Rest>
Span(Container &&, const Extents &, Rest...)
    -> Span<std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;
template <class Container>
Span(Container &&, const Extents &, const Extents &)
    -> Span<std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;
template <class T, class... Rest>
Span(T *, const Extents &, Rest...) -> Span<T>;

/// A view of an array in a message or value. A view lives as long as the message or value; its elements do not change.
template <class T>
class View {
    static_assert(std::is_const_v<T>, "the data of a message are read-only; copy them to change them");

public:
    /// The type of the elements.
    using value_type = std::remove_const_t<T>;

    /// Made by Message::array and ValueView::array.
    View(T *data, const Extents &extents, Order order) : data_(data), extents_(extents), order_(order) {}

    /// The elements; the number of dimensions, their extents and order; the number of elements.
    T *data() const { return data_; }
    int rank() const { return extents_.rank(); }
    std::int64_t extent(int dimension) const { return extents_[dimension]; }
    const Extents &extents() const { return extents_; }
    Order order() const { return order_; }
    std::size_t size() const { return std::size_t(extents_.elements()); }
    bool empty() const { return size() == 0; }
    /// Elements in the order of memory. By these functions a view converts to std::span.
    T *begin() const { return data_; }
    T *end() const { return data_ + size(); }
    T &operator[](std::size_t index) const { return data_[index]; }
    /// The element at an index per dimension, from 0, in either order of memory.
    template <class... Index>
    T &operator()(Index... index) const {
        if (int(sizeof...(Index)) != rank())
            throw TypeMismatch(std::to_string(sizeof...(Index)) + " indices were given for an array of rank " +
                               std::to_string(rank()) + ": give one for each dimension");
        const std::int64_t indices[sizeof...(Index) + 1] = {std::int64_t(index)...};
        std::int64_t place = 0;
        for (int step = 0; step < rank(); ++step) {
            const int i = order_ == Order::C ? step : rank() - 1 - step;
            place = place * extents_[i] + indices[i];
        }
        return data_[place];
    }
    /// A copy of the elements, in the order of memory.
    std::vector<value_type> vector() const { return detail::copied(begin(), size()); }
#if defined(__cpp_lib_mdspan)
    /// The view as an mdspan of this rank.
    template <std::size_t Rank>
    auto mdspan() const {
        if (rank() != int(Rank))
            throw TypeMismatch("expected an array of rank " + std::to_string(Rank) + ", found one of rank " +
                               std::to_string(rank()));
        std::array<std::int64_t, Rank> extents{}, strides{};
        for (std::size_t i = 0; i < Rank; ++i) extents[i] = extents_[int(i)];
        std::int64_t next = 1;
        for (std::size_t step = 0; step < Rank; ++step) {
            const std::size_t i = order_ == Order::C ? Rank - 1 - step : step;
            strides[i] = next;
            next *= extents[i];
        }
        using Dynamic = std::dextents<std::int64_t, Rank>;
        const std::layout_stride::mapping<Dynamic> mapping(Dynamic(extents), strides);
        return std::mdspan<T, Dynamic, std::layout_stride>(data_, mapping);
    }
#endif

private:
    T *data_;
    Extents extents_;
    Order order_;
};

} // namespace titin

#endif
