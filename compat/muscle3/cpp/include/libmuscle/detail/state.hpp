// An open instance: what stands behind Instance.
#ifndef TITIN_LIBMUSCLE_DETAIL_STATE_HPP
#define TITIN_LIBMUSCLE_DETAIL_STATE_HPP

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <titin.h>
#include <ymmsl/ymmsl.hpp>

#include "libmuscle/data.hpp"
#include "libmuscle/detail/arguments.hpp"
#include "libmuscle/detail/error.hpp"
#include "libmuscle/detail/guard.hpp"
#include "libmuscle/detail/ports.hpp"
#include "libmuscle/detail/settings_lookup.hpp"
#include "libmuscle/instance_flags.hpp"
#include "libmuscle/message.hpp"
#include "libmuscle/ports_description.hpp"
#include "libmuscle/util.hpp"

#ifdef MUSCLE_ENABLE_MPI
#include "libmuscle/detail/mpi.hpp"
#define TITIN_LIBMUSCLE_RANKS , MPI_Comm communicator, int root
#else
#define TITIN_LIBMUSCLE_RANKS
#endif

namespace libmuscle {
namespace detail {

/// What an instance is made of. It stays where it is while the Instance is moved.
class State {
public:
    State(int argc, const char *const argv[], const PortsDescription &ports, InstanceFlags flags TITIN_LIBMUSCLE_RANKS)
        : explicit_overlays_(!!(flags & InstanceFlags::DONT_APPLY_OVERLAY)),
          guard_(!!(flags & InstanceFlags::USES_CHECKPOINT_API)) {
        const std::unique_ptr<titin_options, void (*)(titin_options *)> options(check(titin_options_new()),
                                                                              titin_options_free);
        const std::string name = argument(argc, argv, "instance", "MUSCLE_INSTANCE");
        const std::string manager = argument(argc, argv, "manager", "MUSCLE_MANAGER");
        refuse_muscle3(manager);
        if (!name.empty()) check(titin_options_instance(options.get(), name.c_str()));
        if (!manager.empty()) check(titin_options_manager(options.get(), manager.c_str()));
        for (const auto &described : ports)
            for (const std::string &port : described.second)
                check(
                    titin_options_port(options.get(), port.c_str(), operator_number(described.first, port)));
        check(titin_options_language(options.get(), "C++"));
        check(titin_options_exceptions(options.get()));
        if (!!(flags & InstanceFlags::SKIP_MMSF_SEQUENCE_CHECKS))
            check(titin_options_unchecked(options.get(), "the program has the flag SKIP_MMSF_SEQUENCE_CHECKS"));
        else check(titin_options_checks(options.get(), TITIN_CHECKS_WARN));
        if (explicit_overlays_) check(titin_options_overlays(options.get(), TITIN_OVERLAYS_EXPLICIT));
#ifdef MUSCLE_ENABLE_MPI
        RootFirst ranks(communicator, root);
        ranks.set(options.get());
        is_root_ = ranks.is_root();
#endif
        titin_instance *opened;
        if (titin_open(nullptr, options.get(), &opened)) throw std::runtime_error(titin_error_in("C++") + advice(name));
        instance_ = opened;
        name_ = titin_instance_name(instance_);
        ports_.reset(new Ports(instance_));
        strict_ = wants_strict_checks();
        for (const OpenPort &port : ports_->all())
            if (!port.receives() && port.connected && !port.vector) lending_port() = port.handle;
    }
    State(const State &) = delete;
    State &operator=(const State &) = delete;

    ~State() {
        if (!instance_) return;
        if (unwinding()) titin_fail(instance_, ("an exception has ended the use of the instance" + last_error_).c_str());
        close();
    }

    bool reuse_instance() {
        guard_.before_reuse();
        const bool again = decided_ ? again_ : begin_use();
        decided_ = false;
        if (!again && instance_) {
            last_settings_ = known_settings();
            checked(close());
        }
        guard_.reused(again);
        return again;
    }

    void decide_reuse() {
        guard_.should_save("should_save_final_snapshot");
        again_ = begin_use();
        decided_ = true;
        guard_.decided();
    }

    void error_shutdown(const std::string &message) {
        if (instance_) checked(titin_fail(instance_, message.c_str()));
    }

    std::vector<std::string> list_settings() const {
        return names_for(name_, instance_ ? known_settings() : last_settings_);
    }

