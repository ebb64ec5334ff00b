//! Two arrays that are coupled: how their sides fit, and who exchanges what with whom.

use crate::comb::{Axis, Clip, Comb};
use crate::decomposition::Rule;
use crate::list::{Builder, List};
use crate::local::shapes;
use crate::product::Product;
use crate::schedule::{Partner, Piece, Shared};
use crate::{Decomposition, Dims, Error, Map, Order, Parts, Region, Schedule, Wants};

/// One side of a coupled array, as its ranks describe it to the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Who owns what.
    pub decomposition: Decomposition,
    /// What of the array is coupled.
    pub region: Region,
    /// The order of elements in memory. Messages come in the receiver's; with indices it says also how elements of an array of
    /// several dimensions are numbered.
    pub order: Order,
}

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

impl Side {
    /// The whole of an array, in C order.
    pub fn new(decomposition: Decomposition) -> Self {
        let region = Region::whole(decomposition.shape()).expect("a shape that has been checked");
        Self {
            decomposition,
            region,
            order: Order::C,
        }
    }

    /// Only this region of it.
    pub fn region(mut self, region: Region) -> Self {
        self.region = region;
        self
    }

    /// In this order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Refuses a region that does not lie in the array; `who` couples it.
    pub fn check(&self, who: &str) -> Result<(), Error> {
        let (shape, region) = (self.decomposition.shape(), self.region);
        if region.lower().len() == shape.len() && Region::whole(shape)?.covers(&region) {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{who} couples the region {region}, which does not lie in its array of {shape}; correct the region"
        )))
    }

    pub(crate) fn clip(&self, dim: usize) -> Clip {
        let lower = self.region.lower()[dim];
        Clip {
            lower,
            extent: self.region.upper()[dim] - lower,
        }
    }

    /// A box of the domain, as a box of this array.
    pub(crate) fn outside(&self, region: &Region) -> Region {
        let by = Dims::from_fn(region.lower().len(), |dim| self.region.lower()[dim] as i64);
        region
            .shift(&by)
            .expect("a box of the domain lies in the array")
    }
}

/// One of a rank's arrays with what is coupled of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    pub block: u32,
    pub combs: Dims<Comb>,
}

impl Owned {
    /// The smallest box of the domain around it.
    pub fn hull(&self) -> Region {
        Region::from_fn(self.combs.len(), |dim| {
            (self.combs[dim].lower, self.combs[dim].upper)
        })
    }

    pub fn elements(&self) -> u64 {
        self.combs.iter().map(Comb::count).product()
    }
}

impl Side {
    /// What a rank has in the domain: nothing, one product, or its boxes. Empty ones are left out.
    pub(crate) fn owned(&self, rank: u32, parts: &Parts) -> Vec<Owned> {
        let dims = self.region.lower().len();
        let owned = match (&self.decomposition.rule, parts) {
            (Rule::Regular(grid), _) => {
                let place = self.decomposition.coordinates(rank);
                let part = place.map(|place| {
                    let comb =
                        |dim: usize| Comb::of(&grid.dimensions[dim], place[dim], self.clip(dim));
                    Owned {
                        block: 0,
                        combs: Dims::from_fn(dims, comb),
                    }
                });
                part.into_iter().collect()
            }
            (Rule::Boxes, Parts::Boxes(boxes)) => {
                let part = |(block, region): (usize, &Region)| {
                    let comb = |dim: usize| {
                        Comb::piece(self.clip(dim), region.lower()[dim], region.upper()[dim])
                    };
                    Owned {
                        block: block as u32,
                        combs: Dims::from_fn(dims, comb),
                    }
                };
                boxes.iter().enumerate().map(part).collect()
            }
            _ => Vec::new(),
        };
        owned
            .into_iter()
            .filter(|part| part.elements() > 0)
            .collect()
    }
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

    /// How the directory of this exchange is divided among that many ranks.
    pub fn map(&self, ranks: u32) -> Map {
        Map::new(&self.domain, self.by_numbers(), ranks)
    }

