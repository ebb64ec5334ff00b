// Paths: messages between two programs that share a key, without a manager, from C++17 and later. Header only, over
// titin_path.h, which says how paths behave. titin.hpp does not include this header.
//
//     titin::PathListener listener("0.0.0.0:4711");         titin::Path path("cluster.example:4711", "mesh");
//     titin::Path path = listener.accept();                 path.send(u);
//     path.receive_into(u);                                 path.close();
//     path.close();
//
// Every call that fails throws titin::Error or a derived class. After Timeout, Interrupted, TypeMismatch, MessageLost and
// UsageError the path goes on.
#ifndef TITIN_PATH_HPP
#define TITIN_PATH_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "titin_path.h"

#include "titin/describe.hpp"
#include "titin/message.hpp"
#include "titin/options.hpp"

namespace titin {

/// How long a call may take: any std::chrono::duration; for ever by default.
class TimeLimit {
public:
    /// For ever, or as long as the duration.
    TimeLimit() = default;
    template <class Rep, class Period>
    TimeLimit(std::chrono::duration<Rep, Period> limit) : seconds_(std::chrono::duration<double>(limit).count()) {}
    /// The limit in seconds; TITIN_WAIT for ever.
    double seconds() const { return seconds_; }

private:
    double seconds_ = TITIN_WAIT;
};

/// The key and the settings of paths: `PathOptions().key_file("mesh.key").streams(16)`. Without a key, the key is in the file
/// that the environment variable TITIN_PATH_KEY names.
class PathOptions {
public:
    /// The defaults.
    PathOptions() : options_(detail::check(titin_path_options_new()), titin_path_options_free) {}
    /// The key: 64 hexadecimal digits.
    PathOptions &key(const std::string &key) & { return also(titin_path_options_key(raw(), key.c_str())); }
    PathOptions &&key(const std::string &key) && { return std::move(this->key(key)); }
    /// The file with the key.
    PathOptions &key_file(const std::string &file) & { return also(titin_path_options_key_file(raw(), file.c_str())); }
    PathOptions &&key_file(const std::string &file) && { return std::move(key_file(file)); }
    /// The number of streams over which large messages are spread, at most 256.
    PathOptions &streams(int streams) & { return also(titin_path_options_streams(raw(), streams)); }
    PathOptions &&streams(int streams) && { return std::move(this->streams(streams)); }
    /// The most bytes per second that each end sends.
    PathOptions &pacing(std::int64_t rate) & { return also(titin_path_options_pacing(raw(), rate)); }
    PathOptions &&pacing(std::int64_t rate) && { return std::move(pacing(rate)); }
    /// The sizes of each stream's buffers, in bytes.
    PathOptions &buffers(std::int64_t send, std::int64_t receive) & {
        return also(titin_path_options_buffers(raw(), send, receive));
    }
    PathOptions &&buffers(std::int64_t send, std::int64_t receive) && { return std::move(buffers(send, receive)); }
    /// How long opening waits for the other end; a minute by default.
    PathOptions &patience(TimeLimit limit) & { return also(titin_path_options_patience(raw(), limit.seconds())); }
    PathOptions &&patience(TimeLimit limit) && { return std::move(patience(limit)); }
    /// How long the line to another host may be away, before the open path is lost; a minute by default.
    PathOptions &outage(TimeLimit limit) & { return also(titin_path_options_outage(raw(), limit.seconds())); }
    PathOptions &&outage(TimeLimit limit) && { return std::move(outage(limit)); }
    /// The function is called ten times a second while a call waits on a path or listener with these options. Once it returns
    /// true, or throws, the call throws Interrupted: as with a timeout, a receive has lost nothing, and a send has given its
    /// message up.
    PathOptions &on_interrupt(std::function<bool()> interrupted) & {
        interrupt_ = std::make_shared<detail::Interrupt>(std::move(interrupted));
        return also(titin_path_options_interrupt(raw(), detail::ask, interrupt_.get()));
    }
    PathOptions &&on_interrupt(std::function<bool()> interrupted) && {
        return std::move(on_interrupt(std::move(interrupted)));
    }
    titin_path_options *raw() const { return options_.get(); }

private:
    friend class Path;
    friend class PathListener;
    PathOptions &also(int status) {
        detail::check(status);
        return *this;
    }
    std::unique_ptr<titin_path_options, void (*)(titin_path_options *)> options_;
    std::shared_ptr<detail::Interrupt> interrupt_;
};

/// A non-blocking call. Until it is done the program must not change the memory to send, nor use the memory to receive into. The
/// destructor cancels a call that is not done.
class [[nodiscard]] PathRequest {
public:
    /// Whether the call is done. Throws the error of a call that has failed, at each test and wait.
    bool test() {
        int done;
        detail::check(titin_path_test(raw(), &done));
        return done != 0;
    }
    /// Waits until the call is done. Throws Timeout after the time given: the call goes on.
    void wait(TimeLimit limit = {}) { detail::check(titin_path_wait(raw(), limit.seconds())); }
    /// Ends the call if it is not done; returns whether it was ended. Afterwards the memory is the program's again. A receive loses
    /// nothing; a send gives its message up.
    bool cancel() {
        int cancelled;
        detail::check(titin_path_cancel(raw(), &cancelled));
        return cancelled != 0;
    }
    /// The number of bytes of the message that the call has received.
    std::int64_t length() const {
        const std::int64_t length = titin_path_request_length(raw());
        if (length < 0) detail::check(titin_error_kind());
        return length;
    }
    /// The message that ireceive, iexchange or icycle without memory has received.
    Message message() const {
        titin_message *message;
        detail::check(titin_path_request_message(raw(), &message));
        return Message(message);
    }
    titin_path_request *raw() const {
        if (!request_) throw UsageError("this titin::PathRequest was moved from");
        return request_.get();
    }

private:
    friend class Path;
    explicit PathRequest(titin_path_request *request) : request_(request, titin_path_request_free) {}
    std::unique_ptr<titin_path_request, void (*)(titin_path_request *)> request_;
};

/// Waits until one of these calls is done, on one path or on several; returns its place. Whether it has failed its test() or
/// wait() says.
inline std::size_t wait_any(const std::vector<const PathRequest *> &requests, TimeLimit limit = {}) {
    std::vector<titin_path_request *> handles;
    for (const PathRequest *request : requests) handles.push_back(request ? request->raw() : nullptr);
    int index;
    const int status = titin_path_wait_any(int(handles.size()), handles.data(), limit.seconds(), &index);
    if (index < 0) detail::check(status);
    return std::size_t(index);
}

/// The figures of one end of a path since it was opened. NaN stands for what the system does not measure.
struct PathStatistics {
    double time;                ///< seconds for which the path has been open
    std::int64_t messages_sent; ///< a long message counts from its beginning on
    std::int64_t bytes_sent;
    std::int64_t messages_received;
    std::int64_t bytes_received;
    double send_rate;           ///< bytes sent per second of that time
    double receive_rate;        ///< bytes received per second of that time
    double waited;              ///< seconds for which calls have waited; several threads add up
    double round_trip;          ///< in seconds, as the system has averaged it: the least of the streams
    double retransmissions;     ///< packets that this host has sent again
    double pacing;              ///< the most bytes per second that this end sends; 0 without a limit
    double send_buffer;         ///< the buffers of a stream, in bytes, as the system has them
    double receive_buffer;
    std::int64_t piece;         ///< the bytes of a piece, if they were set; 0 if titin chooses
};

namespace detail {

// `Given` is the T of an argument T &&.

/// Whether an argument is an array to send.
template <class Given>
inline constexpr bool is_source = IsArray<std::remove_cv_t<std::remove_reference_t<Given>>>::value;

/// Whether an argument stands for what an exchange receives into, and not for a time limit, extents or a number of bytes.
template <class Given>
inline constexpr bool is_target = !std::is_convertible_v<Given, TimeLimit> && !std::is_convertible_v<Given, Extents> &&
                                  !std::is_convertible_v<Given, std::int64_t>;

/// Fails to compile where a call that does not wait is given a temporary to send.
template <class Given>
constexpr void stays() {
    static_assert(std::is_lvalue_reference_v<Given> || !owns<std::remove_cv_t<Given>>(),
                  "a temporary is gone before it is sent: give an array that has a name");
}

/// The array that a call receives into.
template <class Given>
Array target(Given &into) {
    receivable<Given, false>();
    static_assert(is_writable<std::remove_reference_t<Given>>(), "these data are const");
    return describe(into);
}

} // namespace detail

/// A way to one other program. The destructor closes the path, and waits for at most 10 s until the other end has all
/// messages; if an exception is on its way, the destructor does not wait. Several threads may use a path.
class Path {
public:
    /// Opens a path to the first of these addresses where a program listens with the key: "host:port", or several of them
    /// with commas. A path to another host is encrypted, and goes on after a cut, at whichever of the addresses answers then.
    /// On this host it is a plain connection. "session:host:port" and "tcp:host:port" choose; "relay:site/host:port" is at another site.
    explicit Path(const std::string &addresses, const std::string &name = "", const PathOptions &options = PathOptions())
        : interrupt_(options.interrupt_) {
        detail::check(titin_path_open(addresses.c_str(), name.c_str(), options.raw(), &path_));
    }
    Path(Path &&other) noexcept
        : path_(std::exchange(other.path_, nullptr)), interrupt_(std::move(other.interrupt_)) {}
    Path &operator=(Path &&other) noexcept {
        std::swap(path_, other.path_);
        std::swap(interrupt_, other.interrupt_);
        return *this;
    }
    ~Path() {
        if (path_) titin_path_close(path_, std::uncaught_exceptions() > exceptions_ ? 0 : 10);
    }

