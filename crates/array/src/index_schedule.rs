//! Schedules where a side is by indices: elements are known by their numbers in the domain, in C order, run by run.

use crate::comb::Comb;
use crate::decomposition::Rule;
use crate::exchange::Owned;
use crate::list::Builder;
use crate::local::shapes;
use crate::schedule::Strip;
use crate::{
    Answer, Dims, Error, Exchange, Gap, Order, Overlap, Parts, Region, Run, Schedule, Side, Wants,
};

/// Elements that a rank has one after the other, in the domain and among its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnRun {
    pub run: Run,
    /// The number of the first one among the rank's own.
    pub at: u64,
}

/// The receiver's half: see [`Exchange::receiving`].
pub(crate) fn receiving(
    exchange: &Exchange,
    rank: u32,
    parts: &Parts,
    answers: Vec<Answer>,
) -> Result<(Schedule, Vec<(u32, Wants)>), Error> {
    let own = own_runs(&exchange.to, rank, parts)?;
    let mut builder = Builder::default();
    let mut asked: Vec<(u32, Run)> = Vec::new();
    let mut take = |partner: u32, run: Run, at: u64| {
        builder.strip(
            partner,
            Strip {
                at,
                length: run.length,
            },
        );
        match asked.last_mut() {
            Some((last, before)) if *last == partner && before.end() == run.first => {
                before.length += run.length
            }
            _ => asked.push((partner, run)),
        }
    };
    if exchange.needs_directory() {
        let found = found(exchange, answers)?;
        let mut gaps = Vec::new();
        for OwnRun { run, at } in own {
            let mut next = run.first;
            let after = found.partition_point(|(_, owned)| owned.end() <= next);
            for (partner, owned) in found[after..]
                .iter()
                .take_while(|(_, owned)| owned.first < run.end())
            {
                if next < owned.first {
                    break;
                }
                let end = owned.end().min(run.end());
                take(
                    *partner,
                    Run {
                        first: next,
                        length: end - next,
                    },
                    at + (next - run.first),
                );
                next = end;
            }
            if next < run.end() {
                gaps.push(Gap {
                    rank,
                    region: named(exchange, next, run.end()),
                });
                if gaps.len() > crate::error::MOST_NAMED {
                    break;
                }
            }
        }
        if !gaps.is_empty() {
            return Err(Error::Gap(gaps));
        }
    } else {
        for OwnRun { run, at } in own {
            let mut next = run.first;
            while next < run.end() {
                let (partner, end) = owner(exchange, next);
                let end = end.min(run.end());
                take(
                    partner,
                    Run {
                        first: next,
                        length: end - next,
                    },
                    at + (next - run.first),
                );
                next = end;
            }
        }
    }
    let wants = Wants::by_partner(asked, |wanted| {
        let mut runs = Vec::new();
        wanted.for_each(|run| Run::push(&mut runs, run));
        Wants::Runs(runs)
    });
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
    let mut own = own_runs(&exchange.from, rank, parts)?;
    own.sort_unstable_by_key(|own| own.run);
    let mut builder = Builder::default();
    for (receiver, wants) in wants {
        let Wants::Runs(runs) = wants else {
            return Err(Error::Broken(format!(
                "rank {receiver} wants in a form that does not go with its side"
            )));
        };
        for run in runs {
            let mut next = run.first;
            let after = own.partition_point(|own| own.run.end() <= next);
            for one in own[after..]
                .iter()
                .take_while(|one| one.run.first < run.end())
            {
                if one.run.first > next {
                    break;
                }
                let end = one.run.end().min(run.end());
                if next < end {
                    let strip = Strip {
                        at: one.at + (next - one.run.first),
                        length: end - next,
                    };
                    builder.strip(*receiver, strip);
                    next = end;
                }
            }
            if next < run.end() || run.length == 0 {
                return Err(Error::Broken(format!(
                    "rank {receiver} wants the elements from {} on of what is coupled from rank {rank} of the sender, which \
                     does not have them",
                    next
                )));
            }
        }
    }
    Ok(builder.finish(
        exchange.to.order,
        shapes(&exchange.from.decomposition, rank, parts)?,
    ))
}