    Optional<ymmsl::SettingValue> setting(const std::string &name) const {
        ymmsl::SettingValue setting;
        if (!instance_) {
            const ymmsl::SettingValue *found = setting_for(name_, name, last_settings_);
            return found ? Optional<ymmsl::SettingValue>(*found) : Optional<ymmsl::SettingValue>();
        }
        const int type = titin_setting_type(instance_, name.c_str());
        if (type == TITIN_TYPE_NONE) return {};
        titin_value *value;
        check(titin_setting_value(instance_, name.c_str(), &value));
        const Value freed(value);
        if (!setting_from(value, setting)) throw std::runtime_error(unreadable(name, value));
        // An empty list has no numbers to tell its type by.
        if (type == TITIN_TYPE_INTS && titin_value_size(value) == 0) setting = std::vector<std::int64_t>();
        return setting;
    }

    Ports &ports() const { return *ports_; }
    Guard &guard() { return guard_; }

    void set_port_length(const std::string &name, int length) {
        OpenPort &port = ports_->at(name);
        if (!port.resizable)
            throw std::runtime_error("port '" + name + "' cannot be resized: ask is_resizable() first. Its length is " +
                                     std::to_string(port.length()) + ", from the multiplicities in the description");
        expect_open("set_port_length");
        if (port.connected) checked(titin_port_set_slots(port.handle, length));
        else port.slots = length;
    }

    void send(const std::string &name, const Message &message, int slot) {
        if (!is_root_) return;
        expect_open("send");
        const OpenPort &port = ports_->checked(name, slot, true);
        if (!port.connected) return;
        const double next = message.has_next_timestamp() ? message.next_timestamp() : TITIN_NO_NEXT;
        Value own;
        if (message.has_settings()) own = value_of(message.settings());
        const titin_value *settings = own ? own.get() : overlay_.get();
        checked(send_data(port.handle, slot, *message.data().node_, message.timestamp(), next, settings));
    }

    Message receive(const std::string &name, int slot, const Message *default_msg, bool with_settings) {
        const OpenPort &port = ports_->checked(name, slot, false);
        if (!port.connected) {
            if (!default_msg) raise_unconnected(port, slot);
            return is_root_ ? *default_msg : Message(-1.0, Data());
        }
        const bool f_init = port.oper == ymmsl::Operator::F_INIT;
        if (f_init && with_settings && !explicit_overlays_)
            throw std::logic_error("receive_with_settings on the F_INIT port '" + name +
                                   "' needs the flag InstanceFlags::DONT_APPLY_OVERLAY: without it reuse_instance has applied "
                                   "the settings already. Give the flag to the Instance");
        expect_open("receive");
        Message message = f_init && !strict_ ? take_f_init(port, slot) : receive_now(port, slot);
        if (!with_settings) message.unset_settings();
        return message;
    }

private:
    using FInitKey = std::pair<std::string, int>;

    // Begins the next use, and receives its F_INIT messages: those that the program does not take are dropped at the next
    // use, and a second call for one is an error in place of a wait.
    bool begin_use() {
        expect_open("reuse_instance");
        f_init_.clear();
        int again;
        checked(titin_reuse(instance_, &again));
        if (!again) return false;
        if (explicit_overlays_) take_overlay();
        if (!strict_)
            for (const OpenPort &port : ports_->all()) {
                if (port.oper != ymmsl::Operator::F_INIT || !port.connected || port.name == "muscle_settings_in") continue;
                if (!port.vector) f_init_.emplace(FInitKey(port.name, TITIN_NO_SLOT), receive_now(port, TITIN_NO_SLOT));
                else
                    for (int slot = 0; slot < port.length(); ++slot)
                        f_init_.emplace(FInitKey(port.name, slot), receive_now(port, slot));
            }
        return true;
    }

    // With explicit overlays titin adds nothing to messages. MUSCLE3 sends on what came on muscle_settings_in.
    void take_overlay() {
        titin_value *overlay;
        checked(titin_overlay(instance_, &overlay));
        overlay_.reset(overlay);
        if (titin_value_size(overlay) == 0) overlay_.reset();
    }

    Message take_f_init(const OpenPort &port, int slot) {
        const auto found = f_init_.find(FInitKey(port.name, slot));
        if (found == f_init_.end())
            throw std::logic_error("there is no further message on the F_INIT port '" + port.at(slot) +
                                   "' in this use: each use has one. Is reuse_instance called at the top of the reuse loop?");
        const Message message = found->second;
        f_init_.erase(found);
        return message;
    }

