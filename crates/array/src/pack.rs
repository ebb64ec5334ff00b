//! Messages from arrays, and arrays from messages.

use std::cmp::Reverse;

use crate::comb::{Axis, Span};
use crate::kernel::{At, Loop, Loops};
use crate::local::Block;
use crate::schedule::{Parcel, Piece, Strip};
use crate::{Dims, Error, Local, Order, Schedule};

/// An array of a sender: its memory, how the elements lie there, and how many bytes each has.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// From where the layout counts on.
    pub memory: &'a [u8],
    /// Where the elements lie.
    pub local: &'a Local,
    /// The bytes of one element.
    pub size: usize,
}

/// An array of a receiver.
#[derive(Debug)]
pub struct Target<'a> {
    /// From where the layout counts on.
    pub memory: &'a mut [u8],
    /// Where the elements lie.
    pub local: &'a Local,
    /// The bytes of one element.
    pub size: usize,
}

impl Schedule {
    /// How many bytes a message of a partner's has, for fields with elements of these sizes.
    pub fn bytes(&self, partner: usize, sizes: impl IntoIterator<Item = usize>) -> u64 {
        let sum = sizes.into_iter().fold(0u64, |sum, size| sum.saturating_add(size as u64));
        self.partners()[partner].elements.saturating_mul(sum)
    }

    /// Writes the message for a partner: field after field. It must be [`Schedule::bytes`] long.
    pub fn pack(&self, partner: usize, fields: &[Source], message: &mut [u8]) -> Result<(), Error> {
        self.check(partner, fields.iter().map(|field| field.size), message.len())?;
        let mut rest = message;
        for field in fields {
            self.layout(field.local, field.memory.len(), field.size)?;
            let (part, after) = rest.split_at_mut(self.bytes(partner, [field.size]) as usize);
            match self.parcel(partner) {
                Parcel::Pieces(pieces) => self.pack_pieces(pieces, field, part),
                Parcel::Strips(strips) => pack_strips(strips, field, part),
            }
            rest = after;
        }
        Ok(())
    }

    /// Takes the message of a partner apart, field after field. Nothing but the elements in it is written.
    pub fn unpack(&self, partner: usize, message: &[u8], fields: &mut [Target]) -> Result<(), Error> {
        self.check(partner, fields.iter().map(|field| field.size), message.len())?;
        let mut rest = message;
        for field in fields {
            self.layout(field.local, field.memory.len(), field.size)?;
            let (part, after) = rest.split_at(self.bytes(partner, [field.size]) as usize);
            match self.parcel(partner) {
                Parcel::Pieces(pieces) => self.unpack_pieces(pieces, part, field),
                Parcel::Strips(strips) => unpack_strips(strips, part, field),
            }
            rest = after;
        }
        Ok(())
    }

    fn pack_pieces(&self, pieces: &[Piece], field: &Source, message: &mut [u8]) {
        let mut begin = 0;
        for piece in pieces {
            let block = &field.local.blocks[piece.block as usize];
            let mut plan = Plan::new(self, piece, field.size);
            let dense = plan.dense(self.order, begin);
            plan.run(&End::of(block), &dense, |copy, at| copy.copy(at, field.memory, message));
            begin += plan.elements;
        }
    }

    fn unpack_pieces(&self, pieces: &[Piece], message: &[u8], field: &mut Target) {
        let mut begin = 0;
        for piece in pieces {
            let block = &field.local.blocks[piece.block as usize];
            let mut plan = Plan::new(self, piece, field.size);
            let dense = plan.dense(self.order, begin);
            plan.turn();
            plan.run(&dense, &End::of(block), |copy, at| copy.copy(at, message, field.memory));
            begin += plan.elements;
        }
    }

    fn check(&self, partner: usize, sizes: impl Iterator<Item = usize>, found: usize) -> Result<(), Error> {
        let count = self.partners().len();
        if partner >= count {
            return Err(Error::Memory(format!("a message for partner {partner} of {count}")));
        }
        let (expected, rank) = (self.bytes(partner, sizes), self.partners()[partner].rank);
        if expected != found as u64 {
            return Err(Error::Memory(format!(
                "the message between this rank and rank {rank} has {found} bytes, not {expected}; give the same fields, with \
                 elements of the same size, on both sides"
            )));
        }
        Ok(())
    }

