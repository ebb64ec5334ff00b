//! The names of members that are started again.
//!
//! A member of an ensemble may be started again after it has failed. To its driver each attempt is a
//! peer of its own, with conduits of its own: the first bears the name of the instance, and the
//! second attempt of `micro[3]` is the peer `micro[3]~1`.

/// The mark between the name of an instance and the number of an attempt. No description can have
/// such a name.
const MARK: char = '~';

/// The name of an attempt, counted from 0, among the peers.
pub fn attempt_name(instance: &str, attempt: u32) -> String {
    match attempt {
        0 => instance.to_owned(),
        _ => format!("{instance}{MARK}{attempt}"),
    }
}

/// The instance and the number of the attempt of a peer.
pub fn attempt_of(peer: &str) -> (&str, u32) {
    let split = peer.split_once(MARK);
    let attempt = split.and_then(|(instance, number)| Some((instance, number.parse().ok()?)));
    attempt.unwrap_or((peer, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attempts_are_read_as_they_are_written() {
        for (instance, attempt) in [("micro[3]", 0), ("micro[3]", 1), ("a.b", 4_000_000_000)] {
            assert_eq!(
                attempt_of(&attempt_name(instance, attempt)),
                (instance, attempt)
            );
        }
        assert_eq!(attempt_of("micro~x"), ("micro~x", 0));
        assert_eq!(attempt_of("micro~1~2"), ("micro~1~2", 0));
    }
}
