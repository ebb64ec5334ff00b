//! The plans of the copies between the arrays of this rank and small pieces. A plan is made at the
//! first exchange, and again when an array has another layout than before.

use titin_array::{Error as Unfit, PreparedMessage, Schedule, SourceArray, TargetArray};
use titin_transport::copy;

use super::link::{FieldLink, SHORT};

/// The copies of longer pieces are planned at each exchange, which takes little time beside the
/// copies themselves.
const LONGEST: u64 = 64 << 10;

/// The plans of the copies of all pieces of a link.
#[derive(Default)]
pub(super) struct LinkCopyPlans {
    /// By partner.
    pieces: Vec<PieceCopyPlan>,
    /// Memory for a short piece, from one exchange to the next.
    packed: Vec<u8>,
}

/// The plan of the copies of a partner's piece.
enum PieceCopyPlan {
    /// There was no exchange yet.
    Unknown,
    Known(PreparedMessage),
    /// The piece is long, or takes many copies.
    NotKept,
}

impl LinkCopyPlans {
    pub(super) fn of(link: Option<&FieldLink>) -> Self {
        let lengths = link.iter().flat_map(|link| &*link.lengths);
        let plan = |length: &u64| match *length {
            length if length > LONGEST => PieceCopyPlan::NotKept,
            _ => PieceCopyPlan::Unknown,
        };
        LinkCopyPlans {
            pieces: lengths.map(plan).collect(),
            packed: Vec::new(),
        }
    }

    /// The bytes of a piece that needs no memory that peers can read: in the array, if the bytes are
    /// contiguous there, or packed, if the piece is short. `None` otherwise, or if the plan is not kept.
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

    /// Whether the plan of a piece is kept, or may be kept from the next exchange on.
    pub(super) fn may_be_kept(&self, partner: usize) -> bool {
        !matches!(self.pieces[partner], PieceCopyPlan::NotKept)
    }

    /// Packs a whole piece. False if the plan is not kept.
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

    /// The plan of the only piece, if the plan is known and is for arrays like these.
    pub(super) fn plan_for(&self, arrays: &[TargetArray<'_>]) -> Option<&PreparedMessage> {
        match &self.pieces[..] {
            [PieceCopyPlan::Known(known)] if known.fits_targets(arrays) => Some(known),
            _ => None,
        }
    }

    /// Unpacks a whole piece. False if the plan is not kept.
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

impl PieceCopyPlan {
    /// The plan of the copies from arrays like these.
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

    /// The plan of the copies to arrays like these.
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
            PieceCopyPlan::Unknown => false,
            PieceCopyPlan::Known(known) => fits(known),
            PieceCopyPlan::NotKept => true,
        };
        if !is_known {
            *self = prepare()?.map_or(PieceCopyPlan::NotKept, PieceCopyPlan::Known);
        }
        Ok(match self {
            PieceCopyPlan::Known(known) => Some(known),
            _ => None,
        })
    }
}
