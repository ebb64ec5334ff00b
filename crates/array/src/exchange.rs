//! Two arrays that are coupled: how their sides fit, and who exchanges what with whom.

use crate::decomposition::Rule;
use crate::{Dims, Error, Side};

/// What a rank is in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It sends what it owns.
    Sender,
    /// It receives what it wants.
    Receiver,
}

/// A coupled pair of arrays: what the sender's region has goes to the receiver's region, element by element.
///
/// Between two regular decompositions every rank calls [`Exchange::schedule`], and no rank asks another one. Else
///
/// 1. if [`Exchange::needs_directory`] (the sender is irregular), each rank of the sender tells the directory what it owns
///    ([`Exchange::entries`]), and once all have, each rank of the receiver asks it ([`Exchange::queries`]);
/// 2. each rank of the receiver makes its schedule from the answers ([`Exchange::receiving`]) and tells its partners what it wants
///    from them;
/// 3. each rank of the sender makes its own from these ([`Exchange::sending`]). How many wants will come it cannot know by itself: the
///    ranks of the receiver count them, or say when all are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub(crate) from: Side,
    pub(crate) to: Side,
    /// The extents of both regions.
    pub(crate) domain: Dims,
}

impl Exchange {
    /// Refuses sides that do not fit each other.
    pub fn new(from: Side, to: Side) -> Result<Self, Error> {
        from.check("the sender")?;
        to.check("the receiver")?;
        let (domain, other) = (from.region.extents(), to.region.extents());
        if domain != other {
            return Err(Error::Mismatch(format!(
                "the sender couples {domain} elements ({}), the receiver {other} ({}); give both the same extents, by their \
                 regions or their shapes",
                from.region, to.region
            )));
        }
        Ok(Self { from, to, domain })
    }

    /// The sender's side.
    pub fn from(&self) -> &Side {
        &self.from
    }

    /// The receiver's side.
    pub fn to(&self) -> &Side {
        &self.to
    }

    /// How many elements are coupled.
    pub fn elements(&self) -> u64 {
        self.domain.volume()
    }

    /// Whether each rank finds its partners alone, by [`Exchange::schedule`].
    pub fn is_regular(&self) -> bool {
        self.from.decomposition.is_regular() && self.to.decomposition.is_regular()
    }

    /// Whether receivers must ask who owns what.
    pub fn needs_directory(&self) -> bool {
        !self.from.decomposition.is_regular()
    }

    /// Whether elements are found by their numbers, since a side has no boxes.
    pub(crate) fn by_numbers(&self) -> bool {
        [&self.from, &self.to]
            .iter()
            .any(|side| side.decomposition.rule == Rule::Indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Order, Region, Spread};

    fn side(shape: &[u64], grid: &[u32]) -> Side {
        Side::new(Decomposition::block(shape, grid).unwrap())
    }

    #[test]
    fn rows_to_columns() {
        let exchange = Exchange::new(side(&[8, 8], &[2, 1]), side(&[8, 8], &[1, 4])).unwrap();
        let sending = exchange.schedule(Role::Sender, 1).unwrap();
        let partners: Vec<_> = sending
            .partners()
            .map(|partner| (partner.rank, partner.elements))
            .collect();
        assert_eq!(partners, [(0, 8), (1, 8), (2, 8), (3, 8)]);
        let receiving = exchange.schedule(Role::Receiver, 3).unwrap();
        assert_eq!(
            receiving
                .partners()
                .map(|partner| partner.rank)
                .collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!((sending.elements(), receiving.elements()), (32, 16));
        assert_eq!((sending.find(2), sending.find(4)), (Some(2), None));
    }

    #[test]
    fn ranks_beyond_the_grid_and_outside_the_region_have_no_partners() {
        let spread = [Spread::Block];
        let wide = Side::new(Decomposition::regular(&[8], &[4], &spread, Order::C, 6).unwrap());
        let half = wide.clone().region(Region::new(&[0], &[4]).unwrap());
        let exchange = Exchange::new(half, side(&[4], &[1])).unwrap();
        let partners = |rank| exchange.schedule(Role::Sender, rank).unwrap().count();
        assert_eq!([0, 1, 2, 3, 4, 5].map(partners), [1, 1, 0, 0, 0, 0]);
        let error = exchange.schedule(Role::Sender, 6).unwrap_err();
        assert_eq!(error.to_string(), "rank 6 of a decomposition over 6 ranks");
    }

    #[test]
    fn sides_that_do_not_fit_are_refused_with_what_they_couple() {
        let text = |from, to| Exchange::new(from, to).unwrap_err().to_string();
        let message = text(side(&[8, 8], &[1, 1]), side(&[8, 9], &[1, 1]));
        assert!(
            message.starts_with(
                "the sender couples 8 × 8 elements ([0:8, 0:8]), the receiver 8 × 9 ("
            ),
            "{message}"
        );
        let outside = side(&[8, 8], &[1, 1]).region(Region::new(&[4, 4], &[9, 8]).unwrap());
        let message = text(side(&[8, 8], &[1, 1]), outside);
        assert!(
            message.starts_with("the receiver couples the region [4:9, 4:8], which does not lie"),
            "{message}"
        );
        assert!(text(side(&[8, 8], &[1, 1]), side(&[64], &[1])).contains("8 × 8 elements"));
    }
}
