// Instances: each is one running copy of a program, as part of a run.
#ifndef TITIN_INSTANCE_HPP
#define TITIN_INSTANCE_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "titin/field.hpp"
#include "titin/loan.hpp"
#include "titin/message.hpp"
#include "titin/options.hpp"
#include "titin/port.hpp"

namespace titin {

/// A unit for a setting: setting<double>("dt", titin::Unit{"s"}).
struct Unit {
    const char *name;
};

/// Converts a number from a unit to another unit, by the units of settings: 1.5 "h" is 90 "min". UsageError for a unit that
/// titin does not know, and for two units that measure different things.
inline double convert(double number, const std::string &unit, const std::string &wanted) {
    double converted;
    detail::check(titin_convert(number, unit.c_str(), wanted.c_str(), &converted));
    return converted;
}

/// The scales in the description, in s and m; dx and extent per dimension.
struct Scale {
    std::optional<double> dt, total;
    std::vector<double> dx, extent;
};

/// A region of the program in the profile, from Instance::region to the end of the scope.
class Region {
public:
    /// Made by Instance::region.
    Region(titin_instance *instance, const char *name) : region_(detail::check(titin_region_begin(instance, name))) {}
    Region(Region &&other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
    Region &operator=(Region &&) = delete;
    ~Region() {
        if (region_) titin_region_end(region_);
    }

private:
    titin_region *region_;
};

/// The result of receive_any: the port's name, the slot (TITIN_NO_SLOT for none), the message.
struct Received {
    std::string port;
    int slot;
    Message message;
};

/// One running copy of a program, as part of a run.
///
/// The destructor closes the instance; while an exception unwinds the stack, the destructor fails the run. An error of
/// closing also fails the run, but only close() throws the error.
class Instance {
public:
    /// Without an argument the ports are those of the description.
    explicit Instance(const Ports &ports = {}, const Options &options = Options())
        : Instance(text(ports).c_str(), options) {}
    /// Ports as text: "f_init: initial_state; o_f: final_state"; nullptr for the ports of the description.
    explicit Instance(const char *ports, const Options &options = Options()) {
        interrupt_ = options.interrupt_;
        detail::check(titin_open(ports, options.raw(), &instance_));
    }
    Instance(Instance &&other) noexcept
        : instance_(std::exchange(other.instance_, nullptr)), ours_(other.ours_), exceptions_(other.exceptions_),
          interrupt_(std::move(other.interrupt_)) {}
    Instance &operator=(Instance &&other) noexcept {
        std::swap(instance_, other.instance_);
        std::swap(ours_, other.ours_);
        std::swap(exceptions_, other.exceptions_);
        std::swap(interrupt_, other.interrupt_);
        return *this;
    }
    ~Instance() {
        if (!instance_ || !ours_) return;
        if (std::uncaught_exceptions() > exceptions_ && !echo())
            titin_fail(instance_, ("an exception has left the scope of the instance" + last()).c_str());
        if (titin_close(instance_) == TITIN_ERROR_INTERRUPTED) {
            titin_fail(instance_, "interrupted while it was closing");
            titin_close(instance_);
        }
    }
    /// An instance that other code closes, such as titin_host.
    static Instance borrow(titin_instance *instance) {
        Instance borrowed{Empty()};
        borrowed.instance_ = instance;
        borrowed.ours_ = false;
        return borrowed;
    }

    /// Ends the instance's part in the run; waits until the receivers hold or have dropped every message sent.
    void close() {
        if (!ours_) throw UsageError("this instance is closed by its host");
        titin_instance *instance = std::exchange(instance_, nullptr);
        if (!instance) return;
        const int status = titin_close(instance);
        if (status == TITIN_ERROR_INTERRUPTED) instance_ = instance;
        detail::check(status);
    }
    /// Fails the run, with this instance as the culprit and this text as the reason.
    void fail(const std::string &text) { detail::check(titin_fail(instance_, text.c_str())); }
    /// Calls `use` once per use, and closes. An exception of `use` fails the run with its text, and leaves the call.
    template <class Use>
    void run(Use &&use) {
        try {
            while (reuse()) use();
            close();
        } catch (const std::exception &error) {
            if (instance_ && !echo()) titin_fail(instance_, error.what());
            throw;
        }
    }

