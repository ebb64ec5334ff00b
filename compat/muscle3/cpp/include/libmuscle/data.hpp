// Data that programs send and receive: scalars, text, bytes, lists, dicts, grids and settings.
#ifndef TITIN_LIBMUSCLE_DATA_HPP
#define TITIN_LIBMUSCLE_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <ymmsl/settings.hpp>

#include "libmuscle/detail/loan.hpp"
#include "libmuscle/detail/node.hpp"
#include "libmuscle/detail/value.hpp"

namespace libmuscle {

class Data;
namespace detail {
class State;
}

/// A reference to data that cannot be changed by it. Copies refer to the same data, which live as long as a reference does.
///
/// Calls that do not fit the data throw std::runtime_error; an index or key that is not there is std::out_of_range.
class DataConstRef {
public:
    /// Nil: no data.
    DataConstRef() : node_(std::make_shared<detail::Node>()) {}
    DataConstRef(bool value) : node_(detail::new_flag(value)) {}
    DataConstRef(const char *value) : node_(detail::new_node<std::string>(detail::Kind::text, value)) {}
    DataConstRef(const std::string &value) : node_(detail::new_node<std::string>(detail::Kind::text, value)) {}
    DataConstRef(int value) : node_(detail::new_integer(value)) {}
    DataConstRef(long value) : node_(detail::new_integer(value)) {}
    DataConstRef(long long value) : node_(detail::new_integer(value)) {}
    DataConstRef(unsigned value) : node_(detail::new_natural(value)) {}
    DataConstRef(unsigned long value) : node_(detail::new_natural(value)) {}
    DataConstRef(unsigned long long value) : node_(detail::new_natural(value)) {}
    DataConstRef(float value) : node_(detail::new_single(value)) {}
    DataConstRef(double value) : node_(detail::new_real(value)) {}
    /// The value that the setting has.
    DataConstRef(const ymmsl::SettingValue &value);
    DataConstRef(const ymmsl::Settings &value) : node_(detail::new_node<ymmsl::Settings>(detail::Kind::settings, value)) {}

    /// An array, which is copied. `data` has the elements one after the other, in this order; `indexes` are names, one for
    /// each dimension, or none. Elements are bool, float, double, or whole numbers of 32 or 64 bits. Titin also takes the
    /// other whole numbers, and complex ones, which MUSCLE3 does not.
    template <class Element>
    static DataConstRef grid(const Element *data, const std::vector<std::size_t> &shape,
                             const std::vector<std::string> &indexes = {},
                             StorageOrder storage_order = StorageOrder::last_adjacent) {
        return DataConstRef(new_grid(data, shape, indexes, storage_order));
    }
    /// A dict of keys and values: `dict("a", 1, "b", 2.5)`; a list of values; a list of `size` nils.
    template <class... Arguments>
    static DataConstRef dict(const Arguments &...arguments) {
        return DataConstRef(new_dict(arguments...));
    }
    template <class... Arguments>
    static DataConstRef list(const Arguments &...arguments) {
        return DataConstRef(new_list(arguments...));
    }
    static DataConstRef nils(std::size_t size) { return DataConstRef(new_nils(size)); }

    DataConstRef(const DataConstRef &) = default;
    DataConstRef(DataConstRef &&other) noexcept : node_(other.node_) {}
    DataConstRef &operator=(const DataConstRef &) = delete;
    DataConstRef &operator=(DataConstRef &&) = delete;

    /// Makes this reference refer to what `target` refers to.
    void reseat(const DataConstRef &target) { node_ = target.node_; }

    /// Whether the data are of this type: bool, std::string, a type of whole numbers (unsigned ones for numbers not below
    /// 0), float, double, ymmsl::SettingValue or ymmsl::Settings. No type is converted: a float is no double.
    template <class T>
    bool is_a() const {
        return holds(static_cast<const T *>(nullptr));
    }
    bool is_nil() const { return node_->kind == detail::Kind::nil; }
    bool is_a_dict() const { return node_->kind == detail::Kind::dict; }
    bool is_a_list() const { return node_->kind == detail::Kind::list; }
    bool is_a_byte_array() const { return node_->kind == detail::Kind::bytes; }
    template <class Element>
    bool is_a_grid_of() const {
        return node_->kind == detail::Kind::grid && grid().dtype == detail::dtype_of<Element>();
    }

