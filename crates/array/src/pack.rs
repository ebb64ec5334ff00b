//! Packs messages from arrays, and unpacks messages into arrays.

use std::ops::Range;

use crate::copy_kernel::{ByteOffsets, CopyBytes, LoopNest, StridedLoop, plain};
use crate::copy_plan::{CopyPlan, ElementStrides};
use crate::partner::{SharedPiece, Strip};
use crate::partner_list::SharedElements;
use crate::strided_indices::AxisIndices;
use crate::{Dims, Error, LocalLayout, Order, Partner, Schedule};

/// An array of a sender.
#[derive(Debug, Clone, Copy)]
pub struct SourceArray<'a> {
    /// The memory, from the beginning of the layout on.
    pub memory: &'a [u8],
    /// The layout of the elements.
    pub local: &'a LocalLayout,
    /// The bytes of one element.
    pub size: usize,
}

/// An array of a receiver.
#[derive(Debug)]
pub struct TargetArray<'a> {
    /// The memory, from the beginning of the layout on.
    pub memory: &'a mut [u8],
    /// The layout of the elements.
    pub local: &'a LocalLayout,
    /// The bytes of one element.
    pub size: usize,
}

/// A range of bytes of a message that has `elements` elements of each field.
#[derive(Clone)]
struct MessagePart {
    begin: u64,
    end: u64,
    elements: u64,
    /// The beginning of the next field in the message.
    before: u64,
}

impl MessagePart {
    /// The elements of the next field in this range.
    fn pass(&mut self, size: usize) -> Range<u64> {
        let number = |byte: u64| {
            let number = byte.saturating_sub(self.before).checked_div(size as u64);
            number.unwrap_or(0).min(self.elements)
        };
        let range = number(self.begin)..number(self.end);
        self.before = self
            .before
            .saturating_add(self.elements.saturating_mul(size as u64));
        range
    }

    /// The number of bytes of whole elements in this range.
    fn covers(mut self, sizes: impl IntoIterator<Item = usize>) -> u64 {
        let mut bytes = |size| {
            let range = self.pass(size);
            (range.end - range.start) * size as u64
        };
        sizes.into_iter().map(&mut bytes).sum()
    }
}

impl Schedule {
    /// The bytes of a message for or from a partner, for fields with elements of these sizes.
    pub fn bytes(&self, partner: usize, sizes: impl IntoIterator<Item = usize>) -> u64 {
        let sum = sizes
            .into_iter()
            .fold(0u64, |sum, size| sum.saturating_add(size as u64));
        self.elements_of(partner).saturating_mul(sum)
    }

    /// The last end of a whole element at or before a byte of the message: a part of the message
    /// may end there.
    pub fn end_of_element(
        &self,
        partner: usize,
        sizes: impl IntoIterator<Item = usize>,
        byte: u64,
    ) -> u64 {
        let elements = self.elements_of(partner);
        MessagePart {
            begin: 0,
            end: byte,
            elements,
            before: 0,
        }
        .covers(sizes)
    }

    /// The bytes of a field's memory that are equal to the message: then the message may be sent
    /// from or received into the memory without packing. `None` if the elements are not contiguous
    /// in the order of the message.
    pub fn in_place(
        &self,
        partner: usize,
        local: &LocalLayout,
        size: usize,
    ) -> Option<Range<usize>> {
        if !self.fits(local) {
            return None;
        }
        let length = usize::try_from(self.bytes(partner, [size])).ok()?;
        let mut begin = None;
        match self.content(partner) {
            SharedElements::Pieces(pieces) => {
                let [piece] = &*pieces else { return None };
                let mut plan = CopyPlan::new(self.axes(piece), size);
                let dense = plan.dense(self.order, 0);
                plan.execute(
                    &ElementStrides::of(&local.blocks[piece.block as usize]),
                    &dense,
                    |copy, at| {
                        begin = copy.is_one_piece(length).then_some(at.from as usize);
                    },
                );
            }
            SharedElements::Strips(strips) => {
                let strip = strips.only()?;
                each_row(std::iter::once(strip), local, |at, stride, count| {
                    let whole = count == strip.length && (stride == 1 || count == 1);
                    begin = whole.then_some(at as usize * size);
                });
            }
        }
        begin.map(|begin| begin..begin + length)
    }

