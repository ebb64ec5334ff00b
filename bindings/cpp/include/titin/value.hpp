// Values: trees of maps, lists, text, bytes, numbers, arrays and nil.
#ifndef TITIN_VALUE_HPP
#define TITIN_VALUE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iomanip>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "titin/describe.hpp"

namespace titin {

/// The kind of a value, or of the data of a message.
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

/// Any extent.
inline constexpr std::int64_t any = TITIN_ANY;

namespace detail {

/// Whether a T can hold a number.
template <class T, class Number>
bool fits(Number number) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return !std::isinf(T(number)) || std::isinf(number);
    else if constexpr (std::is_unsigned_v<Number>) return number <= std::uint64_t(Limits::max());
    else
        return number >= 0 ? std::uint64_t(number) <= std::uint64_t(Limits::max())
                           : std::is_signed_v<T> && number >= std::int64_t(Limits::min());
}

/// The error text for a number that a T cannot hold: "300 does not fit int8 (-128 to 127): ask for a wider type".
template <class T, class Number>
std::string misfit(Number number) {
    using Limits = std::numeric_limits<T>;
    const auto shown = [](auto value) {
        std::ostringstream text;
        text << std::setprecision(15) << value;
        return text.str();
    };
    const std::string bits = std::to_string(8 * sizeof(T));
    if constexpr (std::is_floating_point_v<T>)
        return shown(number) + " does not fit float" + bits + " (up to " + shown(Limits::max()) + "): ask for double";
    else
        return shown(number) + " does not fit " + (std::is_unsigned_v<T> ? "uint" : "int") + bits + " (" +
               std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()) + "): ask for a wider type";
}

/// The error text for a whole number that this type of real numbers could only round.
template <class T>
std::string rounded(double number) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(0) << "the value is " << number << ", a whole number that float"
         << 8 * sizeof(T) << " does not have: its nearest is " << double(T(number)) << "; read it as a whole number";
    return text.str();
}

/// A view of an array, if the array has exactly this type, these extents and this order. `look` is titin_message_array or
/// titin_value_array.
template <class T, class Data>
View<const T> view(const void *(*look)(const Data *, int, int, std::int64_t *, int), const Data *data,
                   const Extents &extents, Order order) {
    std::int64_t found[TITIN_MAX_RANK + 1];
    std::copy(extents.data(), extents.data() + extents.rank(), found);
    const void *elements = look(data, known_dtype<T>(), extents.rank(), found, int(order));
    Extents shape;
    for (int i = 0; i < extents.rank(); ++i) shape.push(found[i]);
    return {static_cast<const T *>(check(elements)), shape, order};
}

} // namespace detail

/// A view of a value in a message, or in a Value. The view lives as long as the message or the Value.
class ValueView {
public:
    /// No value; or a view of a value of the C interface.
    ValueView() = default;
    explicit ValueView(const titin_value *value) : value_(value) {}

    /// False if there is no value.
    explicit operator bool() const { return value_ != nullptr; }
    const titin_value *raw() const { return value_; }
    Kind kind() const { return Kind(titin_value_kind(value_)); }
    bool is_nil() const { return kind() == Kind::Nil; }
    /// Whether a real number is of single precision; as<double>() reads it too.
    bool is_single() const { return titin_value_is_f32(value_) != 0; }
    /// Whether a map is marked as settings.
    bool is_settings() const { return titin_value_is_settings(value_) != 0; }

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
            if (!detail::fits<T>(number)) throw TypeMismatch(detail::misfit<T>(number));
            // Real numbers are rounded, as everywhere in C++. Rounding a whole number is an error.
            if (double(T(number)) != number && is_whole()) throw TypeMismatch(detail::rounded<T>(number));
            return T(number);
        } else if constexpr (std::is_integral_v<T>) {
            return whole<T>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            std::int64_t length;
            const char *text = detail::check(titin_value_text(value_, &length));
            return std::string(text, std::size_t(length));
        } else {
            T items;
            for (std::int64_t i = 0; i < size_of(Kind::List); ++i)
                items.push_back((*this)[i].template as<typename T::value_type>());
            return items;
        }
    }
    /// A copy of the bytes.
    std::vector<std::byte> bytes() const {
        std::int64_t length;
        const auto *data = static_cast<const std::byte *>(detail::check(titin_value_bytes(value_, &length)));
        return detail::copied(data, std::size_t(length));
    }
    /// The array, if its elements have exactly this type. The View has its rank, extents and order.
    template <class T>
    View<const T> array() const {
        constexpr int dtype = detail::known_dtype<T>();
        const void *elements = detail::check(titin_value_array(value_, dtype, TITIN_ANY, nullptr, TITIN_ANY));
        Extents extents;
        for (int i = 0; i < titin_value_rank(value_); ++i) extents.push(titin_value_extent(value_, i));
        return {static_cast<const T *>(elements), extents, Order(titin_value_order(value_))};
    }
    /// The same, for an array of these extents, some of which may be `any`, with its elements in this order.
    ///     array<double>({any}), array<double>({ny, nx}), array<double>({any, 3}, Order::Fortran)
    template <class T>
    View<const T> array(const Extents &extents, Order order = Order::C) const {
        return detail::view<T>(titin_value_array, value_, extents, order);
    }
    /// Name of an index of the array; empty for an index without a name.
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
        if (kind() == wanted) return size();
        const std::string summary = detail::check(titin_value_summary(value_));
        std::string text = std::string("expected a ") + (wanted == Kind::List ? "list" : "map") + ", the value is " + summary;
        if (wanted == Kind::List && kind() == Kind::Array) text += ": read it with array<double>(), or the like";
        throw TypeMismatch(text);
    }
    bool is_whole() const {
        std::int64_t number;
        std::uint64_t large;
        return titin_value_i64(value_, &number) == TITIN_OK || titin_value_u64(value_, &large) == TITIN_OK;
    }
    template <class T>
    T whole() const {
        std::int64_t number;
        std::uint64_t large;
        // Errors show the number as int64 if the number fits that type.
        if (titin_value_i64(value_, &number) == TITIN_OK) {
            if (!detail::fits<T>(number)) throw TypeMismatch(detail::misfit<T>(number));
            return T(number);
        }
        if (titin_value_u64(value_, &large) == TITIN_OK && !detail::fits<T>(large))
            throw TypeMismatch(detail::misfit<T>(large));
        detail::check(titin_value_u64(value_, &large));
        return T(large);
    }
};

