// The tree behind Data and DataConstRef. What was received is read as it is asked for: arrays and bytes stay in the memory
// of titin's message, which the nodes keep.
#ifndef TITIN_LIBMUSCLE_DETAIL_NODE_HPP
#define TITIN_LIBMUSCLE_DETAIL_NODE_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <titin.h>
#include <ymmsl/settings.hpp>

#include "libmuscle/detail/error.hpp"

namespace libmuscle {

/// Which index of a grid varies fastest in memory: the first, as in Fortran, or the last, as in C.
enum class StorageOrder { first_adjacent, last_adjacent };

namespace detail {

enum class Kind { nil, flag, integer, natural, single, real, text, bytes, list, dict, grid, settings };

struct Node;
using NodePtr = std::shared_ptr<Node>;
/// Keeps memory alive: a message of titin's, a loan, a buffer.
using Owner = std::shared_ptr<const void>;

/// A byte array.
struct Bytes {
    char *begin;
    std::size_t size;
    Owner owner; // none for memory of the program
};

/// The entries of a list or, with keys, of a dict.
struct Entries {
    std::vector<std::string> keys;
    std::vector<NodePtr> items;
};

/// A list, dict or settings in a message, which are not in nodes yet.
struct View {
    const titin_value *value;
    Owner owner;
};

/// An array. It does not change once it is made.
struct Grid {
    int dtype; // TITIN_F64 and so on
    std::vector<std::size_t> shape;
    StorageOrder order;
    std::vector<std::string> names; // of the indices; empty for none
    const void *elements;
    Owner owner;
    titin_loan *loan; // nullptr if the memory is not a loan; belongs to `owner`

    std::size_t size() const {
        std::size_t count = 1;
        for (const std::size_t extent : shape) count *= extent;
        return count;
    }
};

/// A value. Copies of a node share its content: text, bytes, entries, array or settings.
struct Node {
    Kind kind = Kind::nil;
    bool viewed = false; // whether the content of a list, dict or settings is a View, and not Entries or Settings
    union {
        bool flag;
        std::int64_t integer;
        std::uint64_t natural; // above the largest `integer`
        float single;
        double real;
    };
    std::shared_ptr<void> content;

    Node() : integer(0) {}

    template <class T>
    const T &as() const {
        return *static_cast<const T *>(content.get());
    }
    template <class T>
    T &as() {
        return *static_cast<T *>(content.get());
    }