    Message receive_now(const OpenPort &port, int slot) {
        titin_message *received;
        checked(titin_receive(port.handle, slot, TITIN_WAIT, &received));
        const std::shared_ptr<titin_message> owner(received, titin_message_free);
        if (!is_root_) return Message(-1.0, Data());
        const titin_value *value = check(titin_message_value(received));
        Message message(titin_message_timestamp(received), DataConstRef(node_of(value, owner)));
        if (titin_message_has_next(received)) message.set_next_timestamp(titin_message_next_timestamp(received));
        ymmsl::Settings settings;
        if (const titin_value *came = titin_message_settings(received)) settings_from(came, settings);
        message.set_settings(settings);
        return message;
    }

    static int send_data(titin_port *port, int slot, const Node &node, double timestamp, double next,
                         const titin_value *settings) {
        if (node.kind == Kind::nil) return titin_send_nil(port, slot, timestamp, next, settings);
        if (node.kind != Kind::grid)
            return titin_send_value(port, slot, value_of(node).get(), timestamp, next, settings);
        const Grid &grid = node.as<Grid>();
        if (!grid.loan) {
            const Layout layout(grid);
            return titin_send_array(port, slot, grid.dtype, layout.rank(), layout.extents.data(), nullptr,
                                    order_of(grid), layout.index_names(), grid.elements, timestamp, next, settings);
        }
        // The grid keeps its loan, to be read or sent again.
        titin_loan *loan = titin_loan_retain(grid.loan);
        const int status = titin_send_loan(port, slot, &loan, timestamp, next, settings);
        titin_loan_free(loan);
        return status;
    }

    [[noreturn]] static void raise_unconnected(const OpenPort &port, int slot) {
        const std::string text = "port '" + port.at(slot) + "' is not connected, so nothing can be received there: connect it in the "
                                                            "description, or give a default message";
        if (port.oper == ymmsl::Operator::F_INIT) throw std::logic_error(text);
        throw std::runtime_error(text);
    }

    bool wants_strict_checks() const {
        const Optional<ymmsl::SettingValue> checks = setting("muscle_checks");
        return checks.is_set() && checks.get() == ymmsl::SettingValue("strict");
    }

    ymmsl::Settings known_settings() const {
        titin_value *all;
        check(titin_settings(instance_, &all));
        const Value freed(all);
        ymmsl::Settings settings;
        settings_from(all, settings);
        return settings;
    }

    static std::string unreadable(const std::string &name, const titin_value *value) {
        return "the setting '" + name + "' is " + titin_value_summary(value) + ", which no type of MUSCLE3 holds";
    }

    void expect_open(const char *call) const {
        if (!instance_) throw std::logic_error(std::string(call) + " was called after reuse_instance has returned false");
    }

    // Throws the error of a call, and remembers its text in case that it ends the program.
    void checked(int status) {
        if (!status) return;
        last_error_ = std::string(": ") + titin_error_in("C++");
        raise();
    }

    int close() {
        titin_instance *closing = instance_;
        instance_ = nullptr;
        lending_port() = nullptr;
        f_init_.clear();
        ports_->let_go();
        return titin_close(closing);
    }

    bool unwinding() const {
#ifdef __cpp_lib_uncaught_exceptions
        return std::uncaught_exceptions() > exceptions_;
#else
        return std::uncaught_exception();
#endif
    }

    titin_instance *instance_ = nullptr; // nullptr once closed
    ymmsl::Reference name_ = "_";
    std::unique_ptr<Ports> ports_;
    bool explicit_overlays_, strict_ = false, is_root_ = true;
    Guard guard_;
    bool decided_ = false, again_ = false; // what should_save_final_snapshot has found out for reuse_instance
    Value overlay_;                // what goes with messages without settings; null for titin's own choice
    std::map<FInitKey, Message> f_init_;
    ymmsl::Settings last_settings_; // those of the last use, once the instance is closed
    std::string last_error_;
#ifdef __cpp_lib_uncaught_exceptions
    int exceptions_ = std::uncaught_exceptions();
#endif
};

} // namespace detail
} // namespace libmuscle

#undef TITIN_LIBMUSCLE_RANKS

#endif