    /// Writes the message for a partner, field after field, from byte `begin` on until `message` is
    /// full. So a message may be packed and sent in several parts, each of whole elements.
    pub fn pack(
        &self,
        partner: usize,
        fields: &[SourceArray],
        begin: u64,
        message: &mut [u8],
    ) -> Result<(), Error> {
        self.pack_by(plain, partner, fields, begin, message)
    }

    /// As [`Schedule::pack`]; `copy` copies contiguous bytes.
    pub fn pack_by(
        &self,
        copy: CopyBytes,
        partner: usize,
        fields: &[SourceArray],
        begin: u64,
        message: &mut [u8],
    ) -> Result<(), Error> {
        let sizes = fields.iter().map(|field| field.size);
        let (mut part, mut rest) = (self.part(partner, sizes, begin, message.len())?, message);
        let content = self.content(partner);
        for field in fields {
            self.layout(field.local, field.memory.len(), field.size)?;
            let range = part.pass(field.size);
            if range.is_empty() {
                continue;
            }
            let (bytes, after) = rest.split_at_mut((range.end - range.start) as usize * field.size);
            match &content {
                SharedElements::Strips(strips) => {
                    pack_strips(strips.cut(range), field, bytes, copy)
                }
                SharedElements::Pieces(pieces) => {
                    self.pack_pieces(pieces, range, field, bytes, copy)
                }
            }
            rest = after;
        }
        Ok(())
    }

    /// Writes the elements of a partner's message into the fields. `message` is the whole message,
    /// or the part from byte `begin` on.
    pub fn unpack(
        &self,
        partner: usize,
        begin: u64,
        message: &[u8],
        fields: &mut [TargetArray],
    ) -> Result<(), Error> {
        self.unpack_by(plain, partner, begin, message, fields)
    }

    /// As [`Schedule::unpack`]; `copy` copies contiguous bytes.
    pub fn unpack_by(
        &self,
        copy: CopyBytes,
        partner: usize,
        begin: u64,
        message: &[u8],
        fields: &mut [TargetArray],
    ) -> Result<(), Error> {
        let sizes = fields.iter().map(|field| field.size);
        let (mut part, mut rest) = (self.part(partner, sizes, begin, message.len())?, message);
        let content = self.content(partner);
        for field in fields {
            self.layout(field.local, field.memory.len(), field.size)?;
            let range = part.pass(field.size);
            if range.is_empty() {
                continue;
            }
            let (bytes, after) = rest.split_at((range.end - range.start) as usize * field.size);
            match &content {
                SharedElements::Strips(strips) => {
                    unpack_strips(strips.cut(range), bytes, field, copy)
                }
                SharedElements::Pieces(pieces) => {
                    self.unpack_pieces(pieces, range, bytes, field, copy)
                }
            }
            rest = after;
        }
        Ok(())
    }

    fn pack_pieces(
        &self,
        pieces: &[SharedPiece],
        range: Range<u64>,
        field: &SourceArray,
        message: &mut [u8],
        bytes: CopyBytes,
    ) {
        self.each_plan(pieces, range, field.size, |piece, mut plan, begin| {
            let dense = plan.dense(self.order, begin);
            let block = &field.local.blocks[piece.block as usize];
            plan.execute(&ElementStrides::of(block), &dense, |copy, at| {
                copy.copy(at, field.memory, message, bytes)
            });
        });
    }