    /// The schedule of a rank between two regular decompositions, in closed form: the time grows with the processes that it meets,
    /// and the pieces that it has, along each dimension by itself; not with the array, nor with the number of partners.
    pub fn schedule(&self, role: Role, rank: u32) -> Result<Schedule, Error> {
        if !self.is_regular() {
            return Err(Error::Invalid(
                "a side is irregular: its ranks must tell what they own or want".into(),
            ));
        }
        let (own, other) = self.sides(role);
        let shapes = shapes(&own.decomposition, rank, &Parts::Rule)?;
        let product = own
            .owned(rank, &Parts::Rule)
            .first()
            .and_then(|part| Product::new(part, other));
        let shared = product.map_or_else(|| Shared::List(List::default()), Shared::Product);
        Ok(Schedule {
            order: self.to.order,
            shapes,
            shared,
        })
    }

    /// The schedule of a rank of the receiver, and what to tell to each of its partners (nobody, between regular ones). `answers`
    /// are those of the directory; none if there is none.
    pub fn receiving(
        &self,
        rank: u32,
        parts: &Parts,
        answers: Vec<crate::Answer>,
    ) -> Result<(Schedule, Vec<(u32, Wants)>), Error> {
        parts.check(&self.to.decomposition, rank)?;
        if self.is_regular() {
            return Ok((self.schedule(Role::Receiver, rank)?, Vec::new()));
        }
        if self.by_numbers() {
            crate::numbers::receiving(self, rank, parts, answers)
        } else {
            crate::boxes::receiving(self, rank, parts, answers)
        }
    }

    /// The schedule of a rank of the sender, from what the ranks of the receiver have told it (between regular ones nothing needs to
    /// be told).
    pub fn sending(
        &self,
        rank: u32,
        parts: &Parts,
        wants: &[(u32, Wants)],
    ) -> Result<Schedule, Error> {
        parts.check(&self.from.decomposition, rank)?;
        let ranks = self.to.decomposition.ranks();
        if let Some((receiver, _)) = wants.iter().find(|(receiver, _)| *receiver >= ranks) {
            return Err(Error::Broken(format!(
                "a want of rank {receiver}; the receiver has {ranks} ranks"
            )));
        }
        if self.is_regular() {
            return self.schedule(Role::Sender, rank);
        }
        if self.by_numbers() {
            crate::numbers::sending(self, rank, parts, wants)
        } else {
            crate::boxes::sending(self, rank, parts, wants)
        }
    }

    /// Whether elements are found by their numbers, since a side has no boxes.
    pub(crate) fn by_numbers(&self) -> bool {
        [&self.from, &self.to]
            .iter()
            .any(|side| side.decomposition.rule == Rule::Indices)
    }

    /// Own and other side.
    fn sides(&self, role: Role) -> (&Side, &Side) {
        match role {
            Role::Sender => (&self.from, &self.to),
            Role::Receiver => (&self.to, &self.from),
        }
    }
}

/// All that one of a rank's arrays shares with the ranks of a regular side. `partner` hears of each of these ranks.
pub(crate) fn by_rule(
    builder: &mut Builder,
    part: &Owned,
    other: &Side,
    mut partner: impl FnMut(u32),
) {
    let Some(product) = Product::new(part, other) else {
        return;
    };
    let before = builder.axes.len() as u32;
    for (place, Partner { rank, elements }) in product.partners().enumerate() {
        let mut piece = product.piece(place);
        piece.axes.iter_mut().for_each(|axis| *axis += before);
        partner(rank);
        builder.piece(rank, piece, elements);
    }
    builder.axes.extend(product.axes);
}

/// What one of a rank's arrays shares with a part of another rank.
pub(crate) fn pair(builder: &mut Builder, part: &Owned, other: &Dims<Comb>, rank: u32) -> u64 {
    let dims = part.combs.len();
    let mut axes: Dims<u32> = Dims::all(dims, 0);
    let (kept, mut elements) = (builder.axes.len(), 1);
    for dim in 0..dims {
        let Some(axis) = crate::comb::meet(&part.combs[dim], &other[dim]) else {
            builder.axes.truncate(kept);
            return 0;
        };
        elements *= Axis::total(&axis);
        axes[dim] = builder.axis(axis);
    }
    builder.piece(
        rank,
        Piece {
            block: part.block,
            axes,
            before: 0,
        },
        elements,
    );
    elements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;

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
