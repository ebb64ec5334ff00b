//! The copies between the arrays of this rank and small pieces. The copies are worked out with the
//! first exchange, and again when an array has another layout than before.

use titin_array::{Error as Unfit, PreparedMessage, Schedule, SourceArray, TargetArray};
use titin_transport::copy;

use super::link::{FieldLink, SHORT};

/// The copies of longer pieces are worked out with each exchange, which takes little time beside
/// the copies themselves.
const LONGEST: u64 = 64 << 10;

/// The copies of all pieces of a link.
#[derive(Default)]
pub(super) struct LinkCopies {
    /// By partner.
    pieces: Vec<PieceCopies>,
    /// Memory for a short piece, from one exchange to the next.
    packed: Vec<u8>,
}

/// The copies of a partner's piece.
enum PieceCopies {
    /// There was no exchange yet.
    Unknown,
    Known(PreparedMessage),
    /// The piece is long, or takes many copies.
    NotKept,
}

impl LinkCopies {
    pub(super) fn of(link: Option<&FieldLink>) -> Self {
        let lengths = link.iter().flat_map(|link| &*link.lengths);
        let copies = |length: &u64| match *length {
            length if length > LONGEST => PieceCopies::NotKept,
            _ => PieceCopies::Unknown,
        };
        LinkCopies {
            pieces: lengths.map(copies).collect(),
            packed: Vec::new(),
        }
    }

    /// The bytes of a short piece: in the array, if the bytes are contiguous there, or else packed.
    /// `None` for a longer piece, or if the copies are not kept.
    pub(super) fn packed<'s>(
        &'s mut self,
        link: &FieldLink,
        partner: usize,
        arrays: &'s [SourceArray<'_>],
    ) -> Result<Option<&'s [u8]>, Unfit> {
        let known = self.pieces[partner].of_sources(&link.schedule, partner, arrays)?;
        let Some(known) = known else {
            return Ok(None);
        };
        if let Some(range) = known.in_place() {
            return Ok(Some(&arrays[0].memory[range]));
        }
        // A longer piece is packed into memory that peers can read.
        if known.length() as u64 > SHORT {
            return Ok(None);
        }
        self.packed.resize(known.length(), 0);
        known.pack(copy, arrays, &mut self.packed);
        Ok(Some(&self.packed))
    }

    /// Whether the copies of a piece are kept, or may be kept from the next exchange on.
    pub(super) fn may_be_kept(&self, partner: usize) -> bool {
        !matches!(self.pieces[partner], PieceCopies::NotKept)
    }

    /// Packs a whole piece. False if the copies are not kept.
    pub(super) fn pack(
        &mut self,
        link: &FieldLink,
        partner: usize,
        arrays: &[SourceArray<'_>],
        piece: &mut [u8],
    ) -> Result<bool, Unfit> {
        let known = self.pieces[partner].of_sources(&link.schedule, partner, arrays)?;
        known.inspect(|known| known.pack(copy, arrays, piece));
        Ok(known.is_some())
    }

    /// Unpacks a whole piece. False if the copies are not kept.
    pub(super) fn unpack(
        &mut self,
        link: &FieldLink,
        partner: usize,
        piece: &[u8],
        arrays: &mut [TargetArray<'_>],
    ) -> Result<bool, Unfit> {
        let known = self.pieces[partner].of_targets(&link.schedule, partner, arrays)?;
        known.inspect(|known| known.unpack(copy, piece, arrays));
        Ok(known.is_some())
    }
}

impl PieceCopies {
    /// The copies from arrays like these.
    fn of_sources(
        &mut self,
        schedule: &Schedule,
        partner: usize,
        arrays: &[SourceArray<'_>],
    ) -> Result<Option<&PreparedMessage>, Unfit> {
        self.fitting(
            |known| known.fits_sources(arrays),
            || schedule.prepare_pack(partner, arrays),
        )
    }

    /// The copies to arrays like these.
    fn of_targets(
        &mut self,
        schedule: &Schedule,
        partner: usize,
        arrays: &[TargetArray<'_>],
    ) -> Result<Option<&PreparedMessage>, Unfit> {
        self.fitting(
            |known| known.fits_targets(arrays),
            || schedule.prepare_unpack(partner, arrays),
        )
    }

    #[inline(always)]
    fn fitting(
        &mut self,
        fits: impl FnOnce(&PreparedMessage) -> bool,
        prepare: impl FnOnce() -> Result<Option<PreparedMessage>, Unfit>,
    ) -> Result<Option<&PreparedMessage>, Unfit> {
        let is_known = match self {
            PieceCopies::Unknown => false,
            PieceCopies::Known(known) => fits(known),
            PieceCopies::NotKept => true,
        };
        if !is_known {
            *self = prepare()?.map_or(PieceCopies::NotKept, PieceCopies::Known);
        }
        Ok(match self {
            PieceCopies::Known(known) => Some(known),
            _ => None,
        })
    }
}
