//! The names of instances and of their ranks among the peers of a run.
//!
//! Rank 3 of the instance `macro[1]` is the peer `macro[1]#3`. Rank 0, and a serial instance, bear
//! the name of the instance. The second attempt of a member that was started again is the peer
//! `micro[3]~1`.

use titin_wire::attempts::attempt_of;
use titin_wire::ranks::RankProcess;

/// The mark between the name of an instance and the number of a rank. No description can have such
/// a name.
const MARK: char = '#';

/// The name of a rank among the peers.
pub(crate) fn rank_name(instance: &str, rank: u32) -> String {
    format!("{instance}{MARK}{rank}")
}

/// The instance of a peer: the peer itself, or the instance of which the peer is a rank or an attempt.
pub(crate) fn instance_of(peer: &str) -> &str {
    attempt_of(without_rank(peer)).0
}

/// The attempt of an instance that a peer is, or of which the peer is a rank.
pub(crate) fn without_rank(peer: &str) -> &str {
    peer.split_once(MARK).map_or(peer, |(instance, _)| instance)
}

/// A peer as users read the name: `rank 3 of macro[1]`, or the name of an instance.
pub(crate) fn written(peer: &str) -> String {
    match peer.split_once(MARK) {
        Some((instance, rank)) => format!("rank {rank} of {instance}"),
        None => peer.to_owned(),
    }
}

/// A rank and its process, as users read the pair.
pub(crate) fn written_process(rank: u32, process: &RankProcess) -> String {
    format!("rank {rank} (process {} on {})", process.pid, process.host)
}