    fn layout(&self, local: &Local, found: usize, size: usize) -> Result<(), Error> {
        if !self.fits(local) {
            let text = |extents: &mut dyn Iterator<Item = &Dims>| {
                extents.take(4).map(Dims::to_string).collect::<Vec<_>>().join(", ")
            };
            let expected = text(&mut self.shapes.iter());
            let found = text(&mut local.blocks.iter().map(|block| &block.extents));
            return Err(Error::Memory(format!(
                "an array of {found} where the rank owns {expected}; give the extents without the halo"
            )));
        }
        let needed = u128::from(local.length()) * size as u128;
        if needed > found as u128 {
            return Err(Error::Memory(format!(
                "an array has {found} bytes of memory; its layout needs {needed}"
            )));
        }
        Ok(())
    }
}

/// Copies what a rank sends to itself, or to a rank in its process, without a message between. The schedules must be those of one
/// exchange; `to` is the place of the receiver among the sender's partners, `from` that of the sender among the receiver's.
pub fn copy(
    sending: &Schedule,
    to: usize,
    source: &Source,
    receiving: &Schedule,
    from: usize,
    target: &mut Target,
) -> Result<(), Error> {
    let bytes = receiving.partners().get(from).map_or(0, |partner| partner.elements);
    let bytes = (bytes as usize).saturating_mul(target.size);
    sending.check(to, std::iter::once(source.size), bytes)?;
    sending.layout(source.local, source.memory.len(), source.size)?;
    receiving.layout(target.local, target.memory.len(), target.size)?;
    let (Parcel::Pieces(ours), Parcel::Pieces(theirs)) = (sending.parcel(to), receiving.parcel(from)) else {
        // Single elements: a message between costs little beside looking for them.
        let mut message = vec![0; bytes];
        sending.pack(to, &[*source], &mut message)?;
        let target = Target { memory: &mut *target.memory, local: target.local, size: target.size };
        return receiving.unpack(from, &message, &mut [target]);
    };
    let totals =
        |schedule: &Schedule, piece: &Piece| -> Vec<u64> { schedule.axes(piece).map(Axis::total).collect() };
    let pairs = || ours.iter().zip(theirs);
    if ours.len() != theirs.len()
        || source.size != target.size
        || pairs().any(|(our, their)| totals(sending, our) != totals(receiving, their))
    {
        return Err(Error::Memory("schedules of different exchanges, or elements of different sizes".into()));
    }
    for (our, their) in pairs() {
        let mut plan =
            Plan { lanes: Default::default(), dims: our.axes.len(), elements: 0, size: source.size };
        for (lane, (one, other)) in plan.lanes.iter_mut().zip(sending.axes(our).zip(receiving.axes(their))) {
            beside(one, other, lane);
        }
        let ends = (
            End::of(&source.local.blocks[our.block as usize]),
            End::of(&target.local.blocks[their.block as usize]),
        );
        plan.run(&ends.0, &ends.1, |copy, at| copy.copy(at, source.memory, target.memory));
    }
    Ok(())
}

/// One end of a copy: where index 0 lies, and how far neighbours are apart, in elements.
struct End {
    offset: i64,
    strides: Dims<i64>,
}

impl End {
    fn of(block: &Block) -> Self {
        Self { offset: block.offset as i64, strides: block.strides }
    }
}

/// Indices along one dimension, at both ends: `count` times `length` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    length: u64,
    count: u64,
    from_step: u64,
    to_step: u64,
}

/// A piece, dimension by dimension: every combination of stretches is copied by loops.
struct Plan {
    lanes: [Vec<Stretch>; crate::MOST_DIMS],
    dims: usize,
    elements: u64,
    size: usize,
}

impl Plan {
    /// From own indices to those of a message.
    fn new(schedule: &Schedule, piece: &Piece, size: usize) -> Self {
        let mut plan = Self { lanes: Default::default(), dims: piece.axes.len(), elements: 1, size };
        for (lane, axis) in plan.lanes.iter_mut().zip(schedule.axes(piece)) {
            into_message(axis, lane);
            plan.elements *= axis.total();
        }
        plan
    }

    /// The piece in a message, from its element `begin` on.
    fn dense(&self, order: Order, begin: u64) -> End {
        let total = |lane: &Vec<Stretch>| lane.iter().map(|stretch| stretch.length * stretch.count).sum();
        let strides = order.strides(&Dims::from_fn(self.dims, |dim| total(&self.lanes[dim])));
        End { offset: begin as i64, strides: Dims::from_fn(self.dims, |dim| strides[dim] as i64) }
    }

