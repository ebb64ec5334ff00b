//! How often a rank has sent or received each field: all ranks send and receive as often as rank 0.
//!
//! There may be many fields, and few of them change between two calls that all ranks make together.
//! So rank 0 tells with each such call the counts that have changed, and a rank compares those and
//! the counts that have changed at the rank itself.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use titin_array::Role;
use titin_wire::ranks::FieldSteps;

use crate::{Error, Kind};

/// How often this rank has sent or received a field.
pub(crate) struct FieldCount {
    /// The name of the port.
    name: Arc<str>,
    role: Role,
    /// The number of the field, in the order of the declarations.
    number: AtomicU32,
    /// Includes an unfinished send, and the steps without a coupling in the description.
    steps: AtomicU64,
    /// The count of rank 0, as rank 0 has told last.
    at_rank_0: AtomicU64,
    /// Whether the count is in the list of changed counts.
    is_listed: AtomicBool,
}

impl FieldCount {
    pub(crate) fn new(name: Arc<str>, role: Role) -> Self {
        FieldCount {
            name,
            role,
            number: AtomicU32::new(0),
            steps: AtomicU64::new(0),
            at_rank_0: AtomicU64::new(0),
            is_listed: AtomicBool::new(false),
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, steps: u64) {
        self.steps.store(steps, Ordering::Relaxed);
    }

    /// The error of a rank that has sent or received the field more or less often than another
    /// rank.
    pub(crate) fn unequal_error(
        &self,
        (rank, made): (u32, u64),
        (other, theirs): (u32, impl Display),
    ) -> Error {
        let (did, todo) = match self.role {
            Role::Sender => ("sent", "send, and withdraw,"),
            Role::Receiver => ("received", "receive"),
        };
        let text = format!(
            "field on port '{}': rank {rank} has {did} it {made} times, and rank {other} {theirs} times: all ranks {todo} as often as \
             rank 0",
            self.name
        );
        Error::new(Kind::CallOrder, text)
    }
}

/// The counts of all fields.
#[derive(Default)]
pub(crate) struct FieldCounts {
    /// In the order of the declarations.
    fields: RwLock<Vec<Arc<FieldCount>>>,
    /// At rank 0 the fields whose counts have changed since rank 0 has told them. At another rank
    /// the fields whose counts have changed, here or at rank 0, since they were equal.
    changed: Mutex<ChangedCounts>,
}

/// Each count at most once, in the order of the changes.
type ChangedCounts = Vec<Arc<FieldCount>>;

impl FieldCounts {
    pub(crate) fn push(&self, count: Arc<FieldCount>) {
        let mut fields = self.fields.write().expect("never poisoned");
        count.number.store(fields.len() as u32, Ordering::Relaxed);
        fields.push(count);
    }

    /// Notes that a count has changed.
    pub(crate) fn note(&self, count: &Arc<FieldCount>) {
        let mut changed = self.changed();
        if !count.is_listed.swap(true, Ordering::Relaxed) {
            changed.push(count.clone());
        }
    }

    /// Takes each count off the list of changed counts, unless `stays` is true for the count.
    fn unlist(&self, mut stays: impl FnMut(&FieldCount) -> bool) -> MutexGuard<'_, ChangedCounts> {
        let mut changed = self.changed();
        changed.retain(|count| {
            let stays = stays(count);
            count.is_listed.store(stays, Ordering::Relaxed);
            stays
        });
        changed
    }

