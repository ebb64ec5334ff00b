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
    TimeLimit() = default;
    template <class Rep, class Period>
    TimeLimit(std::chrono::duration<Rep, Period> limit) : seconds_(std::chrono::duration<double>(limit).count()) {}
    double seconds() const { return seconds_; }

private:
    double seconds_ = TITIN_WAIT;
};

/// The key and the settings of paths: `PathOptions().key_file("mesh.key").streams(16)`. Without a key, the key is in the file
/// that the environment variable TITIN_PATH_KEY names.
class PathOptions {
public:
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
    /// The sizes of each stream's buffers in the operating system, in bytes.
    PathOptions &buffers(std::int64_t send, std::int64_t receive) & {
        return also(titin_path_options_buffers(raw(), send, receive));
    }
    PathOptions &&buffers(std::int64_t send, std::int64_t receive) && { return std::move(buffers(send, receive)); }
    /// How long opening waits for the other end; a minute by default.
    PathOptions &patience(TimeLimit limit) & { return also(titin_path_options_patience(raw(), limit.seconds())); }
    PathOptions &&patience(TimeLimit limit) && { return std::move(patience(limit)); }
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

/// A way to one other program. The destructor closes the path, and waits for at most 10 s until the other end has all
/// messages; if an exception is on its way, the destructor does not wait. Several threads may use a path.
class Path {
public:
    /// Opens a path to the first of these addresses where a program listens with the key: "host:port", or several of them
    /// with commas.
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
    /// The number of streams that carry large messages.
    int streams() const { return titin_path_streams(raw()); }

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
        std::vector<const void *> places;
        std::vector<std::int64_t> lengths;
        for (const auto &[place, length] : parts) {
            places.push_back(place);
            lengths.push_back(std::int64_t(length));
        }
        detail::check(titin_path_send_parts(raw(), int(parts.size()), places.data(), lengths.data(), limit.seconds()));
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
        detail::receivable<T, false>();
        static_assert(detail::is_writable<std::remove_reference_t<T>>(), "these data are const");
        const detail::Array a = detail::describe(data);
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

    /// Sends bytes and receives the next message into memory with this room, both at once: neither waits for the other.
    /// Returns the number of bytes received. The two places must not overlap.
    std::int64_t exchange(const void *bytes, std::int64_t length, void *memory, std::int64_t room, TimeLimit limit = {}) {
        std::int64_t received;
        detail::check(titin_path_exchange(raw(), bytes, length, memory, room, limit.seconds(), &received));
        return received;
    }
    /// The same for a message whose size is not known.
    Message exchange(const void *bytes, std::int64_t length, TimeLimit limit = {}) {
        titin_message *message;
        detail::check(titin_path_exchange_message(raw(), bytes, length, limit.seconds(), &message));
        return Message(message);
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
