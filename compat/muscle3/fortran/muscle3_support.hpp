// What stands behind every procedure of the Fortran modules: objects by number, errors by code, results that outlive a call.
#ifndef TITIN_MUSCLE3_SUPPORT_HPP
#define TITIN_MUSCLE3_SUPPORT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <libmuscle/libmuscle.hpp>
#include <ymmsl/ymmsl.hpp>

namespace {

using libmuscle::Data;
using libmuscle::DataConstRef;
using libmuscle::Instance;
using libmuscle::InstanceFlags;
using libmuscle::Message;
using libmuscle::PortsDescription;
using libmuscle::StorageOrder;
using ymmsl::Operator;
using ymmsl::Settings;

// The codes of errors, as the modules name them.
enum { success = 0, domain_error = 1, out_of_range = 2, logic_error = 3, runtime_error = 4, bad_cast = 5 };

struct Failure {
    int code = success;
    std::string text;
};

// The error of the last call of this thread.
inline Failure &failure() {
    static thread_local Failure last;
    return last;
}

inline void failed(int code, const char *text) {
    failure().code = code;
    failure().text = text;
}

// Runs a call; an exception becomes the error of the call, which then returns nothing, 0 or false.
template <class Call>
auto guarded(Call call) -> decltype(call()) {
    failure().code = success;
    try {
        return call();
    } catch (const std::out_of_range &error) {
        failed(out_of_range, error.what());
    } catch (const std::domain_error &error) {
        failed(domain_error, error.what());
    } catch (const std::logic_error &error) {
        failed(logic_error, error.what());
    } catch (const std::bad_cast &) {
        failed(bad_cast, "the value is of another type than the one asked for, or does not fit into it");
    } catch (const std::exception &error) {
        failed(runtime_error, error.what());
    }
    return decltype(call())();
}

// Objects live until the program frees them; Fortran has their addresses as numbers.
template <class T>
std::intptr_t new_object(T &&object) {
    return reinterpret_cast<std::intptr_t>(new std::decay_t<T>(std::forward<T>(object)));
}

template <class T>
T &object(std::intptr_t number) {
    if (!number) throw std::logic_error("this object was not created, or its creation has failed");
    return *reinterpret_cast<T *>(number);
}

// Results that are more than a number live until the next such result of this thread.
template <class T>
T &result() {
    static thread_local T last;
    return last;
}

// Bytes that live elsewhere.
struct Text {
    const char *data = nullptr;
    std::size_t size = 0;

    Text() = default;
    Text(const char *begin, std::size_t length) : data(begin), size(length) {}
};

inline void give(std::string text, const char *&data, std::size_t &size) {
    result<std::string>() = std::move(text);
    data = result<std::string>().data();
    size = result<std::string>().size();
}

inline void give(Text text, const char *&data, std::size_t &size) {
    data = text.data;
    size = text.size;
}

template <class T>
void give(std::vector<T> list, const T *&data, std::size_t &size) {
    result<std::vector<T>>() = std::move(list);
    data = result<std::vector<T>>().data();
    size = result<std::vector<T>>().size();
}

// A table goes to Fortran column by column. Rows that are shorter than the longest end with zeros.
inline void give(const std::vector<std::vector<double>> &rows, const double *&data, std::size_t *shape) {
    shape[0] = rows.size();
    shape[1] = 0;
    for (const std::vector<double> &row : rows) shape[1] = std::max(shape[1], row.size());
    std::vector<double> &columns = result<std::vector<double>>();
    columns.assign(shape[0] * shape[1], 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows[i].size(); ++j) columns[j * rows.size() + i] = rows[i][j];
    data = columns.data();
}

inline std::vector<std::vector<double>> rows_of(const double *columns, const std::size_t *shape) {
    std::vector<std::vector<double>> rows(shape[0], std::vector<double>(shape[1]));
    for (std::size_t i = 0; i < shape[0]; ++i)
        for (std::size_t j = 0; j < shape[1]; ++j) rows[i][j] = columns[j * shape[0] + i];
    return rows;
}

// Names go to Fortran as one text of names of equal length, filled up by blanks.
inline void give_names(const std::vector<std::string> &names, const char *&data, std::size_t *shape) {
    std::size_t longest = 0;
    for (const std::string &name : names) longest = std::max(longest, name.size());
    std::string all;
    for (std::string name : names) {
        name.resize(longest, ' ');
        all += name;
    }
    std::size_t size;
    give(std::move(all), data, size);
    shape[0] = longest;
    shape[1] = names.size();
}

// Fortran counts from 1.
inline std::size_t from_one(std::size_t i) {
    if (i == 0) throw std::out_of_range("the index 0 was given, but indices count from 1");
    return i - 1;
}

inline std::int32_t narrow(std::int64_t number) {
    if (number < std::numeric_limits<std::int32_t>::min() || number > std::numeric_limits<std::int32_t>::max())
        throw std::bad_cast();
    return static_cast<std::int32_t>(number);
}

inline std::string setting_name(const Settings &settings, std::size_t i) {
    if (from_one(i) >= settings.size())
        throw std::out_of_range("there is no setting " + std::to_string(i) + " among " + std::to_string(settings.size()));
    return std::string(std::next(settings.begin(), static_cast<std::ptrdiff_t>(i - 1))->first);
}

inline std::vector<std::string> ports_of(const PortsDescription &ports, Operator op) {
    const auto found = ports.find(op);
    return found == ports.end() ? std::vector<std::string>() : found->second;
}

template <class T, class Element>
std::intptr_t new_grid(const Element *elements, const std::size_t *shape, std::size_t rank, const char *names,
                       const std::size_t *name_lengths) {
    std::vector<std::string> indexes;
    for (std::size_t i = 0; name_lengths && i < rank; names += name_lengths[i++]) indexes.emplace_back(names, name_lengths[i]);
    return new_object(
        T::grid(elements, std::vector<std::size_t>(shape, shape + rank), indexes, StorageOrder::first_adjacent));
}

// The elements of a grid, whose shape must be this one. `c_order` is whether the last index varies fastest.
template <class Element>
const Element *elements_of(const DataConstRef &data, const std::size_t *shape, std::size_t rank, bool &c_order) {
    const std::vector<std::size_t> found = data.shape(), wanted(shape, shape + rank);
    const auto text = [](const std::vector<std::size_t> &extents) {
        std::string all;
        for (const std::size_t extent : extents) all += (all.empty() ? "" : ", ") + std::to_string(extent);
        return "(" + all + ")";
    };
    const Element *elements = data.elements<Element>();
    if (found != wanted)
        throw std::runtime_error("the grid has the shape " + text(found) + ", but the array that takes its elements has " + text(wanted));
    c_order = rank > 1 && data.storage_order() == StorageOrder::last_adjacent;
    return elements;
}

// The words of a command line, each of which ends with a NUL.
inline std::vector<const char *> words_of(const char *line, std::size_t size) {
    std::vector<const char *> words;
    for (const char *word = line; word < line + size; word += std::char_traits<char>::length(word) + 1) words.push_back(word);
    return words;
}

} // namespace

#endif
