// Values of titin from nodes and settings, and settings from values.
#ifndef TITIN_LIBMUSCLE_DETAIL_VALUE_HPP
#define TITIN_LIBMUSCLE_DETAIL_VALUE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <titin.h>
#include <ymmsl/settings.hpp>

#include "libmuscle/detail/error.hpp"
#include "libmuscle/detail/node.hpp"

namespace libmuscle {
namespace detail {

struct FreeValue {
    void operator()(titin_value *value) const { titin_value_free(value); }
};
/// A value that is freed at the end of the scope.
using Value = std::unique_ptr<titin_value, FreeValue>;

inline Value owned(titin_value *value) { return Value(check(value)); }

// ---- Settings ----

inline titin_value *new_value(std::int64_t number) { return titin_new_i64(number); }
inline titin_value *new_value(double number) { return titin_new_f64(number); }

/// A list of numbers, or of lists of numbers.
template <class T>
titin_value *new_value(const std::vector<T> &list) {
    Value value = owned(titin_new_list());
    for (const T &item : list) check(titin_list_append(value.get(), new_value(item)));
    return value.release();
}

inline Value value_of(const ymmsl::SettingValue &setting) {
    using std::vector;
    if (setting.is_a<std::string>()) {
        const std::string text = setting.as<std::string>();
        return owned(titin_new_text(text.data(), static_cast<std::int64_t>(text.size())));
    }
    if (setting.is_a<std::int64_t>()) return owned(titin_new_i64(setting.as<std::int64_t>()));
    if (setting.is_a<double>()) return owned(titin_new_f64(setting.as<double>()));
    if (setting.is_a<bool>()) return owned(titin_new_bool(setting.as<bool>()));
    if (setting.is_a<vector<std::int64_t>>()) return owned(new_value(setting.as<vector<std::int64_t>>()));
    if (setting.is_a<vector<double>>()) return owned(new_value(setting.as<vector<double>>()));
    if (setting.is_a<vector<vector<double>>>()) return owned(new_value(setting.as<vector<vector<double>>>()));
    throw std::runtime_error("a setting without a value cannot be sent: give it one, or erase it");
}

inline Value value_of(const ymmsl::Settings &settings) {
    Value map = owned(titin_new_settings());
    for (const auto &setting : settings)
        check(titin_map_set(map.get(), std::string(setting.first).c_str(), value_of(setting.second).release()));
    return map;
}

inline bool reals_from(const titin_value *list, std::vector<double> &reals) {
    if (titin_value_kind(list) != TITIN_KIND_LIST) return false;
    reals.clear();
    for (std::int64_t i = 0; i < titin_value_size(list); ++i) {
        const titin_value *item = titin_value_item(list, i);
        double number;
        if (titin_value_kind(item) != TITIN_KIND_FLOAT || titin_value_is_f32(item) == 1 || titin_value_f64(item, &number)) return false;
        reals.push_back(number);
    }
    return true;
}

inline bool integers_from(const titin_value *list, std::vector<std::int64_t> &integers) {
    integers.clear();
    for (std::int64_t i = 0; i < titin_value_size(list); ++i) {
        const titin_value *item = titin_value_item(list, i);
        std::int64_t number;
        if (titin_value_kind(item) != TITIN_KIND_INT || titin_value_i64(item, &number)) return false;
        integers.push_back(number);
    }
    return true;
}

inline bool table_from(const titin_value *list, std::vector<std::vector<double>> &table) {
    table.assign(static_cast<std::size_t>(titin_value_size(list)), {});
    for (std::size_t i = 0; i < table.size(); ++i)
        if (!reals_from(titin_value_item(list, static_cast<std::int64_t>(i)), table[i])) return false;
    return true;
}

/// Reads a value as that of a setting; false if no setting has such a value. An empty list is one of real numbers.
inline bool setting_from(const titin_value *value, ymmsl::SettingValue &setting) {
    switch (titin_value_kind(value)) {
    case TITIN_KIND_TEXT:
    case TITIN_KIND_INT:
    case TITIN_KIND_FLOAT:
    case TITIN_KIND_BOOL: {
        const NodePtr node = node_of(value, nullptr);
        if (node->kind == Kind::text) setting = node->as<std::string>();
        else if (node->kind == Kind::integer) setting = node->integer;
        else if (node->kind == Kind::real) setting = node->real;
        else if (node->kind == Kind::flag) setting = node->flag;
        else return false; // a single precision number
        return true;
    }
    case TITIN_KIND_LIST: {
        std::vector<double> reals;
        std::vector<std::int64_t> integers;
        std::vector<std::vector<double>> table;
        if (reals_from(value, reals)) setting = reals;
        else if (integers_from(value, integers)) setting = integers;
        else if (table_from(value, table)) setting = table;
        else return false;
        return true;
    }
    default: return false;
    }
}

inline bool settings_from(const titin_value *map, ymmsl::Settings &settings) {
    if (titin_value_kind(map) != TITIN_KIND_MAP) return false;
    settings.clear();
    for (std::int64_t i = 0; i < titin_value_size(map); ++i) {
        try {
            if (!setting_from(titin_value_item(map, i), settings[titin_value_name(map, i)])) return false;
        } catch (const std::invalid_argument &) {
            return false; // the name of the entry is no reference
        }
    }
    return true;
}

/// The settings of a node that has settings.
inline ymmsl::Settings settings_of(const Node &node) {
    if (!node.viewed) return node.as<ymmsl::Settings>();
    ymmsl::Settings settings;
    if (!settings_from(node.as<View>().value, settings))
        throw std::runtime_error("these settings have a name or a value that no setting has");
    return settings;
}

// ---- Data ----

inline int order_of(const Grid &grid) {
    return grid.order == StorageOrder::first_adjacent ? TITIN_ORDER_FORTRAN : TITIN_ORDER_C;
}

/// The shape and names of a grid as calls of titin take them.
struct Layout {
    std::vector<std::int64_t> extents;
    std::vector<const char *> names;