    /// The number of entries of a list or dict, of elements of a grid, of bytes of a byte array.
    std::size_t size() const {
        if (is_a_dict() || is_a_list()) return node_->entries();
        if (is_a_byte_array()) return node_->as<detail::Bytes>().size;
        if (node_->kind == detail::Kind::grid) return grid().size();
        mismatch("a list, dict, grid or byte array, which alone have a size");
    }

    /// The value, if is_a<T>(). A number that T cannot hold is std::bad_cast.
    template <class T>
    T as() const {
        if (!is_a<T>()) mismatch("of the type asked for");
        return held(static_cast<const T *>(nullptr));
    }
    /// The bytes, which live as long as a reference to these data does.
    const char *as_byte_array() const {
        if (!is_a_byte_array()) mismatch("a byte array");
        return node_->as<detail::Bytes>().begin;
    }

    /// The value of a key of a dict, the item of a list.
    DataConstRef operator[](const std::string &key) const { return DataConstRef(found(key)); }
    DataConstRef operator[](std::size_t index) const { return DataConstRef(item(index)); }
    /// Key and value of a dict's entry, counted from 0.
    std::string key(std::size_t i) const {
        expect_entry(i);
        return node_->key(i);
    }
    DataConstRef value(std::size_t i) const {
        expect_entry(i);
        return DataConstRef(node_->item(i));
    }

    std::vector<std::size_t> shape() const { return grid().shape; }
    StorageOrder storage_order() const { return grid().order; }
    /// Whether the indices of a grid have names; the names.
    bool has_indexes() const { return !grid().names.empty(); }
    std::vector<std::string> indexes() const {
        if (!has_indexes()) throw std::runtime_error("this grid has no index names: ask has_indexes() first");
        return grid().names;
    }
    /// The elements of a grid, in its storage order, without a copy: they live as long as a reference to these data does.
    template <class Element>
    const Element *elements() const {
        if (!is_a_grid_of<Element>()) mismatch("a grid with elements of the type asked for");
        return static_cast<const Element *>(grid().elements);
    }

    /// The data in a few words, for messages to people.
    std::string describe() const;

protected:
    friend class Data;
    friend class detail::State;

    explicit DataConstRef(detail::NodePtr node) : node_(std::move(node)) {}

    template <class Element>
    static detail::NodePtr new_grid(const Element *data, const std::vector<std::size_t> &shape,
                                    const std::vector<std::string> &indexes, StorageOrder order) {
        static_assert(detail::dtype_of<Element>() != 0, "a grid has elements of bool, whole, real or complex numbers");
        if (!indexes.empty() && indexes.size() != shape.size())
            throw std::runtime_error("a grid of " + std::to_string(shape.size()) + " dimensions got " +
                                     std::to_string(indexes.size()) + " index names: give one for each dimension, or none");
        return detail::new_grid(detail::dtype_of<Element>(), sizeof(Element), data, shape, indexes, order);
    }

    static detail::NodePtr new_nils(std::size_t size) {
        const detail::NodePtr list = detail::new_node<detail::Entries>(detail::Kind::list);
        for (std::size_t i = 0; i < size; ++i)
            list->as<detail::Entries>().items.push_back(std::make_shared<detail::Node>());
        return list;
    }

    template <class... Arguments>
    static detail::NodePtr new_list(const Arguments &...arguments) {
        const detail::NodePtr list = detail::new_node<detail::Entries>(detail::Kind::list);
        // An array, since its elements are made in order.
        const detail::NodePtr items[] = {nullptr, entry(arguments)...};
        list->as<detail::Entries>().items.assign(items + 1, items + 1 + sizeof...(arguments));
        return list;
    }

    template <class... Arguments>
    static detail::NodePtr new_dict(const Arguments &...arguments) {
        static_assert(sizeof...(arguments) % 2 == 0, "a dict takes keys and values in turn");
        const detail::NodePtr dict = detail::new_node<detail::Entries>(detail::Kind::dict);
        add(dict->as<detail::Entries>(), arguments...);
        return dict;
    }
    static void add(detail::Entries &) {}
    template <class T, class... More>
    static void add(detail::Entries &entries, const std::string &key, const T &value, const More &...more) {
        entries.keys.push_back(key);
        entries.items.push_back(entry(value));
        add(entries, more...);
    }
    // An entry of a list or dict is a node of its own, which shares the content of the data it is made from.
    static detail::NodePtr entry(const DataConstRef &value) { return std::make_shared<detail::Node>(*value.node_); }

