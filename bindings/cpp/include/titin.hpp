// titin: coupling of simulation codes, from C++17 and later. Header only, over the C interface (titin.h).
//
//     titin::Instance instance({{titin::F_INIT, {"initial_state"}}, {titin::O_F, {"final_state"}}});
//     while (instance.reuse()) {
//         const auto k = instance.setting<double>("k");
//         const auto msg = instance.receive("initial_state");
//         const auto u0 = msg.array<double>();              // a view into the message
//         std::vector<double> u(u0.begin(), u0.end());
//         ...
//         instance.send("final_state", u, t);
//     }
//
// Every call that fails throws titin::Error or a class below it. Which calls wait, and which threads may call, is as in
// titin.h: any thread may, but only one at a time on one port. Names of ports and settings are text that ends with a NUL
// (string literals, std::string).
#ifndef TITIN_HPP
#define TITIN_HPP

#include <array>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

#include "titin.h"

namespace titin {

// ---- Errors ---------------------------------------------------------------------------------------------------------

/// Everything that titin throws. The text says what failed, why, and what to do.
class Error : public std::runtime_error {
public:
    Error(int kind, const std::string &text) : std::runtime_error(text), kind_(kind) {}
    /// Its number, TITIN_ERROR_USAGE and so on.
    int kind() const noexcept { return kind_; }

private:
    int kind_;
};

namespace detail {
template <int Kind>
struct Kinded : Error {
    explicit Kinded(const std::string &text) : Error(Kind, text) {}
};
} // namespace detail

struct UsageError : detail::Kinded<TITIN_ERROR_USAGE> { using Kinded::Kinded; };
struct CallOrderError : detail::Kinded<TITIN_ERROR_CALL_ORDER> { using Kinded::Kinded; };
struct SettingError : detail::Kinded<TITIN_ERROR_SETTING> { using Kinded::Kinded; };
struct TypeMismatch : detail::Kinded<TITIN_ERROR_TYPE_MISMATCH> { using Kinded::Kinded; };
struct Timeout : detail::Kinded<TITIN_ERROR_TIMEOUT> { using Kinded::Kinded; };
struct PortClosed : detail::Kinded<TITIN_ERROR_PORT_CLOSED> { using Kinded::Kinded; };
struct PeerLost : detail::Kinded<TITIN_ERROR_PEER_LOST> { using Kinded::Kinded; };
struct Deadlock : detail::Kinded<TITIN_ERROR_DEADLOCK> { using Kinded::Kinded; };
struct ConnectionFailed : detail::Kinded<TITIN_ERROR_CONNECTION> { using Kinded::Kinded; };
struct OutOfMemory : detail::Kinded<TITIN_ERROR_NO_MEMORY> { using Kinded::Kinded; };
struct Forked : detail::Kinded<TITIN_ERROR_FORKED> { using Kinded::Kinded; };
struct InternalError : detail::Kinded<TITIN_ERROR_INTERNAL> { using Kinded::Kinded; };
struct Interrupted : detail::Kinded<TITIN_ERROR_INTERRUPTED> { using Kinded::Kinded; };
struct FilterError : detail::Kinded<TITIN_ERROR_FILTER> { using Kinded::Kinded; };
struct Closed : detail::Kinded<TITIN_ERROR_CLOSED> { using Kinded::Kinded; };

namespace detail {

/// Throws this thread's last error.
[[noreturn]] inline void raise() {
    const std::string text = titin_error();
    switch (const int kind = titin_error_kind()) {
    case TITIN_ERROR_USAGE: throw UsageError(text);
    case TITIN_ERROR_CALL_ORDER: throw CallOrderError(text);
    case TITIN_ERROR_SETTING: throw SettingError(text);
    case TITIN_ERROR_TYPE_MISMATCH: throw TypeMismatch(text);
    case TITIN_ERROR_TIMEOUT: throw Timeout(text);
    case TITIN_ERROR_PORT_CLOSED: throw PortClosed(text);
    case TITIN_ERROR_PEER_LOST: throw PeerLost(text);
    case TITIN_ERROR_DEADLOCK: throw Deadlock(text);
    case TITIN_ERROR_CONNECTION: throw ConnectionFailed(text);
    case TITIN_ERROR_NO_MEMORY: throw OutOfMemory(text);
    case TITIN_ERROR_FORKED: throw Forked(text);
    case TITIN_ERROR_INTERNAL: throw InternalError(text);
    case TITIN_ERROR_INTERRUPTED: throw Interrupted(text);
    case TITIN_ERROR_FILTER: throw FilterError(text);
    case TITIN_ERROR_CLOSED: throw Closed(text);
    default: throw Error(kind, text);
    }
}

inline void check(int status) {
    if (status != TITIN_OK) raise();
}

template <class T>
T *check(T *pointer) {
    if (pointer == nullptr) raise();
    return pointer;
}

} // namespace detail

/// Release of the library: "0.1.0".
inline std::string version() { return titin_version(); }

// ---- Types of elements, shapes --------------------------------------------------------------------------------------

/// Operators of the submodel execution loop.
enum Operator { F_INIT = TITIN_F_INIT, O_I = TITIN_O_I, S = TITIN_S, O_F = TITIN_O_F };

/// Which index varies fastest in memory: the last, as in C, or the first, as in Fortran.
enum class Order { C = TITIN_ORDER_C, Fortran = TITIN_ORDER_FORTRAN };

namespace detail {

/// Number of an element type; 0 if arrays of it cannot be sent.
template <class T>
constexpr int dtype() {
    if constexpr (std::is_same_v<T, bool>) return TITIN_BOOL;
    else if constexpr (std::is_same_v<T, float>) return TITIN_F32;
    else if constexpr (std::is_same_v<T, double>) return TITIN_F64;
    else if constexpr (std::is_same_v<T, std::complex<float>>) return TITIN_C64;
    else if constexpr (std::is_same_v<T, std::complex<double>>) return TITIN_C128;
    else if constexpr (std::is_same_v<T, std::byte>) return TITIN_U8;
    else if constexpr (std::is_integral_v<T>)
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

} // namespace detail

/// Extents of an array: {nx, ny} of any integers, or a container of integers.
class Extents {
public:
    struct One {
        template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
        One(T extent) : value(std::int64_t(extent)) {}
        std::int64_t value;
    };