/// What a rank has in the domain, in the order of its own.
pub(crate) fn own_runs(side: &Side, rank: u32, parts: &Parts) -> Result<Vec<OwnRun>, Error> {
    let mut runs = Vec::new();
    if let Parts::Indices(indices) = parts {
        let mut at = 0;
        for run in indices {
            listed(side, *run, at, &mut runs);
            at += run.length;
        }
        return Ok(runs);
    }
    let extents = shapes(&side.decomposition, rank, parts)?;
    let mut before = Vec::with_capacity(extents.len());
    extents.iter().fold(0, |sum, extents| {
        before.push(sum);
        sum + extents.volume()
    });
    let domain = Order::C.strides(&side.region.extents());
    for Owned { block, combs } in side.owned(rank, parts) {
        let strides = Order::C.strides(&extents[block as usize]);
        rows(
            &combs,
            &domain,
            &strides,
            0,
            before[block as usize],
            &mut runs,
        );
    }
    Ok(runs)
}

fn push(runs: &mut Vec<OwnRun>, run: Run, at: u64) {
    match runs.last_mut() {
        Some(last) if last.run.end() == run.first && last.at + last.run.length == at => {
            last.run.length += run.length
        }
        _ if run.length == 0 => {}
        _ => runs.push(OwnRun { run, at }),
    }
}

/// A product, row by row.
fn rows(
    combs: &[Comb],
    domain: &[u64],
    strides: &[u64],
    first: u64,
    at: u64,
    runs: &mut Vec<OwnRun>,
) {
    let Some((comb, inner)) = combs.split_first() else {
        return push(runs, Run { first, length: 1 }, at);
    };
    for (index, length) in comb.pieces() {
        if inner.is_empty() {
            push(
                runs,
                Run {
                    first: first + index,
                    length,
                },
                at + comb.local(index),
            );
            continue;
        }
        for index in index..index + length {
            let (first, at) = (
                first + index * domain[0],
                at + comb.local(index) * strides[0],
            );
            rows(inner, &domain[1..], &strides[1..], first, at, runs);
        }
    }
}

/// A run of the side's own numbers, cut down to the domain and counted there.
fn listed(side: &Side, run: Run, at: u64, runs: &mut Vec<OwnRun>) {
    let (shape, region) = (side.decomposition.shape(), &side.region);
    let domain = region.extents();
    let count = shape.len();
    let in_c_order = side.order == Order::C || count < 2;
    if in_c_order && domain == *shape {
        return push(runs, run, at);
    }
    // Numbers go on along the fastest dimension, and so do those of the domain in C order.
    let fastest = if in_c_order { count - 1 } else { 0 };
    let mut number = run.first;
    while number < run.end() {
        let point = side.order.point(number, shape);
        let length = (shape[fastest] - point[fastest]).min(run.end() - number);
        let inside = |dim: usize| {
            dim == fastest || (region.lower()[dim]..region.upper()[dim]).contains(&point[dim])
        };
        let from = point[fastest].max(region.lower()[fastest]);
        let to = (point[fastest] + length).min(region.upper()[fastest]);
        if (0..count).all(inside) && from < to {
            let mut place =
                Dims::from_fn(count, |dim| point[dim].saturating_sub(region.lower()[dim]));
            let at = at + (number - run.first);
            let step = if in_c_order { to - from } else { 1 };
            for begin in (from..to).step_by(step as usize) {
                place[fastest] = begin - region.lower()[fastest];
                let first = Order::C.number(&place, &domain);
                push(
                    runs,
                    Run {
                        first,
                        length: step,
                    },
                    at + (begin - point[fastest]),
                );
            }
        }
        number += length;
    }
}

