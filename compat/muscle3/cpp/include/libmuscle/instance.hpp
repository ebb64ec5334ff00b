// Instances: each is one running copy of a program, as part of a run.
#ifndef TITIN_LIBMUSCLE_INSTANCE_HPP
#define TITIN_LIBMUSCLE_INSTANCE_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ymmsl/ymmsl.hpp>

#include "libmuscle/detail/guard.hpp"
#include "libmuscle/detail/ports.hpp"
#include "libmuscle/detail/state.hpp"
#include "libmuscle/instance_flags.hpp"
#include "libmuscle/message.hpp"
#include "libmuscle/ports_description.hpp"
#include "libmuscle/util.hpp"

#ifdef MUSCLE_ENABLE_MPI
#define TITIN_LIBMUSCLE_RANKS , MPI_Comm communicator = MPI_COMM_WORLD, int root = 0
#define TITIN_LIBMUSCLE_GIVEN , communicator, root
#else
#define TITIN_LIBMUSCLE_RANKS
#define TITIN_LIBMUSCLE_GIVEN
#endif

namespace libmuscle {

/// One running copy of a program, as part of a run.
///
/// With MUSCLE_ENABLE_MPI a program may have many ranks. All ranks make the Instance, call reuse_instance, and receive. The
/// root sends and receives: a send of another rank does nothing, and another rank receives an empty message with the
/// timestamp -1. Every rank may ask for settings and ports.
///
/// Errors are std::logic_error for a call that is wrong in itself, and std::runtime_error for all else, unless a call says
/// otherwise. The run fails if an exception ends the program, or unwinds the Instance.
class Instance {
public:
    /// Joins the run, and waits for the manager's answer. Without ports, or with none in `ports`, the instance has the ports
    /// of the description. The instance and the run are those of `--muscle-instance=` and `--muscle-manager=` on the
    /// command line, else those of MUSCLE_INSTANCE and MUSCLE_MANAGER, else those of TITIN_INSTANCE and TITIN_MANAGER.
    /// MUSCLE_MANAGER is the path of the run's connection file.
    Instance(int argc, const char *const argv[] TITIN_LIBMUSCLE_RANKS)
        : Instance(argc, argv, PortsDescription(), InstanceFlags::NONE TITIN_LIBMUSCLE_GIVEN) {}
    Instance(int argc, const char *const argv[], const PortsDescription &ports TITIN_LIBMUSCLE_RANKS)
        : Instance(argc, argv, ports, InstanceFlags::NONE TITIN_LIBMUSCLE_GIVEN) {}
    Instance(int argc, const char *const argv[], InstanceFlags flags TITIN_LIBMUSCLE_RANKS)
        : Instance(argc, argv, PortsDescription(), flags TITIN_LIBMUSCLE_GIVEN) {}
    Instance(int argc, const char *const argv[], const PortsDescription &ports, InstanceFlags flags TITIN_LIBMUSCLE_RANKS)
        : state_(new detail::State(argc, argv, ports, flags TITIN_LIBMUSCLE_GIVEN)) {}

    /// Begins the next use, and waits for its F_INIT messages: true if there is one. Settings change here. After false the
    /// instance has ended its part in the run.
    bool reuse_instance() { return state_->reuse_instance(); }
    /// Fails the run, with this instance as the culprit and this text as the reason.
    void error_shutdown(const std::string &message) { state_->error_shutdown(message); }

    /// Names of the settings that this instance can ask for, sorted.
    std::vector<std::string> list_settings() const { return state_->list_settings(); }
    /// A setting: that of the overlay in force, else that of the description, each under the most specific name. Throws
    /// std::out_of_range if there is neither a setting nor a default.
    ymmsl::SettingValue get_setting(const std::string &name,
                                    const Optional<ymmsl::SettingValue> &default_value = {}) const {
        const Optional<ymmsl::SettingValue> found = state_->setting(name);
        if (found.is_set()) return found.get();
        if (default_value.is_set()) return default_value.get();
        throw std::out_of_range("there is no setting '" + name + "', and no default was given: add it to the description");
    }
    /// The same as one of the types of a setting; std::bad_cast if the setting is of another type. No type is converted.
    template <class ValueType>
    ValueType get_setting_as(const std::string &name, const Optional<ValueType> &default_value = Optional<ValueType>()) const {
        if (default_value.is_set()) {
            const Optional<ymmsl::SettingValue> found = state_->setting(name);
            return found.is_set() ? found.get().as<ValueType>() : default_value.get();
        }
        return get_setting(name).as<ValueType>();
    }

