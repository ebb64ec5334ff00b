//! The schedules of all ranks in one process, for pictures and tools.

use crate::{
    Directory, DirectoryMap, ElementRequest, Error, Exchange, Ownership, Register, Role, Schedule,
};

impl Exchange {
    /// Hands the schedule of each rank of the sender to `take`, by rank, until `take` returns
    /// false. `from` and `to` have the ownership of all ranks of each side; for a regular side they
    /// are empty.
    pub fn every_sender(
        &self,
        from: &[Ownership],
        to: &[Ownership],
        mut take: impl FnMut(u32, Schedule) -> bool,
    ) -> Result<(), Error> {
        let senders = 0..self.from().decomposition.ranks();
        if self.is_regular() {
            for rank in senders {
                if !take(rank, self.schedule(Role::Sender, rank)?) {
                    break;
                }
            }
            return Ok(());
        }
        let requests = self.requests_to_all(from, to)?;
        for (rank, requests) in senders.zip(&requests) {
            if !take(rank, self.sending(rank, &of_rank(from, rank), requests)?) {
                break;
            }
        }
        Ok(())
    }

    /// The requests of all ranks of the receiver, for each rank of the sender.
    fn requests_to_all(
        &self,
        from: &[Ownership],
        to: &[Ownership],
    ) -> Result<Vec<Vec<(u32, ElementRequest)>>, Error> {
        // A directory on one rank knows all elements.
        let map = self.map(1);
        let directory = self.full_directory(from, &map)?;
        let mut requests = vec![Vec::new(); self.from().decomposition.ranks() as usize];
        for rank in 0..self.to().decomposition.ranks() {
            let own = of_rank(to, rank);
            let mut answers = Vec::new();
            if self.needs_directory() {
                for (_, query) in self.queries(rank, &own, &map)? {
                    answers.push(directory.answer(rank, &query)?);
                }
            }
            for (sender, request) in self.receiving(rank, &own, answers)?.1 {
                requests[sender as usize].push((rank, request));
            }
        }
        Ok(requests)
    }

    /// A directory with the elements of all ranks of an irregular sender; an empty one for a
    /// regular sender.
    fn full_directory(&self, from: &[Ownership], map: &DirectoryMap) -> Result<Directory, Error> {
        let mut register = Register::new(self.clone());
        if self.needs_directory() {
            for rank in 0..self.from().decomposition.ranks() {
                for (_, entries) in self.entries(rank, &of_rank(from, rank), map)? {
                    register.enter(rank, &entries)?;
                }
            }
        }
        register.directory()
    }
}

fn of_rank(ownership: &[Ownership], rank: u32) -> Ownership {
    ownership.get(rank as usize).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Region, Side};

    fn table(
        from: (Decomposition, &[Ownership]),
        to: (Decomposition, &[Ownership]),
    ) -> Result<Vec<(u32, u32, u64)>, Error> {
        let mut found = Vec::new();
        let exchange = Exchange::new(Side::new(from.0), Side::new(to.0))?;
        exchange.every_sender(from.1, to.1, |rank, schedule| {
            found.extend(
                schedule
                    .partners()
                    .map(|partner| (rank, partner.rank, partner.elements)),
            );
            found.len() < 5
        })?;
        Ok(found)
    }

    #[test]
    fn any_way_to_say_who_owns_what_gives_the_same() {
        let rows = || Decomposition::block(&[4, 6], &[2, 1]).unwrap();
        let columns = || Decomposition::block(&[4, 6], &[1, 2]).unwrap();
        let boxes = || Decomposition::boxes(&[4, 6], 2).unwrap();
        let region = |lower: [u64; 2], upper: [u64; 2]| {
            Ownership::Boxes(vec![Region::new(&lower, &upper).unwrap()])
        };
        let by_rows = [region([0, 0], [2, 6]), region([2, 0], [4, 6])];
        let by_columns = [region([0, 0], [4, 3]), region([0, 3], [4, 6])];
        let expected = vec![(0, 0, 6), (0, 1, 6), (1, 0, 6), (1, 1, 6)];
        assert_eq!(table((rows(), &[]), (columns(), &[])).unwrap(), expected);
        assert_eq!(
            table((boxes(), &by_rows), (columns(), &[])).unwrap(),
            expected
        );
        assert_eq!(
            table((rows(), &[]), (boxes(), &by_columns)).unwrap(),
            expected
        );
        let listed = [Ownership::indices(0..12), Ownership::indices(12..24)];
        let indices = Decomposition::indices(&[4, 6], 2).unwrap();
        assert_eq!(
            table((indices, &listed), (boxes(), &by_columns)).unwrap(),
            expected
        );
        let gap = table((boxes(), &by_rows[..1]), (columns(), &[])).unwrap_err();
        assert!(
            gap.to_string().contains("declares no boxes") || matches!(gap, Error::Gap(_)),
            "{gap}"
        );
    }

    #[test]
    fn who_has_seen_enough_gets_no_more() {
        let rows = Decomposition::block(&[9, 9], &[9, 1]).unwrap();
        let columns = Decomposition::block(&[9, 9], &[1, 3]).unwrap();
        assert_eq!(table((rows, &[]), (columns, &[])).unwrap().len(), 6);
    }
}