    /// The name that the opening program has given.
    std::string name() const { return titin_path_name(raw()); }
    /// The number of streams that carry large messages of this end.
    int streams() const { return titin_path_streams(raw()); }
    /// What the path has carried, and how.
    PathStatistics statistics() const {
        const auto figure = [this](int which) { return titin_path_figure(raw(), which); };
        const auto count = [&](int which) { return std::int64_t(figure(which)); };
        return {figure(TITIN_PATH_TIME),
                count(TITIN_PATH_MESSAGES_SENT),
                count(TITIN_PATH_BYTES_SENT),
                count(TITIN_PATH_MESSAGES_RECEIVED),
                count(TITIN_PATH_BYTES_RECEIVED),
                figure(TITIN_PATH_SEND_RATE),
                figure(TITIN_PATH_RECEIVE_RATE),
                figure(TITIN_PATH_WAITED),
                figure(TITIN_PATH_ROUND_TRIP),
                figure(TITIN_PATH_RETRANSMISSIONS),
                figure(TITIN_PATH_PACING),
                figure(TITIN_PATH_SEND_BUFFER),
                figure(TITIN_PATH_RECEIVE_BUFFER),
                count(TITIN_PATH_PIECE)};
    }
    /// Has this end send large messages by at most so many streams (1 to 256) from now on, and opens those that are missing:
    /// they carry messages as soon as they are there, which streams() tells. For 0 titin chooses. The other end sends by as
    /// many as it has set, or by all that are open if titin chooses for it.
    void set_streams(int streams) { detail::check(titin_path_set_streams(raw(), streams)); }
    /// Has this end send large messages in pieces of so many bytes (1 KiB to 1 MiB) from now on, where several streams carry
    /// them; for 0 titin chooses.
    void set_piece(std::int64_t bytes) { detail::check(titin_path_set_piece(raw(), bytes)); }
    /// Has this end send at most so many bytes per second from now on; 0 is for no limit.
    void set_pacing(std::int64_t rate) { detail::check(titin_path_set_pacing(raw(), rate)); }
    /// Sets the sizes of each stream's buffers at this end, in bytes; 0 leaves a size as it is.
    void set_buffers(std::int64_t send, std::int64_t receive) { detail::check(titin_path_set_buffers(raw(), send, receive)); }