    [[noreturn]] void mismatch(const std::string &expected) const {
        throw std::runtime_error("these data are " + describe() + ", and not " + expected);
    }
    const detail::Grid &grid() const {
        if (node_->kind != detail::Kind::grid) mismatch("a grid");
        return node_->as<detail::Grid>();
    }
    void expect_entry(std::size_t i) const {
        if (!is_a_dict()) mismatch("a dict, which alone has keys");
        if (i >= node_->entries()) throw std::out_of_range(beyond(i));
    }
    detail::NodePtr found(const std::string &key) const {
        if (!is_a_dict()) mismatch("a dict, which alone has keys");
        detail::NodePtr node = node_->find(key);
        if (!node) throw std::out_of_range("there is no key '" + key + "' in " + describe());
        return node;
    }
    detail::NodePtr item(std::size_t index) const {
        if (!is_a_list()) mismatch("a list, which alone has indices");
        if (index >= node_->entries()) throw std::out_of_range(beyond(index));
        return node_->item(index);
    }
    std::string beyond(std::size_t index) const {
        return "there is no entry " + std::to_string(index) + " in " + describe() + "; entries count from 0";
    }

    // What is_a and as do for each type. The argument is only for the choice of the overload.
    template <class T, std::enable_if_t<!std::is_integral<T>::value, int> = 0>
    bool holds(const T *) const {
        return false;
    }
    template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
    bool holds(const T *) const {
        return node_->kind == detail::Kind::natural ||
               (node_->kind == detail::Kind::integer && (std::is_signed<T>::value || node_->integer >= 0));
    }
    bool holds(const bool *) const { return node_->kind == detail::Kind::flag; }
    bool holds(const float *) const { return node_->kind == detail::Kind::single; }
    bool holds(const double *) const { return node_->kind == detail::Kind::real; }
    bool holds(const std::string *) const { return node_->kind == detail::Kind::text; }
    bool holds(const ymmsl::SettingValue *) const {
        ymmsl::SettingValue setting;
        return read(setting);
    }
    bool holds(const ymmsl::Settings *) const { return node_->kind == detail::Kind::settings; }

    template <class T, std::enable_if_t<!std::is_integral<T>::value, int> = 0>
    [[noreturn]] T held(const T *) const {
        mismatch("of the type asked for");
    }
    template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
    T held(const T *) const {
        using Limits = std::numeric_limits<T>;
        if (node_->kind == detail::Kind::natural) {
            if (node_->natural > static_cast<std::uint64_t>(Limits::max())) throw detail::OutOfRange();
            return static_cast<T>(node_->natural);
        }
        const std::int64_t number = node_->integer;
        const bool below = std::is_signed<T>::value && number < static_cast<std::int64_t>(Limits::min());
        if (below || (number > 0 && static_cast<std::uint64_t>(number) > static_cast<std::uint64_t>(Limits::max())))
            throw detail::OutOfRange();
        return static_cast<T>(number);
    }
    bool held(const bool *) const { return node_->flag; }
    float held(const float *) const { return node_->single; }
    double held(const double *) const { return node_->real; }
    std::string held(const std::string *) const { return node_->as<std::string>(); }
    ymmsl::SettingValue held(const ymmsl::SettingValue *) const {
        ymmsl::SettingValue setting;
        read(setting);
        return setting;
    }
    ymmsl::Settings held(const ymmsl::Settings *) const { return detail::settings_of(*node_); }

    bool read(ymmsl::SettingValue &setting) const {
        if (node_->kind == detail::Kind::nil || node_->kind > detail::Kind::list) return false;
        return detail::setting_from(detail::value_of(*node_).get(), setting);
    }
    detail::NodePtr node_; // never null, not even after a move
};

/// A reference to data that can be changed by it. Assigning to a Data changes the data that it refers to; a list, dict, grid
/// or byte array is shared with the data assigned.
class Data : public DataConstRef {
public:
    using DataConstRef::DataConstRef;
    Data() = default;
    Data(const Data &) = default;
    Data(Data &&) noexcept = default;

