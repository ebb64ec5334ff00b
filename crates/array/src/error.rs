//! Errors, by the remedy of the caller.

use std::fmt;

use crate::{Invalid, Region};

/// The most items that a message names; it counts the others.
pub(crate) const MOST_NAMED: usize = 4;

/// Why a decomposition, a schedule or a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A declaration of the program is wrong: correct the declaration.
    #[error("{0}")]
    Invalid(String),
    /// Each side is right, but the two sides do not fit each other: correct one side.
    #[error("{0}")]
    Mismatch(String),
    /// Elements that several ranks of the sender own, or one rank owns twice.
    #[error(
        "{}; every element of a sender's array has one owner: correct the boxes or indices that these ranks declare",
        FirstFew(.0)
    )]
    Overlap(Vec<Overlap>),
    /// Elements that a receiver wants and no sender owns.
    #[error(
        "{}; let a rank of the sender declare these elements, or couple a region that leaves them out",
        FirstFew(.0)
    )]
    Gap(Vec<Gap>),
    /// The memory of an array does not fit the layout.
    #[error("{0}")]
    Memory(String),
    /// Bytes or a request that no peer of titin sends.
    #[error("{0}")]
    Broken(String),
}

impl From<Invalid> for Error {
    fn from(Invalid(why): Invalid) -> Self {
        Error::Invalid(why)
    }
}

/// Elements that two ranks of the sender own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The owners; the same rank twice if a rank declares the elements twice.
    pub ranks: [u32; 2],
    /// The common elements, in the sender's array.
    pub region: Region,
}

/// Elements that a receiver wants and no rank owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The rank that wants the elements.
    pub rank: u32,
    /// The missing elements, in the sender's array.
    pub region: Region,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.ranks;
        if one == other {
            write!(f, "rank {one} of the sender owns {} twice", self.region)
        } else {
            write!(
                f,
                "ranks {one} and {other} of the sender both own {}",
                self.region
            )
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no rank of the sender owns {}, which rank {} of the receiver wants",
            self.region, self.rank
        )
    }
}

/// The text of a list: the first few items, and the number of all others.
struct FirstFew<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for FirstFew<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, item) in self.0.iter().take(MOST_NAMED).enumerate() {
            write!(f, "{}{item}", if number > 0 { "; " } else { "" })?;
        }
        match self.0.len().saturating_sub(MOST_NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_ranks_and_regions_and_count_the_rest() {
        let region = Region::new(&[0, 2], &[4, 8]).unwrap();
        let overlap = Overlap {
            ranks: [3, 5],
            region,
        };
        let text = Error::Overlap(vec![overlap; 6]).to_string();
        assert!(
            text.starts_with("ranks 3 and 5 of the sender both own [0:4, 2:8]; "),
            "{text}"
        );
        assert!(text.contains("and 2 more; every element"), "{text}");
        let text = Error::Gap(vec![Gap { rank: 1, region }]).to_string();
        assert!(
            text.starts_with(
                "no rank of the sender owns [0:4, 2:8], which rank 1 of the receiver wants;"
            ),
            "{text}"
        );
    }
}