    /// The other way round.
    fn turn(&mut self) {
        for stretch in self.lanes.iter_mut().flatten() {
            *stretch = Stretch {
                from: stretch.to,
                to: stretch.from,
                from_step: stretch.to_step,
                to_step: stretch.from_step,
                ..*stretch
            };
        }
    }

    /// Dimensions are gone through with the rows of memory fastest.
    fn run(&mut self, from: &End, to: &End, mut copy: impl FnMut(Loops, At)) {
        if self.lanes[..self.dims].iter().any(Vec::is_empty) {
            return;
        }
        let mut order: Dims<usize> = Dims::from_fn(self.dims, |dim| dim);
        order.sort_by_key(|dim| Reverse(to.strides[*dim].unsigned_abs()));
        self.cut(&order);
        let (lanes, size) = (&self.lanes[..self.dims], self.size as i64);
        let mut turn: Dims<usize> = Dims::all(self.dims, 0);
        loop {
            let (mut loops, mut at) = (Loops::new(self.size), (from.offset, to.offset));
            for (dim, lane) in lanes.iter().enumerate() {
                let stretch = &lane[turn[dim]];
                let (near, far) = (from.strides[dim], to.strides[dim]);
                at.0 += stretch.from as i64 * near;
                at.1 += stretch.to as i64 * far;
                let mut push = |extent: u64, near: i64, far: i64| {
                    let (from, to) = ((near * size) as isize, (far * size) as isize);
                    loops.push(Loop { extent: extent as usize, from, to });
                };
                push(stretch.count, near * stretch.from_step as i64, far * stretch.to_step as i64);
                push(stretch.length, near, far);
            }
            copy(loops, At { from: (at.0 * size) as isize, to: (at.1 * size) as isize });
            let more = |place: &usize| turn[order[*place]] + 1 < lanes[order[*place]].len();
            let Some(place) = (0..self.dims).rev().find(more) else { return };
            turn[order[place]] += 1;
            order[place + 1..].iter().for_each(|dim| turn[*dim] = 0);
        }
    }

    /// Where a row has several stretches, few rows are gone through at a time: they stay in the cache from stretch to stretch.
    fn cut(&mut self, order: &[usize]) {
        let Some((fastest, others)) = order.split_last() else { return };
        let row: u64 = self.lanes[*fastest].iter().map(|stretch| stretch.length * stretch.count).sum();
        if self.lanes[*fastest].len() < 2 {
            return;
        }
        let most = (AT_ONCE / row.max(1)).max(1);
        for dim in others {
            let lane = &mut self.lanes[*dim];
            *lane = lane.iter().flat_map(|stretch| stretch.cut(most)).collect();
        }
    }
}

/// So many elements stay in the cache, beside those that they are copied to.
const AT_ONCE: u64 = 8192;

/// An axis beside a message, in which its indices come one after the other.
fn into_message(axis: &Axis, lane: &mut Vec<Stretch>) {
    let mut one = |span: &Span, to, count, from_step, to_step| {
        lane.push(Stretch { from: span.at, to, length: span.length, count, from_step, to_step });
    };
    match axis {
        Axis::One(span) => one(span, 0, 1, 0, 0),
        Axis::Many(pattern) => {
            let width: u64 = pattern.spans.iter().map(|span| span.length).sum();
            let mut to = 0;
            for span in &pattern.spans {
                one(span, to, pattern.count, pattern.step, width);
                to += span.length;
            }
            to = width * pattern.count;
            for span in &pattern.tail {
                one(span, to, 1, 0, 0);
                to += span.length;
            }
        }
    }
}

/// Two axes beside each other, cut where either one is, and what comes again with the same steps as one stretch.
fn beside(from: &Axis, to: &Axis, lane: &mut Vec<Stretch>) {
    let (mut ours, mut theirs) = (from.spans(), to.spans());
    let (mut one, mut other) = (ours.next(), theirs.next());
    while let (Some(our), Some(their)) = (&mut one, &mut other) {
        let length = our.length.min(their.length);
        let joined = lane.last_mut().is_some_and(|last| last.join(our.at, their.at, length));
        if !joined {
            lane.push(Stretch { from: our.at, to: their.at, length, count: 1, from_step: 0, to_step: 0 });
        }
        for span in [&mut *our, &mut *their] {
            span.at += length;
            span.length -= length;
        }
        if our.length == 0 {
            one = ours.next();
        }
        if their.length == 0 {
            other = theirs.next();
        }
    }
}

