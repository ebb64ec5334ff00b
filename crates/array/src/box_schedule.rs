//! Schedules where a side is irregular, and both have boxes: what the receiver found, and what the sender is asked for.

use crate::comb::{Clip, Comb};
use crate::exchange::{Owned, by_rule, pair};
use crate::list::Builder;
use crate::local::shapes;
use crate::tree::Tree;
use crate::{
    Answer, Dims, Error, Exchange, Gap, Overlap, OwnedBox, Parts, Region, Schedule, Wants,
};

/// The receiver's half: see [`Exchange::receiving`].
pub(crate) fn receiving(
    exchange: &Exchange,
    rank: u32,
    parts: &Parts,
    answers: Vec<Answer>,
) -> Result<(Schedule, Vec<(u32, Wants)>), Error> {
    let own = exchange.to.owned(rank, parts);
    let mut builder = Builder::default();
    // Partners, and the places in `own` of what they are asked for.
    let mut asked: Vec<(u32, usize)> = Vec::new();
    if exchange.needs_directory() {
        let found = found(exchange, answers)?;
        let regions: Vec<_> = found.iter().map(|entry| entry.region).collect();
        let combs: Vec<_> = regions.iter().map(combs).collect();
        let tree = Tree::new(&regions);
        for (place, part) in own.iter().enumerate() {
            let mut hits = tree.hits(&part.hull());
            // By rank and place: the order of the message.
            hits.sort_unstable();
            let mut elements = 0u64;
            for hit in hits.iter().map(|hit| *hit as usize) {
                let shared = pair(&mut builder, part, &combs[hit], found[hit].rank);
                if shared > 0 && asked.last() != Some(&(found[hit].rank, place)) {
                    asked.push((found[hit].rank, place));
                }
                elements = elements.saturating_add(shared);
            }
            if elements != part.elements() {
                return Err(uncovered(
                    exchange,
                    rank,
                    part,
                    hits.iter().map(|hit| &found[*hit as usize]),
                ));
            }
        }
    } else {
        for (place, part) in own.iter().enumerate() {
            by_rule(&mut builder, part, &exchange.from, |partner| {
                asked.push((partner, place))
            });
        }
    }
    let wants = match exchange.to.decomposition.is_regular() {
        true => Wants::by_partner(asked, |_| Wants::Part),
        false => Wants::by_partner(asked, |places| {
            Wants::Boxes(places.map(|place| own[place].hull()).collect())
        }),
    };
    Ok((
        builder.finish(
            exchange.to.order,
            shapes(&exchange.to.decomposition, rank, parts)?,
        ),
        wants,
    ))
}

/// The sender's half: see [`Exchange::sending`].
pub(crate) fn sending(
    exchange: &Exchange,
    rank: u32,
    parts: &Parts,
    wants: &[(u32, Wants)],
) -> Result<Schedule, Error> {
    let own = exchange.from.owned(rank, parts);
    let hulls: Vec<_> = own.iter().map(Owned::hull).collect();
    let tree = Tree::new(&hulls);
    let mut builder = Builder::default();
    let mut serve = |receiver: u32, hull: &Region, combs: &Dims<Comb>| {
        let mut hits = tree.hits(hull);
        hits.sort_unstable();
        let shared = hits
            .iter()
            .map(|hit| pair(&mut builder, &own[*hit as usize], combs, receiver));
        if shared.sum::<u64>() > 0 {
            return Ok(());
        }
        let region = exchange.from.outside(hull);
        Err(Error::Broken(format!(
            "rank {receiver} wants {region} from rank {rank} of the sender, which has nothing of it"
        )))
    };
    for (receiver, wants) in wants {
        match wants {
            Wants::Part if exchange.to.decomposition.is_regular() => {
                for part in exchange.to.owned(*receiver, &Parts::Rule) {
                    serve(*receiver, &part.hull(), &part.combs)?;
                }
            }
            Wants::Boxes(boxes) if !exchange.to.decomposition.is_regular() => {
                let domain = Region::whole(&exchange.domain)?;
                for region in boxes {
                    if region.is_empty() || !domain.covers(region) {
                        return Err(Error::Broken(format!(
                            "rank {receiver} wants {region}, outside what is coupled"
                        )));
                    }
                    serve(*receiver, region, &combs(region))?;
                }
            }
            _ => {
                return Err(Error::Broken(format!(
                    "rank {receiver} wants in a form that does not go with its side"
                )));
            }
        }
    }
    Ok(builder.finish(
        exchange.to.order,
        shapes(&exchange.from.decomposition, rank, parts)?,
    ))
}

