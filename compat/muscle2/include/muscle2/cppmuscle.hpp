// MUSCLE 2's interface for C++, over titin. Link with `titin config --compat muscle2 --libs`.
//
// An error is a muscle_exception. In an MPI program only rank 0 talks: on other ranks `send` does nothing, `receive` returns
// NULL, and the calls for properties throw. One thread calls. C++98 is enough.
#ifndef TITIN_MUSCLE2_CPPMUSCLE_HPP
#define TITIN_MUSCLE2_CPPMUSCLE_HPP

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "complex_data.hpp"
#include "detail/core.h"
#include "exception.hpp"
#include "logger.hpp"
#include "muscle_types.h"

namespace muscle {
namespace detail {

inline void check(int failed) {
    if (failed) throw muscle_exception(titin_muscle2_error());
}

/// Throws for a null pointer.
inline const char *check(const char *text) {
    if (!text) throw muscle_exception(titin_muscle2_error());
    return text;
}

/// The text, which is freed.
inline std::string taken(char *text) {
    const std::string copy(text);
    std::free(text);
    return copy;
}

/// A message that is freed at the end of the block.
struct Message {
    titin_message *handle;
    Message() : handle(0) {}
    ~Message() { titin_message_free(handle); }

private:
    Message(const Message &);
    Message &operator=(const Message &);
};

inline void send_complex(const std::string &port, const ComplexData *data) {
    if (!data) check(titin_muscle2_refuse("send on port '%s' of a ComplexData at a NULL pointer", port.c_str()));
    const muscle_complex_t type = data->getType();
    if (!data->getData() && type != COMPLEX_NULL && data->length())
        check(titin_muscle2_refuse("send on port '%s' of a ComplexData whose elements are at a NULL pointer", port.c_str()));
    if (type == COMPLEX_NULL) return check(titin_muscle2_send_nil(port.c_str()));
    if (type == COMPLEX_STRING) {
        const char *text = static_cast<const char *>(data->getData());
        return check(titin_muscle2_send(port.c_str(), text, std::strlen(text) + 1, MUSCLE_STRING));
    }
    if (type == COMPLEX_BYTE_ARR)
        return check(titin_muscle2_send(port.c_str(), data->getData(), data->length(), MUSCLE_RAW));
    if (!dtype(type))
        check(titin_muscle2_refuse("send on port '%s' of a ComplexData of type %d: maps, collections, arrays of strings and "
                                   "objects of Java are of MUSCLE 2's Java programs only",
                                   port.c_str(), static_cast<int>(type)));
    const std::vector<int> dims = data->getDimensions();
    const std::vector<int64_t> extents(dims.begin(), dims.end());
    check(titin_muscle2_send_array(port.c_str(), dtype(type), static_cast<int>(extents.size()),
                                   extents.empty() ? 0 : &extents[0], data->getData()));
}

/// New data for a message without an array, if MUSCLE 2 has a type for them.
inline ComplexData *simple_of(const titin_message *message) {
    const titin_value *value = titin_message_value(message);
    int64_t length = 0;
    const void *from = 0;
    switch (titin_message_kind(message)) {
    case TITIN_KIND_NIL: return new ComplexData(COMPLEX_NULL, 0);
    case TITIN_KIND_BYTES: {
        from = titin_value_bytes(value, &length);
        std::vector<int> dims(1, static_cast<int>(length));
        ComplexData *data = length > INT_MAX ? 0 : new ComplexData(COMPLEX_BYTE_ARR, &dims);
        if (data && length) std::memcpy(data->getData(), from, static_cast<size_t>(length));
        return data;
    }
    case TITIN_KIND_TEXT: {
        from = titin_value_text(value, &length);
        char *text = static_cast<char *>(std::malloc(static_cast<size_t>(length) + 1));
        if (!text) throw std::bad_alloc();
        std::memcpy(text, from, static_cast<size_t>(length));
        text[length] = '\0';
        return new ComplexData(text, COMPLEX_STRING, 0);
    }
    case TITIN_KIND_FLOAT: {
        ComplexData *data = new ComplexData(COMPLEX_DOUBLE, 0);
        titin_value_f64(value, static_cast<double *>(data->getData()));
        return data;
    }
    case TITIN_KIND_INT: {
        ComplexData *data = new ComplexData(COMPLEX_LONG, 0);
        titin_value_i64(value, static_cast<int64_t *>(data->getData()));
        return data;
    }
    case TITIN_KIND_BOOL: {
        ComplexData *data = new ComplexData(COMPLEX_BOOLEAN, 0);
        int flag = 0;
        titin_value_bool(value, &flag);
        *static_cast<bool *>(data->getData()) = flag != 0;
        return data;
    }
    default: return 0;
    }
}

inline ComplexData *array_of(const titin_message *message) {
    muscle_complex_t type;
    const int rank = titin_message_rank(message);
    if (!complex_of(titin_message_dtype(message), rank, type)) return 0;
    std::vector<int> dims;
    for (int i = 0; i < rank; ++i) {
        const int64_t extent = titin_message_extent(message, i);
        if (extent > INT_MAX) return 0;
        dims.push_back(static_cast<int>(extent));
    }
    ComplexData *data = new ComplexData(type, &dims);
    titin_muscle2_copy(message, data->sizeOfPrimitive(), data->getData());
    return data;
}

inline ComplexData *receive_complex(const std::string &port, const void *memory, size_t &count) {
    if (memory)
        check(titin_muscle2_refuse("receive on port '%s' with MUSCLE_COMPLEX: give NULL in place of a pointer, and free what "
                                   "comes with free_data",
                                   port.c_str()));
    Message message;
    check(titin_muscle2_next(port.c_str(), &message.handle));
    const bool array = titin_message_kind(message.handle) == TITIN_KIND_ARRAY;
    ComplexData *data = array ? array_of(message.handle) : simple_of(message.handle);
    if (!data)
        check(titin_muscle2_refuse("receive on port '%s' with MUSCLE_COMPLEX: MUSCLE 2 has no type for what has come (%s). It has "
                                   "arrays of up to 4 dimensions of bool, whole numbers of 8 to 64 bits and real numbers, of "
                                   "less than 2^31 elements along each, text, and single numbers",
                                   port.c_str(), titin_message_origin(message.handle)));
    count = data->length();
    return data;
}

/// The static members of env; a template, so that they are defined in a header.
template <int Only>
struct Facts {
    static bool is_main_processor;
    static std::string kernel_name;
};
template <int Only>
bool Facts<Only>::is_main_processor = false;
template <int Only>
std::string Facts<Only>::kernel_name;

} // namespace detail

/// The instance of this process. `is_main_processor` and `kernel_name` are set by init.
class env : public detail::Facts<0> {
public:
    /// Joins the run of the environment, which `titin run` sets. The arguments are not changed.
    static muscle_error_t init(int * /* argc */, char *** /* argv */) {
        detail::check(titin_muscle2_init("C++"));
        is_main_processor = titin_muscle2_is_main() != 0;
        if (is_main_processor) kernel_name = titin_muscle2_kernel_name();
        return MUSCLE_SUCCESS;
    }
    /// Leaves the run, once the receivers hold every message.
    static void finalize() { detail::check(titin_muscle2_finalize()); }