    /// Begins the next use of the submodel: true if there is one. Settings change here.
    bool reuse() {
        int again;
        detail::check(titin_reuse(instance_, &again));
        return again != 0;
    }
    /// Whether the step that begins at this time would pass the end of the use, by the settings t_max and dt, else by the
    /// scales total and dt; see titin_will_stop.
    bool will_stop(double timestamp) const {
        int stops;
        detail::check(titin_will_stop(instance_, timestamp, &stops));
        return stops != 0;
    }
    /// Name of the instance: "macro[3]".
    std::string name() const { return detail::check(titin_instance_name(instance_)); }
    /// The directory that was current when the instance was opened.
    std::string workdir() const { return detail::check(titin_workdir(instance_)); }
    /// The unit of timestamps, as the description has it (`titin: {time_unit: h}`): "s" unless told.
    std::string time_unit() const { return detail::check(titin_time_unit(instance_)); }
    /// The scales in the description, as far as it has them.
    titin::Scale scale() const {
        const ValueView map(detail::check(titin_scale(instance_)));
        titin::Scale scale;
        if (map.contains("dt")) scale.dt = map["dt"].as<double>();
        if (map.contains("total")) scale.total = map["total"].as<double>();
        if (map.contains("dx")) scale.dx = map["dx"].as<std::vector<double>>();
        if (map.contains("extent")) scale.extent = map["extent"].as<std::vector<double>>();
        return scale;
    }
    /// Sends a record to the run's log; levels are TITIN_LOG_DEBUG and so on.
    void log(int level, const std::string &text) { detail::check(titin_log(instance_, level, text.c_str())); }
    /// Switches the check of the order of calls off from here on.
    void skip_checks(const std::string &reason) { detail::check(titin_skip_checks(instance_, reason.c_str())); }
    /// A region in the profile, to the end of the scope: `auto solving = instance.region("solve");`
    [[nodiscard]] Region region(const std::string &name) { return {instance_, name.c_str()}; }
    /// Sets a function that is called after each signal while a call waits, and ten times a second. Once the function
    /// returns true, the waiting call throws Interrupted. The function can be set once. An exception of the function counts
    /// as true.
    void on_interrupt(std::function<bool()> interrupted) {
        auto given = std::make_shared<detail::Interrupt>(std::move(interrupted));
        detail::check(titin_on_interrupt(instance_, detail::ask, given.get()));
        interrupt_ = std::move(given);
        // The function may still be called while other code closes a borrowed instance.
        if (!ours_) new std::shared_ptr<detail::Interrupt>(interrupt_);
    }

    // -- Parallel programs

    /// The calling rank, and the number of ranks: 0 and 1 for a serial program.
    int rank() const {
        open();
        return titin_rank(instance_);
    }
    int ranks() const {
        open();
        return titin_ranks(instance_);
    }
    /// Declares that a port carries a field: arrays with elements of these types, spread over the ranks by the decomposition.
    /// `field<double>("out", rows)`, or `field<double, float>("out", rows)` for two arrays that travel together.
    template <class T, class... More>
    Field field(const std::string &port_name, const Decomposition &decomposition) {
        return field(port_name, decomposition, {detail::known_dtype<T>(), detail::known_dtype<More>()...});
    }
    /// The same with types by number: `field("out", rows, std::vector<int>(10, TITIN_F64))`.
    Field field(const std::string &port_name, const Decomposition &decomposition, const std::vector<int> &dtypes) {
        return Field(port(port_name).raw(), decomposition, dtypes);
    }

    // -- Settings

