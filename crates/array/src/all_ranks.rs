//! The schedules of all ranks, found by one process as the ranks would find them together: for pictures, and for tools.

use crate::{Error, Exchange, Ownership, Register, Role, Schedule};

impl Exchange {
    /// Hands the schedule of each rank of the sender to `take`, by rank, until that says `false`. The parts are those of all ranks of
    /// each side; of a regular side there are none.
    pub fn every_sender(
        &self,
        from: &[Ownership],
        to: &[Ownership],
        mut take: impl FnMut(u32, Schedule) -> bool,
    ) -> Result<(), Error> {
        let senders = self.from().decomposition.ranks();
        if self.is_regular() {
            for rank in 0..senders {
                if !take(rank, self.schedule(Role::Sender, rank)?) {
                    break;
                }
            }
            return Ok(());
        }
        let of =
            |parts: &[Ownership], rank: u32| parts.get(rank as usize).cloned().unwrap_or_default();
        // A directory of one rank knows everything.
        let map = self.map(1);
        let mut register = Register::new(self.clone());
        if self.needs_directory() {
            for rank in 0..senders {
                for (_, entries) in self.entries(rank, &of(from, rank), &map)? {
                    register.enter(rank, &entries)?;
                }
            }
        }
        let directory = register.directory()?;
        let mut wanted = vec![Vec::new(); senders as usize];
        for rank in 0..self.to().decomposition.ranks() {
            let (own, mut answers) = (of(to, rank), Vec::new());
            if self.needs_directory() {
                for (_, query) in self.queries(rank, &own, &map)? {
                    answers.push(directory.answer(rank, &query)?);
                }
            }
            let (_, wants) = self.receiving(rank, &own, answers)?;
            wants
                .into_iter()
                .for_each(|(sender, wants)| wanted[sender as usize].push((rank, wants)));
        }
        for (rank, wants) in (0..).zip(&wanted) {
            if !take(rank, self.sending(rank, &of(from, rank), wants)?) {
                break;
            }
        }
        Ok(())
    }
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
