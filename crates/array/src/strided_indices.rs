//! What a rank owns along one dimension, and what two ranks share there, in closed form.
//!
//! A part of a regular decomposition is a product: along each dimension a rank has one piece, or pieces that come again with a
//! period, like the cycle of a comb. What two parts share is the product of what their combs share, and that comes again with the
//! least common multiple of their periods. So one such period is looked at, and nothing more.
//!
//! Indices here are those of the domain: the coupled region, counted from 0, which both sides share.

use crate::spread::SpreadDimension;

/// What one rank owns along one dimension of the domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StridedIndices {
    /// Where to look: it has nothing before and nothing after.
    pub lower: u64,
    pub upper: u64,
    /// In one piece: what to add to get from the domain to the rank's own index.
    base: i64,
    cycle: Option<IndexCycle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexCycle {
    width: u64,
    period: u64,
    /// Where the first tooth begins in the array.
    first: u64,
    /// Where the domain begins in the array.
    offset: u64,
}

/// Where one dimension of the array lies in the domain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoupledSpan {
    /// The first coupled index of the array.
    pub lower: u64,
    /// How many are coupled.
    pub extent: u64,
}

impl StridedIndices {
    /// The indices `from..to` of the array, in one piece; the rank counts them from `from`.
    pub fn piece(clip: CoupledSpan, from: u64, to: u64) -> Self {
        let (lower, upper) = (from.max(clip.lower), to.min(clip.lower + clip.extent));
        if lower >= upper {
            return Self::default();
        }
        let base = clip.lower as i64 - from as i64;
        Self {
            lower: lower - clip.lower,
            upper: upper - clip.lower,
            base,
            cycle: None,
        }
    }

    /// What a process has of a dimension.
    pub fn of(dimension: &SpreadDimension, process: u32, clip: CoupledSpan) -> Self {
        let (from, to) = dimension.interval(process);
        let Some((width, procs)) = dimension.cyclic_blocks() else {
            return Self::piece(clip, from, to);
        };
        let period = width.saturating_mul(procs);
        let first = width.saturating_mul(u64::from(process));
        let cycle = Some(IndexCycle {
            width,
            period,
            first,
            offset: clip.lower,
        });
        Self {
            lower: 0,
            upper: clip.extent,
            base: 0,
            cycle,
        }
    }

    /// The first index at or after this one that the rank has; at or past `upper` if there is none.
    pub fn next(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else { return at };
        // Past the end of all that can be counted there is nothing.
        let Some(index) = at.checked_add(cycle.offset) else {
            return at;
        };
        let place = index % cycle.period;
        if place < cycle.first {
            at.saturating_add(cycle.first - place)
        } else if place - cycle.first < cycle.width {
            at
        } else {
            at.saturating_add(cycle.period - place)
                .saturating_add(cycle.first)
        }
    }

    /// The end of the piece that has this index.
    pub fn end(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else {
            return self.upper;
        };
        let place = (at + cycle.offset) % cycle.period;
        at.saturating_add(cycle.width - (place - cycle.first))
            .min(self.upper)
    }

    /// The rank's own number of an index that it has.
    pub fn local(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else {
            return at.wrapping_add_signed(self.base);
        };
        let at = at + cycle.offset;
        at / cycle.period * cycle.width + (at % cycle.period - cycle.first)
    }

    /// How many indices of the domain the rank has.
    pub fn count(&self) -> u64 {
        let Some(cycle) = &self.cycle else {
            return self.upper - self.lower;
        };
        let before = |at: u64| {
            let at = at + cycle.offset;
            at / cycle.period * cycle.width
                + (at % cycle.period)
                    .saturating_sub(cycle.first)
                    .min(cycle.width)
        };
        before(self.upper) - before(self.lower)
    }

