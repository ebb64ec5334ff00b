//! How an end of a link sends by its further streams: as the program has set it, or as titin chooses.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use titin_wire::LinkSettings;
use titin_wire::frame::{MAX_STREAMS, PIECE};

use super::streams::PieceSizes;
use crate::stream_growth::StreamRequest;

/// The bytes of a piece that a program may set: a header takes 64.
pub const PIECE_SIZES: RangeInclusive<u64> = 1 << 10..=PIECE as u64;

/// The rules for the streams of one end. They may change at any time.
pub(crate) struct StreamRules {
    /// The most further streams by which this end sends: 0 if the first stream of the link carries all, `usize::MAX` if titin
    /// chooses.
    most: AtomicUsize,
    /// The bytes of a piece; 0 if titin chooses.
    piece: AtomicU64,
    /// The pacing of the link and the buffers of its streams, for those that join later, too.
    settings: Mutex<LinkSettings>,
    /// Asks the reactor for further streams.
    request: StreamRequest,
}

impl StreamRules {
    /// The rules of a link with these settings, which begins with `count` further streams.
    pub(crate) fn new(settings: LinkSettings, count: usize, request: StreamRequest) -> Self {
        let most = match settings.may_grow() {
            true => usize::MAX,
            false => count,
        };
        StreamRules {
            most: AtomicUsize::new(most),
            piece: AtomicU64::new(0),
            settings: Mutex::new(settings),
            request,
        }
    }

    /// Whether the program has set the number of streams.
    pub(super) fn is_count_set(&self) -> bool {
        self.most() != usize::MAX
    }

    /// Whether further streams carry large messages.
    pub(super) fn uses_further(&self) -> bool {
        self.most() > 0
    }

    /// By how many of `count` further streams this end sends. By at least one: that one carries the rest of what has begun.
    pub(super) fn used(&self, count: usize) -> usize {
        count.min(self.most().max(1))
    }

    /// Sets the most streams by which this end sends, and asks for those that are missing: there are `count` further ones.
    /// One stream is the first one. `None`: titin chooses.
    pub(super) fn set_most(&self, most: Option<usize>, count: usize) {
        let further = most.map(|most| match most {
            0 | 1 => 0,
            most => most.min(MAX_STREAMS as usize),
        });
        self.most
            .store(further.unwrap_or(usize::MAX), Ordering::Relaxed);
        if let Some(further) = further.filter(|further| *further > count) {
            self.request(further);
        }
    }

    /// The sizes of pieces, if the program has set them.
    pub(super) fn piece_sizes(&self) -> Option<PieceSizes> {
        let piece = self.piece.load(Ordering::Relaxed);
        (piece > 0).then_some(PieceSizes {
            smallest: piece,
            largest: piece,
        })
    }

    /// Sets the bytes of a piece. `None`: titin chooses.
    pub(super) fn set_piece(&self, bytes: Option<u64>) {
        let piece = bytes.map_or(0, |bytes| {
            bytes.clamp(*PIECE_SIZES.start(), *PIECE_SIZES.end())
        });
        self.piece.store(piece, Ordering::Relaxed);
    }

    /// The bytes of a piece; `None` if titin chooses.
    pub(super) fn piece(&self) -> Option<u64> {
        self.piece_sizes().map(|sizes| sizes.largest)
    }

    /// The settings of the link. While they are locked no stream joins, and no other thread changes settings.
    pub(super) fn lock_settings(&self) -> MutexGuard<'_, LinkSettings> {
        self.settings
            .lock()
            .expect("nothing panics while it is locked")
    }

    /// Asks for so many further streams in all.
    pub(super) fn request(&self, count: usize) {
        (self.request)(count);
    }

    /// As [`StreamRules::request`], for a number that titin has chosen: unless the program has set one.
    pub(super) fn suggestion(self: &Arc<Self>) -> StreamRequest {
        let rules = self.clone();
        Arc::new(move |count| {
            if !rules.is_count_set() {
                rules.request(count);
            }
        })
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}
