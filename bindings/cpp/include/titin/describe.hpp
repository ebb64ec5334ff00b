// Arrays of the program as the C interface takes them: any type with elements, a shape and strides.
#ifndef TITIN_DESCRIBE_HPP
#define TITIN_DESCRIBE_HPP

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "titin/array.hpp"

namespace titin {

namespace detail {

/// The description of an array for the C interface.
struct Array {
    int dtype;
    const void *data;
    Extents extents;
    bool strided = false;
    std::int64_t strides[TITIN_MAX_RANK];
    int order = TITIN_ORDER_C;
};

template <class T>
Array describe(const T *data, const Extents &extents, Order order = Order::C) {
    using Scalar = std::remove_cv_t<T>;
    Array array;
    array.dtype = known_dtype<Scalar>();
    array.data = data;
    array.extents = extents;
    array.order = int(order);
    return array;
}

template <class T>
Array describe(const Span<T> &span) {
    Array array = describe(span.data(), span.extents(), span.order());
    if (const Extents *strides = span.strides()) {
        array.strided = true;
        for (int i = 0; i < strides->rank(); ++i) array.strides[i] = (*strides)[i] * std::int64_t(sizeof(T));
    }
    return array;
}

template <class T>
Array describe(const View<T> &view) {
    return describe(view.data(), view.extents(), view.order());
}

template <class T, class = void>
struct IsMdspan : std::false_type {};
template <class T>
struct IsMdspan<T, std::void_t<typename T::layout_type, decltype(std::declval<const T &>().data_handle()),
                               decltype(std::declval<const T &>().stride(0))>> : std::true_type {};

template <class T, class = void>
struct IsContainer : std::false_type {};
template <class T>
struct IsContainer<T, std::void_t<decltype(std::data(std::declval<T &>())), decltype(std::size(std::declval<T &>()))>>
    : std::bool_constant<is_sendable<std::remove_reference_t<decltype(*std::data(std::declval<T &>()))>>> {};

/// std::mdspan, or a similar type from before C++23.
template <class T>
std::enable_if_t<IsMdspan<T>::value, Array> describe(const T &span) {
    Array array = describe(span.data_handle(), Extents());
    array.strided = true;
    for (std::size_t i = 0; i < T::rank(); ++i) {
        array.extents.push(std::int64_t(span.extent(i)));
        array.strides[i] = std::int64_t(span.stride(i)) * std::int64_t(sizeof(typename T::element_type));
    }
    return array;
}

/// Contiguous containers: std::vector, std::array, std::span, arrays of C, also of arrays of fixed size.
template <class T>
std::enable_if_t<IsContainer<T>::value && !IsMdspan<T>::value, Array> describe(const T &container) {
    using Item = std::remove_reference_t<decltype(*std::data(container))>;
    using Scalar = typename Element<Item>::Scalar;
    Array array = describe(reinterpret_cast<const Scalar *>(std::data(container)), {std::size(container)});
    std::int64_t inner[TITIN_MAX_RANK];
    Element<Item>::extents(inner);
    for (int i = 0; i < Element<Item>::rank; ++i) array.extents.push(inner[i]);
    return array;
}

/// The elements of a std::vector<bool>, which holds bits, as an array of bool.
inline std::unique_ptr<bool[]> unpacked(const std::vector<bool> &bits) {
    std::unique_ptr<bool[]> flags(new bool[bits.size()]);
    std::copy(bits.begin(), bits.end(), flags.get());
    return flags;
}

/// Whether an array may be written to.
template <class T>
constexpr bool is_writable() {
    if constexpr (IsMdspan<std::remove_cv_t<T>>::value) return !std::is_const_v<typename T::element_type>;
    else return !std::is_const_v<std::remove_reference_t<decltype(*std::data(std::declval<T &>()))>>;
}

template <class T>
inline constexpr bool is_text =
    std::is_convertible_v<const T &, std::string> || std::is_convertible_v<const T &, std::string_view>;

template <class T, class = void>
struct IsArray : std::false_type {};
template <class T>
struct IsArray<T, std::void_t<decltype(describe(std::declval<const T &>()))>> : std::bool_constant<!is_text<T>> {};

template <class T, class = void>
struct IsRange : std::false_type {};
template <class T>
struct IsRange<T, std::void_t<decltype(*std::begin(std::declval<T &>()))>> : std::true_type {};

/// Whether a type is an array, a pointer to elements, or a container of these.
template <class T>
constexpr bool is_array_or_several() {
    if constexpr (std::is_pointer_v<T>) return is_sendable<std::remove_pointer_t<T>>;
    else if constexpr (IsArray<std::remove_cv_t<T>>::value) return true;
    else if constexpr (IsRange<T>::value && !std::is_same_v<std::remove_cv_t<T>, std::vector<bool>> && !is_text<T>)
        return is_array_or_several<std::remove_reference_t<decltype(*std::begin(std::declval<T &>()))>>();
    else return false;
}

/// Whether a type owns its elements, as std::vector does: a const object then has const elements. A span does not.
template <class T>
constexpr bool owns() {
    if constexpr (std::is_pointer_v<T>) return false;
    else if constexpr (std::is_array_v<T>) return true;
    else if constexpr (IsMdspan<T>::value) return false;
    else if constexpr (IsContainer<T>::value)
        return std::is_const_v<std::remove_reference_t<decltype(*std::data(std::declval<const T &>()))>> &&
               !std::is_const_v<std::remove_reference_t<decltype(*std::data(std::declval<T &>()))>>;
    else if constexpr (IsRange<T>::value && !IsArray<T>::value)
        return owns<std::remove_cv_t<std::remove_reference_t<decltype(*std::begin(std::declval<T &>()))>>>();
    else return false;
}

/// Fails to compile where a program receives into a type that cannot be written to: an array, or for a field several. `Given`
/// is the T of the argument T &&.
template <class Given, bool several>
constexpr void receivable() {
    using T = std::remove_reference_t<Given>;
    static_assert(several ? is_array_or_several<T>() : IsArray<std::remove_cv_t<T>>::value,
                  "what is received into is a std::vector, std::array, span, T[n] or titin::Span; for a field a pointer or a "
                  "container of these, too. std::vector<bool> keeps bits, and std::list has its elements apart");
    static_assert(std::is_lvalue_reference_v<Given> || !owns<std::remove_cv_t<T>>(),
                  "what is received into a temporary would be lost: give an array that has a name");
}

template <class T>
inline constexpr bool is_number = std::is_floating_point_v<T> || (std::is_integral_v<T> && sizeof(T) <= 8);

} // namespace detail

} // namespace titin

#endif