    /// The pieces, as the index of the domain where they begin and their length.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut at = self.lower;
        std::iter::from_fn(move || {
            at = self.next(at);
            let (begin, end) = (at, if at < self.upper { self.end(at) } else { at });
            at = end;
            (begin < self.upper).then_some((begin, end - begin))
        })
    }

    fn period(&self) -> u64 {
        self.cycle.map_or(1, |cycle| cycle.period)
    }

    /// How far the rank's own numbers go on while the domain goes on by a multiple of the period.
    fn step(&self, period: u64) -> u64 {
        self.cycle
            .map_or(period, |cycle| period / cycle.period * cycle.width)
    }
}

/// Indices of a rank's own along one dimension, in rising order: what goes into one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AxisIndices {
    One(Span),
    Many(Box<SpanPattern>),
}

/// Own indices one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub at: u64,
    pub length: u64,
}

/// Spans that come `count` times, each time `step` further, and then a last few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpanPattern {
    pub spans: Vec<Span>,
    pub step: u64,
    pub count: u64,
    pub tail: Vec<Span>,
    pub total: u64,
}

impl AxisIndices {
    pub fn total(&self) -> u64 {
        match self {
            Self::One(span) => span.length,
            Self::Many(pattern) => pattern.total,
        }
    }

    /// All spans, in their order.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        let (one, many) = match self {
            Self::One(span) => (Some(*span), None),
            Self::Many(pattern) => (None, Some(pattern)),
        };
        let repeated = many.into_iter().flat_map(|pattern| {
            let turn = move |turn| {
                pattern
                    .spans
                    .iter()
                    .map(move |span| (turn * pattern.step, span))
            };
            let moved = |(by, span): (u64, &Span)| Span {
                at: span.at + by,
                length: span.length,
            };
            (0..pattern.count)
                .flat_map(turn)
                .map(moved)
                .chain(pattern.tail.iter().copied())
        });
        one.into_iter().chain(repeated)
    }

    /// From the shared pieces of one period, in the domain, and how often that comes between `lower` and `upper`.
    fn new(
        own: &StridedIndices,
        pieces: impl Iterator<Item = (u64, u64)> + Clone,
        lower: u64,
        upper: u64,
        period: u64,
    ) -> Option<Self> {
        let (times, step) = ((upper - lower) / period, own.step(period));
        let mut spans = Vec::new();
        if times > 0 {
            pieces.clone().for_each(|(at, length)| {
                push(
                    &mut spans,
                    Span {
                        at: own.local(at),
                        length,
                    },
                )
            });
        }
        let mut tail = Vec::new();
        for (at, length) in pieces {
            let at = at + times * period;
            if at < upper {
                push(
                    &mut tail,
                    Span {
                        at: own.local(at),
                        length: length.min(upper - at),
                    },
                );
            }
        }
        // What follows itself without a gap is one piece.
        let mut times = times;
        if let [span] = &mut spans[..]
            && times > 1
            && span.length == step
        {
            (span.length, times) = (step * times, 1);
        }
        if times <= 1 {
            for span in std::mem::replace(&mut tail, spans) {
                push(&mut tail, span);
            }
            (spans, times) = (Vec::new(), 0);
        }
        let sum = |spans: &[Span]| spans.iter().map(|span| span.length).sum::<u64>();
        match (&spans[..], &tail[..]) {
            ([], []) => None,
            ([], [one]) => Some(Self::One(*one)),
            _ => {
                let total = sum(&spans) * times + sum(&tail);
                Some(Self::Many(Box::new(SpanPattern {
                    spans,
                    step,
                    count: times,
                    tail,
                    total,
                })))
            }
        }
    }
}

/// Adds a span to a list, as a part of the last one where it goes on from that.
fn push(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.at + last.length == span.at => last.length += span.length,
        _ => spans.push(span),
    }
}