    /// Sends an array: a vector, array, span, mdspan, T[n], titin::Span or titin::View. Returns when the array may be changed.
    template <class T, class = std::enable_if_t<detail::IsArray<T>::value>>
    void send(const T &data, TimeLimit limit = {}) {
        send_array(detail::describe(data), limit);
    }
    /// Sends an array from a pointer to its elements, contiguous in C order.
    template <class T>
    void send(const T *data, const Extents &extents, TimeLimit limit = {}) {
        send_array(detail::describe(data, extents), limit);
    }
    /// Sends the bytes of several places in memory as one message.
    void send_parts(const std::vector<std::pair<const void *, std::size_t>> &parts, TimeLimit limit = {}) {
        const Places<const void *> places(parts);
        detail::check(titin_path_send_parts(raw(), places.count(), places.data(), places.lengths(), limit.seconds()));
    }

    /// Receives the next message, whose size and type need not be known.
    Message receive(TimeLimit limit = {}) {
        titin_message *message;
        detail::check(titin_path_receive(raw(), limit.seconds(), &message));
        return Message(message);
    }
    /// Receives an array into memory of the program: any array that send takes, if it is not const. The type of element and
    /// the shape must be those of the message.
    template <class T>
    void receive_into(T &&data, TimeLimit limit = {}) {
        const detail::Array a = detail::target<T>(data);
        detail::check(titin_path_receive_array(raw(), a.dtype, a.extents.rank(), a.extents.data(),
                                               a.strided ? a.strides : nullptr, a.order, const_cast<void *>(a.data),
                                               limit.seconds()));
    }
    /// Receives the bytes of the next message into memory with this room; returns their number.
    std::int64_t receive_bytes(void *memory, std::int64_t room, TimeLimit limit = {}) {
        std::int64_t length;
        detail::check(titin_path_receive_into(raw(), memory, room, limit.seconds(), &length));
        return length;
    }

