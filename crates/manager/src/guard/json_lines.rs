//! Lines of JSON between manager and guard.
//!
//! Manager and guard are separate processes. An unreadable line comes from a broken process. The
//! reader then goes on without the broken process, and does not wait for the lost line.

use serde::de::DeserializeOwned;

/// The most bytes of a line: enough for the arguments and the environment of a program, and for the
/// names of all processes of a host.
const LONGEST: usize = 64 << 20;

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnreadableLine {
    #[error("a line of more than {LONGEST} bytes")]
    TooLong,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads lines from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct JsonLines {
    /// The beginning of an incomplete line.
    unread: Vec<u8>,
}

impl JsonLines {
    /// Takes in bytes, and hands the values of the complete lines to `handle`.
    ///
    /// # Errors
    /// [`UnreadableLine`] if a line cannot be read. `handle` has got the lines before the
    /// unreadable line. The bytes behind the unreadable line are of no use.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        bytes: &[u8],
        mut handle: impl FnMut(T),
    ) -> Result<(), UnreadableLine> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.unread.len() + piece.len() > LONGEST {
                return Err(UnreadableLine::TooLong);
            }
            self.unread.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let value = serde_json::from_slice(&self.unread);
                self.unread.clear();
                handle(value?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::super::{GuardOrder, GuardReport, Launch};
    use super::*;
    use crate::event::{Exit, Signal};

    /// The values read from bytes in pieces of a given length, and whether all bytes could be read.
    fn read<T: DeserializeOwned>(bytes: &[u8], piece: usize) -> (Vec<T>, bool) {
        let (mut lines, mut heard) = (JsonLines::default(), Vec::new());
        let mut take = |piece| lines.take(piece, |said| heard.push(said)).is_ok();
        let all = bytes.chunks(piece).all(&mut take);
        assert!(lines.unread.len() <= bytes.len());
        (heard, all)
    }

    fn orders() -> Vec<GuardOrder> {
        let launch = Launch {
            program: PathBuf::from("/bin/tr\u{fc}e"),
            args: vec!["a b".into(), "line\nbreak".into(), String::new()],
            clear: true,
            set: vec![("A=".into(), "\u{0}".into())],
            unset: vec!["HOME".into()],
            directory: "/".into(),
            stdout: "out".into(),
            stderr: "err".into(),
            input: None,
        };
        let signal = GuardOrder::Signal {
            id: u32::MAX,
            signal: Signal::Kill,
        };
        vec![
            GuardOrder::Start { id: 7, launch },
            signal,
            GuardOrder::Pause,
            GuardOrder::Resume,
            GuardOrder::Finish,
        ]
    }

    fn reports() -> Vec<GuardReport> {
        vec![
            GuardReport::Started {
                id: 0,
                pid: u32::MAX,
            },
            GuardReport::NotStarted {
                id: 1,
                why: "no such\nfile".into(),
            },
            GuardReport::Ended {
                id: u32::MAX,
                exit: Exit::Signal(i32::MIN, true),
            },
            GuardReport::Swept {
                left: vec!["sleep (4711)".into()],
                stuck: Vec::new(),
            },
        ]
    }

    fn said<T: serde::Serialize>(all: &[T]) -> Vec<u8> {
        all.iter()
            .flat_map(|one| [serde_json::to_vec(one).unwrap(), vec![b'\n']].concat())
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard_however_it_is_cut(piece in 1_usize..400) {
            prop_assert_eq!(read::<GuardOrder>(&said(&orders()), piece), (orders(), true));
            prop_assert_eq!(read::<GuardReport>(&said(&reports()), piece), (reports(), true));
        }

        #[test]
        fn other_bytes_are_refused_and_what_stands_before_them_is_heard(
            junk in proptest::collection::vec(any::<u8>(), 0..200),
            piece in 1_usize..400,
        ) {
            let bytes = [&said(&reports())[..], &junk, b"\n", &said(&reports())].concat();
            let (heard, all) = read::<GuardReport>(&bytes, piece);
            prop_assert_eq!(&heard[..4], &reports()[..]);
            prop_assert!(!all || heard.len() > 8, "what is no report is refused");
            read::<GuardOrder>(&bytes, piece);
        }

        #[test]
        fn a_change_of_some_bytes_is_read_or_refused(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            piece in 1_usize..400,
        ) {
            let (mut orders, mut reports) = (said(&orders()), said(&reports()));
            for (at, byte) in changes {
                *at.get_mut(&mut orders) = byte;
                *at.get_mut(&mut reports) = byte;
            }
            let (whole, cut) = (read::<GuardOrder>(&orders, usize::MAX), read::<GuardOrder>(&orders, piece));
            prop_assert_eq!(whole, cut);
            prop_assert_eq!(read::<GuardReport>(&reports, usize::MAX), read::<GuardReport>(&reports, piece));
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_the_longest() {
        let (mut lines, piece) = (JsonLines::default(), vec![b' '; 1 << 20]);
        let mut take = || lines.take(&piece, |_: GuardReport| ()).err();
        let refused = (0..2 * LONGEST / piece.len()).find_map(|_| take());
        assert_eq!(
            refused.unwrap().to_string(),
            format!("a line of more than {LONGEST} bytes")
        );
        assert!(lines.unread.capacity() <= 2 * LONGEST);
    }
}