    /// The ports by operator, without `[]`; no operators without ports.
    PortsDescription list_ports() const { return state_->ports().described(); }
    /// Facts about a port; std::out_of_range for a name that no port has.
    bool is_connected(const std::string &port) const { return state_->ports().at(port).connected; }
    bool is_vector_port(const std::string &port) const { return state_->ports().at(port).vector; }
    bool is_resizable(const std::string &port) const { return state_->ports().at(port).resizable; }
    /// The number of slots of a vector port; std::runtime_error for other ports.
    int get_port_length(const std::string &port) const {
        const detail::OpenPort &found = state_->ports().at(port);
        if (!found.vector) throw std::runtime_error("port '" + port + "' is no vector port, so it has no length");
        return found.length();
    }
    /// Sets the number of slots; std::runtime_error for a port that is not resizable.
    void set_port_length(const std::string &port, int length) { state_->set_port_length(port, length); }

    /// Sends a message, and returns when its data may be changed. Waits only while the conduit's buffer is full. Does
    /// nothing on a port that is not connected. A message without settings takes the overlay in force along.
    void send(const std::string &port_name, const Message &message) { state_->send(port_name, message, TITIN_NO_SLOT); }
    void send(const std::string &port_name, const Message &message, int slot) {
        state_->send(port_name, message, slot_of(slot));
    }

    /// Receives a message, and waits for it. On a port that is not connected the default is returned as it is; without a
    /// default that is an error. The message has no settings.
    Message receive(const std::string &port_name) { return state_->receive(port_name, TITIN_NO_SLOT, nullptr, false); }
    Message receive(const std::string &port_name, int slot) {
        return state_->receive(port_name, slot_of(slot), nullptr, false);
    }
    Message receive(const std::string &port_name, const Message &default_msg) {
        return state_->receive(port_name, TITIN_NO_SLOT, &default_msg, false);
    }
    Message receive(const std::string &port_name, int slot, const Message &default_msg) {
        return state_->receive(port_name, slot_of(slot), &default_msg, false);
    }

    /// The same with the settings that came with the message; none are an empty Settings. On F_INIT ports this needs the
    /// flag DONT_APPLY_OVERLAY.
    Message receive_with_settings(const std::string &port_name) {
        return state_->receive(port_name, TITIN_NO_SLOT, nullptr, true);
    }
    Message receive_with_settings(const std::string &port_name, int slot) {
        return state_->receive(port_name, slot_of(slot), nullptr, true);
    }
    Message receive_with_settings(const std::string &port_name, const Message &default_msg) {
        return state_->receive(port_name, TITIN_NO_SLOT, &default_msg, true);
    }
    Message receive_with_settings(const std::string &port_name, int slot, const Message &default_msg) {
        return state_->receive(port_name, slot_of(slot), &default_msg, true);
    }

    /// Calls of checkpoints, in the order of MUSCLE3. Titin saves no snapshots: nothing is resumed, every use begins with
    /// F_INIT, and nothing is to be saved. Calls out of order, and without the flag USES_CHECKPOINT_API, are
    /// std::runtime_error. should_save_final_snapshot waits, as reuse_instance does, until it is known whether there is
    /// another use.
    bool resuming() {
        state_->guard().resuming();
        return false;
    }
    bool should_init() {
        state_->guard().should_init();
        return true;
    }
    Message load_snapshot() { detail::Guard::nothing_to("load_snapshot", "resuming"); }
    bool should_save_snapshot(double /* timestamp */) {
        state_->guard().should_save("should_save_snapshot");
        return false;
    }
    void save_snapshot(const Message & /* message */) { detail::Guard::nothing_to("save_snapshot", "should_save_snapshot"); }
    bool should_save_final_snapshot() {
        state_->decide_reuse();
        return false;
    }
    void save_final_snapshot(const Message & /* message */) {
        detail::Guard::nothing_to("save_final_snapshot", "should_save_final_snapshot");
    }

private:
    static int slot_of(int slot) {
        if (slot < 0) throw std::runtime_error("slot " + std::to_string(slot) + " was given, but slots count from 0");
        return slot;
    }

    std::unique_ptr<detail::State> state_;
};

} // namespace libmuscle

#undef TITIN_LIBMUSCLE_RANKS
#undef TITIN_LIBMUSCLE_GIVEN

#endif