/// The owner of an element by the sender's rule, and up to where the next ones are its own, too.
fn owner(exchange: &Exchange, number: u64) -> (u32, u64) {
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
    let length = (grid.dimensions[last].end_of_run(index(last)) - index(last))
        .min(domain[last] - point[last]);
    (grid.rank(&place), number + length)
}

/// The answers together, by number; nothing twice.
fn found(exchange: &Exchange, answers: Vec<Answer>) -> Result<Vec<(u32, Run)>, Error> {
    let (elements, ranks) = (exchange.elements(), exchange.from.decomposition.ranks());
    let mut found = Vec::new();
    for answer in answers {
        let Answer::Runs(runs) = answer else {
            return Err(Error::Broken(
                "the directory answered with boxes where numbers were asked for".into(),
            ));
        };
        if let Some((rank, run)) = runs
            .iter()
            .find(|(rank, run)| *rank >= ranks || run.end() > elements)
        {
            let Run { first, length } = run;
            return Err(Error::Broken(format!(
                "the directory answered that rank {rank} owns {length} from {first} on"
            )));
        }
        found.extend(runs);
    }
    found.sort_unstable_by_key(|(rank, run)| (*run, *rank));
    twice(exchange, &found)?;
    Ok(found)
}

/// Refuses runs, in order, that have an element twice.
pub(crate) fn twice(exchange: &Exchange, runs: &[(u32, Run)]) -> Result<(), Error> {
    let mut overlaps = Vec::new();
    let (mut reach, mut owner) = (0, 0);
    for (rank, run) in runs {
        if run.first < reach {
            let region = named(exchange, run.first, run.end().min(reach));
            overlaps.push(Overlap {
                ranks: [owner, *rank],
                region,
            });
            if overlaps.len() > crate::error::MOST_NAMED {
                break;
            }
        }
        if run.end() > reach {
            (reach, owner) = (run.end(), *rank);
        }
    }
    if overlaps.is_empty() {
        Ok(())
    } else {
        Err(Error::Overlap(overlaps))
    }
}

/// Elements of the domain as a box of the sender's array: at most to the end of their row, since they are only named.
fn named(exchange: &Exchange, first: u64, end: u64) -> Region {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decomposition;

    #[test]
    fn numbers_are_cut_to_the_region_and_counted_there() {
        let decomposition = Decomposition::indices(&[4, 5], 1).unwrap();
        let side = Side::new(decomposition).region(Region::new(&[1, 1], &[3, 4]).unwrap());
        // 5, 6, 7 are [1, 0..3]; 14 and 15 are [2, 4] and [3, 0]; 13 is [2, 3].
        let parts = Parts::indices([5, 6, 7, 14, 15, 13]);
        let run = |first, length, at| OwnRun {
            run: Run { first, length },
            at,
        };
        assert_eq!(
            own_runs(&side, 0, &parts).unwrap(),
            [run(0, 2, 1), run(5, 1, 5)]
        );
        // In Fortran order 5 is [1, 1] and 6 is [2, 1], below it.
        let side = side.order(Order::Fortran);
        assert_eq!(
            own_runs(&side, 0, &parts).unwrap(),
            [run(0, 1, 0), run(3, 1, 1), run(5, 1, 3), run(2, 1, 5)]
        );
    }

    #[test]
    fn boxes_are_taken_row_by_row_and_whole_rows_as_one() {
        let side = Side::new(Decomposition::boxes(&[4, 5], 1).unwrap());
        let parts = Parts::Boxes(vec![
            Region::new(&[0, 3], &[2, 5]).unwrap(),
            Region::new(&[2, 0], &[4, 5]).unwrap(),
        ]);
        let run = |first, length, at| OwnRun {
            run: Run { first, length },
            at,
        };
        assert_eq!(
            own_runs(&side, 0, &parts).unwrap(),
            [run(3, 2, 0), run(8, 12, 2)]
        );
    }
}
