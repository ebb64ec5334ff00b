//! Two coupled arrays, whose sides have to fit each other.

use crate::decomposition::Rule;
use crate::{Dims, Error, Side};

/// The role of a rank in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The rank sends elements that it owns.
    Sender,
    /// The rank receives elements.
    Receiver,
}

/// A coupled pair of arrays: the elements of the sender's region go to the receiver's region.
///
/// Between two regular decompositions every rank calls [`Exchange::schedule`], without a message
/// between ranks. Otherwise
///
/// 1. if the sender is irregular ([`Exchange::needs_directory`]), each rank of the sender gives the
///    directory the elements that the rank owns ([`Exchange::entries`]). After all ranks have, each
///    rank of the receiver asks the directory for the owners of elements ([`Exchange::queries`]);
/// 2. each rank of the receiver makes a schedule from the answers ([`Exchange::receiving`]) and
///    sends a request to each partner;
/// 3. each rank of the sender makes a schedule from the requests ([`Exchange::sending`]). A rank of
///    the sender does not know the number of requests; the ranks of the receiver have to say when
///    all requests are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub(crate) from: Side,
    pub(crate) to: Side,
    /// The extents of both regions.
    pub(crate) domain: Dims,
}

impl Exchange {
    /// An exchange, unless the sides do not fit each other.
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

    /// The number of coupled elements.
    pub fn elements(&self) -> u64 {
        self.domain.volume()
    }

    /// Whether both sides are regular, so that [`Exchange::schedule`] gives all schedules.
    pub fn is_regular(&self) -> bool {
        self.from.decomposition.is_regular() && self.to.decomposition.is_regular()
    }

    /// Whether receivers have to ask a directory for the owners of elements.
    pub fn needs_directory(&self) -> bool {
        !self.from.decomposition.is_regular()
    }

    /// Whether elements are found by their numbers, because a side is by indices.
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