    Extents() = default;
    Extents(std::initializer_list<One> extents) {
        for (const One &extent : extents) push(extent.value);
    }
    template <class Range, class = decltype(std::begin(std::declval<const Range &>()))>
    explicit Extents(const Range &extents) {
        for (const auto &extent : extents) push(std::int64_t(extent));
    }

    void push(std::int64_t extent) {
        if (rank_ == TITIN_MAX_RANK) throw UsageError("an array of more than 32 dimensions");
        values_[rank_++] = extent;
    }
    int rank() const { return rank_; }
    const std::int64_t *data() const { return values_; }
    std::int64_t operator[](int dimension) const { return values_[dimension]; }
    std::int64_t elements() const {
        std::int64_t product = 1;
        for (int i = 0; i < rank_; ++i) product *= values_[i];
        return product;
    }

private:
    int rank_ = 0;
    std::int64_t values_[TITIN_MAX_RANK];
};

/// An array in the program's memory: a pointer or container, its extents, and how the elements lie.
/// `Span(u, {ny, nx})` gives a flat container a shape; `Span(a, {n}, {stride})` has strides in elements.
template <class T>
class Span {
public:
    Span(T *data, const Extents &extents, Order order = Order::C) : data_(data), extents_(extents), order_(order) {}
    Span(T *data, const Extents &extents, const Extents &strides)
        : data_(data), extents_(extents), strides_(strides), strided_(true) {
        if (strides.rank() != extents.rank()) throw UsageError("an array needs one stride for each extent");
    }
    template <class Container, class = decltype(std::data(std::declval<Container &>()))>
    Span(Container &&flat, const Extents &extents, Order order = Order::C) : Span(std::data(flat), extents, order) {
        if (std::int64_t(std::size(flat)) != extents.elements())
            throw UsageError("a container of " + std::to_string(std::size(flat)) + " elements for an array of " +
                             std::to_string(extents.elements()));
    }

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
template <class T, class... Rest>
Span(T *, const Extents &, Rest...) -> Span<T>;

/// A view of an array in a message or value. It lives as long as that; its elements do not change.
template <class T>
class View {
    static_assert(std::is_const_v<T>, "the data of a message are read-only; copy them to change them");

public:
    using value_type = std::remove_const_t<T>;

    View(T *data, const Extents &extents, Order order) : data_(data), extents_(extents), order_(order) {}