    /// Sends an array, as send does, and receives an array into memory of the program, as receive_into does, both at once:
    /// neither waits for the other. The two arrays may differ in type and shape, and must not share elements. If only the sending
    /// fails, the received message is there for the next call that receives.
    template <class Out, class In, class = std::enable_if_t<detail::IsArray<Out>::value && detail::is_target<In>>>
    void exchange(const Out &data, In &&into, TimeLimit limit = {}) {
        exchange_arrays(detail::describe(data), detail::target<In>(into), limit);
    }
    /// The same for an array from a pointer to its elements, contiguous in C order.
    template <class T, class In, class = std::enable_if_t<detail::is_target<In>>>
    void exchange(const T *data, const Extents &extents, In &&into, TimeLimit limit = {}) {
        exchange_arrays(detail::describe(data, extents), detail::target<In>(into), limit);
    }
    /// Sends an array and receives the next message, whose size and type need not be known.
    template <class T, class = std::enable_if_t<detail::IsArray<T>::value>>
    Message exchange(const T &data, TimeLimit limit = {}) {
        return exchange_message(detail::describe(data), limit);
    }
    template <class T>
    Message exchange(const T *data, const Extents &extents, TimeLimit limit = {}) {
        return exchange_message(detail::describe(data, extents), limit);
    }
    /// Sends bytes, without a type, and receives the bytes of the next message into memory with this room. Returns their number.
    /// The two places must not overlap.
    template <class Length, class = std::enable_if_t<std::is_convertible_v<Length, std::int64_t>>>
    std::int64_t exchange(const void *bytes, Length length, void *memory, std::int64_t room, TimeLimit limit = {}) {
        std::int64_t received;
        detail::check(titin_path_exchange(raw(), bytes, std::int64_t(length), memory, room, limit.seconds(), &received));
        return received;
    }
    /// The same for a message whose size is not known. `length` is a template argument so that {n} stands for extents here, as it
    /// does for send, and not for a number of bytes.
    template <class Length, class = std::enable_if_t<std::is_convertible_v<Length, std::int64_t>>>
    Message exchange(const void *bytes, Length length, TimeLimit limit = {}) {
        titin_message *message;
        detail::check(titin_path_exchange_message(raw(), bytes, std::int64_t(length), limit.seconds(), &message));
        return Message(message);
    }

    /// Receives the bytes of the next message into several places, one after the other; returns their number.
    std::int64_t receive_parts(const std::vector<std::pair<void *, std::size_t>> &parts, TimeLimit limit = {}) {
        const Places<void *> places(parts);
        std::int64_t length;
        detail::check(titin_path_receive_parts(raw(), places.count(), places.data(), places.lengths(), limit.seconds(), &length));
        return length;
    }
    /// Receives the next message and passes it on to another path, piece by piece as the pieces come in. The bytes also go to
    /// memory with this room; for nullptr the message only passes. Returns the number of bytes.
    std::int64_t cycle(Path &to, void *memory, std::int64_t room, TimeLimit limit = {}) {
        std::int64_t length;
        detail::check(titin_path_cycle(raw(), to.raw(), memory, room, limit.seconds(), &length));
        return length;
    }
    /// The same for a message whose size is not known.
    Message cycle(Path &to, TimeLimit limit = {}) {
        titin_message *message;
        detail::check(titin_path_cycle_message(raw(), to.raw(), limit.seconds(), &message));
        return Message(message);
    }
    /// Passes all messages on, both ways, until the other program of one of the two paths closes it.
    void relay(Path &other, TimeLimit limit = {}) { detail::check(titin_path_relay(raw(), other.raw(), limit.seconds())); }

