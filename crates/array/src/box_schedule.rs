//! Schedules where a side is irregular and both sides have boxes.

use crate::box_tree::BoxTree;
use crate::error::MOST_NAMED;
use crate::partner_list::PartnerListBuilder;
use crate::side::OwnedProduct;
use crate::strided_indices::{CoupledSpan, StridedIndices};
use crate::{
    Dims, DirectoryAnswer, ElementRequest, Error, Exchange, Gap, Overlap, OwnedBox, Ownership,
    Region, Schedule,
};

/// Makes the schedule of a rank of the receiver; see [`Exchange::receiving`].
pub(crate) fn receiving(
    exchange: &Exchange,
    rank: u32,
    ownership: &Ownership,
    answers: Vec<DirectoryAnswer>,
) -> Result<(Schedule, Vec<(u32, ElementRequest)>), Error> {
    let own = exchange.to.owned(rank, ownership);
    let mut receiver = BoxReceiver {
        exchange,
        rank,
        builder: PartnerListBuilder::default(),
        asked: Vec::new(),
    };
    if exchange.needs_directory() {
        receiver.share_with_boxes(&own, &owned_boxes(exchange, answers)?)?;
    } else {
        receiver.share_with_grid(&own);
    }
    let is_regular = exchange.to.decomposition.is_regular();
    let requests = ElementRequest::by_partner(receiver.asked, |places| {
        if is_regular {
            ElementRequest::Part
        } else {
            ElementRequest::Boxes(places.map(|place| own[place].hull()).collect())
        }
    });
    let list = receiver.builder.finish();
    let schedule = Schedule::with_list(exchange, &exchange.to, rank, ownership, list)?;
    Ok((schedule, requests))
}

/// The schedule of a receiver's rank while it is made.
struct BoxReceiver<'a> {
    exchange: &'a Exchange,
    rank: u32,
    builder: PartnerListBuilder,
    /// Partners, and the places of the rank's own products that they are asked for.
    asked: Vec<(u32, usize)>,
}

impl BoxReceiver<'_> {
    /// Finds the owners of the rank's products in the grid of a regular sender.
    fn share_with_grid(&mut self, own: &[OwnedProduct]) {
        for (place, product) in own.iter().enumerate() {
            let partners = self.builder.add_grid(product, &self.exchange.from);
            self.asked
                .extend(partners.into_iter().map(|partner| (partner, place)));
        }
    }

    /// Finds the owners of the rank's products among boxes, which have to cover each product
    /// exactly.
    fn share_with_boxes(&mut self, own: &[OwnedProduct], boxes: &[OwnedBox]) -> Result<(), Error> {
        let regions: Vec<_> = boxes.iter().map(|owned| owned.region).collect();
        let indices: Vec<_> = regions.iter().map(indices_of).collect();
        let tree = BoxTree::new(&regions);
        for (place, product) in own.iter().enumerate() {
            let mut hits = tree.hits(&product.hull());
            // A message has the boxes by rank and by place, the order of `boxes`.
            hits.sort_unstable();
            let mut elements = 0u64;
            for hit in hits.iter().map(|hit| *hit as usize) {
                let partner = boxes[hit].rank;
                let shared = self.builder.add_product(product, &indices[hit], partner);
                if shared > 0 && self.asked.last() != Some(&(partner, place)) {
                    self.asked.push((partner, place));
                }
                elements = elements.saturating_add(shared);
            }
            if elements != product.elements() {
                let hits = hits.iter().map(|hit| &boxes[*hit as usize]);
                return Err(self.wrong_cover(product, hits));
            }
        }
        Ok(())
    }

    /// The error for a product that the boxes do not cover, or cover more than once.
    fn wrong_cover<'a>(
        &self,
        product: &OwnedProduct,
        boxes: impl Iterator<Item = &'a OwnedBox> + Clone,
    ) -> Error {
        let gaps = self.gaps(product, boxes.clone().map(|owned| owned.region));
        if gaps.is_empty() {
            Error::Overlap(overlaps(self.exchange, boxes))
        } else {
            Error::Gap(gaps)
        }
    }

    /// The boxes of a product that none of the regions covers; a few more than an error names at
    /// most.
    fn gaps(
        &self,
        product: &OwnedProduct,
        regions: impl Iterator<Item = Region> + Clone,
    ) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for_each_box(product, |wanted| {
            let mut missing = vec![wanted];
            let touching = regions
                .clone()
                .filter(|region| region.intersection(&wanted).is_some());
            for region in touching {
                missing = missing
                    .iter()
                    .flat_map(|rest| rest.difference(&region))
                    .collect();
            }
            gaps.extend(missing.iter().map(|region| Gap {
                rank: self.rank,
                region: self.exchange.from.outside(region),
            }));
            gaps.len() <= MOST_NAMED
        });
        gaps
    }
}

/// The elements that two of the boxes have; a few more than an error names at most.
fn overlaps<'a>(
    exchange: &Exchange,
    boxes: impl Iterator<Item = &'a OwnedBox> + Clone,
) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    for (number, one) in boxes.clone().enumerate() {
        for other in boxes.clone().skip(number + 1) {
            if let Some(region) = one.region.intersection(&other.region) {
                overlaps.push(Overlap {
                    ranks: [one.rank, other.rank],
                    region: exchange.from.outside(&region),
                });
            }
            if overlaps.len() > MOST_NAMED {
                return overlaps;
            }
        }
    }
    overlaps
}