    fn changed(&self) -> MutexGuard<'_, ChangedCounts> {
        self.changed.lock().expect("never poisoned")
    }

    /// At rank 0, the counts to tell.
    pub(crate) fn news(&self) -> Vec<(u32, u64)> {
        let news = |count: &Arc<FieldCount>| (count.number.load(Ordering::Relaxed), count.steps());
        self.changed().iter().map(news).collect()
    }

    /// At rank 0, notes that all ranks have been told the news. A count that has changed meanwhile
    /// stays in the list, and a new count is behind the counts of the news.
    pub(crate) fn told(&self, news: &[(u32, u64)]) {
        let mut told = news.iter();
        drop(self.unlist(|count| told.next().is_none_or(|(_, told)| *told != count.steps())));
    }

    /// At another rank, takes in what rank 0 has told: the counts that have changed, and from an
    /// older release the counts of all fields.
    pub(crate) fn hear(&self, news: &[(u32, u64)], all: &FieldSteps) {
        let fields = self.fields.read().expect("never poisoned");
        let all = all.0.iter().enumerate();
        let all = all.map(|(number, steps)| (number, *steps));
        let news = news
            .iter()
            .map(|(number, steps)| (*number as usize, *steps));
        for (number, steps) in news.chain(all) {
            if let Some(count) = fields.get(number)
                && count.at_rank_0.swap(steps, Ordering::Relaxed) != steps
            {
                self.note(count);
            }
        }
    }

    /// At another rank, the error if a count is not that of rank 0.
    pub(crate) fn error_if_unequal_to_rank_0(&self, own: u32) -> Option<Error> {
        let at_rank_0 = |count: &FieldCount| count.at_rank_0.load(Ordering::Relaxed);
        let changed = self.unlist(|count| at_rank_0(count) != count.steps());
        let first = changed
            .iter()
            .min_by_key(|count| count.number.load(Ordering::Relaxed))?;
        Some(first.unequal_error((own, first.steps()), (0, at_rank_0(first))))
    }

    /// All counts, as a rank that closes tells the rank above.
    pub(crate) fn to_tell(&self) -> FieldSteps {
        let counts = self.fields.read().expect("never poisoned");
        FieldSteps(counts.iter().map(|count| count.steps()).collect())
    }

    /// The error for the first field for which `is_wrong` is true of the two counts: the count of
    /// the closed rank below and the count of this rank.
    pub(crate) fn error_if_unequal(
        &self,
        own: u32,
        (rank, theirs): (u32, &FieldSteps),
        is_wrong: impl Fn(u64, u64) -> bool,
    ) -> Option<Error> {
        let counts = self.fields.read().expect("never poisoned");
        let mut pairs = counts.iter().zip(&theirs.0);
        let (count, theirs) = pairs.find(|(count, theirs)| is_wrong(**theirs, count.steps()))?;
        Some(count.unequal_error((rank, *theirs), (own, count.steps())))
    }

    /// The error for a closed rank with another number of declared fields.
    pub(crate) fn error_if_unequal_number(
        &self,
        own: u32,
        (rank, theirs): (u32, &FieldSteps),
    ) -> Option<Error> {
        let ours = self.fields.read().expect("never poisoned").len();
        let theirs = theirs.0.len();
        let text = || {
            format!(
                "rank {rank} has closed with {theirs} fields, and rank {own} has {ours}: all ranks declare the same ones"
            )
        };
        (theirs != ours).then(|| Error::new(Kind::CallOrder, text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank with `fields` fields.
    fn rank(fields: usize) -> (FieldCounts, Vec<Arc<FieldCount>>) {
        let name = |number: usize| format!("f{number}").into();
        let count = |number| Arc::new(FieldCount::new(name(number), Role::Sender));
        let (counts, fields) = (FieldCounts::default(), (0..fields).map(count).collect());
        for field in &fields {
            let field: &Arc<FieldCount> = field;
            counts.push(field.clone());
        }
        (counts, fields)
    }

    fn step(counts: &FieldCounts, field: &Arc<FieldCount>) {
        field.set(field.steps() + 1);
        counts.note(field);
    }

    #[test]
    fn a_count_is_told_once_it_has_changed() {
        let (counts, fields) = rank(100);
        assert_eq!(counts.news(), []);
        for number in [7, 3, 7] {
            step(&counts, &fields[number]);
        }
        let news = counts.news();
        assert_eq!(news, [(7, 2), (3, 1)]);
        // One of them changes while the others are told, and one that is not among them.
        step(&counts, &fields[3]);
        step(&counts, &fields[9]);
        counts.told(&news);
        assert_eq!(counts.news(), [(3, 2), (9, 1)]);
        // A count that was told changes again.
        step(&counts, &fields[7]);
        assert_eq!(counts.news(), [(3, 2), (9, 1), (7, 3)]);
    }

    #[test]
    fn a_difference_is_noticed_whichever_rank_has_changed() {
        let (counts, fields) = rank(100);
        let all = FieldSteps::default();
        let text =
            |counts: &FieldCounts| counts.error_if_unequal_to_rank_0(5).map(|error| error.text);
        step(&counts, &fields[4]);
        counts.hear(&[(4, 1)], &all);
        assert_eq!(text(&counts), None);
        // Rank 0 alone, then this rank alone.
        counts.hear(&[(9, 1)], &all);
        let found = text(&counts).unwrap();
        assert!(
            found.contains("'f9': rank 5 has sent it 0 times, and rank 0 1 times"),
            "{found}"
        );
        step(&counts, &fields[9]);
        assert_eq!(text(&counts), None);
        for number in [80, 2] {
            step(&counts, &fields[number]);
        }
        counts.hear(&[(80, 1)], &all);
        assert!(text(&counts).unwrap().contains("'f2'"));
        assert!(text(&counts).unwrap().contains("'f2'"), "it stays");
        // A number that this rank has not declared.
        counts.hear(&[(2, 1), (1000, 1)], &all);
        assert_eq!(text(&counts), None);
    }

    #[test]
    fn the_counts_of_all_fields_are_read_from_an_older_release() {
        let (counts, fields) = rank(3);
        step(&counts, &fields[1]);
        counts.hear(&[], &FieldSteps(vec![0, 1, 0]));
        assert!(counts.error_if_unequal_to_rank_0(1).is_none());
        counts.hear(&[], &FieldSteps(vec![0, 1, 1]));
        assert!(counts.error_if_unequal_to_rank_0(1).is_some());
    }
}