    template <class Element>
    static Data grid(const Element *data, const std::vector<std::size_t> &shape, const std::vector<std::string> &indexes = {},
                     StorageOrder storage_order = StorageOrder::last_adjacent) {
        return Data(new_grid(data, shape, indexes, storage_order));
    }
    template <class... Arguments>
    static Data dict(const Arguments &...arguments) {
        return Data(new_dict(arguments...));
    }
    template <class... Arguments>
    static Data list(const Arguments &...arguments) {
        return Data(new_list(arguments...));
    }
    static Data nils(std::size_t size) { return Data(new_nils(size)); }
    /// A byte array of its own, to fill by as_byte_array(). All bytes are 0.
    static Data byte_array(std::size_t size) {
        std::shared_ptr<char> bytes(new char[size ? size : 1](), std::default_delete<char[]>());
        char *begin = bytes.get();
        return Data(detail::new_node<detail::Bytes>(detail::Kind::bytes, begin, size, std::move(bytes)));
    }
    /// The caller's bytes, which are not copied: they must live as long as any Data that refers to them.
    static Data byte_array(const char *buffer, std::size_t size) {
        return Data(detail::new_node<detail::Bytes>(detail::Kind::bytes, const_cast<char *>(buffer), size, nullptr));
    }

    Data &operator=(const Data &other) {
        if (node_ != other.node_) *node_ = *other.node_;
        return *this;
    }

    using DataConstRef::operator[];
    /// The value of a key, to assign to; a key that is not there is added, with nil.
    Data operator[](const std::string &key) {
        if (!is_a_dict()) mismatch("a dict, which alone has keys");
        detail::Entries &entries = node_->own_entries();
        for (std::size_t i = 0; i < entries.keys.size(); ++i)
            if (entries.keys[i] == key) return Data(entries.items[i]);
        entries.keys.push_back(key);
        entries.items.push_back(std::make_shared<detail::Node>());
        return Data(entries.items.back());
    }
    /// The item of a list, to assign to.
    Data operator[](std::size_t index) {
        if (is_a_list()) node_->own_entries();
        return Data(item(index));
    }
    Data value(std::size_t i) const {
        expect_entry(i);
        return Data(node_->own_entries().items[i]);
    }
    using DataConstRef::as_byte_array;
    char *as_byte_array() {
        if (!is_a_byte_array()) mismatch("a byte array");
        return node_->as<detail::Bytes>().begin;
    }

private:
    explicit Data(detail::NodePtr node) : DataConstRef(std::move(node)) {}
};

inline DataConstRef::DataConstRef(const ymmsl::SettingValue &value)
    : node_(std::make_shared<detail::Node>()) {
    if (value == ymmsl::SettingValue()) return;
    const std::shared_ptr<titin_value> read(detail::value_of(value).release(), titin_value_free);
    node_ = detail::node_of(read.get(), read);
}

inline std::string DataConstRef::describe() const {
    const auto count = [](std::size_t n, const char *of) { return std::to_string(n) + " " + of; };
    switch (node_->kind) {
    case detail::Kind::grid: {
        std::ostringstream text;
        const char *name = titin_dtype_name(grid().dtype);
        text << "a grid of " << (name ? name : "unknown elements") << " with the shape (";
        for (std::size_t i = 0; i < grid().shape.size(); ++i) text << (i ? ", " : "") << grid().shape[i];
        text << ")";
        return text.str();
    }
    case detail::Kind::list: return "a list of " + count(node_->entries(), "items");
    case detail::Kind::dict: return "a dict of " + count(node_->entries(), "entries");
    case detail::Kind::bytes: return "a byte array of " + count(node_->as<detail::Bytes>().size, "bytes");
    case detail::Kind::settings: return count(detail::settings_of(*node_).size(), "settings");
    case detail::Kind::single: {
        std::ostringstream text;
        text << "the single precision number " << node_->single;
        return text.str();
    }
    default: return titin_value_summary(detail::value_of(*node_).get());
    }
}

} // namespace libmuscle

#endif