/// The answers together, by rank and place, each box once: those at a seam of the directory come from several of its ranks.
fn found(exchange: &Exchange, answers: Vec<Answer>) -> Result<Vec<OwnedBox>, Error> {
    let (domain, ranks) = (
        Region::whole(&exchange.domain)?,
        exchange.from.decomposition.ranks(),
    );
    let mut found = Vec::new();
    for answer in answers {
        let Answer::Boxes(boxes) = answer else {
            return Err(Error::Broken(
                "the directory answered with numbers where boxes were asked for".into(),
            ));
        };
        if let Some(wrong) = boxes
            .iter()
            .find(|one| one.rank >= ranks || !domain.covers(&one.region))
        {
            let OwnedBox { rank, region, .. } = wrong;
            return Err(Error::Broken(format!(
                "the directory answered that rank {rank} owns {region}"
            )));
        }
        found.extend(boxes);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// A box of the domain as what a rank owns along each dimension.
fn combs(region: &Region) -> Dims<Comb> {
    let piece = |dim: usize| {
        let (lower, upper) = (region.lower()[dim], region.upper()[dim]);
        Comb::piece(
            Clip {
                lower: 0,
                extent: upper,
            },
            lower,
            upper,
        )
    };
    Dims::from_fn(region.lower().len(), piece)
}

/// Why what was found is not what is wanted: too little, or too much.
fn uncovered<'a>(
    exchange: &Exchange,
    rank: u32,
    part: &Owned,
    found: impl Iterator<Item = &'a OwnedBox> + Clone,
) -> Error {
    let regions = found.clone().map(|entry| entry.region);
    let mut gaps = Vec::new();
    each_box(part, |wanted| {
        let mut missing = vec![wanted];
        for region in regions
            .clone()
            .filter(|region| region.intersection(&wanted).is_some())
        {
            missing = missing
                .iter()
                .flat_map(|rest| rest.difference(&region))
                .collect();
        }
        gaps.extend(missing.iter().map(|region| Gap {
            rank,
            region: exchange.from.outside(region),
        }));
        gaps.len() <= crate::error::MOST_NAMED
    });
    if !gaps.is_empty() {
        return Error::Gap(gaps);
    }
    let mut overlaps = Vec::new();
    for (number, one) in found.clone().enumerate() {
        for other in found.clone().skip(number + 1) {
            if let Some(region) = one.region.intersection(&other.region) {
                let region = exchange.from.outside(&region);
                overlaps.push(Overlap {
                    ranks: [one.rank, other.rank],
                    region,
                });
            }
            if overlaps.len() > crate::error::MOST_NAMED {
                return Error::Overlap(overlaps);
            }
        }
    }
    Error::Overlap(overlaps)
}

/// The boxes of a part, until the caller has enough.
fn each_box(part: &Owned, mut take: impl FnMut(Region) -> bool) {
    let dims = part.combs.len();
    let mut bounds: Dims<(u64, u64)> = Dims::all(dims, (0, 0));
    // The first box takes the first piece of every dimension; then the last dimension goes on fastest.
    let mut at: Dims = Dims::from_fn(dims, |dim| part.combs[dim].lower);
    loop {
        for dim in 0..dims {
            let (comb, begin) = (&part.combs[dim], part.combs[dim].next(at[dim]));
            bounds[dim] = (begin, comb.end(begin));
        }
        if !take(Region::from_fn(dims, |dim| bounds[dim])) {
            return;
        }
        let more = |dim: &usize| part.combs[*dim].next(bounds[*dim].1) < part.combs[*dim].upper;
        let Some(dim) = (0..dims).rev().find(more) else {
            return;
        };
        at[dim] = bounds[dim].1;
        for later in dim + 1..dims {
            at[later] = part.combs[later].lower;
        }
    }
}