/// What `own` shares with `other`, in own indices; `None` if nothing.
pub(crate) fn shared_indices(own: &StridedIndices, other: &StridedIndices) -> Option<AxisIndices> {
    let (lower, upper) = (own.lower.max(other.lower), own.upper.min(other.upper));
    if lower >= upper {
        return None;
    }
    if own.cycle.is_none() && other.cycle.is_none() {
        return Some(AxisIndices::One(Span {
            at: own.local(lower),
            length: upper - lower,
        }));
    }
    let period = least_common_multiple(own.period(), other.period());
    let (mut at, end) = (lower, upper.min(lower.saturating_add(period)));
    let mut pieces = Vec::new();
    while at < end {
        let both = other.next(own.next(at));
        if both != at {
            at = both;
            continue;
        }
        let to = own.end(at).min(other.end(at)).min(end);
        pieces.push((at, to - at));
        at = to;
    }
    AxisIndices::new(own, pieces.into_iter(), lower, upper, period)
}

/// What `own` shares with each process of a dimension that it shares something with, by process.
pub(crate) fn shared_with_processes(
    own: &StridedIndices,
    dimension: &SpreadDimension,
    clip: CoupledSpan,
) -> Vec<(u32, AxisIndices)> {
    let (lower, upper) = (own.lower, own.upper.min(clip.extent));
    if lower >= upper {
        return Vec::new();
    }
    let Some((width, procs)) = dimension.cyclic_blocks() else {
        let among = dimension.owner(lower + clip.lower)..=dimension.owner(upper - 1 + clip.lower);
        return among
            .filter_map(|process| {
                Some((
                    process,
                    shared_indices(own, &StridedIndices::of(dimension, process, clip))?,
                ))
            })
            .collect();
    };
    let period = least_common_multiple(own.period(), width.saturating_mul(procs));
    let (mut at, end) = (lower, upper.min(lower.saturating_add(period)));
    let mut pieces = Vec::new();
    loop {
        at = own.next(at);
        if at >= end {
            break;
        }
        let index = at + clip.lower;
        let to = own
            .end(at)
            .min(end)
            .min(at.saturating_add(width - index % width));
        pieces.push(((index / width % procs) as u32, (at, to - at)));
        at = to;
    }
    pieces.sort_by_key(|(process, _)| *process);
    let groups = pieces.chunk_by(|one, other| one.0 == other.0);
    let axes = groups.filter_map(|group| {
        let pieces = group.iter().map(|(_, piece)| *piece);
        Some((
            group[0].0,
            AxisIndices::new(own, pieces, lower, upper, period)?,
        ))
    });
    axes.collect()
}