    /// The non-blocking forms. Each goes on while the program computes. What is sent must live and stay as it is until the call
    /// is done.
    template <class T, class = std::enable_if_t<detail::is_source<T>>>
    PathRequest isend(T &&data) {
        detail::stays<T>();
        return isend_array(detail::describe(data));
    }
    template <class T>
    PathRequest isend(const T *data, const Extents &extents) {
        return isend_array(detail::describe(data, extents));
    }
    PathRequest isend_bytes(const void *bytes, std::int64_t length) {
        return posted([&](auto request) { return titin_path_isend(raw(), bytes, length, request); });
    }
    PathRequest isend_parts(const std::vector<std::pair<const void *, std::size_t>> &parts) {
        const Places<const void *> places(parts);
        return posted([&](auto request) {
            return titin_path_isend_parts(raw(), places.count(), places.data(), places.lengths(), request);
        });
    }
    PathRequest ireceive() {
        return posted([&](auto request) { return titin_path_ireceive(raw(), request); });
    }
    /// The elements are there when test or wait has said that the call is done.
    template <class T>
    PathRequest ireceive_into(T &&data) {
        const detail::Array a = detail::target<T>(data);
        return posted([&](auto request) {
            return titin_path_ireceive_array(raw(), a.dtype, a.extents.rank(), a.extents.data(), a.strided ? a.strides : nullptr,
                                             a.order, const_cast<void *>(a.data), request);
        });
    }
    PathRequest ireceive_bytes(void *memory, std::int64_t room) {
        return posted([&](auto request) { return titin_path_ireceive_into(raw(), memory, room, request); });
    }
    PathRequest ireceive_parts(const std::vector<std::pair<void *, std::size_t>> &parts) {
        const Places<void *> places(parts);
        return posted([&](auto request) {
            return titin_path_ireceive_parts(raw(), places.count(), places.data(), places.lengths(), request);
        });
    }
    /// If only the sending fails, the call has its error, and the message was received all the same. The elements are there when
    /// test or wait has said that the call is done.
    template <class Out, class In, class = std::enable_if_t<detail::is_source<Out> && detail::is_target<In>>>
    PathRequest iexchange(Out &&data, In &&into) {
        detail::stays<Out>();
        return iexchange_arrays(detail::describe(data), detail::target<In>(into));
    }
    template <class T, class In, class = std::enable_if_t<detail::is_target<In>>>
    PathRequest iexchange(const T *data, const Extents &extents, In &&into) {
        return iexchange_arrays(detail::describe(data, extents), detail::target<In>(into));
    }
    template <class T, class = std::enable_if_t<detail::is_source<T>>>
    PathRequest iexchange(T &&data) {
        detail::stays<T>();
        return iexchange_message(detail::describe(data));
    }
    template <class T>
    PathRequest iexchange(const T *data, const Extents &extents) {
        return iexchange_message(detail::describe(data, extents));
    }
    template <class Length, class = std::enable_if_t<std::is_convertible_v<Length, std::int64_t>>>
    PathRequest iexchange(const void *bytes, Length length, void *memory, std::int64_t room) {
        return posted([&](auto request) {
            return titin_path_iexchange(raw(), bytes, std::int64_t(length), memory, room, request);
        });
    }
    template <class Length, class = std::enable_if_t<std::is_convertible_v<Length, std::int64_t>>>
    PathRequest iexchange(const void *bytes, Length length) {
        return posted([&](auto request) { return titin_path_iexchange_message(raw(), bytes, std::int64_t(length), request); });
    }
    PathRequest ibarrier() {
        return posted([&](auto request) { return titin_path_ibarrier(raw(), request); });
    }
    PathRequest icycle(Path &to, void *memory, std::int64_t room) {
        return posted([&](auto request) { return titin_path_icycle(raw(), to.raw(), memory, room, request); });
    }
    PathRequest icycle(Path &to) {
        return posted([&](auto request) { return titin_path_icycle_message(raw(), to.raw(), request); });
    }
    PathRequest irelay(Path &other) {
        return posted([&](auto request) { return titin_path_irelay(raw(), other.raw(), request); });
    }

    /// Waits until the other program has come to its barrier as often as this one.
    void barrier(TimeLimit limit = {}) { detail::check(titin_path_barrier(raw(), limit.seconds())); }
    /// Waits until the other program has received all messages that this one has sent.
    void flush(TimeLimit limit = {}) { detail::check(titin_path_flush(raw(), limit.seconds())); }
    /// Waits until the other end has all messages, and closes the path at both ends.
    void close(TimeLimit limit = {}) {
        raw();
        detail::check(titin_path_close(std::exchange(path_, nullptr), limit.seconds()));
    }