    /// Whether the setting is set.
    bool has_setting(const std::string &name) const {
        open();
        return titin_setting_type(instance_, name.c_str()) != TITIN_TYPE_NONE;
    }
    /// A setting as bool, an integer or floating-point type, std::string, std::vector of integers or floating-point
    /// numbers, std::vector<std::vector<double>>, or Value.
    template <class T>
    T setting(const std::string &name) const {
        titin_value *found;
        if constexpr (std::is_floating_point_v<T>) {
            double number;
            std::int64_t whole;
            if (sizeof(T) < sizeof(double) && titin_setting_type(instance_, name.c_str()) == TITIN_TYPE_INT) {
                detail::check(titin_setting_i64(instance_, name.c_str(), &whole));
                return fit<T>(name, [whole] { return Value(whole).as<T>(); });
            }
            detail::check(titin_setting_f64(instance_, name.c_str(), &number));
            return fit<T>(name, [number] { return Value(number).as<T>(); });
        } else if constexpr (std::is_same_v<T, bool>) {
            int flag;
            detail::check(titin_setting_bool(instance_, name.c_str(), &flag));
            return flag != 0;
        } else if constexpr (std::is_same_v<T, std::string>) {
            const char *text;
            detail::check(titin_setting_text(instance_, name.c_str(), &text));
            return text;
        } else if constexpr (std::is_integral_v<T>) {
            std::int64_t number;
            detail::check(titin_setting_i64(instance_, name.c_str(), &number));
            return fit<T>(name, [number] { return Value(number).as<T>(); });
        } else {
            detail::check(titin_setting_value(instance_, name.c_str(), &found));
            Value value(found);
            if constexpr (std::is_same_v<T, Value>) return value;
            else return fit<T>(name, [&value] { return value.as<T>(); });
        }
    }
    /// The same with a default for a setting that is not set.
    template <class T>
    T setting(const std::string &name, std::common_type_t<T> fallback) const {
        return has_setting(name) ? setting<T>(name) : std::move(fallback);
    }
    /// A quantity in this unit: "10 ms" in Unit{"s"} is 0.01. A number alone is in the unit already.
    template <class T>
    T setting(const std::string &name, Unit unit) const {
        static_assert(std::is_floating_point_v<T>, "quantities with units are real numbers");
        double number;
        detail::check(titin_setting_quantity(instance_, name.c_str(), unit.name, &number));
        return fit<T>(name, [number] { return Value(number).as<T>(); });
    }
    template <class T>
    T setting(const std::string &name, Unit unit, T fallback) const {
        return has_setting(name) ? setting<T>(name, unit) : fallback;
    }
    /// All settings known for this instance by full name, with the overlay in force; and the overlay in force alone.
    Value settings() const {
        titin_value *all;
        detail::check(titin_settings(instance_, &all));
        return Value(all);
    }
    Value overlay() const {
        titin_value *all;
        detail::check(titin_overlay(instance_, &all));
        return Value(all);
    }

    // -- Ports

    /// The port of this name; all ports; whether anything is connected to a port.
    Port port(const std::string &name) const { return Port(detail::check(titin_port_find(instance_, name.c_str()))); }
    std::vector<Port> ports() const {
        open();
        std::vector<Port> all;
        for (int i = 0; i < titin_port_count(instance_); ++i) all.emplace_back(titin_port_at(instance_, i));
        return all;
    }
    bool is_connected(const std::string &port_name) const { return port(port_name).is_connected(); }

    // -- Sending: all return when the memory may be changed

