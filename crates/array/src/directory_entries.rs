//! The entries and queries of a rank, divided among the ranks of the directory.

use crate::owned_ranges::owned_ranges;
use crate::{DirectoryEntries, DirectoryMap, Error, Exchange, IndexRange, Ownership, Region, Side};

impl Exchange {
    /// The map of a directory of this exchange over `ranks` ranks.
    pub fn map(&self, ranks: u32) -> DirectoryMap {
        DirectoryMap::new(&self.domain, self.by_numbers(), ranks)
    }

    /// The elements of a rank of the sender, for each rank of the directory.
    pub fn entries(
        &self,
        rank: u32,
        parts: &Ownership,
        map: &DirectoryMap,
    ) -> Result<Vec<(u32, DirectoryEntries)>, Error> {
        parts.check(&self.from.decomposition, rank)?;
        if map.has_boxes() {
            return Ok(divide_boxes(&self.from, rank, parts, map));
        }
        let mut ranges: Vec<IndexRange> = owned_ranges(&self.from, rank, parts)?
            .iter()
            .map(|own| own.range)
            .collect();
        ranges.sort_unstable();
        // Neighbouring ranges are joined. An element that the rank has twice stays twice: the
        // directory refuses it.
        let mut joined = Vec::new();
        ranges
            .into_iter()
            .for_each(|range| IndexRange::push(&mut joined, range));
        Ok(map.divide(joined))
    }

    /// The elements that a rank of the receiver asks for, for each rank of the directory.
    pub fn queries(
        &self,
        rank: u32,
        parts: &Ownership,
        map: &DirectoryMap,
    ) -> Result<Vec<(u32, DirectoryEntries)>, Error> {
        parts.check(&self.to.decomposition, rank)?;
        if map.has_boxes() {
            return Ok(divide_boxes(&self.to, rank, parts, map));
        }
        let mut ranges: Vec<IndexRange> = owned_ranges(&self.to, rank, parts)?
            .iter()
            .map(|own| own.range)
            .collect();
        ranges.sort_unstable();
        // The rank asks once for an element that it has twice.
        let mut joined: Vec<IndexRange> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.first <= last.end() => {
                    last.length = last.end().max(range.end()) - last.first
                }
                _ => joined.push(range),
            }
        }
        Ok(map.divide(joined))
    }
}

fn divide_boxes(
    side: &Side,
    rank: u32,
    parts: &Ownership,
    map: &DirectoryMap,
) -> Vec<(u32, DirectoryEntries)> {
    let mut divided: Vec<(u32, (u32, Region))> = Vec::new();
    for part in side.owned(rank, parts) {
        let hull = part.hull();
        divided.extend(
            map.ranks_of(&hull)
                .into_iter()
                .map(|rank| (rank, (part.block, hull))),
        );
    }
    divided.sort_by_key(|(rank, _)| *rank);
    let groups = divided.chunk_by(|one, other| one.0 == other.0);
    groups
        .map(|group| {
            (
                group[0].0,
                DirectoryEntries::Boxes(group.iter().map(|(_, entry)| *entry).collect()),
            )
        })
        .collect()
}
