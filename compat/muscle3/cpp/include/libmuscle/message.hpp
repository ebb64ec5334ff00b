// Messages: data with a timestamp, perhaps a next timestamp and settings.
#ifndef TITIN_LIBMUSCLE_MESSAGE_HPP
#define TITIN_LIBMUSCLE_MESSAGE_HPP

#include <stdexcept>

#include <ymmsl/settings.hpp>

#include "libmuscle/data.hpp"
#include "libmuscle/util.hpp"

namespace libmuscle {

/// A message to send, or one that was received. Timestamps are in the simulated time of the run.
class Message {
public:
    explicit Message(double timestamp) : timestamp_(timestamp) {}
    Message(double timestamp, const DataConstRef &data) : timestamp_(timestamp), data_(data) {}
    Message(double timestamp, double next_timestamp, const DataConstRef &data)
        : timestamp_(timestamp), next_timestamp_(next_timestamp), data_(data) {}
    Message(double timestamp, const DataConstRef &data, const ymmsl::Settings &settings)
        : timestamp_(timestamp), data_(data), settings_(settings) {}
    Message(double timestamp, double next_timestamp, const DataConstRef &data, const ymmsl::Settings &settings)
        : timestamp_(timestamp), next_timestamp_(next_timestamp), data_(data), settings_(settings) {}

    Message(const Message &) = default;
    Message(Message &&) = default;
    Message &operator=(const Message &other) {
        timestamp_ = other.timestamp_;
        next_timestamp_ = other.next_timestamp_;
        data_.reseat(other.data_);
        settings_ = other.settings_;
        return *this;
    }

    double timestamp() const { return timestamp_; }
    void set_timestamp(double timestamp) { timestamp_ = timestamp; }

    bool has_next_timestamp() const { return next_timestamp_.is_set(); }
    /// Throws std::logic_error if there is none.
    double next_timestamp() const {
        if (!has_next_timestamp()) throw std::logic_error("this message has no next timestamp: ask has_next_timestamp() first");
        return next_timestamp_.get();
    }
    void set_next_timestamp(double next_timestamp) { next_timestamp_ = next_timestamp; }
    void unset_next_timestamp() { next_timestamp_ = {}; }

    const DataConstRef &data() const { return data_; }
    void set_data(const DataConstRef &data) { data_.reseat(data); }

    /// Whether settings go, or came, with the message.
    bool has_settings() const { return settings_.is_set(); }
    /// Throws std::logic_error if there are none.
    const ymmsl::Settings &settings() const {
        if (!has_settings()) throw std::logic_error("this message has no settings: ask has_settings() first");
        return settings_.get();
    }
    void set_settings(const ymmsl::Settings &settings) { settings_ = settings; }
    void unset_settings() { settings_ = {}; }

private:
    double timestamp_;
    Optional<double> next_timestamp_;
    DataConstRef data_;
    Optional<ymmsl::Settings> settings_;
};

} // namespace libmuscle

#endif