    T *data() const { return data_; }
    int rank() const { return extents_.rank(); }
    std::int64_t extent(int dimension) const { return extents_[dimension]; }
    const Extents &extents() const { return extents_; }
    Order order() const { return order_; }
    std::size_t size() const { return std::size_t(extents_.elements()); }
    bool empty() const { return size() == 0; }
    /// Elements as they lie in memory; so a view converts to std::span.
    T *begin() const { return data_; }
    T *end() const { return data_ + size(); }
    T &operator[](std::size_t index) const { return data_[index]; }
    /// The element at an index per dimension, from 0, whichever the order in memory.
    template <class... Index>
    T &operator()(Index... index) const {
        const std::int64_t indices[sizeof...(Index) + 1] = {std::int64_t(index)...};
        std::int64_t place = 0;
        for (int step = 0; step < rank(); ++step) {
            const int i = order_ == Order::C ? step : rank() - 1 - step;
            place = place * extents_[i] + indices[i];
        }
        return data_[place];
    }
    std::vector<value_type> vector() const { return {begin(), end()}; }
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

namespace detail {

/// An array as the C interface takes it.
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
    static_assert(dtype<Scalar>() != 0, "arrays hold bool, integers, float, double or std::complex of these");
    Array array;
    array.dtype = dtype<Scalar>();
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

/// std::mdspan, or a look-alike of an earlier time.
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

template <class T>
inline constexpr bool is_text = std::is_convertible_v<const T &, std::string>;

template <class T, class = void>
struct IsArray : std::false_type {};
template <class T>
struct IsArray<T, std::void_t<decltype(describe(std::declval<const T &>()))>> : std::bool_constant<!is_text<T>> {};

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T>;

inline std::string shown(int dtype, const Extents &extents) {
    const char *name = titin_dtype_name(dtype);
    std::string text = std::string(name ? name : "no array") + " of shape [";
    for (int i = 0; i < extents.rank(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
    return text + "]";
}

} // namespace detail

// ---- Values ---------------------------------------------------------------------------------------------------------

/// What a value or the data of a message are.
enum class Kind {
    Nil = TITIN_KIND_NIL,
    Bool = TITIN_KIND_BOOL,
    Int = TITIN_KIND_INT,
    UInt = TITIN_KIND_UINT,
    Float = TITIN_KIND_FLOAT,
    Text = TITIN_KIND_TEXT,
    Bytes = TITIN_KIND_BYTES,
    Array = TITIN_KIND_ARRAY,
    List = TITIN_KIND_LIST,
    Map = TITIN_KIND_MAP
};

/// A look at a value in a message, or in a Value, for as long as that lives.
class ValueView {
public:
    ValueView() = default;
    explicit ValueView(const titin_value *value) : value_(value) {}

    /// False if there is no value at all.
    explicit operator bool() const { return value_ != nullptr; }
    const titin_value *raw() const { return value_; }
    Kind kind() const { return Kind(titin_value_kind(value_)); }
    bool is_nil() const { return kind() == Kind::Nil; }

    /// bool, an integer or floating-point type, std::string, or a std::vector of these from a list.
    template <class T>
    T as() const {
        if constexpr (std::is_same_v<T, bool>) {
            int flag;
            detail::check(titin_value_bool(value_, &flag));
            return flag != 0;
        } else if constexpr (std::is_floating_point_v<T>) {
            double number;
            detail::check(titin_value_f64(value_, &number));
            return T(number);
        } else if constexpr (std::is_integral_v<T>) {
            return whole<T>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            std::int64_t length;
            const char *text = detail::check(titin_value_text(value_, &length));
            return {text, std::size_t(length)};
        } else {
            T items;
            for (std::int64_t i = 0; i < size_of(Kind::List); ++i)
                items.push_back((*this)[i].template as<typename T::value_type>());
            return items;
        }
    }
    std::vector<std::byte> bytes() const {
        std::int64_t length;
        const auto *data = static_cast<const std::byte *>(detail::check(titin_value_bytes(value_, &length)));
        return {data, data + length};
    }
    /// The array, of exactly this type of element.
    template <class T>
    View<const T> array() const {
        Extents extents;
        for (int i = 0; i < titin_value_rank(value_); ++i) extents.push(titin_value_extent(value_, i));
        if (titin_value_dtype(value_) != detail::dtype<T>())
            throw TypeMismatch(std::string("expected an array of ") + titin_dtype_name(detail::dtype<T>()) +
                               ", the value is " + detail::shown(titin_value_dtype(value_), extents));
        return {static_cast<const T *>(titin_value_data(value_)), extents, Order(titin_value_order(value_))};
    }
    /// Name of an index of the array; empty if it has none.
    std::string index_name(int dimension) const {
        const char *name = titin_value_index_name(value_, dimension);
        return name ? name : "";
    }

    /// Number of entries of a list or map.
    std::int64_t size() const { return titin_value_size(value_); }
    /// Entry of a list or map; name of a map's entry.
    ValueView operator[](std::int64_t index) const { return ValueView(detail::check(titin_value_item(value_, index))); }
    ValueView operator[](int index) const { return (*this)[std::int64_t(index)]; }
    std::string name(std::int64_t index) const { return detail::check(titin_value_name(value_, index)); }
    /// Entry of a map by name.
    ValueView operator[](const char *name) const {
        if (const titin_value *found = titin_value_find(value_, name)) return ValueView(found);
        size_of(Kind::Map);
        throw UsageError(std::string("the map has no entry '") + name + "'");
    }
    ValueView operator[](const std::string &name) const { return (*this)[name.c_str()]; }
    bool contains(const std::string &name) const { return titin_value_find(value_, name.c_str()) != nullptr; }

protected:
    const titin_value *value_ = nullptr;

private:
    std::int64_t size_of(Kind wanted) const {
        if (kind() != wanted) throw TypeMismatch(wanted == Kind::List ? "expected a list" : "expected a map");
        return size();
    }
    template <class T>
    T whole() const {
        if (std::is_unsigned_v<T>) {
            std::uint64_t number;
            detail::check(titin_value_u64(value_, &number));
            if (number <= std::uint64_t(std::numeric_limits<T>::max())) return T(number);
        } else {
            std::int64_t number;
            detail::check(titin_value_i64(value_, &number));
            if (number >= std::int64_t(std::numeric_limits<T>::min()) &&
                (number < 0 || std::uint64_t(number) <= std::uint64_t(std::numeric_limits<T>::max())))
                return T(number);
        }
        throw TypeMismatch("the number does not fit the type of " + std::to_string(sizeof(T)) + " bytes asked for");
    }
};

class Value;

namespace detail {
/// An entry of a braced list, which lets its value be taken out.
struct Item {
    template <class T>
    Item(T &&value);
    mutable std::unique_ptr<titin_value, void (*)(titin_value *)> value;
};
} // namespace detail

/// A tree of maps, lists, text, bytes, numbers, arrays and nil, to be sent.
///     Value::map({{"name", "wall"}, {"flux", 3.5}, {"cells", Value::array(u)}, {"ids", Value::list({1, 2})}})
class Value : public ValueView {
public:
    Value() : Value(titin_new_nil()) {}
    Value(std::nullptr_t) : Value() {}
    template <class T, class = std::enable_if_t<detail::is_number<T>>>
    Value(T number) : Value(fresh(number)) {}
    Value(const char *text) : Value(titin_new_text(text, -1)) {}
    Value(const std::string &text) : Value(titin_new_text(text.data(), std::int64_t(text.size()))) {}
    /// Takes a value of the C interface over.
    explicit Value(titin_value *owned) : ValueView(detail::check(owned)) {}

    Value(Value &&other) noexcept : ValueView(std::exchange(other.value_, nullptr)) {}
    Value &operator=(Value &&other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Value() { titin_value_free(owned()); }

    static Value bytes(const void *data, std::size_t length) {
        return Value(titin_new_bytes(data, std::int64_t(length), 0));
    }
    /// A copy of an array: anything that Instance::send takes as one.
    template <class T>
    static Value array(const T &data) {
        const detail::Array a = detail::describe(data);
        return Value(titin_new_array(a.dtype, a.extents.rank(), a.extents.data(), a.strided ? a.strides : nullptr,
                                     a.order, nullptr, a.data, 0));
    }
    static Value list(std::initializer_list<detail::Item> items = {}) {
        Value list(titin_new_list());
        for (const detail::Item &item : items) detail::check(titin_list_append(list.owned(), item.value.release()));
        return list;
    }
    static Value map(std::initializer_list<std::pair<const char *, detail::Item>> entries = {}) {
        Value map(titin_new_map());
        for (const auto &[name, item] : entries)
            detail::check(titin_map_set(map.owned(), name, item.value.release()));
        return map;
    }
    Value &append(Value item) {
        detail::check(titin_list_append(owned(), item.release()));
        return *this;
    }
    Value &set(const std::string &name, Value item) {
        detail::check(titin_map_set(owned(), name.c_str(), item.release()));
        return *this;
    }
    /// Gives the value away, to be freed with titin_value_free.
    titin_value *release() { return const_cast<titin_value *>(std::exchange(value_, nullptr)); }

private:
    titin_value *owned() { return const_cast<titin_value *>(value_); }
    template <class T>
    static titin_value *fresh(T number) {
        if constexpr (std::is_same_v<T, bool>) return titin_new_bool(number);
        else if constexpr (std::is_floating_point_v<T>) return titin_new_f64(double(number));
        else if constexpr (std::is_unsigned_v<T>) return titin_new_u64(number);
        else return titin_new_i64(number);
    }
};

template <class T>
detail::Item::Item(T &&item)
    : value([&] {
          if constexpr (std::is_constructible_v<Value, T &&>) return Value(std::forward<T>(item)).release();
          else return Value::array(item).release();
      }(), titin_value_free) {}

// ---- Messages -------------------------------------------------------------------------------------------------------

/// A message that was received. Copies share the data, which live until the last copy is gone, past the instance.
class Message {
public:
    /// Takes a message of the C interface over.
    explicit Message(titin_message *owned) : message_(detail::check(owned), titin_message_free) {}
    /// A message of one's own, such as a default for a port that nothing is connected to.
    explicit Message(const Value &data, double timestamp = 0.0, double next_timestamp = TITIN_NO_NEXT)
        : Message(titin_message_new(data.raw(), timestamp, next_timestamp)) {}

    double timestamp() const { return titin_message_timestamp(raw()); }
    std::optional<double> next_timestamp() const {
        if (!titin_message_has_next(raw())) return std::nullopt;
        return titin_message_next_timestamp(raw());
    }
    Kind kind() const { return Kind(titin_message_kind(raw())); }
    bool is_nil() const { return kind() == Kind::Nil; }
    /// The array, of exactly this type of element. A view: it lives as long as this message or a copy of it.
    template <class T>
    View<const T> array() const {
        Extents extents;
        for (int i = 0; i < titin_message_rank(raw()); ++i) extents.push(titin_message_extent(raw(), i));
        if (titin_message_dtype(raw()) != detail::dtype<T>())
            throw TypeMismatch(std::string("expected an array of ") + titin_dtype_name(detail::dtype<T>()) +
                               ", the message carries " + detail::shown(titin_message_dtype(raw()), extents));
        return {static_cast<const T *>(titin_message_data(raw())), extents, Order(titin_message_order(raw()))};
    }
    /// Name of an index of the array; empty if it has none.
    std::string index_name(int dimension) const {
        const char *name = titin_message_index_name(raw(), dimension);
        return name ? name : "";
    }
    /// The data, of whatever kind.
    ValueView value() const { return ValueView(detail::check(titin_message_value(raw()))); }
    /// The settings overlay that came with it; false if none did.
    ValueView settings() const { return ValueView(titin_message_settings(raw())); }
    titin_message *raw() const { return message_.get(); }

private:
    std::shared_ptr<titin_message> message_;
};

// ---- Ports ----------------------------------------------------------------------------------------------------------

/// A port of an instance, and lives as long as that.
class Port {
public:
    explicit Port(titin_port *port) : port_(port) {}
    std::string name() const { return titin_port_name(port_); }
    Operator op() const { return Operator(titin_port_operator(port_)); }
    bool is_vector() const { return titin_port_is_vector(port_) != 0; }
    bool is_resizable() const { return titin_port_is_resizable(port_) != 0; }
    bool is_connected() const { return titin_port_is_connected(port_) != 0; }
    /// Number of slots now, 1 for a port without slots.
    int slots() const { return titin_port_slots(port_); }
    /// Sets the number of slots of a sending, resizable vector port.
    void set_slots(int slots) { detail::check(titin_port_set_slots(port_, slots)); }
    titin_port *raw() const { return port_; }

private:
    titin_port *port_;
};

/// Where to send or receive: a port by name or itself, with a slot if it is a vector port: `{"out", 3}`.
class Slot {
public:
    Slot(const char *port, int slot = TITIN_NO_SLOT) : name_(port), slot_(slot) {}
    Slot(const std::string &port, int slot = TITIN_NO_SLOT) : Slot(port.c_str(), slot) {}
    Slot(const Port &port, int slot = TITIN_NO_SLOT) : port_(port.raw()), slot_(slot) {}
    titin_port *port(titin_instance *instance) const {
        return port_ ? port_ : detail::check(titin_port_find(instance, name_));
    }
    int number() const { return slot_; }

private:
    const char *name_ = nullptr;
    titin_port *port_ = nullptr;
    int slot_;
};

/// Ports by operator: {{titin::O_I, {"state_out"}}, {titin::S, {"state_in[]"}}}; `name[]` is a vector port.
using Ports = std::vector<std::pair<Operator, std::vector<std::string>>>;

/// How to open an instance: `Options().instance("macro").unchecked("explores")`.
class Options {
public:
    Options() : options_(detail::check(titin_options_new()), titin_options_free) {
        detail::check(titin_options_language(raw(), "C++"));
        detail::check(titin_options_exceptions(raw()));
    }
    /// The instance to be, in place of TITIN_INSTANCE.
    Options &&instance(const std::string &name) && { return also(titin_options_instance(raw(), name.c_str())); }
    /// The run to join, in place of TITIN_MANAGER.
    Options &&manager(const std::string &place) && { return also(titin_options_manager(raw(), place.c_str())); }
    /// Switches the check of the order of calls off.
    Options &&unchecked(const std::string &reason) && { return also(titin_options_unchecked(raw(), reason.c_str())); }
    titin_options *raw() const { return options_.get(); }

private:
    Options &&also(int status) {
        detail::check(status);
        return std::move(*this);
    }
    std::unique_ptr<titin_options, void (*)(titin_options *)> options_;
};

// ---- Instances ------------------------------------------------------------------------------------------------------

/// No next timestamp.
inline constexpr double no_next = TITIN_NO_NEXT;

/// A unit for a setting: setting<double>("dt", titin::Unit{"s"}).
struct Unit {
    const char *name;
};

/// Scales that the description gives, in s and m; dx and extent per dimension.
struct Scale {
    std::optional<double> dt, total;
    std::vector<double> dx, extent;
};

/// A stretch of the program's own in the profile, from Instance::region to the end of its scope.
class Region {
public:
    Region(titin_instance *instance, const char *name)
        : instance_(instance), region_(detail::check(titin_region_begin(instance, name))) {}
    Region(Region &&other) noexcept : instance_(other.instance_), region_(std::exchange(other.region_, nullptr)) {}
    Region &operator=(Region &&) = delete;
    ~Region() {
        if (region_) titin_region_end(instance_, region_);
    }

private:
    titin_instance *instance_;
    titin_region *region_;
};

/// What receive_any gives: the port's name, the slot (TITIN_NO_SLOT for none), the message.
struct Received {
    std::string port;
    int slot;
    Message message;
};

/// One running copy of a program, as it takes part in a run.
///
/// Goes out of scope: closes. Left by an exception: fails the run. What goes wrong in closing fails the run too, but only
/// close() can throw it.
class Instance {
public:
    /// Without ports they are those of the description.
    explicit Instance(const Ports &ports = {}, const Options &options = Options())
        : Instance(text(ports).c_str(), options) {}
    /// Ports as text: "f_init: initial_state; o_f: final_state". nullptr: those of the description.
    explicit Instance(const char *ports, const Options &options = Options()) {
        detail::check(titin_open(ports, options.raw(), &instance_));
    }
    Instance(Instance &&other) noexcept
        : instance_(std::exchange(other.instance_, nullptr)), ours_(other.ours_), exceptions_(other.exceptions_),
          interrupt_(std::move(other.interrupt_)) {}
    Instance &operator=(Instance &&other) noexcept {
        std::swap(instance_, other.instance_);
        std::swap(ours_, other.ours_);
        std::swap(exceptions_, other.exceptions_);
        std::swap(interrupt_, other.interrupt_);
        return *this;
    }
    ~Instance() {
        if (!instance_ || !ours_) return;
        if (std::uncaught_exceptions() > exceptions_ && !echo())
            titin_fail(instance_, ("an exception has left the scope of the instance" + last()).c_str());
        if (titin_close(instance_) == TITIN_ERROR_INTERRUPTED) {
            titin_fail(instance_, "interrupted while it was closing");
            titin_close(instance_);
        }
    }
    /// An instance that somebody else closes, such as titin_host.
    static Instance borrow(titin_instance *instance) {
        Instance borrowed{Empty()};
        borrowed.instance_ = instance;
        borrowed.ours_ = false;
        return borrowed;
    }

    /// Ends the instance's part in the run; waits until the receivers hold or have dropped all that was sent.
    void close() {
        if (!ours_) throw UsageError("this instance is closed by its host");
        titin_instance *instance = std::exchange(instance_, nullptr);
        if (!instance) return;
        const int status = titin_close(instance);
        if (status == TITIN_ERROR_INTERRUPTED) instance_ = instance;
        detail::check(status);
    }
    /// Fails the run, with this instance as the culprit and this text as the reason.
    void fail(const std::string &text) { detail::check(titin_fail(instance_, text.c_str())); }
    /// Calls `use` once per use and closes. An exception fails the run with its text, and goes on.
    template <class Use>
    void run(Use &&use) {
        try {
            while (reuse()) use();
            close();
        } catch (const std::exception &error) {
            if (instance_ && !echo()) titin_fail(instance_, error.what());
            throw;
        }
    }

    /// Begins the next use of the submodel: true if there is one. Settings change here.
    bool reuse() {
        int again;
        detail::check(titin_reuse(instance_, &again));
        return again != 0;
    }
    std::string name() const { return detail::check(titin_instance_name(instance_)); }
    /// The directory that was current when the instance was opened.
    std::string workdir() const { return detail::check(titin_workdir(instance_)); }
    titin::Scale scale() const {
        const ValueView map(detail::check(titin_scale(instance_)));
        titin::Scale scale;
        if (map.contains("dt")) scale.dt = map["dt"].as<double>();
        if (map.contains("total")) scale.total = map["total"].as<double>();
        if (map.contains("dx")) scale.dx = map["dx"].as<std::vector<double>>();
        if (map.contains("extent")) scale.extent = map["extent"].as<std::vector<double>>();
        return scale;
    }
    /// Sends a record to the run's log; levels are TITIN_LOG_DEBUG and so on.
    void log(int level, const std::string &text) { detail::check(titin_log(instance_, level, text.c_str())); }
    /// Switches the check of the order of calls off from here on.
    void skip_checks(const std::string &reason) { detail::check(titin_skip_checks(instance_, reason.c_str())); }
    /// A stretch in the profile, to the end of the scope: `auto solving = instance.region("solve");`
    [[nodiscard]] Region region(const std::string &name) { return {instance_, name.c_str()}; }
    /// Asked whenever a signal came while a call waits, and ten times a second; once true the call throws Interrupted.
    void on_interrupt(std::function<bool()> interrupted) {
        interrupt_ = std::make_unique<std::function<bool()>>(std::move(interrupted));
        const auto ask = [](void *data) { return int((*static_cast<std::function<bool()> *>(data))()); };
        detail::check(titin_on_interrupt(instance_, ask, interrupt_.get()));
    }

    // -- Settings

    bool has_setting(const std::string &name) const {
        return titin_setting_type(instance_, name.c_str()) != TITIN_TYPE_NONE;
    }
    /// A setting as bool, an integer or floating-point type, std::string, std::vector of integers or floating-point
    /// numbers, std::vector<std::vector<double>>, or Value.
    template <class T>
    T setting(const std::string &name) const {
        titin_value *found;
        if constexpr (std::is_floating_point_v<T>) {
            double number;
            detail::check(titin_setting_f64(instance_, name.c_str(), &number));
            return T(number);
        } else if constexpr (std::is_same_v<T, bool>) {
            int flag;
            detail::check(titin_setting_bool(instance_, name.c_str(), &flag));
            return flag != 0;
        } else if constexpr (std::is_same_v<T, std::string>) {
            const char *text;
            detail::check(titin_setting_text(instance_, name.c_str(), &text));
            return text;
        } else if constexpr (std::is_integral_v<T>) {
            std::int64_t number;
            detail::check(titin_setting_i64(instance_, name.c_str(), &number));
            return fit<T>(name, [number] { return Value(number).as<T>(); });
        } else {
            detail::check(titin_setting_value(instance_, name.c_str(), &found));
            Value value(found);
            if constexpr (std::is_same_v<T, Value>) return value;
            else return fit<T>(name, [&value] { return value.as<T>(); });
        }
    }
    /// The same with a default for a setting that is not set.
    template <class T>
    T setting(const std::string &name, std::common_type_t<T> fallback) const {
        return has_setting(name) ? setting<T>(name) : std::move(fallback);
    }
    /// A quantity in this unit: "10 ms" in Unit{"s"} is 0.01; a number alone is in the unit already.
    template <class T>
    T setting(const std::string &name, Unit unit) const {
        static_assert(std::is_floating_point_v<T>, "quantities with units are real numbers");
        double number;
        detail::check(titin_setting_quantity(instance_, name.c_str(), unit.name, &number));
        return T(number);
    }
    template <class T>
    T setting(const std::string &name, Unit unit, T fallback) const {
        return has_setting(name) ? setting<T>(name, unit) : fallback;
    }
    /// All settings known for this instance by full name, with the overlay in force; that overlay alone.
    Value settings() const {
        titin_value *all;
        detail::check(titin_settings(instance_, &all));
        return Value(all);
    }
    Value overlay() const {
        titin_value *all;
        detail::check(titin_overlay(instance_, &all));
        return Value(all);
    }

    // -- Ports

    Port port(const std::string &name) const { return Port(detail::check(titin_port_find(instance_, name.c_str()))); }
    std::vector<Port> ports() const {
        std::vector<Port> all;
        for (int i = 0; i < titin_port_count(instance_); ++i) all.emplace_back(titin_port_at(instance_, i));
        return all;
    }
    bool is_connected(const std::string &port_name) const { return port(port_name).is_connected(); }

    // -- Sending: all return when the memory may be changed

    /// Sends data: containers and arrays of numbers of any rank (std::vector, std::array, std::span, mdspan, T[n][m],
    /// Span, View), numbers, text, nullptr, Value. `settings` is the overlay to go with it; none: that in force.
    template <class T, class = std::enable_if_t<!std::is_pointer_v<T> || detail::is_text<T>>>
    void send(const Slot &to, const T &data, double timestamp, double next_timestamp = no_next,
              const ValueView &settings = {}) {
        if constexpr (std::is_base_of_v<ValueView, T>)
            detail::check(titin_send_value(to.port(instance_), to.number(), data.raw(), timestamp, next_timestamp,
                                           settings.raw()));
        else if constexpr (std::is_same_v<T, std::vector<bool>>) {
            const std::unique_ptr<bool[]> flags(new bool[data.size()]);
            std::copy(data.begin(), data.end(), flags.get());
            send_array(to, detail::describe(flags.get(), {data.size()}), timestamp, next_timestamp, settings);
        } else if constexpr (detail::IsArray<T>::value)
            send_array(to, detail::describe(data), timestamp, next_timestamp, settings);
        else send(to, Value(data), timestamp, next_timestamp, settings);
    }
    /// Sends an array from a pointer to its elements, contiguous in C order.
    template <class T>
    void send(const Slot &to, const T *data, const Extents &extents, double timestamp, double next_timestamp = no_next,
              const ValueView &settings = {}) {
        send_array(to, detail::describe(data, extents), timestamp, next_timestamp, settings);
    }
    /// Sends a message without data.
    void send_nil(const Slot &to, double timestamp, double next_timestamp = no_next, const ValueView &settings = {}) {
        detail::check(
            titin_send_nil(to.port(instance_), to.number(), timestamp, next_timestamp, settings.raw()));
    }
    /// Sends an array whose indices have names.
    template <class T>
    void send_named(const Slot &to, const T &data, const std::vector<std::string> &names, double timestamp,
                    double next_timestamp = no_next, const ValueView &settings = {}) {
        send_array(to, detail::describe(data), timestamp, next_timestamp, settings, names);
    }

    // -- Receiving

    /// Receives a message; waits until one is there.
    Message receive(const Slot &from) { return receive_within(from, TITIN_WAIT); }
    /// The same, at most so long; then throws Timeout.
    template <class Rep, class Period>
    Message receive(const Slot &from, std::chrono::duration<Rep, Period> timeout) {
        return receive_within(from, std::chrono::duration<double>(timeout).count());
    }
    /// Receives a message, or gives this one if nothing is connected to the port.
    Message receive_or(const Slot &from, const Message &fallback) {
        return Port(from.port(instance_)).is_connected() ? receive(from) : fallback;
    }
    /// Receives a message if one is there; does not wait.
    std::optional<Message> try_receive(const Slot &from) {
        titin_message *message;
        detail::check(titin_try_receive(from.port(instance_), from.number(), &message));
        if (!message) return std::nullopt;
        return Message(message);
    }
    /// Receives the next message of any of these ports, all slots of vector ports.
    Received receive_any(const std::vector<std::string> &ports, double timeout = TITIN_WAIT) {
        std::vector<titin_port *> handles;
        for (const std::string &name : ports) handles.push_back(port(name).raw());
        int index, slot;
        titin_message *message;
        detail::check(titin_receive_any(handles.data(), int(handles.size()), timeout, &index, &slot, &message));
        return {ports[std::size_t(index)], slot, Message(message)};
    }
    /// Receives an array into memory of the program's own: whatever send takes as an array, but not const. The type of
    /// element and the shape must be those of the message. Gives the message, for its timestamps.
    template <class T>
    Message receive_into(const Slot &from, T &&data) {
        const detail::Array a = detail::describe(data);
        titin_message *message;
        detail::check(titin_receive_into(from.port(instance_), from.number(), TITIN_WAIT, a.dtype, a.extents.rank(),
                                         a.extents.data(), a.strided ? a.strides : nullptr, a.order,
                                         const_cast<void *>(a.data), &message));
        return Message(message);
    }

    titin_instance *raw() const { return instance_; }

private:
    struct Empty {};
    explicit Instance(Empty) {}

    static std::string text(const Ports &ports) {
        static const char *const keys[] = {"", "f_init", "o_i", "s", "o_f"};
        std::string all;
        for (const auto &[op, names] : ports) {
            all += std::string(keys[op]) + ": ";
            for (const std::string &name : names) all += name + ", ";
            all += "; ";
        }
        return all;
    }

    template <class T, class Read>
    T fit(const std::string &name, Read read) const {
        try {
            return read();
        } catch (const TypeMismatch &error) {
            throw SettingError("setting '" + name + "': " + error.what());
        }
    }
    void send_array(const Slot &to, const detail::Array &a, double timestamp, double next_timestamp,
                    const ValueView &settings, const std::vector<std::string> &names = {}) {
        std::vector<const char *> texts;
        for (const std::string &name : names) texts.push_back(name.c_str());
        if (!names.empty() && int(names.size()) != a.extents.rank())
            throw UsageError(std::to_string(names.size()) + " index names for an array of rank " +
                             std::to_string(a.extents.rank()));
        detail::check(titin_send_array(to.port(instance_), to.number(), a.dtype, a.extents.rank(), a.extents.data(),
                                       a.strided ? a.strides : nullptr, a.order, texts.empty() ? nullptr : texts.data(),
                                       a.data, timestamp, next_timestamp, settings.raw()));
    }
    Message receive_within(const Slot &from, double timeout) {
        titin_message *message;
        detail::check(titin_receive(from.port(instance_), from.number(), timeout, &message));
        return Message(message);
    }
    /// Whether this thread's last error is only the consequence of a failure elsewhere, which the run knows of.
    static bool echo() {
        const int kind = titin_error_kind();
        return kind == TITIN_ERROR_PEER_LOST || kind == TITIN_ERROR_DEADLOCK;
    }
    static std::string last() {
        const std::string text = titin_error();
        return text.empty() ? "" : "; titin's last error in its thread: " + text;
    }

    titin_instance *instance_ = nullptr;
    bool ours_ = true;
    int exceptions_ = std::uncaught_exceptions();
    std::unique_ptr<std::function<bool()>> interrupt_;
};

/// A program of several instances in one process: name, ports as text (or empty), what it does.
struct Guest {
    std::string name, ports;
    std::function<void(Instance &)> entry;
};

/// Opens each instance in a thread of its own, calls its entry, closes it, and waits for all. An exception in an entry
/// fails the run with its text; the first error is thrown.
inline void host(const std::vector<Guest> &guests) {
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
    const Options options;
    detail::check(titin_host(int(guests.size()), names.data(), ports.data(), entries.data(), data.data(),
                             options.raw()));
}

// ---- Filters of one's own -------------------------------------------------------------------------------------------

/// What a filter makes of a message; what it does not set stays.
class Output {
public:
    explicit Output(titin_output *output) : output_(output) {}
    /// Memory for an array that replaces the data, to be filled.
    template <class T>
    T *array(const Extents &extents, Order order = Order::C) {
        return static_cast<T *>(detail::check(
            titin_output_array(output_, detail::dtype<T>(), extents.rank(), extents.data(), int(order))));
    }
    void value(const Value &data) { detail::check(titin_output_value(output_, data.raw())); }
    void timestamp(double timestamp, double next_timestamp = no_next) {
        detail::check(titin_output_timestamp(output_, timestamp, next_timestamp));
    }

private:
    titin_output *output_;
};

/// The body of a filter in a shared library, where no exception may leave it:
///     extern "C" int halve(const titin_message *in, titin_output *out) {
///         return titin::filter(in, out, [](const titin::Message &message, titin::Output &output) { ... });
///     }
template <class Body>
int filter(const titin_message *in, titin_output *out, Body &&body) noexcept {
    try {
        const Message message(titin_message_retain(const_cast<titin_message *>(in)));
        Output output(out);
        body(message, output);
        return 0;
    } catch (const std::exception &error) {
        titin_set_error(error.what());
    } catch (...) {
        titin_set_error("an exception of a type that is not known");
    }
    return 1;
}

} // namespace titin

#endif
