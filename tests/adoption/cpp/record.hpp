// Writes down what a program got, with the exact bits of numbers, on its standard output. original/record.py writes the same.
#ifndef RECORD_HPP
#define RECORD_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include <libmuscle/libmuscle.hpp>

namespace record {

inline std::string hex(const void *bytes, std::size_t size) {
    std::ostringstream text;
    const unsigned char *begin = static_cast<const unsigned char *>(bytes);
    for (std::size_t i = 0; i < size; ++i) text << std::hex << std::setw(2) << std::setfill('0') << int(begin[i]);
    return text.str();
}

inline std::string show(double number) { return "real " + hex(&number, sizeof number); }
inline std::string show(std::int64_t number) { return "int " + std::to_string(number); }

template <class T>
std::string show(const std::vector<T> &list) {
    std::string text;
    for (const T &item : list) text += (text.empty() ? "" : ", ") + show(item);
    return "[" + text + "]";
}

inline std::string show(const ymmsl::SettingValue &value) {
    if (value.is_a<std::string>()) return "text " + value.as<std::string>();
    if (value.is_a<std::int64_t>()) return show(value.as<std::int64_t>());
    if (value.is_a<double>()) return show(value.as<double>());
    if (value.is_a<bool>()) return value.as<bool>() ? "true" : "false";
    if (value.is_a<std::vector<std::int64_t>>()) return show(value.as<std::vector<std::int64_t>>());
    if (value.is_a<std::vector<double>>()) return show(value.as<std::vector<double>>());
    return show(value.as<std::vector<std::vector<double>>>());
}

inline std::string show(const std::map<std::string, std::string> &entries) {
    std::string text;
    for (const auto &entry : entries) text += (text.empty() ? "" : ", ") + entry.first + ": " + entry.second;
    return "{" + text + "}";
}

inline std::string show(const ymmsl::Settings &settings) {
    std::map<std::string, std::string> entries;
    for (const auto &setting : settings) entries[std::string(setting.first)] = show(setting.second);
    return "settings " + show(entries);
}

/// The bytes of a grid's elements, of which the last index varies fastest, whatever the storage order.
template <class T>
std::string hex_of(const libmuscle::DataConstRef &data) {
    const T *elements = data.elements<T>();
    if (data.storage_order() == libmuscle::StorageOrder::last_adjacent) return hex(elements, data.size() * sizeof(T));
    const std::vector<std::size_t> shape = data.shape();
    std::string text;
    for (std::size_t i = 0; i < data.size(); ++i) {
        std::size_t rest = i, place = 0, stride = data.size();
        for (std::size_t dimension = shape.size(); dimension-- > 0;) {
            stride /= shape[dimension];
            place += rest % shape[dimension] * stride;
            rest /= shape[dimension];
        }
        text += hex(elements + place, sizeof(T));
    }
    return text;
}

template <class T>
bool show_grid(const libmuscle::DataConstRef &data, const char *name, std::string &text) {
    if (!data.is_a_grid_of<T>()) return false;
    std::ostringstream line;
    line << "grid " << name << " (";
    for (const std::size_t extent : data.shape()) line << extent << ",";
    line << ") " << (data.shape().size() < 2 ? "-" : data.storage_order() == libmuscle::StorageOrder::first_adjacent ? "first" : "last");
    if (data.has_indexes())
        for (const std::string &index : data.indexes()) line << " " << index;
    line << " " << hex_of<T>(data);
    text = line.str();
    return true;
}

inline std::string show(const libmuscle::DataConstRef &data) {
    std::string text;
    if (data.is_nil()) return "nil";
    if (data.is_a<bool>()) return data.as<bool>() ? "true" : "false";
    if (data.is_a<std::uint64_t>()) return "int " + std::to_string(data.as<std::uint64_t>());
    if (data.is_a<std::int64_t>()) return show(data.as<std::int64_t>());
    if (data.is_a<double>()) return show(data.as<double>());
    if (data.is_a<float>()) {
        const float number = data.as<float>();
        return "single " + hex(&number, sizeof number);
    }
    if (data.is_a<std::string>()) return "text " + data.as<std::string>();
    if (data.is_a_byte_array()) return "bytes " + hex(data.as_byte_array(), data.size());
    if (show_grid<bool>(data, "bool", text) || show_grid<std::int32_t>(data, "int32", text) ||
        show_grid<std::int64_t>(data, "int64", text) || show_grid<float>(data, "float32", text) ||
        show_grid<double>(data, "float64", text))
        return text;
    if (data.is_a_dict()) {
        std::map<std::string, std::string> entries;
        for (std::size_t i = 0; i < data.size(); ++i) entries[data.key(i)] = show(data.value(i));
        return show(entries);
    }
    if (data.is_a_list()) {
        for (std::size_t i = 0; i < data.size(); ++i) text += (i ? ", " : "") + show(data[i]);
        return "[" + text + "]";
    }
    if (data.is_a<ymmsl::Settings>()) return show(data.as<ymmsl::Settings>());
    return "something else: " + data.describe();
}

inline std::string show(const libmuscle::Message &message) {
    std::string text = show(message.timestamp()) + " next " + (message.has_next_timestamp() ? show(message.next_timestamp()) : "none");
    if (message.has_settings()) text += " " + show(message.settings());
    return text + " " + show(message.data());
}

inline void line(const std::string &what, const std::string &got) { std::cout << what << ": " << got << std::endl; }
inline void line(const std::string &what, const char *got) { line(what, std::string(got)); }
inline void line(const std::string &what, bool got) { line(what, got ? "true" : "false"); }
template <class T>
void line(const std::string &what, const T &got) {
    line(what, show(got));
}

/// Writes down the error of a call: `missing`, `type` or `error`, as Python's KeyError, TypeError and RuntimeError.
inline void refused(const std::string &what, const std::function<void()> &call) {
    try {
        call();
        line(what, "no error");
    } catch (const std::out_of_range &) {
        line(what, "missing");
    } catch (const std::bad_cast &) {
        line(what, "type");
    } catch (const std::exception &) {
        line(what, "error");
    }
}

/// Writes down the class and the text of an error.
inline void refused_with(const std::string &what, const std::function<void()> &call) {
    try {
        call();
        line(what, "no error");
    } catch (const std::out_of_range &error) {
        line(what, std::string("out_of_range: ") + error.what());
    } catch (const std::logic_error &error) {
        line(what, std::string("logic_error: ") + error.what());
    } catch (const std::bad_cast &error) {
        line(what, std::string("bad_cast: ") + error.what());
    } catch (const std::runtime_error &error) {
        line(what, std::string("runtime_error: ") + error.what());
    }
}

} // namespace record

#endif
