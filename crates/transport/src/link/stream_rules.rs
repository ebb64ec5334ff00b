//! How an end of a link sends by its further streams: as the program has set it, or as titin chooses.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use titin_wire::LinkSettings;
use titin_wire::frame::PIECE;

use super::streams::PieceSizes;
use crate::stream_growth::StreamRequest;

/// The bytes of a piece that a program may set: a header takes 64.
pub const PIECE_SIZES: RangeInclusive<u64> = 1 << 10..=PIECE as u64;

/// The rules for the streams of one end. They may change at any time.
pub(crate) struct StreamRules {
    /// The most streams by which this end sends; `usize::MAX` if titin chooses.
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
        let most = match settings.may_grow() && count > 0 {
            true => usize::MAX,
            false => count.max(1),
        };
        StreamRules {
            most: AtomicUsize::new(most),
            piece: AtomicU64::new(0),
            settings: Mutex::new(settings),
            request,
        }
    }

    /// How many of `count` further streams this end sends by. With one stream, the first stream of the link carries all.
    pub(super) fn used(&self, count: usize) -> usize {
        count.min(self.most())
    }

    /// Sets the most streams by which this end sends, and asks for those that are missing of `count`.
    /// `None`: titin chooses.
    pub(super) fn set_most(&self, most: Option<usize>, count: usize) {
        self.most.store(
            most.map_or(usize::MAX, |most| most.max(1)),
            Ordering::Relaxed,
        );
        // One stream is the first one.
        if let Some(most) = most.filter(|most| *most > count.max(1)) {
            self.request(most);
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

    /// The settings of the link, as they are now.
    pub(super) fn settings(&self) -> LinkSettings {
        *self.locked_settings()
    }

    /// Notes settings that have changed: those that are not `None`.
    pub(super) fn note(&self, changed: &LinkSettings) {
        let mut settings = self.locked_settings();
        settings.pacing = changed.pacing.or(settings.pacing);
        settings.send_buffer = changed.send_buffer.or(settings.send_buffer);
        settings.receive_buffer = changed.receive_buffer.or(settings.receive_buffer);
    }

    fn locked_settings(&self) -> MutexGuard<'_, LinkSettings> {
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
            if rules.most() == usize::MAX {
                rules.request(count);
            }
        })
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}
