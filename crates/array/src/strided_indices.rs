//! What a rank owns along one dimension, and what two ranks share there, in closed form.
//!
//! A part of a regular decomposition is a product: along each dimension a rank has one piece, or pieces that come again with a
//! period, like the teeth of a comb. What two parts share is the product of what their combs share, and that comes again with the
//! least common multiple of their periods. So one such period is looked at, and nothing more.
//!
//! Indices here are those of the domain: the coupled region, counted from 0, which both sides share.

use crate::spread::Dimension;

/// What one rank owns along one dimension of the domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Comb {
    /// Where to look: it has nothing before and nothing after.
    pub lower: u64,
    pub upper: u64,
    /// In one piece: what to add to get from the domain to the rank's own index.
    base: i64,
    teeth: Option<Teeth>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Teeth {
    width: u64,
    period: u64,
    /// Where the first tooth begins in the array.
    first: u64,
    /// Where the domain begins in the array.
    offset: u64,
}

/// Where one dimension of the array lies in the domain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clip {
    /// The first coupled index of the array.
    pub lower: u64,
    /// How many are coupled.
    pub extent: u64,
}

impl Comb {
    /// The indices `from..to` of the array, in one piece; the rank counts them from `from`.
    pub fn piece(clip: Clip, from: u64, to: u64) -> Self {
        let (lower, upper) = (from.max(clip.lower), to.min(clip.lower + clip.extent));
        if lower >= upper {
            return Self::default();
        }
        let base = clip.lower as i64 - from as i64;
        Self {
            lower: lower - clip.lower,
            upper: upper - clip.lower,
            base,
            teeth: None,
        }
    }

    /// What a process has of a dimension.
    pub fn of(dimension: &Dimension, process: u32, clip: Clip) -> Self {
        let (from, to) = dimension.interval(process);
        let Some((width, procs)) = dimension.teeth() else {
            return Self::piece(clip, from, to);
        };
        let period = width.saturating_mul(procs);
        let first = width.saturating_mul(u64::from(process));
        let teeth = Some(Teeth {
            width,
            period,
            first,
            offset: clip.lower,
        });
        Self {
            lower: 0,
            upper: clip.extent,
            base: 0,
            teeth,
        }
    }

    /// The first index at or after this one that the rank has; at or past `upper` if there is none.
    pub fn next(&self, at: u64) -> u64 {
        let Some(teeth) = &self.teeth else { return at };
        // Past the end of all that can be counted there is nothing.
        let Some(index) = at.checked_add(teeth.offset) else {
            return at;
        };
        let place = index % teeth.period;
        if place < teeth.first {
            at.saturating_add(teeth.first - place)
        } else if place - teeth.first < teeth.width {
            at
        } else {
            at.saturating_add(teeth.period - place)
                .saturating_add(teeth.first)
        }
    }

    /// The end of the piece that has this index.
    pub fn end(&self, at: u64) -> u64 {
        let Some(teeth) = &self.teeth else {
            return self.upper;
        };
        let place = (at + teeth.offset) % teeth.period;
        at.saturating_add(teeth.width - (place - teeth.first))
            .min(self.upper)
    }

    /// The rank's own number of an index that it has.
    pub fn local(&self, at: u64) -> u64 {
        let Some(teeth) = &self.teeth else {
            return at.wrapping_add_signed(self.base);
        };
        let at = at + teeth.offset;
        at / teeth.period * teeth.width + (at % teeth.period - teeth.first)
    }

    /// How many indices of the domain the rank has.
    pub fn count(&self) -> u64 {
        let Some(teeth) = &self.teeth else {
            return self.upper - self.lower;
        };
        let before = |at: u64| {
            let at = at + teeth.offset;
            at / teeth.period * teeth.width
                + (at % teeth.period)
                    .saturating_sub(teeth.first)
                    .min(teeth.width)
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
        self.teeth.map_or(1, |teeth| teeth.period)
    }

    /// How far the rank's own numbers go on while the domain goes on by a multiple of the period.
    fn step(&self, period: u64) -> u64 {
        self.teeth
            .map_or(period, |teeth| period / teeth.period * teeth.width)
    }
}

/// Indices of a rank's own along one dimension, in rising order: what goes into one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Axis {
    One(Span),
    Many(Box<Pattern>),
}

/// Own indices one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub at: u64,
    pub length: u64,
}

/// Spans that come `count` times, each time `step` further, and then a last few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub spans: Vec<Span>,
    pub step: u64,
    pub count: u64,
    pub tail: Vec<Span>,
    pub total: u64,
}