impl Stretch {
    /// In pieces of so many indices, or a little more.
    fn cut(self, most: u64) -> impl Iterator<Item = Stretch> {
        // Either repetitions or indices that lie together.
        let (steps, by) =
            if self.count > 1 { (self.count, most.div_ceil(self.length)) } else { (self.length, most) };
        (0..steps).step_by(by as usize).map(move |begin| {
            let some = by.min(steps - begin);
            if self.count > 1 {
                let (from, to) = (self.from + begin * self.from_step, self.to + begin * self.to_step);
                Stretch { from, to, count: some, ..self }
            } else {
                Stretch { from: self.from + begin, to: self.to + begin, length: some, ..self }
            }
        })
    }

    /// Takes one more in, if it is as long and as far on as those before.
    fn join(&mut self, from: u64, to: u64, length: u64) -> bool {
        if length != self.length || from < self.from || to < self.to {
            return false;
        }
        let by = (from - self.from, to - self.to);
        if self.count == 1 {
            (self.from_step, self.to_step) = by;
        }
        let joins = by == (self.from_step * self.count, self.to_step * self.count);
        self.count += u64::from(joins);
        joins
    }
}

fn pack_strips(strips: &[Strip], field: &Source, message: &mut [u8]) {
    let mut to = 0;
    each_row(strips, field.local, |at, stride, length| {
        let count = length as usize * field.size;
        if stride == 1 && field.size == 8 && length == 1 {
            // The common case of unstructured codes: single doubles.
            message[to..to + 8].copy_from_slice(&field.memory[at as usize * 8..at as usize * 8 + 8]);
        } else {
            let mut loops = Loops::new(field.size);
            let size = field.size as isize;
            loops.push(Loop { extent: length as usize, from: stride as isize * size, to: size });
            loops.copy(At { from: at as isize * size, to: to as isize }, field.memory, message);
        }
        to += count;
    });
}

fn unpack_strips(strips: &[Strip], message: &[u8], field: &mut Target) {
    let mut from = 0;
    each_row(strips, field.local, |at, stride, length| {
        let count = length as usize * field.size;
        if stride == 1 && field.size == 8 && length == 1 {
            field.memory[at as usize * 8..at as usize * 8 + 8].copy_from_slice(&message[from..from + 8]);
        } else {
            let mut loops = Loops::new(field.size);
            let size = field.size as isize;
            loops.push(Loop { extent: length as usize, from: size, to: stride as isize * size });
            loops.copy(At { from: from as isize, to: at as isize * size }, message, field.memory);
        }
        from += count;
    });
}

