// Properties of an instance that its program declares.
#ifndef TITIN_LIBMUSCLE_INSTANCE_FLAGS_HPP
#define TITIN_LIBMUSCLE_INSTANCE_FLAGS_HPP

namespace libmuscle {

/// Flags, combined by `|`.
enum class InstanceFlags : int {
    NONE = 0,
    /// Settings that come with F_INIT messages are not applied: for programs that receive messages with their settings.
    DONT_APPLY_OVERLAY = 1,
    /// The program makes the calls of checkpoints.
    USES_CHECKPOINT_API = 2,
    /// What the program keeps from one use to the next; titin, which saves no snapshots, does not ask.
    KEEPS_NO_STATE_FOR_NEXT_USE = 4,
    STATE_NOT_REQUIRED_FOR_NEXT_USE = 8,
    /// The order of sending and receiving is not checked.
    SKIP_MMSF_SEQUENCE_CHECKS = 16
};

inline InstanceFlags operator|(InstanceFlags a, InstanceFlags b) {
    return static_cast<InstanceFlags>(static_cast<int>(a) | static_cast<int>(b));
}
inline InstanceFlags operator&(InstanceFlags a, InstanceFlags b) {
    return static_cast<InstanceFlags>(static_cast<int>(a) & static_cast<int>(b));
}
inline bool operator!(InstanceFlags a) { return a == InstanceFlags::NONE; }

} // namespace libmuscle

#endif