/// Makes the schedule of a rank of the sender; see [`Exchange::sending`].
pub(crate) fn sending(
    exchange: &Exchange,
    rank: u32,
    ownership: &Ownership,
    requests: &[(u32, ElementRequest)],
) -> Result<Schedule, Error> {
    let own = exchange.from.owned(rank, ownership);
    let hulls: Vec<_> = own.iter().map(OwnedProduct::hull).collect();
    let mut sender = BoxSender {
        exchange,
        rank,
        own,
        tree: BoxTree::new(&hulls),
        builder: PartnerListBuilder::default(),
    };
    for (receiver, request) in requests {
        sender.serve(*receiver, request)?;
    }
    let list = sender.builder.finish();
    Schedule::with_list(exchange, &exchange.from, rank, ownership, list)
}

/// The schedule of a sender's rank while it is made.
struct BoxSender<'a> {
    exchange: &'a Exchange,
    rank: u32,
    own: Vec<OwnedProduct>,
    /// The hulls of the rank's own products.
    tree: BoxTree,
    builder: PartnerListBuilder,
}

impl BoxSender<'_> {
    /// Adds the elements that a rank of the receiver asks for.
    fn serve(&mut self, receiver: u32, request: &ElementRequest) -> Result<(), Error> {
        let is_regular = self.exchange.to.decomposition.is_regular();
        match request {
            ElementRequest::Part if is_regular => {
                for product in self.exchange.to.owned(receiver, &Ownership::Rule) {
                    self.add(receiver, &product.hull(), &product.indices)?;
                }
            }
            ElementRequest::Boxes(boxes) if !is_regular => {
                let domain = Region::whole(&self.exchange.domain)?;
                for region in boxes {
                    if region.is_empty() || !domain.covers(region) {
                        return Err(Error::Broken(format!(
                            "rank {receiver} wants {region}, outside what is coupled"
                        )));
                    }
                    self.add(receiver, region, &indices_of(region))?;
                }
            }
            _ => return Err(wrong_form(receiver)),
        }
        Ok(())
    }

    /// Adds the elements of the rank's own products that have these indices, all of which lie in
    /// the hull.
    fn add(
        &mut self,
        receiver: u32,
        hull: &Region,
        indices: &Dims<StridedIndices>,
    ) -> Result<(), Error> {
        let mut hits = self.tree.hits(hull);
        hits.sort_unstable();
        let mut shared = 0;
        for hit in hits {
            let own = &self.own[hit as usize];
            shared += self.builder.add_product(own, indices, receiver);
        }
        if shared > 0 {
            return Ok(());
        }
        let (region, rank) = (self.exchange.from.outside(hull), self.rank);
        Err(Error::Broken(format!(
            "rank {receiver} wants {region} from rank {rank} of the sender, which has nothing of it"
        )))
    }
}

/// The error for a request that a rank of the receiver's decomposition cannot make.
pub(crate) fn wrong_form(receiver: u32) -> Error {
    Error::Broken(format!(
        "rank {receiver} wants in a form that does not go with its side"
    ))
}

/// The boxes of all answers, by rank and place. A box at a seam of the directory comes from several
/// of its ranks, and is kept once.
fn owned_boxes(exchange: &Exchange, answers: Vec<DirectoryAnswer>) -> Result<Vec<OwnedBox>, Error> {
    let domain = Region::whole(&exchange.domain)?;
    let ranks = exchange.from.decomposition.ranks();
    let mut owned_boxes = Vec::new();
    for answer in answers {
        let DirectoryAnswer::Boxes(boxes) = answer else {
            return Err(Error::Broken(
                "the directory answered with numbers where boxes were asked for".into(),
            ));
        };
        let is_wrong = |owned: &&OwnedBox| owned.rank >= ranks || !domain.covers(&owned.region);
        if let Some(OwnedBox { rank, region, .. }) = boxes.iter().find(is_wrong) {
            return Err(Error::Broken(format!(
                "the directory answered that rank {rank} owns {region}"
            )));
        }
        owned_boxes.extend(boxes);
    }
    owned_boxes.sort_unstable();
    owned_boxes.dedup();
    Ok(owned_boxes)
}

/// The indices of a box of the domain along each dimension.
fn indices_of(region: &Region) -> Dims<StridedIndices> {
    Dims::from_fn(region.lower().len(), |dim| {
        let (lower, upper) = (region.lower()[dim], region.upper()[dim]);
        let domain = CoupledSpan {
            lower: 0,
            extent: upper,
        };
        StridedIndices::piece(domain, lower, upper)
    })
}

/// Hands the boxes of a product to `take`, the last dimension fastest, until `take` returns false.
fn for_each_box(product: &OwnedProduct, mut take: impl FnMut(Region) -> bool) {
    let dims = product.indices.len();
    let mut bounds: Dims<(u64, u64)> = Dims::all(dims, (0, 0));
    let mut at: Dims = Dims::from_fn(dims, |dim| product.indices[dim].lower);
    loop {
        for dim in 0..dims {
            let indices = &product.indices[dim];
            let begin = indices.next(at[dim]);
            bounds[dim] = (begin, indices.end(begin));
        }
        if !take(Region::from_fn(dims, |dim| bounds[dim])) {
            return;
        }
        let has_more = |dim: &usize| {
            let indices = &product.indices[*dim];
            indices.next(bounds[*dim].1) < indices.upper
        };
        let Some(dim) = (0..dims).rev().find(has_more) else {
            return;
        };
        at[dim] = bounds[dim].1;
        for later in dim + 1..dims {
            at[later] = product.indices[later].lower;
        }
    }
}