/// Strips in memory, cut where rows end: where each begins, how far neighbours are apart, and how many there are.
fn each_row(strips: &[Strip], local: &Local, mut row: impl FnMut(i64, i64, u64)) {
    for strip in strips {
        let (mut at, end) = (strip.at, strip.at + strip.length);
        while at < end {
            let place = local.blocks.partition_point(|block| block.before <= at) - 1;
            let block = &local.blocks[place];
            let Some(last) = block.extents.len().checked_sub(1) else {
                row(block.offset as i64, 1, 1);
                at += 1;
                continue;
            };
            let point = match last {
                0 => Dims::all(1, at - block.before),
                _ => Order::C.point(at - block.before, &block.extents),
            };
            let inside: i64 =
                point.iter().zip(&*block.strides).map(|(index, stride)| *index as i64 * stride).sum();
            let length = (block.extents[last] - point[last]).min(end - at);
            row(block.offset as i64 + inside, block.strides[last], length);
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Exchange, Parts, Role, Side, Spread};

    fn bytes(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
        values.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn transposed() -> (Exchange, Local, Local) {
        let whole = Decomposition::serial(&[2, 3]).unwrap();
        let side = Side::new(whole.clone());
        let exchange = Exchange::new(side.clone(), side.order(Order::Fortran)).unwrap();
        let local = |order| Local::dense(&whole, 0, &Parts::Rule, None, order).unwrap();
        (exchange, local(Order::C), local(Order::Fortran))
    }

    #[test]
    fn messages_come_in_the_order_of_the_receiver_and_field_after_field() {
        let (exchange, local, _) = transposed();
        let schedule = exchange.schedule(Role::Sender, 0).unwrap();
        let (memory, other) = (bytes(0..6), [10, 11, 12, 13, 14, 15]);
        let mut message = [0; 30];
        let fields = [
            Source { memory: &memory, local: &local, size: 4 },
            Source { memory: &other, local: &local, size: 1 },
        ];
        schedule.pack(0, &fields, &mut message).unwrap();
        assert_eq!(message[..24], bytes([0, 3, 1, 4, 2, 5]));
        assert_eq!(message[24..], [10, 13, 11, 14, 12, 15]);
    }

    #[test]
    fn a_copy_is_pack_and_unpack() {
        let (exchange, from, to) = transposed();
        let schedules = [Role::Sender, Role::Receiver].map(|role| exchange.schedule(role, 0).unwrap());
        let (memory, mut got) = (bytes(0..6), vec![0; 24]);
        let mut target = Target { memory: &mut got, local: &to, size: 4 };
        let source = Source { memory: &memory, local: &from, size: 4 };
        copy(&schedules[0], 0, &source, &schedules[1], 0, &mut target).unwrap();
        assert_eq!(got, bytes([0, 3, 1, 4, 2, 5]));
    }

    #[test]
    fn memory_that_does_not_fit_is_refused() {
        let (exchange, local, _) = transposed();
        let schedule = exchange.schedule(Role::Sender, 0).unwrap();
        let pack = |memory: &[u8], local: &Local, message: usize| {
            let fields = [Source { memory, local, size: 4 }];
            schedule.pack(0, &fields, &mut vec![0; message]).map_err(|error| error.to_string())
        };
        let short = pack(&[0; 20], &local, 24).unwrap_err();
        assert_eq!(short, "an array has 20 bytes of memory; its layout needs 24");
        let message = pack(&[0; 24], &local, 20).unwrap_err();
        assert!(
            message.starts_with("the message between this rank and rank 0 has 20 bytes, not 24;"),
            "{message}"
        );
        let other = Local::strided(&[3, 2], 0, &[2, 1]).unwrap();
        let layout = pack(&[0; 24], &other, 24).unwrap_err();
        assert_eq!(layout, "an array of 3 × 2 where the rank owns 2 × 3; give the extents without the halo");
        assert_eq!(pack(&[0; 24], &local, 24), Ok(()));
    }

    #[test]
    fn patterns_are_loops_and_not_lists() {
        let cyclic = |procs: u32, block| {
            let spread = [Spread::Cyclic(block)];
            Side::new(Decomposition::regular(&[1 << 20], &[procs], &spread, Order::C, procs).unwrap())
        };
        let exchange = Exchange::new(cyclic(2, 4), cyclic(4, 3)).unwrap();
        let (sending, receiving) =
            (exchange.schedule(Role::Sender, 1).unwrap(), exchange.schedule(Role::Receiver, 2).unwrap());
        let (our, their) = (sending.find(2).unwrap(), receiving.find(1).unwrap());
        let (Parcel::Pieces(ours), Parcel::Pieces(_)) = (sending.parcel(our), receiving.parcel(their)) else {
            panic!()
        };
        let plan = Plan::new(&sending, &ours[0], 8);
        assert!(plan.lanes[0].len() < 8, "{:?}", plan.lanes[0]);
        let parts = (&Parts::Rule, Order::C);
        let local =
            |side: &Side, rank| Local::dense(&side.decomposition, rank, parts.0, None, parts.1).unwrap();
        let (from, to) = (local(exchange.from(), 1), local(exchange.to(), 2));
        let memory: Vec<u8> = (0..from.length()).map(|n| (n % 251) as u8).collect();
        let (mut one, mut other) = (vec![0; to.length() as usize], vec![0; to.length() as usize]);
        let source = Source { memory: &memory, local: &from, size: 1 };
        let mut target = Target { memory: &mut one, local: &to, size: 1 };
        copy(&sending, our, &source, &receiving, their, &mut target).unwrap();
        let mut message = vec![0; sending.bytes(our, [1]) as usize];
        sending.pack(our, &[source], &mut message).unwrap();
        let target = Target { memory: &mut other, local: &to, size: 1 };
        receiving.unpack(their, &message, &mut [target]).unwrap();
        assert!(one == other);
    }
}
