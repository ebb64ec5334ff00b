//! Copies of payloads.

/// A copy of at least `PAST` bytes bypasses the caches: on most machines a core's share of the
/// caches is no larger.
pub const PAST: usize = 12 << 20;

/// For a shorter copy the wait for the stores costs more than the bypass saves.
const SHORT: usize = 1 << 10;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Copies a payload, or a part of a payload.
///
/// A large payload is written past the caches. A usual store fetches the overwritten line, from
/// memory or from the cache of the core that has read the previous message, and evicts the
/// program's data. The C library bypasses the caches only from the size of all caches on, in
/// virtual machines often hundreds of megabytes.
///
/// # Panics
/// If the lengths differ.
pub fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() < PAST {
        to.copy_from_slice(from)
    } else {
        copy_past_caches(from, to)
    }
}

/// Copies a part of a large payload, past the caches like [`copy`] for a whole payload.
///
/// # Panics
/// If the lengths differ.
pub fn copy_past_caches(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    if from.len() < SHORT || cfg!(not(target_arch = "x86_64")) {
        return to.copy_from_slice(from);
    }
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let whole = head + (to.len() - head) / LINE * LINE;
    to[..head].copy_from_slice(&from[..head]);
    past_caches(&from[head..whole], &mut to[head..whole]);
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Copies whole lines. `to` begins at a line.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn past_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    assert!(from.len() == to.len() && to.as_ptr().align_offset(LINE) == 0);
    let (source, target) = (from.as_ptr(), to.as_mut_ptr());
    // A plain loop: a call that is not inlined here would take ten times as long.
    let mut at = 0;
    while at + LINE <= from.len() {
        // SAFETY: four words of 16 bytes on both sides, and the words of `to` are aligned.
        unsafe {
            let (source, target) = (
                source.add(at).cast::<__m128i>(),
                target.add(at).cast::<__m128i>(),
            );
            let first = (_mm_loadu_si128(source), _mm_loadu_si128(source.add(1)));
            let second = (
                _mm_loadu_si128(source.add(2)),
                _mm_loadu_si128(source.add(3)),
            );
            _mm_stream_si128(target, first.0);
            _mm_stream_si128(target.add(1), first.1);
            _mm_stream_si128(target.add(2), second.0);
            _mm_stream_si128(target.add(3), second.1);
        }
        at += LINE;
    }
    // SAFETY: every x86-64 has the fence. The fence orders the stores before a word that publishes
    // them.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn past_caches(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_wherever_it_lies() {
        let from: Vec<u8> = (0..PAST + 1000).map(|i| (i % 251) as u8).collect();
        let mut to = vec![0; from.len() + 200];
        for (skip, place, length) in [
            (0, 0, from.len()),
            (1, 3, PAST),
            (7, 64, PAST + 63),
            (0, 65, PAST - 1),
            (5, 9, 0),
        ] {
            to.fill(255);
            copy(&from[skip..skip + length], &mut to[place..place + length]);
            assert!(
                to[place..place + length] == from[skip..skip + length],
                "{skip} {place} {length}"
            );
            assert!(
                to[..place]
                    .iter()
                    .chain(&to[place + length..])
                    .all(|byte| *byte == 255)
            );
        }
    }

    #[test]
    fn so_does_every_byte_of_a_short_piece() {
        let from: Vec<u8> = (0..SHORT + 300).map(|i| (i % 251) as u8).collect();
        for length in (0..3).chain(SHORT - 1..SHORT + 2 * LINE + 2) {
            for (skip, place) in [(0, 0), (1, 3), (7, 64), (64, 65)] {
                let mut to = vec![255; from.len() + 100];
                copy_past_caches(&from[skip..skip + length], &mut to[place..place + length]);
                assert!(
                    to[place..place + length] == from[skip..skip + length],
                    "{skip} {place} {length}"
                );
                assert!(
                    to[..place]
                        .iter()
                        .chain(&to[place + length..])
                        .all(|byte| *byte == 255)
                );
            }
        }
    }
}
