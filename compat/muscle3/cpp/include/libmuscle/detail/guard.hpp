// The order of the calls of checkpoints. Titin saves no snapshots: nothing is ever to be saved or loaded, but a program
// whose calls MUSCLE3 would refuse is refused here as well.
#ifndef TITIN_LIBMUSCLE_DETAIL_GUARD_HPP
#define TITIN_LIBMUSCLE_DETAIL_GUARD_HPP

#include <stdexcept>
#include <string>

namespace libmuscle {
namespace detail {

/// Keeps track of which of these calls comes next. Each call throws std::runtime_error out of its place.
class Guard {
public:
    /// `uses`: whether the program has the flag USES_CHECKPOINT_API.
    explicit Guard(bool uses) : uses_(uses) {}

    void before_reuse() const {
        if (next_ != Next::reuse && next_ != Next::first_reuse)
            throw std::runtime_error("reuse_instance came without should_save_final_snapshot at the end of the reuse loop, which a "
                                     "program with the flag USES_CHECKPOINT_API has to call");
    }
    void reused(bool again) { next_ = !again ? Next::nothing : uses_ ? Next::resuming : Next::reuse; }

    void resuming() {
        if (!uses_)
            throw std::runtime_error("resuming needs the flag InstanceFlags::USES_CHECKPOINT_API: give it to the Instance");
        expect("resuming", Next::resuming);
        next_ = Next::should_init;
    }
    void should_init() {
        expect("should_init", Next::should_init);
        next_ = Next::save;
    }
    void should_save(const char *call) const { expect(call, Next::save); }
    void decided() { next_ = Next::reuse; }

    /// For the calls that come only after one of the others has returned true.
    [[noreturn]] static void nothing_to(const char *call, const char *asked) {
        throw std::runtime_error(std::string(call) + " may only be called after " + asked +
                                 " has returned true, and titin has no snapshots");
    }

private:
    enum class Next { first_reuse, reuse, resuming, should_init, save, nothing };

    void expect(const char *call, Next place) const {
        if (next_ == place) return;
        const char *why = "";
        switch (next_) {
        case Next::first_reuse:
        case Next::nothing: why = "only be called inside the reuse loop"; break;
        case Next::reuse:
            why = uses_ ? "not be called after should_save_final_snapshot, which ends the reuse loop"
                        : "only be called with the flag InstanceFlags::USES_CHECKPOINT_API";
            break;
        case Next::resuming: why = "only be called after resuming, the first call in the reuse loop"; break;
        case Next::should_init: why = "only be called after should_init, which follows resuming"; break;
        case Next::save: why = "only be called once, at the beginning of the reuse loop"; break;
        }
        throw std::runtime_error(std::string(call) + " may " + why);
    }

    bool uses_;
    Next next_ = Next::first_reuse;
};

} // namespace detail
} // namespace libmuscle

#endif
