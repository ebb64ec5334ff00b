//! What ranks tell the directory and what they ask it for, divided among its ranks.

use crate::owned_ranges::owned_ranges;
use crate::{DirectoryEntries, DirectoryMap, Error, Exchange, IndexRange, Ownership, Region, Side};

impl Exchange {
    /// How the directory of this exchange is divided among that many ranks.
    pub fn map(&self, ranks: u32) -> DirectoryMap {
        DirectoryMap::new(&self.domain, self.by_numbers(), ranks)
    }

    /// What a rank of the sender tells to which ranks of the directory: where its elements are.
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
        // Neighbours become one. What is there twice stays so: the directory refuses it.
        let mut joined = Vec::new();
        ranges
            .into_iter()
            .for_each(|range| IndexRange::push(&mut joined, range));
        Ok(map.divide(joined))
    }

    /// What a rank of the receiver asks which ranks of the directory: who owns what it wants.
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
        // What is wanted twice is asked for once.
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
