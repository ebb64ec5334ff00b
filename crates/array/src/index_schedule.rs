//! Schedules where a side is by indices. An element is known by its number in the domain, in C
//! order.

use crate::box_schedule::wrong_form;
use crate::decomposition::Rule;
use crate::error::MOST_NAMED;
use crate::owned_ranges::{OwnedRange, owned_ranges};
use crate::partner::Strip;
use crate::partner_list::PartnerListBuilder;
use crate::{
    Dims, DirectoryAnswer, ElementRequest, Error, Exchange, Gap, IndexRange, Order, Overlap,
    Ownership, Region, Schedule,
};

/// Makes the schedule of a rank of the receiver; see [`Exchange::receiving`].
pub(crate) fn receiving(
    exchange: &Exchange,
    rank: u32,
    ownership: &Ownership,
    answers: Vec<DirectoryAnswer>,
) -> Result<(Schedule, Vec<(u32, ElementRequest)>), Error> {
    let own = owned_ranges(&exchange.to, rank, ownership)?;
    let mut receiver = IndexReceiver {
        exchange,
        rank,
        builder: PartnerListBuilder::default(),
        asked: Vec::new(),
    };
    if exchange.needs_directory() {
        receiver.share_with_ranges(own, &owners(exchange, answers)?)?;
    } else {
        receiver.share_with_grid(own);
    }
    let requests = ElementRequest::by_partner(receiver.asked, |wanted| {
        let mut ranges = Vec::new();
        wanted.for_each(|range| IndexRange::push(&mut ranges, range));
        ElementRequest::Ranges(ranges)
    });
    let list = receiver.builder.finish();
    let schedule = Schedule::with_list(exchange, &exchange.to, rank, ownership, list)?;
    Ok((schedule, requests))
}

/// The schedule of a receiver's rank while it is made.
struct IndexReceiver<'a> {
    exchange: &'a Exchange,
    rank: u32,
    builder: PartnerListBuilder,
    /// Partners, and the elements that they are asked for.
    asked: Vec<(u32, IndexRange)>,
}

impl IndexReceiver<'_> {
    /// Finds the owners of the rank's elements in the grid of a regular sender.
    fn share_with_grid(&mut self, own: Vec<OwnedRange>) {
        for wanted in own {
            let mut next = wanted.range.first;
            while next < wanted.range.end() {
                let (partner, end) = owner_of_range(self.exchange, next);
                next = self.take(partner, &wanted, next, end);
            }
        }
    }

    /// Finds the owners of the rank's elements among ranges in rising order.
    fn share_with_ranges(
        &mut self,
        own: Vec<OwnedRange>,
        owners: &[(u32, IndexRange)],
    ) -> Result<(), Error> {
        let mut gaps = Vec::new();
        for wanted in own {
            let mut next = wanted.range.first;
            let first = owners.partition_point(|(_, owned)| owned.end() <= next);
            for (partner, owned) in &owners[first..] {
                if owned.first > next || next >= wanted.range.end() {
                    break;
                }
                next = self.take(*partner, &wanted, next, owned.end());
            }
            if next < wanted.range.end() {
                gaps.push(Gap {
                    rank: self.rank,
                    region: region_of_range(self.exchange, next, wanted.range.end()),
                });
                if gaps.len() > MOST_NAMED {
                    break;
                }
            }
        }
        if gaps.is_empty() {
            Ok(())
        } else {
            Err(Error::Gap(gaps))
        }
    }

    /// Takes the wanted elements from `next` to `end` from a partner, and returns the number of the
    /// next element.
    fn take(&mut self, partner: u32, wanted: &OwnedRange, next: u64, end: u64) -> u64 {
        let end = end.min(wanted.range.end());
        let range = IndexRange {
            first: next,
            length: end - next,
        };
        let strip = Strip {
            at: wanted.at + (next - wanted.range.first),
            length: range.length,
        };
        self.builder.strip(partner, strip);
        match self.asked.last_mut() {
            Some((last, before)) if *last == partner && before.end() == range.first => {
                before.length += range.length
            }
            _ => self.asked.push((partner, range)),
        }
        end
    }
}