/// The least common multiple, capped where 64 bits end: then it is beyond every array.
fn least_common_multiple(one: u64, other: u64) -> u64 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a).saturating_mul(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;

    /// The indices of a rank in the domain, one by one.
    fn owned(dimension: &SpreadDimension, process: u32, clip: CoupledSpan) -> Vec<u64> {
        (0..clip.extent)
            .filter(|at| dimension.owner(at + clip.lower) == process)
            .collect()
    }

    /// An index among those of its owner, counted from 0.
    fn number(dimension: &SpreadDimension, index: u64) -> u64 {
        (0..index)
            .filter(|before| dimension.owner(*before) == dimension.owner(index))
            .count() as u64
    }

    fn spreads(extent: u64, procs: u32) -> Vec<SpreadDimension> {
        let third = extent / 3;
        let mut bounds = vec![third; procs as usize + 1];
        (bounds[0], bounds[procs as usize]) = (0, extent);
        [
            Spread::Block,
            Spread::Even,
            Spread::Bounds(bounds),
            Spread::Cyclic(1),
            Spread::Cyclic(2),
            Spread::Cyclic(5),
        ]
        .map(|spread| SpreadDimension::new(0, extent, procs, spread).unwrap())
        .into()
    }

    #[test]
    fn what_two_combs_share_is_what_both_own() {
        let (ours, theirs) = (
            CoupledSpan {
                lower: 3,
                extent: 29,
            },
            CoupledSpan {
                lower: 8,
                extent: 29,
            },
        );
        for own_rule in spreads(33, 3) {
            for rule in spreads(40, 4) {
                for process in 0..3 {
                    let own = StridedIndices::of(&own_rule, process, ours);
                    let mine = owned(&own_rule, process, ours);
                    assert_eq!(own.count(), mine.len() as u64);
                    let pieces = own.pieces().flat_map(|(at, length)| at..at + length);
                    assert_eq!(pieces.collect::<Vec<_>>(), mine);
                    let all = shared_with_processes(&own, &rule, theirs);
                    for other in 0..4 {
                        let other_comb = StridedIndices::of(&rule, other, theirs);
                        let shared = owned(&rule, other, theirs)
                            .into_iter()
                            .filter(|at| mine.contains(at));
                        let expected: Vec<u64> = shared
                            .map(|at| number(&own_rule, at + ours.lower))
                            .collect();
                        for axis in [
                            shared_indices(&own, &other_comb).as_ref(),
                            all.iter()
                                .find(|(process, _)| *process == other)
                                .map(|(_, axis)| axis),
                        ] {
                            let spans = axis.into_iter().flat_map(AxisIndices::spans);
                            let got: Vec<u64> = spans
                                .flat_map(|span| span.at..span.at + span.length)
                                .collect();
                            assert_eq!(
                                got, expected,
                                "{own_rule:?} {process} and {rule:?} {other}"
                            );
                            assert_eq!(axis.map_or(0, AxisIndices::total), expected.len() as u64);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_pattern_is_as_long_as_one_period_however_long_the_array() {
        let extent = 1 << 40;
        let clip = CoupledSpan { lower: 0, extent };
        let cyclic = SpreadDimension::new(0, extent, 8, Spread::Cyclic(3)).unwrap();
        let block = SpreadDimension::new(0, extent, 2, Spread::Block).unwrap();
        let all = shared_with_processes(&StridedIndices::of(&block, 0, clip), &cyclic, clip);
        assert_eq!(all.len(), 8);
        let AxisIndices::Many(pattern) = &all[3].1 else {
            panic!("{all:?}")
        };
        assert_eq!((pattern.spans.len(), pattern.step), (1, 24));
        // Of its own a cyclic rank sends the block's half in one piece.
        let all = shared_with_processes(&StridedIndices::of(&cyclic, 3, clip), &block, clip);
        assert!(matches!(all[0], (0, AxisIndices::One(_))), "{all:?}");
        let other = SpreadDimension::new(0, extent, 3, Spread::Cyclic(5)).unwrap();
        let AxisIndices::Many(pattern) = shared_indices(
            &StridedIndices::of(&cyclic, 1, clip),
            &StridedIndices::of(&other, 0, clip),
        )
        .unwrap() else {
            panic!()
        };
        assert!(
            pattern.spans.len() <= 5 && pattern.count > 1 << 30,
            "{pattern:?}"
        );
    }

    #[test]
    fn periods_that_have_no_common_multiple_do_not_overflow() {
        let extent = 1 << 60;
        let clip = CoupledSpan { lower: 0, extent };
        let one = SpreadDimension::new(0, extent, 7, Spread::Cyclic((1 << 58) - 1)).unwrap();
        let other =
            SpreadDimension::new(0, extent, 1 << 31, Spread::Cyclic((1 << 57) - 1)).unwrap();
        let shared: u64 = (0..7)
            .flat_map(|process| {
                shared_with_processes(&StridedIndices::of(&one, process, clip), &other, clip)
            })
            .map(|(_, axis)| axis.total())
            .sum();
        assert_eq!(shared, extent);
        let clip = CoupledSpan {
            lower: 5,
            extent: extent - 5,
        };
        let (one, other) = (
            StridedIndices::of(&one, 6, clip),
            StridedIndices::of(&other, (1 << 31) - 1, clip),
        );
        assert_eq!(
            (shared_indices(&one, &other), shared_indices(&other, &one)),
            (None, None)
        );
    }
}
