//! The indices of a rank along one dimension, and the indices that two ranks share, in closed form.
//!
//! A part of a regular decomposition is a product: along each dimension a rank has either one
//! piece, or pieces that repeat with a period. Two parts share the product of the indices that they
//! share along each dimension. These shared indices repeat with the least common multiple of both
//! periods, so only one such period is searched.
//!
//! All indices here count in the domain: the coupled region, counted from 0, which both sides have
//! in common.

use crate::spread::SpreadDimension;

/// The indices of one rank along one dimension of the domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StridedIndices {
    /// The rank has indices only from `lower` to `upper`.
    pub lower: u64,
    pub upper: u64,
    /// The difference from an index of the domain to the rank's own index, if the indices are one
    /// piece.
    base: i64,
    cycle: Option<IndexCycle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexCycle {
    width: u64,
    period: u64,
    /// The beginning of the first piece in the array.
    first: u64,
    /// The beginning of the domain in the array.
    offset: u64,
}

/// The coupled indices of one dimension of the array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoupledSpan {
    /// The first coupled index.
    pub lower: u64,
    /// The number of coupled indices.
    pub extent: u64,
}

impl StridedIndices {
    /// The indices `from..to` of the array in one piece. Own indices of the rank count from `from`.
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

    /// The indices of a process along a dimension of a regular decomposition.
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

    /// The first index of the rank at or after `at`; at or past `upper` if there is none.
    pub fn next(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else { return at };
        // There is no index beyond 64 bits.
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

    /// The end of the piece that has the index `at`.
    pub fn end(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else {
            return self.upper;
        };
        let place = (at + cycle.offset) % cycle.period;
        at.saturating_add(cycle.width - (place - cycle.first))
            .min(self.upper)
    }

    /// The own index of the rank for an index of the domain.
    pub fn local(&self, at: u64) -> u64 {
        let Some(cycle) = &self.cycle else {
            return at.wrapping_add_signed(self.base);
        };
        let at = at + cycle.offset;
        at / cycle.period * cycle.width + (at % cycle.period - cycle.first)
    }

    /// The number of indices.
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

    /// The pieces: the first index in the domain, and the length.
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

    /// The number of own indices in `period` indices of the domain, a multiple of the own period.
    fn step(&self, period: u64) -> u64 {
        self.cycle
            .map_or(period, |cycle| period / cycle.period * cycle.width)
    }
}

/// Own indices of a rank along one dimension, rising: those of the elements in one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AxisIndices {
    One(Span),
    Many(Box<SpanPattern>),
}

/// A range of own indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub at: u64,
    pub length: u64,
}

/// Spans that repeat `count` times, each time `step` further, and the spans of the tail.
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

    /// The own indices for the shared pieces of one period, which repeats from `lower` to `upper`;
    /// pieces and bounds are indices of the domain.
    fn new(
        own: &StridedIndices,
        pieces: impl Iterator<Item = (u64, u64)> + Clone,
        lower: u64,
        upper: u64,
        period: u64,
    ) -> Option<Self> {
        let (mut times, step) = ((upper - lower) / period, own.step(period));
        let mut spans = Vec::new();
        if times > 0 {
            for (at, length) in pieces.clone() {
                let at = own.local(at);
                push(&mut spans, Span { at, length });
            }
        }
        let mut tail = Vec::new();
        for (at, length) in pieces {
            let at = at + times * period;
            if at < upper {
                let length = length.min(upper - at);
                let at = own.local(at);
                push(&mut tail, Span { at, length });
            }
        }
        // A span that repeats without a gap is one span.
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
        Self::from_spans(spans, step, times, tail)
    }

    /// The simplest form of spans that repeat `count` times, and the spans of the tail.
    fn from_spans(spans: Vec<Span>, step: u64, count: u64, tail: Vec<Span>) -> Option<Self> {
        let sum = |spans: &[Span]| spans.iter().map(|span| span.length).sum::<u64>();
        match (&spans[..], &tail[..]) {
            ([], []) => None,
            ([], [one]) => Some(Self::One(*one)),
            _ => {
                let total = sum(&spans) * count + sum(&tail);
                Some(Self::Many(Box::new(SpanPattern {
                    spans,
                    step,
                    count,
                    tail,
                    total,
                })))
            }
        }
    }
}

/// Adds a span to a list; a span that continues the last one is joined to that span.
fn push(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.at + last.length == span.at => last.length += span.length,
        _ => spans.push(span),
    }
}

/// The indices that `own` shares with `other`, as own indices; `None` if there are none.
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

/// The indices that `own` shares with each process of a dimension, as own indices, by process.
/// Processes that share nothing are left out.
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
        let first = dimension.owner(lower + clip.lower);
        let last = dimension.owner(upper - 1 + clip.lower);
        let shared = |process| shared_indices(own, &StridedIndices::of(dimension, process, clip));
        return (first..=last)
            .filter_map(|process| Some((process, shared(process)?)))
            .collect();
    };
    let period = least_common_multiple(own.period(), width.saturating_mul(procs));
    let end = upper.min(lower.saturating_add(period));
    let mut pieces = cyclic_pieces(own, (width, procs), clip, lower, end);
    pieces.sort_by_key(|(process, _)| *process);
    let groups = pieces.chunk_by(|one, other| one.0 == other.0);
    let axes = groups.filter_map(|group| {
        let pieces = group.iter().map(|(_, piece)| *piece);
        let axis = AxisIndices::new(own, pieces, lower, upper, period)?;
        Some((group[0].0, axis))
    });
    axes.collect()
}

/// The pieces from `at` to `end` that `own` shares with the processes of a cyclic dimension, given
/// by the block size and the number of processes: the process, and the first index and the length
/// of the piece.
fn cyclic_pieces(
    own: &StridedIndices,
    (width, procs): (u64, u64),
    clip: CoupledSpan,
    mut at: u64,
    end: u64,
) -> Vec<(u32, (u64, u64))> {
    let mut pieces = Vec::new();
    loop {
        at = own.next(at);
        if at >= end {
            return pieces;
        }
        let index = at + clip.lower;
        let end_of_block = at.saturating_add(width - index % width);
        let to = own.end(at).min(end).min(end_of_block);
        pieces.push(((index / width % procs) as u32, (at, to - at)));
        at = to;
    }
}

/// The least common multiple, or the largest number of 64 bits, which is beyond every array.
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

    /// All indices of a rank in the domain.
    fn owned(dimension: &SpreadDimension, process: u32, clip: CoupledSpan) -> Vec<u64> {
        (0..clip.extent)
            .filter(|at| dimension.owner(at + clip.lower) == process)
            .collect()
    }

    /// The place of an index among all indices of the same owner.
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
        // The shared half of the block is one piece of the cyclic rank.
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