    titin_path *raw() const {
        if (!path_) throw UsageError("this titin::Path is closed, or was moved from");
        return path_;
    }

private:
    friend class PathListener;
    Path(titin_path *path, std::shared_ptr<detail::Interrupt> interrupt) : path_(path), interrupt_(std::move(interrupt)) {}

    void send_array(const detail::Array &a, TimeLimit limit) {
        detail::check(titin_path_send_array(raw(), a.dtype, a.extents.rank(), a.extents.data(),
                                            a.strided ? a.strides : nullptr, a.order, nullptr, a.data, limit.seconds()));
    }

    PathRequest isend_array(const detail::Array &a) {
        return posted([&](auto request) {
            return titin_path_isend_array(raw(), a.dtype, a.extents.rank(), a.extents.data(), a.strided ? a.strides : nullptr,
                                          a.order, nullptr, a.data, request);
        });
    }

    void exchange_arrays(const detail::Array &data, const detail::Array &into, TimeLimit limit) {
        const titin_path_layout data_layout = layout(data), memory_layout = layout(into);
        detail::check(titin_path_exchange_array(raw(), data.data, &data_layout, const_cast<void *>(into.data), &memory_layout,
                                                limit.seconds()));
    }

    Message exchange_message(const detail::Array &data, TimeLimit limit) {
        const titin_path_layout data_layout = layout(data);
        titin_message *message;
        detail::check(titin_path_exchange_array_message(raw(), data.data, &data_layout, limit.seconds(), &message));
        return Message(message);
    }

    PathRequest iexchange_arrays(const detail::Array &data, const detail::Array &into) {
        const titin_path_layout data_layout = layout(data), memory_layout = layout(into);
        return posted([&](auto request) {
            return titin_path_iexchange_array(raw(), data.data, &data_layout, const_cast<void *>(into.data), &memory_layout,
                                              request);
        });
    }

    PathRequest iexchange_message(const detail::Array &data) {
        const titin_path_layout data_layout = layout(data);
        return posted([&](auto request) {
            return titin_path_iexchange_array_message(raw(), data.data, &data_layout, request);
        });
    }

    /// The layout of an array for C. Lives as long as the array.
    static titin_path_layout layout(const detail::Array &a) {
        return {a.dtype, a.extents.rank(), a.extents.data(), a.strided ? a.strides : nullptr, a.order, nullptr};
    }

    template <class Call>
    static PathRequest posted(Call call) {
        titin_path_request *request;
        detail::check(call(&request));
        return PathRequest(request);
    }

    /// Places in memory and their lengths, for C.
    template <class Pointer>
    class Places {
    public:
        explicit Places(const std::vector<std::pair<Pointer, std::size_t>> &parts) {
            for (const auto &[place, length] : parts) {
                places_.push_back(place);
                lengths_.push_back(std::int64_t(length));
            }
        }
        int count() const { return int(places_.size()); }
        const Pointer *data() const { return places_.data(); }
        const std::int64_t *lengths() const { return lengths_.data(); }

    private:
        std::vector<Pointer> places_;
        std::vector<std::int64_t> lengths_;
    };

    titin_path *path_ = nullptr;
    std::shared_ptr<detail::Interrupt> interrupt_;
    int exceptions_ = std::uncaught_exceptions();
};

/// A port where other programs open any number of paths.
class PathListener {
public:
    /// Listens at "host:port". The host 0.0.0.0, or [::], stands for all networks of the host. For port 0 the system chooses
    /// a port.
    explicit PathListener(const std::string &address, const PathOptions &options = PathOptions())
        : listener_(started(address, options), titin_path_listener_free), interrupt_(options.interrupt_) {}
    /// The address at which the listener was started, with its port.
    std::string address() const { return titin_path_listener_address(raw()); }
    /// The next path that another program has opened. Accepted paths outlive the listener.
    Path accept(TimeLimit limit = {}) {
        titin_path *path;
        detail::check(titin_path_accept(raw(), limit.seconds(), &path));
        return Path(path, interrupt_);
    }
    titin_path_listener *raw() const { return listener_.get(); }

private:
    static titin_path_listener *started(const std::string &address, const PathOptions &options) {
        titin_path_listener *listener;
        detail::check(titin_path_listen(address.c_str(), options.raw(), &listener));
        return listener;
    }
    std::unique_ptr<titin_path_listener, void (*)(titin_path_listener *)> listener_;
    std::shared_ptr<detail::Interrupt> interrupt_;
};

} // namespace titin

#endif