    fn unpack_pieces(
        &self,
        pieces: &[SharedPiece],
        range: Range<u64>,
        message: &[u8],
        field: &mut TargetArray,
        bytes: CopyBytes,
    ) {
        self.each_plan(pieces, range, field.size, |piece, mut plan, begin| {
            let dense = plan.dense(self.order, begin);
            let block = &field.local.blocks[piece.block as usize];
            plan.reverse();
            plan.execute(&dense, &ElementStrides::of(block), |copy, at| {
                copy.copy(at, message, field.memory, bytes)
            });
        });
    }

    /// Calls `plan` with the plans for a range of a field's elements in the message, and with the
    /// place of each plan in the range.
    pub(crate) fn each_plan(
        &self,
        pieces: &[SharedPiece],
        range: Range<u64>,
        size: usize,
        mut plan: impl FnMut(&SharedPiece, CopyPlan, u64),
    ) {
        let first = pieces
            .partition_point(|piece| piece.before <= range.start)
            .saturating_sub(1);
        for piece in pieces[first..]
            .iter()
            .take_while(|piece| piece.before < range.end)
        {
            let whole = CopyPlan::new(self.axes(piece), size);
            let after = piece.before + whole.elements;
            let (begin, end) = (range.start.max(piece.before), range.end.min(after));
            if (begin, end) == (piece.before, after) {
                plan(piece, whole, begin - range.start);
            } else {
                let inside = begin - piece.before..end - piece.before;
                whole.parts(self.order, inside, |part, at| {
                    plan(piece, part, piece.before + at - range.start)
                });
            }
        }
    }

    fn elements_of(&self, partner: usize) -> u64 {
        self.partner(partner)
            .expect("the place of a partner")
            .elements
    }

    /// The part of a partner's message from `begin` on with `found` bytes; refused unless these are
    /// whole elements.
    fn part(
        &self,
        partner: usize,
        sizes: impl Iterator<Item = usize> + Clone,
        begin: u64,
        found: usize,
    ) -> Result<MessagePart, Error> {
        let Some(Partner { rank, elements }) = self.partner(partner) else {
            return Err(Error::Memory(format!(
                "a message for partner {partner} of {}",
                self.count()
            )));
        };
        let end = begin.saturating_add(found as u64);
        let part = MessagePart {
            begin,
            end,
            elements,
            before: 0,
        };
        let whole = self.bytes(partner, sizes.clone());
        let before = MessagePart {
            begin: 0,
            end: begin,
            elements,
            before: 0,
        };
        if end > whole
            || before.covers(sizes.clone()) != begin
            || part.clone().covers(sizes) != found as u64
        {
            return Err(Error::Memory(format!(
                "bytes {begin} to {end} are no whole elements of the message between this rank and rank {rank}, which has \
                 {whole} bytes; give the same fields, with elements of the same size, on both sides"
            )));
        }
        Ok(part)
    }

