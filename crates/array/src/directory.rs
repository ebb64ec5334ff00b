//! The part of the directory on one rank: the owners of elements, and the answers to queries.

use crate::box_tree::BoxTree;
use crate::error::MOST_NAMED;
use crate::index_schedule::check_single_owners;
use crate::{
    DirectoryAnswer, DirectoryEntries, Error, Exchange, IndexRange, Overlap, OwnedBox, Region,
};

/// Collects the entries of the sender's ranks until all entries have come.
#[derive(Debug)]
pub struct Register {
    exchange: Exchange,
    boxes: Vec<OwnedBox>,
    ranges: Vec<(u32, IndexRange)>,
}

/// Answers the queries of the receiver's ranks.
#[derive(Debug)]
pub struct Directory {
    exchange: Exchange,
    boxes: Vec<OwnedBox>,
    tree: BoxTree,
    ranges: Vec<(u32, IndexRange)>,
}

impl Register {
    /// A register without entries.
    pub fn new(exchange: Exchange) -> Self {
        Self {
            exchange,
            boxes: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// Adds the elements that a rank of the sender owns.
    pub fn enter(&mut self, rank: u32, entries: &DirectoryEntries) -> Result<(), Error> {
        let ranks = self.exchange.from.decomposition.ranks();
        if rank >= ranks {
            return Err(Error::Broken(format!(
                "entries of rank {rank}; the sender has {ranks} ranks"
            )));
        }
        check(&self.exchange, rank, entries)?;
        match entries {
            DirectoryEntries::Boxes(boxes) => {
                let owned = boxes.iter().map(|(place, region)| OwnedBox {
                    rank,
                    place: *place,
                    region: *region,
                });
                self.boxes.extend(owned);
            }
            DirectoryEntries::Ranges(ranges) => self
                .ranges
                .extend(ranges.iter().map(|range| (rank, *range))),
        }
        Ok(())
    }

    /// The directory of all entries, unless elements have two owners.
    pub fn directory(mut self) -> Result<Directory, Error> {
        self.ranges
            .sort_unstable_by_key(|(rank, range)| (*range, *rank));
        check_single_owners(&self.exchange, &self.ranges)?;
        // The same box of the same rank may have been entered twice.
        self.boxes.sort_unstable();
        self.boxes.dedup();
        let regions: Vec<_> = self.boxes.iter().map(|entry| entry.region).collect();
        let tree = BoxTree::new(&regions);
        let overlaps = self.overlaps(&tree);
        if !overlaps.is_empty() {
            return Err(Error::Overlap(overlaps));
        }
        Ok(Directory {
            exchange: self.exchange,
            boxes: self.boxes,
            tree,
            ranges: self.ranges,
        })
    }

    /// The elements that two of the boxes have; at most one more than an error names.
    fn overlaps(&self, tree: &BoxTree) -> Vec<Overlap> {
        let mut overlaps = Vec::new();
        for (number, one) in self.boxes.iter().enumerate() {
            let mut hits = tree.hits(&one.region);
            hits.sort_unstable();
            for hit in hits.into_iter().filter(|hit| *hit as usize > number) {
                let other = &self.boxes[hit as usize];
                let shared = one.region.intersection(&other.region).expect("a hit");
                overlaps.push(Overlap {
                    ranks: [one.rank, other.rank],
                    region: self.exchange.from.outside(&shared),
                });
                if overlaps.len() > MOST_NAMED {
                    return overlaps;
                }
            }
        }
        overlaps
    }
}

impl Directory {
    /// The owners of the elements in a query of a rank of the receiver. Elements without an owner
    /// are left out; the receiver finds such a gap.
    pub fn answer(&self, rank: u32, asked: &DirectoryEntries) -> Result<DirectoryAnswer, Error> {
        check(&self.exchange, rank, asked)?;
        Ok(match asked {
            DirectoryEntries::Boxes(boxes) => {
                let mut hits: Vec<u32> = boxes
                    .iter()
                    .flat_map(|(_, region)| self.tree.hits(region))
                    .collect();
                hits.sort_unstable();
                hits.dedup();
                DirectoryAnswer::Boxes(hits.iter().map(|hit| self.boxes[*hit as usize]).collect())
            }
            DirectoryEntries::Ranges(ranges) => DirectoryAnswer::Ranges(
                ranges
                    .iter()
                    .flat_map(|range| self.owners(*range))
                    .collect(),
            ),
        })
    }

    /// The parts of a range that have an owner.
    fn owners(&self, wanted: IndexRange) -> impl Iterator<Item = (u32, IndexRange)> {
        let first = self
            .ranges
            .partition_point(|(_, owned)| owned.end() <= wanted.first);
        self.ranges[first..]
            .iter()
            .take_while(move |(_, owned)| owned.first < wanted.end())
            .map(move |(rank, owned)| {
                let first = owned.first.max(wanted.first);
                let length = owned.end().min(wanted.end()) - first;
                (*rank, IndexRange { first, length })
            })
    }
}

/// Refuses entries or queries that do not belong to this exchange.
fn check(exchange: &Exchange, rank: u32, entries: &DirectoryEntries) -> Result<(), Error> {
    let broken = |what: String| {
        Error::Broken(format!(
            "rank {rank} tells the directory of {what}, but {} elements are coupled",
            exchange.domain
        ))
    };
    if exchange.by_numbers() != matches!(entries, DirectoryEntries::Ranges(_)) {
        return Err(broken("the wrong kind of elements".into()));
    }
    let wrong = match entries {
        DirectoryEntries::Boxes(boxes) => {
            let domain = Region::whole(&exchange.domain)?;
            let outside = boxes
                .iter()
                .find(|(_, region)| region.is_empty() || !domain.covers(region));
            outside.map(|(_, region)| format!("the box {region}"))
        }
        DirectoryEntries::Ranges(ranges) => {
            let outside = ranges
                .iter()
                .find(|range| range.length == 0 || range.end() > exchange.elements());
            outside.map(|IndexRange { first, length }| format!("{length} elements from {first} on"))
        }
    };
    wrong.map_or(Ok(()), |what| Err(broken(what)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Ownership, Side};

    fn boxes(list: &[[u64; 4]]) -> Ownership {
        Ownership::Boxes(
            list.iter()
                .map(|[a, b, c, d]| Region::new(&[*a, *b], &[*c, *d]).unwrap())
                .collect(),
        )
    }

    fn exchange() -> Exchange {
        let from = Side::new(Decomposition::boxes(&[10, 8], 3).unwrap())
            .region(Region::new(&[2, 0], &[10, 8]).unwrap());
        Exchange::new(
            from,
            Side::new(Decomposition::block(&[8, 8], &[1, 1]).unwrap()),
        )
        .unwrap()
    }

    /// A directory on one rank with the elements of all ranks.
    fn directory(exchange: &Exchange, parts: &[Ownership]) -> Result<Directory, Error> {
        let map = exchange.map(1);
        let mut register = Register::new(exchange.clone());
        for (rank, parts) in parts.iter().enumerate() {
            for (_, entries) in exchange.entries(rank as u32, parts, &map)? {
                register.enter(rank as u32, &entries)?;
            }
        }
        register.directory()
    }

    fn receive(exchange: &Exchange, directory: &Directory) -> Result<u64, Error> {
        let queries = exchange
            .queries(0, &Ownership::Rule, &exchange.map(1))
            .unwrap();
        let answers = queries
            .iter()
            .map(|(_, query)| directory.answer(0, query))
            .collect::<Result<_, _>>()?;
        exchange
            .receiving(0, &Ownership::Rule, answers)
            .map(|(schedule, _)| schedule.elements())
    }

    #[test]
    fn what_is_owned_is_found() {
        let exchange = exchange();
        let parts = [
            boxes(&[[0, 0, 6, 8]]),
            boxes(&[[6, 0, 10, 3]]),
            boxes(&[[6, 3, 10, 4], [6, 4, 10, 8]]),
        ];
        let directory = directory(&exchange, &parts).unwrap();
        assert_eq!(receive(&exchange, &directory), Ok(64));
    }

    #[test]
    fn two_owners_are_named_with_what_both_own() {
        let parts = [
            boxes(&[[0, 0, 7, 8]]),
            boxes(&[]),
            boxes(&[[6, 3, 10, 8], [9, 0, 10, 4]]),
        ];
        let text = directory(&exchange(), &parts).unwrap_err().to_string();
        assert!(text.starts_with("ranks 0 and 2 of the sender both own [6:7, 3:8]; rank 2 of the sender owns [9:10, 3:4] twice;"), "{text}");
    }

    #[test]
    fn what_nobody_owns_is_named_by_who_wants_it() {
        let exchange = exchange();
        let parts = [
            boxes(&[[0, 0, 7, 8]]),
            boxes(&[[7, 0, 10, 3]]),
            boxes(&[[7, 4, 10, 8]]),
        ];
        let directory = directory(&exchange, &parts).unwrap();
        let text = receive(&exchange, &directory).unwrap_err().to_string();
        assert!(
            text.starts_with(
                "no rank of the sender owns [7:10, 3:4], which rank 0 of the receiver wants;"
            ),
            "{text}"
        );
    }

    #[test]
    fn overlaps_outside_of_what_is_coupled_do_not_matter() {
        let parts = [boxes(&[[0, 0, 10, 8]]), boxes(&[[0, 0, 2, 8]]), boxes(&[])];
        assert!(directory(&exchange(), &parts).is_ok());
    }

    #[test]
    fn numbers_have_one_owner_and_no_gaps() {
        let from = Side::new(Decomposition::indices(&[3, 4], 2).unwrap());
        let exchange = Exchange::new(
            from,
            Side::new(Decomposition::block(&[3, 4], &[1, 1]).unwrap()),
        )
        .unwrap();
        let parts = [
            Ownership::indices([0, 1, 2, 3, 4, 5]),
            Ownership::indices([5, 6, 7, 8, 9, 10, 11]),
        ];
        let text = directory(&exchange, &parts).unwrap_err().to_string();
        assert!(
            text.starts_with("ranks 0 and 1 of the sender both own [1:2, 1:2];"),
            "{text}"
        );
        let parts = [
            Ownership::indices([0, 1, 2, 3, 4, 5]),
            Ownership::indices([8, 9, 10, 11]),
        ];
        let text = receive(&exchange, &directory(&exchange, &parts).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("no rank of the sender owns [1:2, 2:4], which rank 0"),
            "{text}"
        );
        let parts = [
            Ownership::indices([3, 2, 1, 0, 4, 5]),
            Ownership::indices([8, 9, 7, 6, 10, 11]),
        ];
        assert_eq!(
            receive(&exchange, &directory(&exchange, &parts).unwrap()),
            Ok(12)
        );
        let twice = directory(
            &exchange,
            &[Ownership::indices([3, 2, 3]), Ownership::indices([])],
        )
        .unwrap_err();
        assert!(
            twice
                .to_string()
                .starts_with("rank 0 of the sender owns [0:1, 3:4] twice"),
            "{twice}"
        );
    }

    #[test]
    fn entries_that_cannot_be_are_refused() {
        let mut register = Register::new(exchange());
        let outside = DirectoryEntries::Boxes(vec![(0, Region::new(&[0, 0], &[9, 8]).unwrap())]);
        let text = register.enter(1, &outside).unwrap_err().to_string();
        assert_eq!(
            text,
            "rank 1 tells the directory of the box [0:9, 0:8], but 8 × 8 elements are coupled"
        );
        assert!(register.enter(3, &DirectoryEntries::Boxes(vec![])).is_err());
        assert!(
            register
                .enter(0, &DirectoryEntries::Ranges(vec![]))
                .is_err()
        );
    }

    #[test]
    fn runs_outside_the_domain_are_refused() {
        let from = Side::new(Decomposition::indices(&[9], 2).unwrap());
        let exchange =
            Exchange::new(from, Side::new(Decomposition::block(&[9], &[3]).unwrap())).unwrap();
        let enter = |first, length| {
            Register::new(exchange.clone()).enter(
                1,
                &DirectoryEntries::Ranges(vec![IndexRange { first, length }]),
            )
        };
        assert!(enter(0, 9).is_ok() && enter(8, 1).is_ok());
        for (first, length) in [(0, 10), (8, 2), (9, 1), (3, 0)] {
            let error = enter(first, length).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{length} elements from {first} on")),
                "{error}"
            );
        }
    }
}