impl Axis {
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
        own: &Comb,
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
                Some(Self::Many(Box::new(Pattern {
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
pub(crate) fn meet(own: &Comb, other: &Comb) -> Option<Axis> {
    let (lower, upper) = (own.lower.max(other.lower), own.upper.min(other.upper));
    if lower >= upper {
        return None;
    }
    if own.teeth.is_none() && other.teeth.is_none() {
        return Some(Axis::One(Span {
            at: own.local(lower),
            length: upper - lower,
        }));
    }
    let period = common(own.period(), other.period());
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
    Axis::new(own, pieces.into_iter(), lower, upper, period)
}

/// What `own` shares with each process of a dimension that it shares something with, by process.
pub(crate) fn meet_all(own: &Comb, dimension: &Dimension, clip: Clip) -> Vec<(u32, Axis)> {
    let (lower, upper) = (own.lower, own.upper.min(clip.extent));
    if lower >= upper {
        return Vec::new();
    }
    let Some((width, procs)) = dimension.teeth() else {
        let among = dimension.owner(lower + clip.lower)..=dimension.owner(upper - 1 + clip.lower);
        return among
            .filter_map(|process| Some((process, meet(own, &Comb::of(dimension, process, clip))?)))
            .collect();
    };
    let period = common(own.period(), width.saturating_mul(procs));
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
        Some((group[0].0, Axis::new(own, pieces, lower, upper, period)?))
    });
    axes.collect()
}

/// The least common multiple, capped where 64 bits end: then it is beyond every array.
fn common(one: u64, other: u64) -> u64 {
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
    fn owned(dimension: &Dimension, process: u32, clip: Clip) -> Vec<u64> {
        (0..clip.extent)
            .filter(|at| dimension.owner(at + clip.lower) == process)
            .collect()
    }

    /// An index among those of its owner, counted from 0.
    fn number(dimension: &Dimension, index: u64) -> u64 {
        (0..index)
            .filter(|before| dimension.owner(*before) == dimension.owner(index))
            .count() as u64
    }

    fn spreads(extent: u64, procs: u32) -> Vec<Dimension> {
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
        .map(|spread| Dimension::new(0, extent, procs, spread).unwrap())
        .into()
    }

    #[test]
    fn what_two_combs_share_is_what_both_own() {
        let (ours, theirs) = (
            Clip {
                lower: 3,
                extent: 29,
            },
            Clip {
                lower: 8,
                extent: 29,
            },
        );
        for own_rule in spreads(33, 3) {
            for rule in spreads(40, 4) {
                for process in 0..3 {
                    let own = Comb::of(&own_rule, process, ours);
                    let mine = owned(&own_rule, process, ours);
                    assert_eq!(own.count(), mine.len() as u64);
                    let pieces = own.pieces().flat_map(|(at, length)| at..at + length);
                    assert_eq!(pieces.collect::<Vec<_>>(), mine);
                    let all = meet_all(&own, &rule, theirs);
                    for other in 0..4 {
                        let other_comb = Comb::of(&rule, other, theirs);
                        let shared = owned(&rule, other, theirs)
                            .into_iter()
                            .filter(|at| mine.contains(at));
                        let expected: Vec<u64> = shared
                            .map(|at| number(&own_rule, at + ours.lower))
                            .collect();
                        for axis in [
                            meet(&own, &other_comb).as_ref(),
                            all.iter()
                                .find(|(process, _)| *process == other)
                                .map(|(_, axis)| axis),
                        ] {
                            let spans = axis.into_iter().flat_map(Axis::spans);
                            let got: Vec<u64> = spans
                                .flat_map(|span| span.at..span.at + span.length)
                                .collect();
                            assert_eq!(
                                got, expected,
                                "{own_rule:?} {process} and {rule:?} {other}"
                            );
                            assert_eq!(axis.map_or(0, Axis::total), expected.len() as u64);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_pattern_is_as_long_as_one_period_however_long_the_array() {
        let extent = 1 << 40;
        let clip = Clip { lower: 0, extent };
        let cyclic = Dimension::new(0, extent, 8, Spread::Cyclic(3)).unwrap();
        let block = Dimension::new(0, extent, 2, Spread::Block).unwrap();
        let all = meet_all(&Comb::of(&block, 0, clip), &cyclic, clip);
        assert_eq!(all.len(), 8);
        let Axis::Many(pattern) = &all[3].1 else {
            panic!("{all:?}")
        };
        assert_eq!((pattern.spans.len(), pattern.step), (1, 24));
        // Of its own a cyclic rank sends the block's half in one piece.
        let all = meet_all(&Comb::of(&cyclic, 3, clip), &block, clip);
        assert!(matches!(all[0], (0, Axis::One(_))), "{all:?}");
        let other = Dimension::new(0, extent, 3, Spread::Cyclic(5)).unwrap();
        let Axis::Many(pattern) =
            meet(&Comb::of(&cyclic, 1, clip), &Comb::of(&other, 0, clip)).unwrap()
        else {
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
        let clip = Clip { lower: 0, extent };
        let one = Dimension::new(0, extent, 7, Spread::Cyclic((1 << 58) - 1)).unwrap();
        let other = Dimension::new(0, extent, 1 << 31, Spread::Cyclic((1 << 57) - 1)).unwrap();
        let shared: u64 = (0..7)
            .flat_map(|process| meet_all(&Comb::of(&one, process, clip), &other, clip))
            .map(|(_, axis)| axis.total())
            .sum();
        assert_eq!(shared, extent);
        let clip = Clip {
            lower: 5,
            extent: extent - 5,
        };
        let (one, other) = (
            Comb::of(&one, 6, clip),
            Comb::of(&other, (1 << 31) - 1, clip),
        );
        assert_eq!((meet(&one, &other), meet(&other, &one)), (None, None));
    }
}