/// Makes the schedule of a rank of the sender; see [`Exchange::sending`].
pub(crate) fn sending(
    exchange: &Exchange,
    rank: u32,
    ownership: &Ownership,
    requests: &[(u32, ElementRequest)],
) -> Result<Schedule, Error> {
    let mut own = owned_ranges(&exchange.from, rank, ownership)?;
    own.sort_unstable_by_key(|own| own.range);
    let mut builder = PartnerListBuilder::default();
    for (receiver, request) in requests {
        let ElementRequest::Ranges(ranges) = request else {
            return Err(wrong_form(*receiver));
        };
        for range in ranges {
            let next = serve(&mut builder, *receiver, &own, *range);
            if next < range.end() || range.length == 0 {
                return Err(Error::Broken(format!(
                    "rank {receiver} wants the elements from {next} on of what is coupled from rank {rank} of the sender, which \
                     does not have them"
                )));
            }
        }
    }
    let list = builder.finish();
    Schedule::with_list(exchange, &exchange.from, rank, ownership, list)
}

/// Adds a range that a receiver asks for, from the rank's own ranges, which rise. Returns the first
/// element that the rank does not have, or the end of the range.
fn serve(
    builder: &mut PartnerListBuilder,
    receiver: u32,
    own: &[OwnedRange],
    wanted: IndexRange,
) -> u64 {
    let mut next = wanted.first;
    let first = own.partition_point(|own| own.range.end() <= next);
    for own in &own[first..] {
        if own.range.first > next || own.range.first >= wanted.end() {
            break;
        }
        let end = own.range.end().min(wanted.end());
        if next < end {
            let strip = Strip {
                at: own.at + (next - own.range.first),
                length: end - next,
            };
            builder.strip(receiver, strip);
            next = end;
        }
    }
    next
}

/// The owner of an element in the grid of a regular sender, and the end of the range of elements
/// from this one on that the same rank owns.
fn owner_of_range(exchange: &Exchange, number: u64) -> (u32, u64) {
    let (side, domain) = (&exchange.from, &exchange.domain);
    let Rule::Regular(grid) = &side.decomposition.rule else {
        unreachable!("there is no directory")
    };
    let Some(last) = domain.len().checked_sub(1) else {
        return (0, number + 1);
    };
    let point = Order::C.point(number, domain);
    let index = |dim: usize| point[dim] + side.region.lower()[dim];
    let place = Dims::from_fn(domain.len(), |dim| grid.dimensions[dim].owner(index(dim)));
    let length = (grid.dimensions[last].end_of_range(index(last)) - index(last))
        .min(domain[last] - point[last]);
    (grid.rank(&place), number + length)
}

/// The ranges of all answers with their owners, in rising order.
fn owners(
    exchange: &Exchange,
    answers: Vec<DirectoryAnswer>,
) -> Result<Vec<(u32, IndexRange)>, Error> {
    let (elements, ranks) = (exchange.elements(), exchange.from.decomposition.ranks());
    let mut owners = Vec::new();
    for answer in answers {
        let DirectoryAnswer::Ranges(ranges) = answer else {
            return Err(Error::Broken(
                "the directory answered with boxes where numbers were asked for".into(),
            ));
        };
        let is_wrong =
            |(rank, range): &&(u32, IndexRange)| *rank >= ranks || range.end() > elements;
        if let Some((rank, IndexRange { first, length })) = ranges.iter().find(is_wrong) {
            return Err(Error::Broken(format!(
                "the directory answered that rank {rank} owns {length} from {first} on"
            )));
        }
        owners.extend(ranges);
    }
    owners.sort_unstable_by_key(|(rank, range)| (*range, *rank));
    check_single_owners(exchange, &owners)?;
    Ok(owners)
}

/// Refuses ranges, in rising order, of which two have the same element.
pub(crate) fn check_single_owners(
    exchange: &Exchange,
    owners: &[(u32, IndexRange)],
) -> Result<(), Error> {
    let mut overlaps = Vec::new();
    let (mut reach, mut owner) = (0, 0);
    for (rank, range) in owners {
        if range.first < reach {
            overlaps.push(Overlap {
                ranks: [owner, *rank],
                region: region_of_range(exchange, range.first, range.end().min(reach)),
            });
            if overlaps.len() > MOST_NAMED {
                break;
            }
        }
        if range.end() > reach {
            (reach, owner) = (range.end(), *rank);
        }
    }
    if overlaps.is_empty() {
        Ok(())
    } else {
        Err(Error::Overlap(overlaps))
    }
}

/// Elements of the domain as a box of the sender's array, for messages: the elements up to the end
/// of their row.
fn region_of_range(exchange: &Exchange, first: u64, end: u64) -> Region {
    let domain = &exchange.domain;
    let point = Order::C.point(first, domain);
    let last = domain.len().saturating_sub(1);
    let region = Region::from_fn(domain.len(), |dim| {
        let length = if dim == last {
            (end - first).min(domain[dim] - point[dim])
        } else {
            1
        };
        (point[dim], point[dim] + length)
    });
    exchange.from.outside(&region)
}
