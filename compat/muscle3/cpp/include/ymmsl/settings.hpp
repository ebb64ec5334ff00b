// Settings of a model: a map from names to values of seven types.
#ifndef TITIN_YMMSL_SETTINGS_HPP
#define TITIN_YMMSL_SETTINGS_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ymmsl/identity.hpp"

namespace ymmsl {

/// The value of a setting: std::string, std::int64_t, double, bool, std::vector<std::int64_t>, std::vector<double> or
/// std::vector<std::vector<double>>; or nothing yet.
class SettingValue {
public:
    SettingValue() = default;
    SettingValue(const std::string &value) : type_(Type::text), text_(value) {}
    SettingValue(const char *value) : type_(Type::text), text_(value) {}
    SettingValue(int value) : type_(Type::integer), integer_(value) {}
    SettingValue(long value) : type_(Type::integer), integer_(value) {}
    SettingValue(long long value) : type_(Type::integer), integer_(value) {}
    SettingValue(double value) : type_(Type::real), real_(value) {}
    SettingValue(bool value) : type_(Type::flag), flag_(value) {}
    SettingValue(const std::vector<std::int64_t> &value) : type_(Type::integers), integers_(value) {}
    SettingValue(std::initializer_list<double> value) : type_(Type::reals), reals_(value) {}
    SettingValue(const std::vector<double> &value) : type_(Type::reals), reals_(value) {}
    SettingValue(std::initializer_list<std::vector<double>> value) : type_(Type::table), table_(value) {}
    SettingValue(const std::vector<std::vector<double>> &value) : type_(Type::table), table_(value) {}

    /// True if both type and value are the same.
    bool operator==(const SettingValue &other) const {
        return type_ == other.type_ && text_ == other.text_ && integer_ == other.integer_ && real_ == other.real_ &&
               flag_ == other.flag_ && integers_ == other.integers_ && reals_ == other.reals_ && table_ == other.table_;
    }
    bool operator!=(const SettingValue &other) const { return !(*this == other); }

    /// Whether the value is of this type, which is one of the seven. No type is converted.
    template <class T>
    bool is_a() const {
        return type_ == type_of(static_cast<const T *>(nullptr));
    }
    /// The value. Throws std::bad_cast if the value is of another type.
    template <class T>
    T as() const {
        if (!is_a<T>()) throw std::bad_cast();
        return held(static_cast<const T *>(nullptr));
    }

    friend std::ostream &operator<<(std::ostream &stream, const SettingValue &value) {
        switch (value.type_) {
        case Type::none: return stream;
        case Type::text: return stream << '"' << value.text_ << '"';
        case Type::integer: return stream << value.integer_;
        case Type::real: return stream << value.real_;
        case Type::flag: return stream << (value.flag_ ? "true" : "false");
        case Type::integers: return write(stream, value.integers_);
        case Type::reals: return write(stream, value.reals_);
        case Type::table: break;
        }
        stream << '[';
        for (std::size_t i = 0; i < value.table_.size(); ++i) write(stream << (i ? ", " : ""), value.table_[i]);
        return stream << ']';
    }

private:
    enum class Type { none, text, integer, real, flag, integers, reals, table };

    // The argument is only for the choice of the overload: a null pointer to the type asked for.
    static Type type_of(const std::string *) { return Type::text; }
    static Type type_of(const std::int64_t *) { return Type::integer; }
    static Type type_of(const double *) { return Type::real; }
    static Type type_of(const bool *) { return Type::flag; }
    static Type type_of(const std::vector<std::int64_t> *) { return Type::integers; }
    static Type type_of(const std::vector<double> *) { return Type::reals; }
    static Type type_of(const std::vector<std::vector<double>> *) { return Type::table; }

    const std::string &held(const std::string *) const { return text_; }
    std::int64_t held(const std::int64_t *) const { return integer_; }
    double held(const double *) const { return real_; }
    bool held(const bool *) const { return flag_; }
    const std::vector<std::int64_t> &held(const std::vector<std::int64_t> *) const { return integers_; }
    const std::vector<double> &held(const std::vector<double> *) const { return reals_; }
    const std::vector<std::vector<double>> &held(const std::vector<std::vector<double>> *) const { return table_; }

    template <class T>
    static std::ostream &write(std::ostream &stream, const std::vector<T> &row) {
        stream << '[';
        for (std::size_t i = 0; i < row.size(); ++i) stream << (i ? ", " : "") << row[i];
        return stream << ']';
    }

    Type type_ = Type::none;
    std::string text_;
    std::int64_t integer_ = 0;
    double real_ = 0;
    bool flag_ = false;
    std::vector<std::int64_t> integers_;
    std::vector<double> reals_;
    std::vector<std::vector<double>> table_;
};

/// Settings by name.
class Settings {
public:
    using const_iterator = std::unordered_map<Reference, SettingValue>::const_iterator;

    bool operator==(const Settings &other) const { return values_ == other.values_; }
    bool operator!=(const Settings &other) const { return !(*this == other); }

    std::size_t size() const { return values_.size(); }
    bool empty() const { return values_.empty(); }
    bool contains(const Reference &name) const { return values_.count(name) != 0; }
    /// Throws std::out_of_range for a name that is not set.
    const SettingValue &at(const Reference &name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) throw std::out_of_range("there is no setting " + std::string(name));
        return found->second;
    }
    /// The value to set; adds the name if need be.
    SettingValue &operator[](const Reference &name) { return values_[name]; }
    /// How many settings were removed: 1 or 0.
    std::size_t erase(const std::string &name) { return values_.erase(Reference(name)); }
    void clear() { values_.clear(); }

    /// Iterators over pairs of name and value, in no particular order.
    const_iterator begin() const { return values_.begin(); }
    const_iterator end() const { return values_.end(); }

    friend std::ostream &operator<<(std::ostream &stream, const Settings &settings) {
        stream << "Settings(";
        const char *between = "";
        for (const auto &setting : settings) {
            stream << between << setting.first << ": " << setting.second;
            between = ", ";
        }
        return stream << ")";
    }

private:
    std::unordered_map<Reference, SettingValue> values_;
};

} // namespace ymmsl

#endif
