//! One rank's share of the directory: who owns what, and the answers to who wants it.

use crate::numbers::twice;
use crate::tree::Tree;
use crate::{Answer, Entries, Error, Exchange, Overlap, OwnedBox, Region, Run};

/// Takes what the ranks of the sender tell this rank of the directory, until all have.
#[derive(Debug)]
pub struct Register {
    exchange: Exchange,
    boxes: Vec<OwnedBox>,
    runs: Vec<(u32, Run)>,
}

/// Answers the ranks of the receiver.
#[derive(Debug)]
pub struct Directory {
    exchange: Exchange,
    boxes: Vec<OwnedBox>,
    tree: Tree,
    runs: Vec<(u32, Run)>,
}

impl Register {
    /// Nobody has told anything yet.
    pub fn new(exchange: Exchange) -> Self {
        Self {
            exchange,
            boxes: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// What a rank of the sender owns.
    pub fn enter(&mut self, rank: u32, entries: &Entries) -> Result<(), Error> {
        let ranks = self.exchange.from.decomposition.ranks();
        if rank >= ranks {
            return Err(Error::Broken(format!(
                "entries of rank {rank}; the sender has {ranks} ranks"
            )));
        }
        check(&self.exchange, rank, entries)?;
        match entries {
            Entries::Boxes(boxes) => {
                let owned = boxes.iter().map(|(place, region)| OwnedBox {
                    rank,
                    place: *place,
                    region: *region,
                });
                self.boxes.extend(owned);
            }
            Entries::Runs(runs) => self.runs.extend(runs.iter().map(|run| (rank, *run))),
        }
        Ok(())
    }

    /// Once all have told: the directory, unless elements have two owners.
    pub fn directory(mut self) -> Result<Directory, Error> {
        self.runs.sort_unstable_by_key(|(rank, run)| (*run, *rank));
        twice(&self.exchange, &self.runs)?;
        // A box that is told again is no second one.
        self.boxes.sort_unstable();
        self.boxes.dedup();
        let regions: Vec<_> = self.boxes.iter().map(|entry| entry.region).collect();
        let tree = Tree::new(&regions);
        let mut overlaps = Vec::new();
        'boxes: for (number, one) in self.boxes.iter().enumerate() {
            let mut hits = tree.hits(&one.region);
            hits.sort_unstable();
            for other in hits
                .iter()
                .map(|hit| *hit as usize)
                .filter(|hit| *hit > number)
            {
                let other = &self.boxes[other];
                let shared = one.region.intersection(&other.region).expect("a hit");
                let region = self.exchange.from.outside(&shared);
                overlaps.push(Overlap {
                    ranks: [one.rank, other.rank],
                    region,
                });
                if overlaps.len() > crate::error::MOST_NAMED {
                    break 'boxes;
                }
            }
        }
        if !overlaps.is_empty() {
            return Err(Error::Overlap(overlaps));
        }
        Ok(Directory {
            exchange: self.exchange,
            boxes: self.boxes,
            tree,
            runs: self.runs,
        })
    }
}

impl Directory {
    /// Who owns what a rank of the receiver asks for. What nobody owns is left out: the receiver notices.
    pub fn answer(&self, rank: u32, asked: &Entries) -> Result<Answer, Error> {
        check(&self.exchange, rank, asked)?;
        Ok(match asked {
            Entries::Boxes(boxes) => {
                let mut hits: Vec<u32> = boxes
                    .iter()
                    .flat_map(|(_, region)| self.tree.hits(region))
                    .collect();
                hits.sort_unstable();
                hits.dedup();
                Answer::Boxes(hits.iter().map(|hit| self.boxes[*hit as usize]).collect())
            }
            Entries::Runs(runs) => {
                let mut found = Vec::new();
                for run in runs {
                    let after = self
                        .runs
                        .partition_point(|(_, owned)| owned.end() <= run.first);
                    let owned = self.runs[after..]
                        .iter()
                        .take_while(|(_, owned)| owned.first < run.end());
                    found.extend(owned.map(|(rank, owned)| {
                        let (first, end) = (owned.first.max(run.first), owned.end().min(run.end()));
                        (
                            *rank,
                            Run {
                                first,
                                length: end - first,
                            },
                        )
                    }));
                }
                Answer::Runs(found)
            }
        })
    }
}

/// Whether entries or queries can be about this exchange.
fn check(exchange: &Exchange, rank: u32, entries: &Entries) -> Result<(), Error> {
    let wrong = match entries {
        Entries::Boxes(_) | Entries::Runs(_)
            if exchange.by_numbers() != matches!(entries, Entries::Runs(_)) =>
        {
            Some("the wrong kind of elements".into())
        }
        Entries::Boxes(boxes) => {
            let domain = Region::whole(&exchange.domain)?;
            let outside = boxes
                .iter()
                .find(|(_, region)| region.is_empty() || !domain.covers(region));
            outside.map(|(_, region)| format!("the box {region}"))
        }
        Entries::Runs(runs) => {
            let outside = runs
                .iter()
                .find(|run| run.length == 0 || run.end() > exchange.elements());
            outside.map(|Run { first, length }| format!("{length} elements from {first} on"))
        }
    };
    match wrong {
        None => Ok(()),
        Some(what) => Err(Error::Broken(format!(
            "rank {rank} tells the directory of {what}, but {} elements are coupled",
            exchange.domain
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Parts, Side};

    fn boxes(list: &[[u64; 4]]) -> Parts {
        Parts::Boxes(
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

    /// A directory on one rank, told of each rank's parts.
    fn directory(exchange: &Exchange, parts: &[Parts]) -> Result<Directory, Error> {
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
        let queries = exchange.queries(0, &Parts::Rule, &exchange.map(1)).unwrap();
        let answers = queries
            .iter()
            .map(|(_, query)| directory.answer(0, query))
            .collect::<Result<_, _>>()?;
        exchange
            .receiving(0, &Parts::Rule, answers)
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
            Parts::indices([0, 1, 2, 3, 4, 5]),
            Parts::indices([5, 6, 7, 8, 9, 10, 11]),
        ];
        let text = directory(&exchange, &parts).unwrap_err().to_string();
        assert!(
            text.starts_with("ranks 0 and 1 of the sender both own [1:2, 1:2];"),
            "{text}"
        );
        let parts = [
            Parts::indices([0, 1, 2, 3, 4, 5]),
            Parts::indices([8, 9, 10, 11]),
        ];
        let text = receive(&exchange, &directory(&exchange, &parts).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("no rank of the sender owns [1:2, 2:4], which rank 0"),
            "{text}"
        );
        let parts = [
            Parts::indices([3, 2, 1, 0, 4, 5]),
            Parts::indices([8, 9, 7, 6, 10, 11]),
        ];
        assert_eq!(
            receive(&exchange, &directory(&exchange, &parts).unwrap()),
            Ok(12)
        );
        let twice =
            directory(&exchange, &[Parts::indices([3, 2, 3]), Parts::indices([])]).unwrap_err();
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
        let outside = Entries::Boxes(vec![(0, Region::new(&[0, 0], &[9, 8]).unwrap())]);
        let text = register.enter(1, &outside).unwrap_err().to_string();
        assert_eq!(
            text,
            "rank 1 tells the directory of the box [0:9, 0:8], but 8 × 8 elements are coupled"
        );
        assert!(register.enter(3, &Entries::Boxes(vec![])).is_err());
        assert!(register.enter(0, &Entries::Runs(vec![])).is_err());
    }

    #[test]
    fn runs_outside_the_domain_are_refused() {
        let from = Side::new(Decomposition::indices(&[9], 2).unwrap());
        let exchange =
            Exchange::new(from, Side::new(Decomposition::block(&[9], &[3]).unwrap())).unwrap();
        let enter = |first, length| {
            Register::new(exchange.clone()).enter(1, &Entries::Runs(vec![Run { first, length }]))
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