    pub(crate) fn layout(
        &self,
        local: &LocalLayout,
        found: usize,
        size: usize,
    ) -> Result<(), Error> {
        if !self.fits(local) {
            let text = |extents: &mut dyn Iterator<Item = &Dims>| {
                extents
                    .take(4)
                    .map(Dims::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let expected = text(&mut self.shapes.iter());
            let found = text(&mut local.blocks.iter().map(|block| &block.extents));
            return Err(Error::Memory(format!(
                "an array of {found} where the rank owns {expected}, the halo not counted"
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

/// Copies the elements that a rank sends to itself, or to a rank in the same process, without a
/// message. Both schedules must belong to one exchange; `to` is the place of the receiver among the
/// sender's partners, `from` the place of the sender among the receiver's partners.
pub fn copy(
    sending: &Schedule,
    to: usize,
    source: &SourceArray,
    receiving: &Schedule,
    from: usize,
    target: &mut TargetArray,
) -> Result<(), Error> {
    let (sent, received) = (sending.partner(to), receiving.partner(from));
    let elements = sent.map(|partner| partner.elements);
    if elements.is_none() || elements != received.map(|partner| partner.elements) {
        return Err(different_exchanges());
    }
    if source.size != target.size {
        return Err(different_exchanges());
    }
    sending.layout(source.local, source.memory.len(), source.size)?;
    receiving.layout(target.local, target.memory.len(), target.size)?;
    match (sending.content(to), receiving.content(from)) {
        (SharedElements::Pieces(ours), SharedElements::Pieces(theirs)) => {
            copy_pieces((sending, &ours, source), (receiving, &theirs, target))
        }
        // Elements by indices: a message costs little compared with finding the elements.
        _ => copy_by_message((sending, to, source), (receiving, from, target)),
    }
}

fn different_exchanges() -> Error {
    Error::Memory("schedules of different exchanges, or elements of different sizes".into())
}

fn copy_pieces(
    (sending, ours, source): (&Schedule, &[SharedPiece], &SourceArray),
    (receiving, theirs, target): (&Schedule, &[SharedPiece], &mut TargetArray),
) -> Result<(), Error> {
    let totals = |schedule: &Schedule, piece: &SharedPiece| -> Vec<u64> {
        schedule.axes(piece).map(AxisIndices::total).collect()
    };
    let pairs = || ours.iter().zip(theirs);
    let is_equal = |(our, their)| totals(sending, our) == totals(receiving, their);
    if ours.len() != theirs.len() || !pairs().all(is_equal) {
        return Err(different_exchanges());
    }
    for (our, their) in pairs() {
        let axes = sending.axes(our).zip(receiving.axes(their));
        CopyPlan::between_arrays(axes, source.size).execute(
            &ElementStrides::of(&source.local.blocks[our.block as usize]),
            &ElementStrides::of(&target.local.blocks[their.block as usize]),
            |copy, at| copy.copy(at, source.memory, target.memory, plain),
        );
    }
    Ok(())
}

fn copy_by_message(
    (sending, to, source): (&Schedule, usize, &SourceArray),
    (receiving, from, target): (&Schedule, usize, &mut TargetArray),
) -> Result<(), Error> {
    let mut message = vec![0; sending.bytes(to, [source.size]) as usize];
    sending.pack(to, &[*source], 0, &mut message)?;
    let target = TargetArray {
        memory: &mut *target.memory,
        local: target.local,
        size: target.size,
    };
    receiving.unpack(from, 0, &message, &mut [target])
}

fn pack_strips(
    strips: impl Iterator<Item = Strip>,
    field: &SourceArray,
    message: &mut [u8],
    copy: CopyBytes,
) {
    if let (8, Some(begin)) = (field.size, list(field.local)) {
        return gather::<8>(strips, begin, field.memory, message);
    }
    if let (4, Some(begin)) = (field.size, list(field.local)) {
        return gather::<4>(strips, begin, field.memory, message);
    }
    let (mut to, size) = (0, field.size as isize);
    each_row(strips, field.local, |at, stride, length| {
        let mut loops = LoopNest::new(field.size);
        loops.push(StridedLoop {
            extent: length as usize,
            from: stride as isize * size,
            to: size,
        });
        loops.copy(
            ByteOffsets {
                from: at as isize * size,
                to,
            },
            field.memory,
            message,
            copy,
        );
        to += length as isize * size;
    });
}

fn unpack_strips(
    strips: impl Iterator<Item = Strip>,
    message: &[u8],
    field: &mut TargetArray,
    copy: CopyBytes,
) {
    if let (8, Some(begin)) = (field.size, list(field.local)) {
        return scatter::<8>(strips, begin, message, field.memory);
    }
    if let (4, Some(begin)) = (field.size, list(field.local)) {
        return scatter::<4>(strips, begin, message, field.memory);
    }
    let (mut from, size) = (0, field.size as isize);
    each_row(strips, field.local, |at, stride, length| {
        let mut loops = LoopNest::new(field.size);
        loops.push(StridedLoop {
            extent: length as usize,
            from: size,
            to: stride as isize * size,
        });
        loops.copy(
            ByteOffsets {
                from,
                to: at as isize * size,
            },
            message,
            field.memory,
            copy,
        );
        from += length as isize * size;
    });
}

/// The beginning of a contiguous array of one dimension, the usual layout of unstructured codes.
fn list(local: &LocalLayout) -> Option<u64> {
    match &local.blocks[..] {
        [block] if block.extents.len() == 1 && block.strides[0] == 1 => Some(block.offset),
        _ => None,
    }
}

/// Copies strips of a contiguous array into a message, for elements of a size that the compiler
/// knows.
fn gather<const SIZE: usize>(
    strips: impl Iterator<Item = Strip>,
    begin: u64,
    list: &[u8],
    message: &mut [u8],
) {
    let (list, mut message) = (
        list.as_chunks::<SIZE>().0,
        message.as_chunks_mut::<SIZE>().0.iter_mut(),
    );
    strips.for_each(|strip| {
        let (at, length) = ((begin + strip.at) as usize, strip.length as usize);
        list[at..at + length]
            .iter()
            .zip(message.by_ref())
            .for_each(|(from, to)| *to = *from);
    });
}

/// Copies a message into strips of a contiguous array, for elements of a size that the compiler
/// knows.
fn scatter<const SIZE: usize>(
    strips: impl Iterator<Item = Strip>,
    begin: u64,
    message: &[u8],
    list: &mut [u8],
) {
    let (list, mut message) = (
        list.as_chunks_mut::<SIZE>().0,
        message.as_chunks::<SIZE>().0.iter(),
    );
    strips.for_each(|strip| {
        let (at, length) = ((begin + strip.at) as usize, strip.length as usize);
        list[at..at + length]
            .iter_mut()
            .zip(message.by_ref())
            .for_each(|(to, from)| *to = *from);
    });
}

/// Cuts strips at the ends of rows, and calls `row` with the first element, the stride and the
/// number of elements.
fn each_row(
    strips: impl Iterator<Item = Strip>,
    local: &LocalLayout,
    mut row: impl FnMut(i64, i64, u64),
) {
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
            let inside: i64 = point
                .iter()
                .zip(&*block.strides)
                .map(|(index, stride)| *index as i64 * stride)
                .sum();
            let length = (block.extents[last] - point[last]).min(end - at);
            row(block.offset as i64 + inside, block.strides[last], length);
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Decomposition, ElementRequest, Exchange, IndexRange, Ownership, Role, Side, Spread,
    };

    fn bytes(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
        values.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn transposed() -> (Exchange, LocalLayout, LocalLayout) {
        let whole = Decomposition::serial(&[2, 3]).unwrap();
        let side = Side::new(whole.clone());
        let exchange = Exchange::new(side.clone(), side.order(Order::Fortran)).unwrap();
        let local = |order| LocalLayout::dense(&whole, 0, &Ownership::Rule, None, order).unwrap();
        (exchange, local(Order::C), local(Order::Fortran))
    }

    #[test]
    fn a_part_of_a_message_ends_behind_an_element() {
        let (exchange, ..) = transposed();
        let schedule = exchange.schedule(Role::Sender, 0).unwrap();
        let ends = |byte| schedule.end_of_element(0, [4, 1], byte);
        assert_eq!(
            [0, 3, 10, 24, 25, 30, 99].map(ends),
            [0, 0, 8, 24, 25, 30, 30]
        );
    }

    #[test]
    fn messages_come_in_the_order_of_the_receiver_and_field_after_field() {
        let (exchange, local, _) = transposed();
        let schedule = exchange.schedule(Role::Sender, 0).unwrap();
        let (memory, other) = (bytes(0..6), [10, 11, 12, 13, 14, 15]);
        let mut message = [0; 30];
        let fields = [
            SourceArray {
                memory: &memory,
                local: &local,
                size: 4,
            },
            SourceArray {
                memory: &other,
                local: &local,
                size: 1,
            },
        ];
        schedule.pack(0, &fields, 0, &mut message).unwrap();
        assert_eq!(message[..24], bytes([0, 3, 1, 4, 2, 5]));
        assert_eq!(message[24..], [10, 13, 11, 14, 12, 15]);
    }

    #[test]
    fn a_copy_is_pack_and_unpack() {
        let (exchange, from, to) = transposed();
        let schedules =
            [Role::Sender, Role::Receiver].map(|role| exchange.schedule(role, 0).unwrap());
        let (memory, mut got) = (bytes(0..6), vec![0; 24]);
        let mut target = TargetArray {
            memory: &mut got,
            local: &to,
            size: 4,
        };
        let source = SourceArray {
            memory: &memory,
            local: &from,
            size: 4,
        };
        copy(&schedules[0], 0, &source, &schedules[1], 0, &mut target).unwrap();
        assert_eq!(got, bytes([0, 3, 1, 4, 2, 5]));
    }

    #[test]
    fn copies_between_schedules_that_do_not_belong_together_are_refused() {
        let (exchange, from, to) = transposed();
        let schedules =
            [Role::Sender, Role::Receiver].map(|role| exchange.schedule(role, 0).unwrap());
        let (memory, mut got) = (bytes(0..6), vec![0; 24]);
        for (receiver, sender, size) in [(0, 1, 4), (1, 0, 4), (0, 0, 2)] {
            let mut target = TargetArray {
                memory: &mut got,
                local: &to,
                size,
            };
            let source = SourceArray {
                memory: &memory,
                local: &from,
                size: 4,
            };
            let error = copy(
                &schedules[0],
                receiver,
                &source,
                &schedules[1],
                sender,
                &mut target,
            )
            .unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("schedules of different exchanges"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_lies_together_needs_no_packing() {
        let shape = [8, 6];
        let rows = Decomposition::block(&shape, &[4, 1]).unwrap();
        let partner = |to: Side, local: &LocalLayout| {
            let exchange = Exchange::new(Side::new(rows.clone()), to).unwrap();
            exchange
                .schedule(Role::Sender, 1)
                .unwrap()
                .in_place(0, local, 8)
        };
        let (halves, columns) = (
            Decomposition::block(&shape, &[2, 1]),
            Decomposition::block(&shape, &[1, 2]),
        );
        let (halves, columns) = (Side::new(halves.unwrap()), Side::new(columns.unwrap()));
        let dense = LocalLayout::dense(&rows, 1, &Ownership::Rule, None, Order::C).unwrap();
        assert_eq!(partner(halves.clone(), &dense), Some(0..96));
        assert_eq!(partner(halves.clone().order(Order::Fortran), &dense), None);
        assert_eq!(partner(columns, &dense), None);
        // With a halo of rows the owned elements are contiguous, with a halo of columns they are
        // not.
        let halo = |rows, columns| {
            LocalLayout::array(
                &[2 + 2 * rows, 6 + 2 * columns],
                &[6 + 2 * columns as i64, 1],
                &Dims::new(&[(rows, rows), (columns, columns)]).unwrap(),
            )
            .unwrap()
        };
        assert_eq!(partner(halves.clone(), &halo(1, 0)), Some(48..144));
        assert_eq!(partner(halves, &halo(0, 1)), None);
    }

    #[test]
    fn a_run_of_a_list_needs_no_packing_either() {
        let from = Side::new(Decomposition::indices(&[9], 1).unwrap());
        let exchange = Exchange::new(
            from.clone(),
            Side::new(Decomposition::block(&[9], &[3]).unwrap()),
        )
        .unwrap();
        let parts = Ownership::indices([6, 7, 8, 0, 2, 1, 3, 4, 5]);
        let range = |first, length| IndexRange { first, length };
        let wants = [(0, range(0, 3)), (1, range(3, 3)), (2, range(6, 3))];
        let wants = wants.map(|(receiver, range)| (receiver, ElementRequest::Ranges(vec![range])));
        let schedule = exchange.sending(0, &parts, &wants).unwrap();
        let local = LocalLayout::dense(&from.decomposition, 0, &parts, None, Order::C).unwrap();
        let places: Vec<_> = (0..3)
            .map(|partner| schedule.in_place(partner, &local, 8))
            .collect();
        assert_eq!(places, [None, Some(48..72), Some(0..24)]);
        let apart = LocalLayout::strided(&[9], 0, &[2]).unwrap();
        assert_eq!(
            schedule.in_place(1, &apart, 8),
            None,
            "its elements do not lie together"
        );
    }

    #[test]
    fn memory_that_does_not_fit_is_refused() {
        let (exchange, local, _) = transposed();
        let schedule = exchange.schedule(Role::Sender, 0).unwrap();
        let pack = |memory: &[u8], local: &LocalLayout, message: usize| {
            let fields = [SourceArray {
                memory,
                local,
                size: 4,
            }];
            schedule
                .pack(0, &fields, 0, &mut vec![0; message])
                .map_err(|error| error.to_string())
        };
        let short = pack(&[0; 20], &local, 24).unwrap_err();
        assert_eq!(
            short,
            "an array has 20 bytes of memory; its layout needs 24"
        );
        for length in [22, 28] {
            let message = pack(&[0; 24], &local, length).unwrap_err();
            let wanted = format!(
                "bytes 0 to {length} are no whole elements of the message between this rank and rank 0,"
            );
            assert!(message.starts_with(&wanted), "{message}");
        }
        let fields = [SourceArray {
            local: &local,
            memory: &[0; 24],
            size: 4,
        }];
        assert!(
            schedule.pack(0, &fields, 2, &mut [0; 20]).is_err(),
            "it begins inside an element"
        );
        let other = LocalLayout::strided(&[3, 2], 0, &[2, 1]).unwrap();
        let layout = pack(&[0; 24], &other, 24).unwrap_err();
        assert_eq!(
            layout,
            "an array of 3 × 2 where the rank owns 2 × 3, the halo not counted"
        );
        assert_eq!(pack(&[0; 24], &local, 24), Ok(()));
    }

    #[test]
    fn patterns_are_loops_and_not_lists() {
        let cyclic = |procs: u32, block| {
            let spread = [Spread::Cyclic(block)];
            Side::new(
                Decomposition::regular(&[1 << 20], &[procs], &spread, Order::C, procs).unwrap(),
            )
        };
        let exchange = Exchange::new(cyclic(2, 4), cyclic(4, 3)).unwrap();
        let (sending, receiving) = (
            exchange.schedule(Role::Sender, 1).unwrap(),
            exchange.schedule(Role::Receiver, 2).unwrap(),
        );
        let (our, their) = (sending.find(2).unwrap(), receiving.find(1).unwrap());
        let SharedElements::Pieces(ours) = sending.content(our) else {
            panic!()
        };
        assert!(CopyPlan::new(sending.axes(&ours[0]), 8).most_stretches() < 8);
        let parts = (&Ownership::Rule, Order::C);
        let local = |side: &Side, rank| {
            LocalLayout::dense(&side.decomposition, rank, parts.0, None, parts.1).unwrap()
        };
        let (from, to) = (local(exchange.from(), 1), local(exchange.to(), 2));
        let memory: Vec<u8> = (0..from.length()).map(|n| (n % 251) as u8).collect();
        let (mut one, mut other) = (vec![0; to.length() as usize], vec![0; to.length() as usize]);
        let source = SourceArray {
            memory: &memory,
            local: &from,
            size: 1,
        };
        let mut target = TargetArray {
            memory: &mut one,
            local: &to,
            size: 1,
        };
        copy(&sending, our, &source, &receiving, their, &mut target).unwrap();
        let mut message = vec![0; sending.bytes(our, [1]) as usize];
        sending.pack(our, &[source], 0, &mut message).unwrap();
        let target = TargetArray {
            memory: &mut other,
            local: &to,
            size: 1,
        };
        receiving.unpack(their, 0, &message, &mut [target]).unwrap();
        assert!(one == other);
    }
}