class Value;

namespace detail {
/// An entry of a braced list. The value of the entry can be moved out, although the list is const.
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
    /// Nil, a number, or text.
    Value() : Value(titin_new_nil()) {}
    Value(std::nullptr_t) : Value() {}
    template <class T, class = std::enable_if_t<detail::is_number<T>>>
    Value(T number) : Value(fresh(number)) {}
    Value(const char *text) : Value(titin_new_text(text, -1)) {}
    Value(const std::string &text) : Value(std::string_view(text)) {}
    Value(std::string_view text) : Value(titin_new_text(text.empty() ? "" : text.data(), std::int64_t(text.size()))) {}
    /// Takes over a value of the C interface.
    explicit Value(titin_value *owned) : ValueView(detail::check(owned)) {}

    Value(Value &&other) noexcept : ValueView(std::exchange(other.value_, nullptr)) {}
    Value &operator=(Value &&other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Value() { titin_value_free(const_cast<titin_value *>(value_)); }

    // The functions below have the same names as functions for reading, and would hide them.
    using ValueView::array;
    using ValueView::bytes;
    static Value bytes(const void *data, std::size_t length) {
        return Value(titin_new_bytes(data, std::int64_t(length), 0));
    }
    /// A copy of an array, of any type that Instance::send takes as an array.
    template <class T>
    static Value array(const T &data) {
        if constexpr (std::is_same_v<T, std::vector<bool>>) {
            const auto flags = detail::unpacked(data);
            return Value(detail::describe(flags.get(), {data.size()}));
        } else {
            return Value(detail::describe(data));
        }
    }
    static Value list(std::initializer_list<detail::Item> items = {}) {
        Value list(titin_new_list());
        for (const detail::Item &item : items) detail::check(titin_list_append(list.owned(), item.value.release()));
        return list;
    }
    static Value map(std::initializer_list<std::pair<const char *, detail::Item>> entries = {}) {
        return filled(Value(titin_new_map()), entries);
    }
    /// A map that is marked as settings.
    static Value settings(std::initializer_list<std::pair<const char *, detail::Item>> entries = {}) {
        return filled(Value(titin_new_settings()), entries);
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
    titin_value *release() {
        titin_value *value = owned();
        value_ = nullptr;
        return value;
    }

private:
    explicit Value(const detail::Array &a)
        : Value(titin_new_array(a.dtype, a.extents.rank(), a.extents.data(), a.strided ? a.strides : nullptr, a.order,
                                nullptr, a.data, 0)) {}

    static Value filled(Value map, std::initializer_list<std::pair<const char *, detail::Item>> entries) {
        for (const auto &[name, item] : entries)
            detail::check(titin_map_set(map.owned(), name, item.value.release()));
        return map;
    }
    titin_value *owned() const {
        if (!value_) throw UsageError("this titin::Value was moved from, or given away: what it was moved to has the data");
        return const_cast<titin_value *>(value_);
    }
    template <class T>
    static titin_value *fresh(T number) {
        if constexpr (std::is_same_v<T, bool>) return titin_new_bool(number);
        else if constexpr (std::is_same_v<T, float>) return titin_new_f32(number);
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

} // namespace titin

#endif
