//! Copies of payloads.

/// From so many bytes on a copy goes past the caches: a core's part of them is no larger on most machines.
const PAST: usize = 12 << 20;

/// What a cache fetches and writes at once.
const LINE: usize = 64;

/// Copies a payload, or a part of one.
///
/// A large one is written past the caches. A store of the usual kind fetches the line that it is about to overwrite,
/// from memory or from the cache of the core that has read the message before, and drives out what the program keeps
/// there. The C library would do the same, but only from the size of all caches that it finds, in virtual machines often
/// hundreds of megabytes.
///
/// # Panics
/// If the two are not of one length.
pub fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    if from.len() < PAST || cfg!(not(target_arch = "x86_64")) {
        return to.copy_from_slice(from);
    }
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let whole = head + (to.len() - head) / LINE * LINE;
    to[..head].copy_from_slice(&from[..head]);
    past_caches(&from[head..whole], &mut to[head..whole]);
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Copies whole lines, which begin where lines begin in `to`.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn past_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    assert!(to.as_ptr().align_offset(LINE) == 0);
    for (from, to) in from.chunks_exact(LINE).zip(to.chunks_exact_mut(LINE)) {
        let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
        // SAFETY: four words of 16 bytes on both sides, those of `to` aligned.
        unsafe {
            let line = [0, 1, 2, 3].map(|word| _mm_loadu_si128(from.add(word)));
            (0..4).for_each(|word| _mm_stream_si128(to.add(word), line[word]));
        }
    }
    // SAFETY: every x86-64 has it. Without it others could be told of the bytes before they are there.
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
        for (skip, place, length) in
            [(0, 0, from.len()), (1, 3, PAST), (7, 64, PAST + 63), (0, 65, PAST - 1), (5, 9, 0)]
        {
            to.fill(255);
            copy(&from[skip..skip + length], &mut to[place..place + length]);
            assert!(to[place..place + length] == from[skip..skip + length], "{skip} {place} {length}");
            assert!(to[..place].iter().chain(&to[place + length..]).all(|byte| *byte == 255));
        }
    }
}