    /// Sends data: containers and arrays of numbers of any rank (std::vector, std::array, std::span, mdspan, T[n][m], Span,
    /// View), numbers, text, nullptr, Value. `settings` is the overlay that goes with the message; by default the overlay
    /// in force.
    // The time has a template type, so that braces do not match: send("out", u, {n}, t) calls the overload below.
    template <class T, class Time, class = std::enable_if_t<!std::is_pointer_v<T> || detail::is_text<T>>,
              class = std::enable_if_t<std::is_convertible_v<Time, double>>>
    void send(const Slot &to, const T &data, Time timestamp, double next_timestamp = no_next,
              const ValueView &settings = {}) {
        static_assert(!detail::IsLoan<T>::value, "a loan is given away: send(port, std::move(loan), t)");
        if constexpr (std::is_base_of_v<ValueView, T>)
            detail::check(titin_send_value(to.port(instance_), to.number(), data.raw(), timestamp, next_timestamp,
                                           settings.raw()));
        else if constexpr (std::is_same_v<T, std::vector<bool>>) {
            const auto flags = detail::unpacked(data);
            send_array(to, detail::describe(flags.get(), {data.size()}), timestamp, next_timestamp, settings);
        } else if constexpr (detail::IsArray<T>::value)
            send_array(to, detail::describe(data), timestamp, next_timestamp, settings);
        else {
            static_assert(std::is_constructible_v<Value, const T &>,
                          "data are arrays and numbers of up to 64 bits, text, nullptr and Value");
            send(to, Value(data), timestamp, next_timestamp, settings);
        }
    }
    /// Sends an array from a pointer to its elements, contiguous in C order.
    template <class T>
    void send(const Slot &to, const T *data, const Extents &extents, double timestamp, double next_timestamp = no_next,
              const ValueView &settings = {}) {
        send_array(to, detail::describe(data, extents), timestamp, next_timestamp, settings);
    }
    /// Memory of titin for an array of these extents: fill the memory, and send it without a copy.
    template <class T>
    Loan<T> loan(const Slot &to, const Extents &extents, Order order = Order::C) {
        titin_loan *loan;
        detail::check(titin_loan_new(to.port(instance_), to.number(), detail::known_dtype<T>(), extents.rank(),
                                     extents.data(), int(order), nullptr, &loan));
        return Loan<T>(loan, extents, order);
    }
    /// Sends a loan: `send("out", std::move(loan), t)`. The loan is empty afterwards, unless the call throws.
    template <class T, class Time, class = std::enable_if_t<std::is_convertible_v<Time, double>>>
    void send(const Slot &to, Loan<T> &&loan, Time timestamp, double next_timestamp = no_next,
              const ValueView &settings = {}) {
        loan.there();
        detail::check(titin_send_loan(to.port(instance_), to.number(), &loan.loan_, timestamp, next_timestamp,
                                      settings.raw()));
        loan.data_ = nullptr;
    }
    /// Sends a message without data.
    void send_nil(const Slot &to, double timestamp, double next_timestamp = no_next, const ValueView &settings = {}) {
        detail::check(
            titin_send_nil(to.port(instance_), to.number(), timestamp, next_timestamp, settings.raw()));
    }
    /// Sends an array whose indices have names.
    template <class T>
    void send_named(const Slot &to, const T &data, const std::vector<std::string> &names, double timestamp,
                    double next_timestamp = no_next, const ValueView &settings = {}) {
        send_array(to, detail::describe(data), timestamp, next_timestamp, settings, names);
    }

    // -- Receiving

    /// Receives a message; waits until one comes.
    Message receive(const Slot &from) { return receive_within(from, TITIN_WAIT); }
    /// The same; throws Timeout after the time given.
    template <class Rep, class Period>
    Message receive(const Slot &from, std::chrono::duration<Rep, Period> timeout) {
        return receive_within(from, seconds(timeout));
    }
    /// Receives a message, or gives the default if nothing is connected to the port.
    Message receive_or(const Slot &from, const Message &fallback) {
        return Port(from.port(instance_)).is_connected() ? receive(from) : fallback;
    }
    /// Receives a message that has come already; does not wait.
    std::optional<Message> try_receive(const Slot &from) {
        titin_message *message;
        detail::check(titin_try_receive(from.port(instance_), from.number(), &message));
        if (!message) return std::nullopt;
        return Message(message);
    }
    /// Receives the next message of any of these ports, with all slots of vector ports: names or ports, in braces or in a
    /// container.
    Received receive_any(std::initializer_list<Slot> ports) { return receive_any_within(ports, TITIN_WAIT); }
    template <class Ports>
    Received receive_any(const Ports &ports) {
        return receive_any_within(ports, TITIN_WAIT);
    }
    /// The same; throws Timeout after the time given.
    template <class Rep, class Period>
    Received receive_any(std::initializer_list<Slot> ports, std::chrono::duration<Rep, Period> timeout) {
        return receive_any_within(ports, seconds(timeout));
    }
    template <class Ports, class Rep, class Period>
    Received receive_any(const Ports &ports, std::chrono::duration<Rep, Period> timeout) {
        return receive_any_within(ports, seconds(timeout));
    }
    /// Receives an array into memory of the program: any array that send takes, if it is not const. The type of element and
    /// the shape must be those of the message. Gives the message, for its timestamps.
    template <class T>
    Message receive_into(const Slot &from, T &&data) {
        detail::receivable<T, false>();
        return receive_into_within(from, data, TITIN_WAIT);
    }
    /// The same; throws Timeout after the time given.
    template <class T, class Rep, class Period>
    Message receive_into(const Slot &from, T &&data, std::chrono::duration<Rep, Period> timeout) {
        detail::receivable<T, false>();
        return receive_into_within(from, data, seconds(timeout));
    }