    std::size_t entries() const {
        return viewed ? static_cast<std::size_t>(titin_value_size(as<View>().value)) : as<Entries>().items.size();
    }
    NodePtr item(std::size_t index) const;
    std::string key(std::size_t index) const {
        if (viewed) return check(titin_value_name(as<View>().value, static_cast<std::int64_t>(index)));
        return as<Entries>().keys[index];
    }
    /// The item of a key; none if there is no such key.
    NodePtr find(const std::string &name) const;
    /// The entries, as nodes that stay: before an item is changed.
    Entries &own_entries();
};

template <class T, class... Arguments>
NodePtr new_node(Kind kind, Arguments &&...arguments) {
    const NodePtr node = std::make_shared<Node>();
    node->kind = kind;
    node->content = std::shared_ptr<T>(new T{std::forward<Arguments>(arguments)...});
    return node;
}

/// A node whose value is a member of Node.
template <class T>
NodePtr new_scalar(Kind kind, T Node::*member, T value) {
    const NodePtr node = std::make_shared<Node>();
    node->kind = kind;
    (*node).*member = value;
    return node;
}

inline NodePtr new_integer(std::int64_t number) { return new_scalar(Kind::integer, &Node::integer, number); }
inline NodePtr new_natural(std::uint64_t number) {
    if (number <= static_cast<std::uint64_t>(INT64_MAX)) return new_integer(static_cast<std::int64_t>(number));
    return new_scalar(Kind::natural, &Node::natural, number);
}
inline NodePtr new_flag(bool flag) { return new_scalar(Kind::flag, &Node::flag, flag); }
inline NodePtr new_single(float number) { return new_scalar(Kind::single, &Node::single, number); }
inline NodePtr new_real(double number) { return new_scalar(Kind::real, &Node::real, number); }

// The element type of a grid. Numbers of the C++ types that have no other name here get the type of their size.
template <class T>
constexpr int dtype_of() {
    return std::is_same<T, bool>::value                   ? TITIN_BOOL
           : std::is_same<T, float>::value                ? TITIN_F32
           : std::is_same<T, double>::value               ? TITIN_F64
           : std::is_same<T, std::complex<float>>::value  ? TITIN_C64
           : std::is_same<T, std::complex<double>>::value ? TITIN_C128
           : !std::is_integral<T>::value                  ? 0
           : sizeof(T) == 1                               ? (std::is_signed<T>::value ? TITIN_I8 : TITIN_U8)
           : sizeof(T) == 2                               ? (std::is_signed<T>::value ? TITIN_I16 : TITIN_U16)
           : sizeof(T) == 4                               ? (std::is_signed<T>::value ? TITIN_I32 : TITIN_U32)
           : sizeof(T) == 8                               ? (std::is_signed<T>::value ? TITIN_I64 : TITIN_U64)
                                                          : 0;
}

// ---- Values of titin, read ----

/// The node of a value of titin's, which `owner` keeps.
inline NodePtr node_of(const titin_value *value, const Owner &owner) {
    switch (titin_value_kind(value)) {
    case TITIN_KIND_BOOL: {
        int flag;
        check(titin_value_bool(value, &flag));
        return new_flag(flag != 0);
    }
    case TITIN_KIND_INT: {
        std::int64_t number;
        check(titin_value_i64(value, &number));
        return new_integer(number);
    }
    case TITIN_KIND_UINT: {
        std::uint64_t number;
        check(titin_value_u64(value, &number));
        return new_natural(number);
    }
    case TITIN_KIND_FLOAT: {
        double number;
        check(titin_value_f64(value, &number));
        return titin_value_is_f32(value) == 1 ? new_single(static_cast<float>(number)) : new_real(number);
    }
    case TITIN_KIND_TEXT: {
        std::int64_t length;
        const char *text = check(titin_value_text(value, &length));
        return new_node<std::string>(Kind::text, text, static_cast<std::size_t>(length));
    }
    case TITIN_KIND_BYTES: {
        std::int64_t length;
        const void *bytes = check(titin_value_bytes(value, &length));
        char *begin = const_cast<char *>(static_cast<const char *>(bytes));
        return new_node<Bytes>(Kind::bytes, begin, static_cast<std::size_t>(length), owner);
    }
    case TITIN_KIND_ARRAY: {
        const int rank = titin_value_rank(value);
        const void *elements = check(titin_value_raw_data(value));
        std::vector<std::size_t> shape;
        std::vector<std::string> names;
        for (int i = 0; i < rank; ++i) {
            shape.push_back(static_cast<std::size_t>(titin_value_extent(value, i)));
            if (const char *name = titin_value_index_name(value, i)) names.emplace_back(name);
        }
        if (names.size() < shape.size()) names.clear();
        const StorageOrder order = titin_value_order(value) == TITIN_ORDER_FORTRAN ? StorageOrder::first_adjacent
                                                                                   : StorageOrder::last_adjacent;
        return new_node<Grid>(Kind::grid, titin_value_dtype(value), std::move(shape), order, std::move(names), elements, owner, nullptr);
    }
    case TITIN_KIND_LIST:
    case TITIN_KIND_MAP: {
        const bool is_settings = titin_value_is_settings(value) == 1;
        const NodePtr node = new_node<View>(
            titin_value_kind(value) == TITIN_KIND_LIST ? Kind::list : is_settings ? Kind::settings : Kind::dict, value, owner);
        node->viewed = true;
        return node;
    }
    default: return std::make_shared<Node>();
    }
}

inline NodePtr Node::item(std::size_t index) const {
    if (!viewed) return as<Entries>().items[index];
    const View &view = as<View>();
    return node_of(check(titin_value_item(view.value, static_cast<std::int64_t>(index))), view.owner);
}

inline NodePtr Node::find(const std::string &name) const {
    if (viewed) {
        const titin_value *found = titin_value_find(as<View>().value, name.c_str());
        return found ? node_of(found, as<View>().owner) : nullptr;
    }
    const Entries &all = as<Entries>();
    for (std::size_t i = 0; i < all.keys.size(); ++i)
        if (all.keys[i] == name) return all.items[i];
    return nullptr;
}

inline Entries &Node::own_entries() {
    if (viewed) {
        auto own = std::make_shared<Entries>();
        for (std::size_t i = 0; i < entries(); ++i) {
            if (kind == Kind::dict) own->keys.push_back(key(i));
            own->items.push_back(item(i));
        }
        content = std::move(own);
        viewed = false;
    }
    return as<Entries>();
}

} // namespace detail
} // namespace libmuscle

#endif