    explicit Layout(const Grid &grid) : extents(grid.shape.begin(), grid.shape.end()) {
        for (const std::string &name : grid.names) names.push_back(name.c_str());
    }
    int rank() const { return static_cast<int>(extents.size()); }
    const char *const *index_names() const { return names.empty() ? nullptr : names.data(); }
};

constexpr int deepest = 500; // far beyond any structure that is meant

/// The key of a dict, which titin takes up to a NUL.
inline std::string sendable(std::string key) {
    if (key.find('\0') == std::string::npos) return key;
    throw std::runtime_error("the key '" + std::string(key.c_str()) +
                             "' of a dict goes on after a NUL, and cannot be sent: take it out");
}

/// The value of a node. Bytes and arrays stay where they are, so the value must not outlive the node.
inline Value value_of(const Node &node, int depth = 0) {
    if (depth > deepest) throw std::runtime_error("lists and dicts are nested too deeply to be sent: does one contain itself?");
    switch (node.kind) {
    case Kind::nil: break;
    case Kind::flag: return owned(titin_new_bool(node.flag));
    case Kind::integer: return owned(titin_new_i64(node.integer));
    case Kind::natural: return owned(titin_new_u64(node.natural));
    case Kind::real: return owned(titin_new_f64(node.real));
    case Kind::single: return owned(titin_new_f32(node.single));
    case Kind::text: {
        const std::string &text = node.as<std::string>();
        return owned(titin_new_text(text.data(), static_cast<std::int64_t>(text.size())));
    }
    case Kind::bytes: {
        const Bytes &bytes = node.as<Bytes>();
        return owned(titin_new_bytes(bytes.begin, static_cast<std::int64_t>(bytes.size), 1));
    }
    case Kind::grid: {
        const Grid &grid = node.as<Grid>();
        const Layout layout(grid);
        return owned(titin_new_array(grid.dtype, layout.rank(), layout.extents.data(), nullptr, order_of(grid),
                                     layout.index_names(), grid.elements, 1));
    }
    case Kind::settings: return value_of(settings_of(node));
    case Kind::list: {
        Value list = owned(titin_new_list());
        for (std::size_t i = 0; i < node.entries(); ++i)
            check(titin_list_append(list.get(), value_of(*node.item(i), depth + 1).release()));
        return list;
    }
    case Kind::dict: {
        Value map = owned(titin_new_map());
        for (std::size_t i = 0; i < node.entries(); ++i)
            check(titin_map_set(map.get(), sendable(node.key(i)).c_str(), value_of(*node.item(i), depth + 1).release()));
        return map;
    }
    }
    return owned(titin_new_nil());
}

} // namespace detail
} // namespace libmuscle

#endif