    /// For a light instance: gives up pending calls, in place of making them again: the calls on a port (for receive_any
    /// the first of its ports), the calls on a slot of the port, or all. After a send was given up, nothing else can be
    /// sent on its port and slot.
    void cancel(const Slot &at) { detail::check(titin_cancel(instance_, at.port(instance_), at.number())); }
    void cancel() { detail::check(titin_cancel(instance_, nullptr, TITIN_NO_SLOT)); }

    titin_instance *raw() const { return instance_; }

private:
    struct Empty {};
    explicit Instance(Empty) {}

    static std::string text(const Ports &ports) {
        static const char *const keys[] = {"", "f_init", "o_i", "s", "o_f"};
        std::string all;
        for (const auto &[op, names] : ports) {
            all += std::string(keys[op]) + ": ";
            for (const std::string &name : names) all += name + ", ";
            all += "; ";
        }
        return all;
    }

    /// Throws if the instance is closed. Used by calls to which a closed instance would look like an instance without
    /// settings or ports.
    void open() const {
        if (!instance_) throw UsageError("this instance is closed");
    }
    template <class Rep, class Period>
    static double seconds(std::chrono::duration<Rep, Period> timeout) {
        return std::chrono::duration<double>(timeout).count();
    }
    template <class T, class Read>
    T fit(const std::string &name, Read read) const {
        try {
            return read();
        } catch (const TypeMismatch &error) {
            throw SettingError("setting '" + name + "': " + error.what());
        }
    }
    void send_array(const Slot &to, const detail::Array &a, double timestamp, double next_timestamp,
                    const ValueView &settings, const std::vector<std::string> &names = {}) {
        std::vector<const char *> texts;
        for (const std::string &name : names) texts.push_back(name.c_str());
        if (!names.empty() && int(names.size()) != a.extents.rank())
            throw UsageError(std::to_string(names.size()) + " index names for an array of rank " +
                             std::to_string(a.extents.rank()));
        detail::check(titin_send_array(to.port(instance_), to.number(), a.dtype, a.extents.rank(), a.extents.data(),
                                       a.strided ? a.strides : nullptr, a.order, texts.empty() ? nullptr : texts.data(),
                                       a.data, timestamp, next_timestamp, settings.raw()));
    }
    Message receive_within(const Slot &from, double timeout) {
        titin_message *message;
        detail::check(titin_receive(from.port(instance_), from.number(), timeout, &message));
        return Message(message);
    }
    template <class Ports>
    Received receive_any_within(const Ports &ports, double timeout) {
        std::vector<titin_port *> handles;
        for (const auto &given : ports) {
            const Slot from = given;
            if (from.number() != TITIN_NO_SLOT) throw UsageError("receive_any takes whole ports, not slots of them");
            handles.push_back(from.port(instance_));
        }
        int index, slot;
        titin_message *message;
        detail::check(titin_receive_any(handles.data(), int(handles.size()), timeout, &index, &slot, &message));
        return {titin_port_name(handles[std::size_t(index)]), slot, Message(message)};
    }
    template <class T>
    Message receive_into_within(const Slot &from, T &data, double timeout) {
        static_assert(detail::is_writable<T>(), "these data are const, or of a message that others may share");
        const detail::Array a = detail::describe(data);
        titin_message *message;
        detail::check(titin_receive_into(from.port(instance_), from.number(), timeout, a.dtype, a.extents.rank(),
                                         a.extents.data(), a.strided ? a.strides : nullptr, a.order,
                                         const_cast<void *>(a.data), &message));
        return Message(message);
    }
    /// Whether this thread's last error is only the consequence of a failure elsewhere, which the manager knows already.
    static bool echo() {
        const int kind = titin_error_kind();
        return kind == TITIN_ERROR_PEER_LOST || kind == TITIN_ERROR_DEADLOCK;
    }
    static std::string last() {
        const std::string text = titin_error();
        return text.empty() ? "" : "; titin's last error in its thread: " + text;
    }

    titin_instance *instance_ = nullptr;
    bool ours_ = true;
    int exceptions_ = std::uncaught_exceptions();
    std::shared_ptr<detail::Interrupt> interrupt_;
};

} // namespace titin

#endif