    /// True once the time of a port has reached the property T, or max_timesteps.
    static bool will_stop() {
        int stops;
        detail::check(titin_muscle2_will_stop(&stops));
        return stops != 0;
    }

    /// Sends `count` elements; for MUSCLE_STRING text up to its NUL; for MUSCLE_COMPLEX a ComplexData, whatever `count` is.
    static void send(std::string port, const void *data, size_t count, muscle_datatype_t type) {
        if (type != MUSCLE_COMPLEX) detail::check(titin_muscle2_send(port.c_str(), data, count, type));
        else if (!titin_muscle2_is_silent()) detail::send_complex(port, static_cast<const ComplexData *>(data));
    }
    static void sendDoubleVector(std::string port, const std::vector<double> &data) {
        send(port, data.empty() ? 0 : &data[0], data.size(), MUSCLE_DOUBLE);
    }

    /// Receives a message, and waits for it. With NULL for `data` the memory is new, and freed by free_data; otherwise it has
    /// room for `count` elements. `count` becomes the number of elements; of a string, the number of bytes with the NUL.
    static void *receive(std::string port, void *data, size_t &count, muscle_datatype_t type) {
        if (type == MUSCLE_COMPLEX) return titin_muscle2_is_silent() ? 0 : detail::receive_complex(port, data, count);
        detail::check(titin_muscle2_receive(port.c_str(), &data, &count, type));
        return data;
    }
    static std::vector<double> receiveDoubleVector(std::string port) {
        size_t count = 0;
        double *data = static_cast<double *>(receive(port, 0, count, MUSCLE_DOUBLE));
        if (!data) return std::vector<double>();
        const std::vector<double> copy(data, data + count);
        std::free(data);
        return copy;
    }
    static void free_data(void *data, muscle_datatype_t type) {
        if (type == MUSCLE_COMPLEX) delete static_cast<ComplexData *>(data);
        else std::free(data);
    }
    /// Waits for the next message: true if it has come, false if the sender has finished.
    static bool has_next(std::string port) {
        int has;
        detail::check(titin_muscle2_has_next(port.c_str(), &has));
        return has != 0;
    }

    /// The work directory of the instance.
    static std::string get_tmp_path() { return detail::check(titin_muscle2_workdir()); }

    /// A barrier for the ranks of an MPI program, in which waiting ranks use no core. All ranks call barrier_init; rank 0's
    /// `*buffer`, with `*length` bytes, is to be broadcast before the first barrier. Each returns 0, or -1 with a record in
    /// the log.
    static int barrier_init(char **buffer, size_t *length, int processes) {
        return titin_muscle2_barrier_init(buffer, length, processes);
    }
    static int barrier(const char *buffer) { return titin_muscle2_barrier(buffer); }
    static void barrier_destroy(char *buffer) { titin_muscle2_barrier_destroy(buffer); }
};

/// Properties: the settings of the description, as text. "name" is looked up for this instance, then for all. Settings of
/// other instances ("instance:name") are not known.
class cxa {
public:
    static std::string kernel_name() { return detail::check(titin_muscle2_kernel_name()); }
    static std::string get_property(std::string name) {
        char *text;
        detail::check(titin_muscle2_property(name.c_str(), &text));
        if (!text) detail::check(titin_muscle2_no_property(name.c_str()));
        return detail::taken(text);
    }
    static bool has_property(std::string name) {
        char *text;
        detail::check(titin_muscle2_property(name.c_str(), &text));
        std::free(text);
        return text != 0;
    }
    /// A line `name=value` for each that this instance has.
    static std::string get_properties() {
        char *text;
        detail::check(titin_muscle2_properties(&text));
        return detail::taken(text);
    }
};

} // namespace muscle

#endif
