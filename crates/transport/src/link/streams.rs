//! The further streams of a link. The payloads of large messages leave by further streams in
//! pieces, each by a stream with room. On a measured line a message may go by few of the streams
//! ([`stream_shares`](super::stream_shares)).
//!
//! The first stream carries small messages, and the heads of large messages. The heads give the
//! order of each conduit. So a control message never waits behind megabytes, not even in the
//! system's buffers, and pieces may overtake each other. Senders queue for the streams; each writes
//! its message before the next sender begins. If no stream takes bytes for a while, the rest of the
//! message is copied to a queue, and the reactor writes the queue. An epoll descriptor watches all
//! further sockets; the reactor watches the epoll descriptor like a single socket.
//!
//! Streams may join while the link is open, at each end on its own: each piece says where it
//! belongs, so it does not matter by which stream it comes.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt;
use titin_wire::ConduitId;
use titin_wire::frame::{Frame, HEADER, Header, MAX_STREAMS, PIECE};

use super::full_time::{FullTime, MEASUREMENT};
use super::payload::{PayloadRest, slice_parts};
use super::room::RoomWait;
use super::socket::write;
use super::stream_rules::StreamRules;
use super::stream_shares::StreamShares;
use crate::carrier::Outgoing;
use crate::error::LinkError;
use crate::line_meter::LineMeter;
use crate::stream_growth::{StreamGrowth, StreamRequest};
use crate::stream_meter::{StreamMeter, StreamRoom};
use crate::ticket_queue::TicketQueue;
use titin_os::Descriptor;

/// Messages of at most this many bytes go by the first stream.
const SMALL: u64 = 128 << 10;

/// The sizes of pieces, except for a message's last.
const PIECES: PieceSizes = PieceSizes {
    smallest: 64 << 10,
    largest: PIECE as u64,
};

/// The same on a line between sites. A stream that has lost packets there may need a second for a
/// megabyte, or for 64 KiB on the longest lines.
const PIECES_OF_A_LINE: PieceSizes = PieceSizes {
    smallest: 8 << 10,
    largest: 32 << 10,
};

/// Into how many pieces for each stream the rest of a message is split at least.
const PIECES_PER_STREAM: u64 = 2;

/// The most bytes of copied messages written in one turn, for the sake of other threads.
const TURN: usize = 4 << 20;

/// The bytes of copied messages after which a stream lets the next stream have its turn.
const STREAM_TURN: usize = 1 << 20;

/// The further streams of one link.
pub(super) struct FurtherStreams {
    /// The places of the streams, in the order in which the streams have joined.
    places: Box<[OnceLock<FurtherStream>]>,
    /// The number of streams that have joined.
    count: AtomicUsize,
    epoll: Descriptor,
    output: TicketQueue<StreamOutputs, ()>,
    rules: Arc<StreamRules>,
    /// Asks for as many streams as titin chooses.
    suggest: StreamRequest,
    /// The meter of the line, if the medium measures the line.
    line: Option<Arc<LineMeter>>,
}

/// A further stream.
pub(crate) struct FurtherStream {
    socket: Descriptor,
    /// The bytes that came after the handshake, until they are parsed.
    first_bytes: Mutex<Vec<u8>>,
    /// The events of the socket, as watched by the epoll descriptor of the link's streams.
    watched: Mutex<epoll::EventFlags>,
    /// The meter of the stream, and the present size of the socket's send buffer, if the medium measures
    /// the line.
    meter: Option<(Arc<StreamMeter>, AtomicUsize)>,
}

/// The bytes under way on each stream, and the queue for all.
struct StreamOutputs {
    streams: Vec<StreamOutput>,
    /// The rests of messages, in private memory.
    queue: VecDeque<(MessagePieces, PayloadRest)>,
    /// No stream has taken anything for a while: the next thread does not wait for the streams
    /// again.
    stalled: bool,
    /// Chooses the number of streams on a line that no medium measures.
    growth: Option<(FullTime, StreamGrowth)>,
}

/// A frame of the queue, or the rest of a frame, that a stream writes from private memory.
#[derive(Default)]
struct StreamOutput {
    queued_frame: Vec<u8>,
    written: usize,
    watched: bool,
}

/// The pieces of a message, one after the other.
///
/// As in guided self-scheduling (Polychronopoulos and Kuck 1987), the pieces become smaller towards the
/// end of the message: so no stream still has much to send when the others have ended.
struct MessagePieces {
    conduit: ConduitId,
    sequence: u64,
    total: u64,
    offset: u64,
    /// The number of streams that carry the message.
    streams: u64,
    sizes: PieceSizes,
}

/// The bytes of the smallest and the largest piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PieceSizes {
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

/// A piece under way, written from the caller's memory.
struct PieceInProgress {
    header: [u8; HEADER],
    offset: u64,
    length: u64,
    written: u64,
}

/// The payload of a message under way, written from the caller's memory.
struct PayloadInProgress<'a> {
    message: &'a Outgoing<'a>,
    pieces: MessagePieces,
    /// What each stream carries of the message; `None` if each may carry any of it.
    shares: Option<StreamShares>,
    /// How many of the streams may begin pieces.
    used: usize,
    /// The piece under way on each stream.
    under_way: Vec<Option<PieceInProgress>>,
    /// Whether some of the message has been written.
    torn: bool,
}

impl MessagePieces {
    fn new(message: &Outgoing<'_>, streams: usize, sizes: PieceSizes) -> Self {
        let (head, total) = (&message.head, message.length());
        MessagePieces {
            conduit: head.conduit,
            sequence: head.sequence,
            total,
            offset: 0,
            streams: streams as u64,
            sizes,
        }
    }

    /// The next piece, of at most `most` bytes.
    fn next(&mut self, most: u64) -> Option<PieceInProgress> {
        let MessagePieces {
            conduit,
            sequence,
            total,
            offset,
            streams,
            sizes,
        } = *self;
        let rest = total - offset;
        let length = (rest / (PIECES_PER_STREAM * streams))
            .next_multiple_of(64)
            .clamp(sizes.smallest, sizes.largest)
            .min(rest)
            .min(most);
        self.offset += length;
        let frame = Frame::Piece {
            conduit,
            sequence,
            body: length,
            offset,
            total,
        };
        (length > 0).then(|| PieceInProgress {
            header: Header::from(&frame).encode(),
            offset,
            length,
            written: 0,
        })
    }

    fn is_done(&self) -> bool {
        self.offset == self.total
    }
}

impl PieceInProgress {
    /// The unwritten rest: of the header, and of the payload, as offset and length.
    fn rest(&self) -> (&[u8], u64, u64) {
        let header = &self.header[(self.written as usize).min(HEADER)..];
        let written = self.written.saturating_sub(HEADER as u64);
        (header, self.offset + written, self.length - written)
    }

    fn is_done(&self) -> bool {
        self.written == HEADER as u64 + self.length
    }
}

impl<'a> PayloadInProgress<'a> {
    /// A message by the first `used` of `streams` streams, or by those with a share.
    fn new(
        message: &'a Outgoing<'a>,
        streams: usize,
        used: usize,
        shares: Option<StreamShares>,
        sizes: PieceSizes,
    ) -> Self {
        let carrying = shares.as_ref().map_or(used, StreamShares::count);
        PayloadInProgress {
            message,
            pieces: MessagePieces::new(message, carrying, sizes),
            shares,
            used,
            under_way: (0..streams).map(|_| None).collect(),
            torn: false,
        }
    }

    /// The next piece for the stream at the place `number`.
    fn next_piece(&mut self, number: usize) -> Option<PieceInProgress> {
        if number >= self.used {
            return None;
        }
        let shares = self.shares.as_mut();
        let most = shares
            .as_ref()
            .map_or(u64::MAX, |shares| shares.rest(number));
        let piece = self.pieces.next(most)?;
        if let Some(shares) = shares {
            shares.take(number, piece.length);
        }
        Some(piece)
    }

    /// Lets all streams carry the rest: those with a share are slower than expected. False if they do
    /// already.
    fn use_all_streams(&mut self) -> bool {
        self.pieces.streams = self.used as u64;
        self.shares.take().is_some()
    }

    /// From now on the first `used` of `count` streams begin pieces. Streams with shares keep them, unless there are fewer
    /// streams than before.
    fn take_in_streams(&mut self, count: usize, used: usize) {
        self.under_way.resize_with(count, || None);
        if self.shares.is_none() || used < self.used {
            self.shares = None;
            self.pieces.streams = used as u64;
        }
        self.used = used;
    }

    fn is_done(&self) -> bool {
        self.pieces.is_done() && self.under_way.iter().all(Option::is_none)
    }
}

impl FurtherStream {
    /// A connection after the handshake; `first_bytes` came behind.
    pub(crate) fn new(
        socket: Descriptor,
        first_bytes: Vec<u8>,
        meter: Option<Arc<StreamMeter>>,
    ) -> Self {
        FurtherStream {
            socket,
            first_bytes: Mutex::new(first_bytes),
            watched: Mutex::new(epoll::EventFlags::IN),
            meter: meter.map(|meter| (meter, AtomicUsize::new(0))),
        }
    }

    pub(super) fn socket(&self) -> &Descriptor {
        &self.socket
    }

    /// Writes as much as one call takes; 0 if the socket is full.
    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let Some((meter, _)) = &self.meter else {
            return write(&self.socket, slices, None);
        };
        let most = slices.iter().map(|slice| slice.len()).sum();
        meter.begin_write(most);
        let outcome = write(&self.socket, slices, None);
        meter.note_unwritten(most - outcome.as_ref().copied().unwrap_or_default());
        outcome
    }

    /// The room of the stream for a new message. Has the socket's buffer suit the stream.
    fn room(&self, now: Instant) -> StreamRoom {
        let Some((meter, buffer)) = &self.meter else {
            return StreamRoom::default();
        };
        let size = meter.buffer();
        if buffer.swap(size, Ordering::Relaxed) != size {
            // Fails for a socket that is lost.
            let _ = sockopt::set_socket_send_buffer_size(&self.socket, size);
        }
        meter.room(now)
    }
}

impl FurtherStreams {
    /// Streams that have joined, at least one. More may join.
    pub(super) fn new(
        streams: Vec<FurtherStream>,
        rules: Arc<StreamRules>,
        line: Option<Arc<LineMeter>>,
    ) -> Result<Self, Errno> {
        let (count, suggest) = (streams.len(), rules.suggestion());
        let growth = match &line {
            None => Some(unmeasured_growth(count)),
            Some(line) => {
                line.grow(count, suggest.clone());
                None
            }
        };
        let places = 0..MAX_STREAMS;
        let further = FurtherStreams {
            places: places.map(|_| OnceLock::new()).collect(),
            count: AtomicUsize::new(0),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?.into(),
            output: TicketQueue::new(StreamOutputs {
                streams: Vec::new(),
                queue: VecDeque::new(),
                stalled: false,
                growth,
            }),
            rules,
            suggest,
            line,
        };
        for stream in streams {
            further.add(stream)?;
        }
        Ok(further)
    }

    /// Adds a stream that has joined; drops the stream if there is no place. Only the reactor adds.
    ///
    /// # Errors
    /// If the system does not watch the socket. The link does without the stream.
    pub(super) fn add(&self, stream: FurtherStream) -> Result<(), Errno> {
        let count = self.count();
        let Some(place) = self.places.get(count) else {
            return Ok(());
        };
        let data = epoll::EventData::new_u64(count as u64 + 1);
        epoll::add(&self.epoll, &stream.socket, data, epoll::EventFlags::IN)?;
        let _ = place.set(stream);
        self.count.store(count + 1, Ordering::Release);
        self.line
            .as_ref()
            .inspect(|line| line.note_streams(count + 1));
        Ok(())
    }

    /// Titin chooses the number of streams again, from the present one on.
    pub(super) fn choose_anew(&self) {
        self.line
            .as_ref()
            .inspect(|line| line.grow(self.count(), self.suggest.clone()));
    }

    /// The descriptor that is ready when a socket is.
    pub(super) fn epoll(&self) -> &Descriptor {
        &self.epoll
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// By how many of the streams this end sends: by the first ones.
    pub(super) fn used(&self) -> usize {
        self.rules.used(self.count())
    }

    /// The socket numbered `number`, from 1.
    pub(super) fn socket(&self, number: usize) -> &Descriptor {
        &self.stream(number - 1).socket
    }

    /// The sockets of all streams.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Descriptor> {
        self.streams().map(|stream| &stream.socket)
    }

    /// Takes the bytes that came after the handshake of the stream numbered `number`, from 1.
    pub(super) fn take_first_bytes(&self, number: usize) -> Vec<u8> {
        let first_bytes = &self.stream(number - 1).first_bytes;
        std::mem::take(
            &mut *first_bytes
                .lock()
                .expect("nothing panics while it is locked"),
        )
    }

    /// The stream at the place `index`, from 0.
    fn stream(&self, index: usize) -> &FurtherStream {
        self.places[index]
            .get()
            .expect("all up to the count have joined")
    }

    fn streams(&self) -> impl Iterator<Item = &FurtherStream> {
        (0..self.count()).map(|index| self.stream(index))
    }

    fn piece_sizes(&self) -> PieceSizes {
        let chosen = match self.line {
            Some(_) => PIECES_OF_A_LINE,
            None => PIECES,
        };
        self.rules.piece_sizes().unwrap_or(chosen)
    }

    /// What each of the first `used` streams carries of a new message of `total` bytes. `None` if all streams should carry the
    /// message, each as much as it takes.
    fn shares(&self, outputs: &StreamOutputs, used: usize, total: u64) -> Option<StreamShares> {
        let line = self.line.as_ref()?;
        let now = Instant::now();
        let room = |(number, stream): (usize, &StreamOutput)| {
            let room = self.stream(number).room(now);
            match stream.queued_frame.is_empty() {
                true => room,
                false => StreamRoom::default(),
            }
        };
        let rooms = outputs.streams.iter().enumerate().take(used).map(room);
        let rooms: Vec<StreamRoom> = rooms.collect();
        // The messages of the queue come first, by all streams.
        let is_free = outputs.queue.is_empty();
        let shares = is_free.then(|| StreamShares::of(total, &rooms)).flatten();
        let few = |shares: &StreamShares| shares.count() < rooms.len();
        line.note_message(shares.as_ref().is_some_and(few));
        shares
    }

    /// Whether the further streams should carry a message: a large message, unless the message
    /// supersedes others. The first stream drops superseded messages that have not left yet.
    pub(super) fn should_carry(&self, message: &Outgoing<'_>) -> bool {
        message.length() > SMALL && message.meta.supersedes.is_none() && self.rules.uses_further()
    }

    /// Writes the payload of a message; waits for a while if no stream takes anything, and then copies
    /// the rest to the queue. Returns the number of copied bytes.
    ///
    /// # Errors
    /// [`StreamFailure`]. The link is of no use any more, unless the error is about the message and
    /// no byte of the message was written.
    pub(super) fn send(
        &self,
        message: &Outgoing<'_>,
        room: &mut RoomWait<'_>,
    ) -> Result<u64, StreamFailure> {
        self.output.work_in_turn(
            |outputs, _| {
                outputs.take_in_streams(self.count());
                let outcome = self.write_message(outputs, message, room);
                self.watch(outputs);
                outcome
            },
            // No thread leaves anything here.
            |_, _| (),
        )
    }

    /// Writes the queue, as far as the sockets take bytes. A thread already at work does so
    /// instead.
    ///
    /// # Errors
    /// [`StreamFailure`]: the link is of no use any more.
    pub(super) fn flush(&self) -> Result<(), StreamFailure> {
        let mut outcome = Ok(());
        self.output
            .work_if_free(|outputs, _| outcome = self.write_queue_and_watch(outputs));
        outcome
    }

    /// Ends the process's own half of each connection, or both halves.
    pub(super) fn shut(&self, how: rustix::net::Shutdown) {
        for stream in self.streams() {
            let _ = rustix::net::shutdown(&stream.socket, how);
        }
    }

    /// Has the epoll descriptor no longer watch an ended stream.
    pub(super) fn unwatch(&self, number: usize) {
        let _ = epoll::delete(&self.epoll, self.socket(number));
    }

    fn write_queue_and_watch(&self, outputs: &mut StreamOutputs) -> Result<(), StreamFailure> {
        outputs.take_in_streams(self.count());
        let outcome = self.write_queue(outputs);
        let has_more = outputs.has_more();
        self.note_progress(outputs, has_more);
        self.watch(outputs);
        outcome
    }

    fn write_queue(&self, outputs: &mut StreamOutputs) -> Result<(), StreamFailure> {
        let (mut written, mut again) = (0, true);
        while again && written < TURN {
            again = false;
            for number in 0..outputs.streams.len() {
                let count = self.write_queued(outputs, number)?;
                again |= count > 0;
                written += count;
            }
        }
        Ok(())
    }

    /// Writes the payload of a message, or copies the rest to the queue.
    fn write_message(
        &self,
        outputs: &mut StreamOutputs,
        message: &Outgoing<'_>,
        room: &mut RoomWait<'_>,
    ) -> Result<u64, StreamFailure> {
        // The caller writes now; the reactor need not wake for room.
        outputs
            .streams
            .iter_mut()
            .enumerate()
            .for_each(|(number, stream)| self.watch_one(number, stream, false));
        let (streams, used, sizes) = (outputs.streams.len(), self.used(), self.piece_sizes());
        let shares = self.shares(outputs, used, message.length());
        let mut payload = PayloadInProgress::new(message, streams, used, shares, sizes);
        loop {
            outputs.take_in_streams(self.count());
            payload.take_in_streams(outputs.streams.len(), self.used());
            let written = self
                .write_round(outputs, &mut payload)
                .map_err(|failure| failure.torn_if(payload.torn))?;
            if payload.is_done() {
                let has_more = outputs.has_more();
                self.note_progress(outputs, has_more);
                return Ok(0);
            }
            if written > 0 {
                outputs.stalled = false;
                room.go_on();
                continue;
            }
            self.note_progress(outputs, true);
            let is_stalled = outputs.stalled || !self.writable(outputs, &payload, room)?;
            if is_stalled && payload.use_all_streams() {
                self.line.as_ref().inspect(|line| line.note_message(false));
                continue;
            }
            if is_stalled {
                outputs.stalled = true;
                let torn = payload.torn;
                return outputs
                    .copy_rest(payload)
                    .map_err(|why| StreamFailure::from(why).torn_if(torn));
            }
        }
    }

    /// Writes to each stream what the stream takes: its queued frames, and pieces of the payload.
    /// Returns the number of bytes.
    fn write_round(
        &self,
        outputs: &mut StreamOutputs,
        payload: &mut PayloadInProgress<'_>,
    ) -> Result<usize, StreamFailure> {
        let mut written = 0;
        for number in 0..payload.under_way.len() {
            // A stream ends a piece before the next piece begins.
            if payload.under_way[number].is_none() {
                written += self.write_queued(outputs, number)?;
                if !outputs.has_no_queued_frame(number) {
                    continue;
                }
                payload.under_way[number] = payload.next_piece(number);
            }
            let current = &mut payload.under_way[number];
            let Some(piece) = current else { continue };
            let before = piece.written;
            let outcome = self.write_piece(payload.message, number, piece);
            payload.torn |= piece.written > 0;
            outcome?;
            let count = (piece.written - before) as usize;
            outputs.note_written(count);
            written += count;
            current.take_if(|piece| piece.is_done());
        }
        Ok(written)
    }

    /// Writes the queued frame of a stream and pieces of the queue, up to `STREAM_TURN` bytes or a little
    /// more. Returns the number of bytes.
    fn write_queued(
        &self,
        outputs: &mut StreamOutputs,
        number: usize,
    ) -> Result<usize, StreamFailure> {
        let mut written = 0;
        loop {
            let stream = &mut outputs.streams[number];
            if stream.queued_frame.is_empty() {
                let mut queue = outputs.queue.front_mut().filter(|_| number < self.used());
                let Some((pieces, rest)) = &mut queue else {
                    return Ok(written);
                };
                if let Some(piece) = pieces.next(u64::MAX) {
                    stream.queued_frame.extend_from_slice(&piece.header);
                    stream
                        .queued_frame
                        .extend_from_slice(rest.part(piece.offset, piece.length));
                }
                if pieces.is_done() {
                    outputs.queue.pop_front();
                }
            }
            let rest = [IoSlice::new(&stream.queued_frame[stream.written..])];
            let count = self
                .stream(number)
                .write(&rest)
                .map_err(|why| StreamFailure::of(number, why))?;
            stream.written += count;
            written += count;
            let is_whole = stream.written == stream.queued_frame.len();
            if is_whole {
                stream.queued_frame = Vec::new();
                stream.written = 0;
            }
            outputs.note_written(count);
            if !is_whole {
                return Ok(written);
            }
            if written >= STREAM_TURN {
                return Ok(written);
            }
        }
    }

    /// Writes as much of a piece as the stream takes.
    fn write_piece(
        &self,
        message: &Outgoing<'_>,
        number: usize,
        piece: &mut PieceInProgress,
    ) -> Result<(), StreamFailure> {
        while !piece.is_done() {
            let (header, offset, length) = piece.rest();
            let mut slices = Vec::with_capacity(1 + message.parts.len());
            slices.extend((!header.is_empty()).then(|| IoSlice::new(header)));
            slice_parts(message.parts, offset, length, &mut slices);
            let written = self.stream(number).write(&slices);
            match written.map_err(|why| StreamFailure::of(number, why))? {
                0 => break,
                count => piece.written += count as u64,
            }
        }
        Ok(())
    }

    /// Waits until a stream with a frame under way takes bytes; false if none does for a while.
    fn writable(
        &self,
        outputs: &StreamOutputs,
        payload: &PayloadInProgress<'_>,
        room: &mut RoomWait<'_>,
    ) -> Result<bool, LinkError> {
        let waits = |number: &usize| {
            payload.under_way[*number].is_some() || !outputs.has_no_queued_frame(*number)
        };
        let sockets = (0..payload.under_way.len())
            .filter(waits)
            .map(|number| &*self.stream(number).socket);
        room.wait(sockets)
    }

    /// Notes whether bytes are left that no stream takes. Asks for more streams if they are worthwhile.
    fn note_progress(&self, outputs: &mut StreamOutputs, is_full: bool) {
        let Some((full, growth)) = &mut outputs.growth else {
            return;
        };
        let count = outputs.streams.len();
        if self.rules.is_count_set() {
            // The measurements begin anew once titin chooses again.
            (*full, *growth) = unmeasured_growth(count);
            return;
        }
        let now = Instant::now();
        let sample = full.note(count, is_full, now);
        let wanted = growth.note(count, sample, MEASUREMENT, now);
        wanted.inspect(|wanted| (self.suggest)(*wanted));
    }

    /// Has the epoll descriptor watch for room in each socket with waiting bytes.
    fn watch(&self, outputs: &mut StreamOutputs) {
        // A stream that this end does not send by any more writes the rest of its frame only.
        let (has_queue, used) = (!outputs.queue.is_empty(), self.used());
        for (number, stream) in outputs.streams.iter_mut().enumerate() {
            let wanted = (has_queue && number < used) || !stream.queued_frame.is_empty();
            self.watch_one(number, stream, wanted);
        }
    }

    fn watch_one(&self, number: usize, stream: &mut StreamOutput, wanted: bool) {
        if stream.watched == wanted {
            return;
        }
        stream.watched = wanted;
        let FurtherStream {
            socket, watched, ..
        } = self.stream(number);
        let mut flags = watched.lock().expect("nothing panics while it is locked");
        flags.set(epoll::EventFlags::OUT, wanted);
        let data = epoll::EventData::new_u64(number as u64 + 1);
        // Fails for an ended stream, whose socket is no longer watched.
        let _ = epoll::modify(&self.epoll, socket, data, *flags);
    }
}

/// Chooses the number of streams on a line that no medium measures, from `count` on.
fn unmeasured_growth(count: usize) -> (FullTime, StreamGrowth) {
    (FullTime::new(count), StreamGrowth::new(count))
}

impl StreamOutputs {
    /// Makes room for streams that have joined; there are `count` now.
    fn take_in_streams(&mut self, count: usize) {
        self.streams.resize_with(count, StreamOutput::default);
    }

    /// Notes bytes that the streams have taken.
    fn note_written(&mut self, count: usize) {
        if let Some((full, _)) = &mut self.growth {
            full.note_written(count);
        }
    }

    /// Whether bytes wait for the streams.
    fn has_more(&self) -> bool {
        let mut streams = self.streams.iter();
        !self.queue.is_empty() || streams.any(|stream| !stream.queued_frame.is_empty())
    }

    /// Whether a stream has written all of its queued frame, and so may begin a piece.
    fn has_no_queued_frame(&self, number: usize) -> bool {
        self.streams[number].queued_frame.is_empty()
    }

    /// Copies the rest of a message to the queue. Returns how many bytes of payload were copied.
    fn copy_rest(&mut self, payload: PayloadInProgress<'_>) -> Result<u64, LinkError> {
        let PayloadInProgress {
            message,
            pieces,
            under_way,
            ..
        } = payload;
        let mut copied = pieces.total - pieces.offset;
        if copied > 0 {
            let rest = PayloadRest::copy(message.parts, pieces.offset, pieces.total)?;
            self.queue.push_back((pieces, rest));
        }
        for (stream, piece) in self.streams.iter_mut().zip(&under_way) {
            let Some((header, offset, length)) = piece.as_ref().map(PieceInProgress::rest) else {
                continue;
            };
            let mut slices = vec![IoSlice::new(header)];
            slice_parts(message.parts, offset, length, &mut slices);
            slices
                .iter()
                .for_each(|slice| stream.queued_frame.extend_from_slice(slice));
            copied += length;
        }
        Ok(copied)
    }
}

/// Why the further streams did not send a message.
#[derive(Debug)]
pub(super) struct StreamFailure {
    /// Number of the failed stream, from 1.
    pub(super) stream: Option<usize>,
    /// Whether some of the message has been written.
    pub(super) torn: bool,
    pub(super) why: LinkError,
}

impl StreamFailure {
    fn of(number: usize, why: LinkError) -> Self {
        StreamFailure {
            stream: Some(number + 1),
            torn: false,
            why,
        }
    }

    fn torn_if(self, torn: bool) -> Self {
        StreamFailure {
            torn: self.torn || torn,
            ..self
        }
    }
}

impl From<LinkError> for StreamFailure {
    fn from(why: LinkError) -> Self {
        StreamFailure {
            stream: None,
            torn: false,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use titin_wire::LinkSettings;
    use titin_wire::frame::Head;

    use super::*;
    use crate::flight::{Flight, SessionProgress};
    use crate::pump::socket_pair;

    /// The lengths of the pieces of a message by eight streams.
    fn lengths(total: u64, sizes: PieceSizes) -> Vec<u64> {
        let mut pieces = MessagePieces {
            conduit: ConduitId(1),
            sequence: 0,
            total,
            offset: 0,
            streams: 8,
            sizes,
        };
        let lengths: Vec<u64> = std::iter::from_fn(|| pieces.next(u64::MAX))
            .map(|piece| piece.length)
            .collect();
        assert_eq!(lengths.iter().sum::<u64>(), total);
        lengths
    }

    #[test]
    fn pieces_become_smaller_towards_the_end_of_a_message() {
        for sizes in [PIECES, PIECES_OF_A_LINE] {
            let lengths = lengths((16 << 20) + 1, sizes);
            assert_eq!(lengths[0], sizes.largest);
            assert!(lengths.is_sorted_by(|one, next| one >= next));
            let small = lengths.iter().filter(|length| **length <= sizes.smallest);
            assert!(small.count() > 8);
        }
    }

    #[test]
    fn streams_that_join_make_the_pieces_of_a_message_smaller() {
        let payload = vec![7; 4 << 20];
        let parts = [IoSlice::new(&payload)];
        let meta = Arc::default();
        let message = Outgoing::new(Head::new(ConduitId(1), 0, 0.0, None), &meta, &parts);
        let mut payload = PayloadInProgress::new(&message, 8, 8, None, PIECES_OF_A_LINE);
        assert_eq!(payload.next_piece(0).unwrap().length, 32 << 10);
        payload.take_in_streams(128, 128);
        let length = payload.next_piece(127).unwrap().length;
        assert!(length < 17 << 10, "{length}");
    }

    /// Rules by which titin chooses.
    fn rules() -> Arc<StreamRules> {
        let settings = LinkSettings::default();
        Arc::new(StreamRules::new(settings, 3, Arc::new(|_| ())))
    }

    /// Three new streams of a line, measured or not, and their other ends.
    fn three_streams(is_measured: bool) -> (FurtherStreams, Vec<Descriptor>) {
        let begin = SessionProgress::begin();
        let meter = || {
            let meter = StreamMeter::new(Arc::default(), false);
            meter.note_circuit(Some((Flight::new(begin), 32 << 10)));
            Arc::new(meter)
        };
        let mut others = Vec::new();
        let streams = (0..3).map(|_| {
            let [socket, other] = socket_pair().unwrap();
            others.push(other);
            FurtherStream::new(socket, Vec::new(), is_measured.then(meter))
        });
        let line = is_measured.then(Arc::default);
        let streams = FurtherStreams::new(streams.collect(), rules(), line).unwrap();
        (streams, others)
    }

    /// The outputs of three streams without bytes under way.
    fn outputs_of_three() -> StreamOutputs {
        let mut outputs = StreamOutputs {
            streams: Vec::new(),
            queue: VecDeque::new(),
            stalled: false,
            growth: None,
        };
        outputs.take_in_streams(3);
        outputs
    }

    /// How many bytes of a message each of three streams carries.
    fn carried(
        is_measured: bool,
        change: impl FnOnce(&FurtherStreams, &mut StreamOutputs),
    ) -> Vec<usize> {
        let (streams, others) = three_streams(is_measured);
        let payload = [7; 20_000];
        let parts = [IoSlice::new(&payload)];
        let meta = Arc::default();
        let message = Outgoing::new(Head::new(ConduitId(1), 0, 0.0, None), &meta, &parts);
        let mut outputs = outputs_of_three();
        change(&streams, &mut outputs);
        let shares = streams.shares(&outputs, 3, message.length());
        let mut payload = PayloadInProgress::new(&message, 3, 3, shares, PIECES_OF_A_LINE);
        while !payload.is_done() {
            streams.write_round(&mut outputs, &mut payload).unwrap();
        }
        let bytes = |other: &Descriptor| {
            let mut frames = [0; 30_000];
            rustix::io::read(other, &mut frames).unwrap_or_default()
        };
        let pieces = |bytes: usize| bytes.div_ceil(HEADER + PIECES_OF_A_LINE.smallest as usize);
        let bytes = others.iter().map(bytes);
        bytes.map(|bytes| bytes - pieces(bytes) * HEADER).collect()
    }

    #[test]
    fn a_message_that_fits_in_one_flight_goes_by_few_streams() {
        // Ten segments, less what headers take.
        let flight = (13 << 10) - (13 << 10) / 100;
        let few = |change: &dyn Fn(&FurtherStreams)| carried(true, |streams, _| change(streams));
        assert_eq!(few(&|_| ()), [flight, 20_000 - flight, 0]);
        // Bytes under way take their part of a flight.
        let busy = |streams: &FurtherStreams| {
            let (meter, _) = streams.stream(0).meter.as_ref().unwrap();
            meter.begin_write(10_000);
        };
        assert_eq!(few(&busy), [0, flight, 20_000 - flight]);
        let cut = |streams: &FurtherStreams| {
            let (meter, _) = streams.stream(1).meter.as_ref().unwrap();
            meter.note_circuit(None);
        };
        assert_eq!(few(&cut), [flight, 0, 20_000 - flight]);
        let queued = carried(true, |_, outputs| {
            outputs.streams[2].queued_frame = vec![7; 64]
        });
        assert_eq!(queued[..2], [flight, 20_000 - flight]);
    }

    #[test]
    fn all_streams_carry_the_rest_of_a_message_when_those_with_a_share_stall() {
        let payload = vec![7; 200_000];
        let parts = [IoSlice::new(&payload)];
        let meta = Arc::default();
        let message = Outgoing::new(Head::new(ConduitId(1), 0, 0.0, None), &meta, &parts);
        let room = |flight| StreamRoom {
            flight,
            two_flights: 2 * flight,
            window: 2 * flight,
        };
        let shares = StreamShares::of(200_000, &[room(200_000), room(100), room(100)]);
        let mut payload = PayloadInProgress::new(&message, 3, 3, shares, PIECES_OF_A_LINE);
        let first = payload.next_piece(0).unwrap().length;
        assert!(payload.next_piece(1).is_none() && payload.next_piece(2).is_none());
        assert!(payload.use_all_streams());
        // The pieces are those of a message by three streams.
        let of_one_stream = (200_000 - first) / PIECES_PER_STREAM;
        let next = payload.next_piece(2).unwrap().length;
        assert!(next < of_one_stream, "{next} of {of_one_stream}");
        let mut end = first + next;
        for number in (0..3).cycle() {
            let Some(piece) = payload.next_piece(number) else {
                break;
            };
            assert_eq!(piece.offset, end);
            end += piece.length;
        }
        assert_eq!(end, 200_000);
        assert!(!payload.use_all_streams());
    }

    #[test]
    fn the_line_knows_whether_few_streams_carry_a_message() {
        let (streams, _others) = three_streams(true);
        let outputs = outputs_of_three();
        for (total, few) in [(20_000, true), (1 << 20, false), (30_000, false)] {
            streams.shares(&outputs, 3, total);
            let mut is_by_few = false;
            let line = streams.line.as_ref().unwrap();
            line.note(|rate| is_by_few = rate.is_by_few());
            assert_eq!(is_by_few, few, "{total}");
        }
    }

    #[test]
    fn a_stream_counts_what_it_writes_and_has_a_buffer_for_its_rate() {
        let (streams, _others) = three_streams(true);
        let stream = streams.stream(0);
        let before = stream.room(Instant::now()).window;
        stream.write(&[IoSlice::new(&[7; 10_000])]).unwrap();
        assert!(stream.room(Instant::now()).window <= before - 9_900);
        // Linux reports twice what was asked for.
        let buffer = || sockopt::socket_send_buffer_size(&stream.socket).unwrap() / 2;
        assert_eq!(buffer(), 16 << 10);
        let begin = SessionProgress::begin();
        let mut flight = Flight::new(begin);
        flight.note(begin, Some(Duration::from_millis(1)));
        let (meter, _) = stream.meter.as_ref().unwrap();
        for (window, size) in [(1 << 20, 64 << 10), (100 << 10, 16 << 10)] {
            meter.note_circuit(Some((flight, window)));
            stream.room(Instant::now());
            assert_eq!(buffer(), size);
        }
    }

    #[test]
    fn all_streams_carry_a_message_without_a_measured_line() {
        assert!(carried(false, |_, _| ()).iter().all(|bytes| *bytes > 0));
    }

    #[test]
    fn fewer_streams_carry_the_rest_of_a_message_and_more_again() {
        let (streams, _others) = three_streams(false);
        let payload = vec![7; 400_000];
        let parts = [IoSlice::new(&payload)];
        let meta = Arc::default();
        let message = Outgoing::new(Head::new(ConduitId(1), 0, 0.0, None), &meta, &parts);
        let sizes = PieceSizes {
            smallest: 1000,
            largest: 1000,
        };
        let mut payload = PayloadInProgress::new(&message, 3, streams.used(), None, sizes);
        let begin = |payload: &mut PayloadInProgress<'_>| {
            let used = streams.used();
            payload.take_in_streams(3, used);
            [0, 1, 2].map(|number| payload.next_piece(number).map(|piece| piece.offset))
        };
        assert_eq!(begin(&mut payload), [Some(0), Some(1000), Some(2000)]);
        streams.rules.set_most(Some(2), streams.count());
        assert_eq!(begin(&mut payload), [Some(3000), Some(4000), None]);
        assert_eq!(payload.pieces.streams, 2);
        streams.rules.set_most(None, streams.count());
        assert_eq!(begin(&mut payload), [Some(5000), Some(6000), Some(7000)]);
    }

    #[test]
    fn a_stream_that_is_not_used_takes_nothing_from_the_queue_and_is_not_watched_for_it() {
        let (streams, others) = three_streams(false);
        let bytes = vec![7; 3_000_000];
        let parts = [IoSlice::new(&bytes)];
        let meta = Arc::default();
        let message = Outgoing::new(Head::new(ConduitId(1), 0, 0.0, None), &meta, &parts);
        streams.rules.set_most(Some(2), streams.count());
        let mut outputs = outputs_of_three();
        outputs.streams[2].queued_frame = vec![7; 64];
        let payload = PayloadInProgress::new(&message, 3, streams.used(), None, PIECES);
        outputs.copy_rest(payload).unwrap();
        streams.watch(&mut outputs);
        assert!(outputs.streams.iter().all(|stream| stream.watched));
        streams.write_queue(&mut outputs).unwrap();
        streams.watch(&mut outputs);
        let watched: Vec<bool> = outputs
            .streams
            .iter()
            .map(|stream| stream.watched)
            .collect();
        // The sockets of the two that are used are full.
        assert_eq!(watched, [true, true, false]);
        let mut frames = vec![0; 1 << 20];
        assert_eq!(rustix::io::read(&others[2], &mut frames).unwrap(), 64);
    }

    #[test]
    fn the_program_sets_the_sizes_of_pieces() {
        let (streams, _others) = three_streams(true);
        assert_eq!(
            (streams.piece_sizes(), streams.rules.piece()),
            (PIECES_OF_A_LINE, None)
        );
        for (wanted, set) in [
            (Some(20_000), Some(20_000)),
            (Some(1), Some(1 << 10)),
            (Some(u64::MAX), Some(PIECE as u64)),
            (None, None),
        ] {
            streams.rules.set_piece(wanted);
            assert_eq!(streams.rules.piece(), set);
            let all = streams.piece_sizes();
            assert_eq!(all.largest, set.unwrap_or(PIECES_OF_A_LINE.largest));
        }
    }

    #[test]
    fn titin_asks_for_streams_unless_their_number_is_set() {
        let asked: Arc<AtomicUsize> = Arc::default();
        let answer = asked.clone();
        let request: StreamRequest = Arc::new(move |count| answer.store(count, Ordering::Relaxed));
        let rules = Arc::new(StreamRules::new(LinkSettings::default(), 2, request));
        let suggest = rules.suggestion();
        let asked = || asked.swap(0, Ordering::Relaxed);
        suggest(4);
        assert_eq!(asked(), 4);
        rules.set_most(Some(8), 4);
        assert_eq!((asked(), rules.used(4)), (8, 4));
        rules.set_most(Some(3), 8);
        suggest(16);
        assert_eq!((asked(), rules.used(8)), (0, 3));
        // The first stream carries all: no further one is needed.
        assert!(rules.uses_further());
        rules.set_most(Some(1), 0);
        assert_eq!(
            (asked(), rules.used(8), rules.uses_further()),
            (0, 1, false)
        );
        rules.set_most(Some(1000), 0);
        assert_eq!(asked(), MAX_STREAMS as usize);
        rules.set_most(None, 8);
        suggest(16);
        assert_eq!((asked(), rules.used(8)), (16, 8));
    }

    #[test]
    fn further_streams_carry_large_messages_unless_a_link_is_to_have_none() {
        let settings = |pacing| LinkSettings {
            pacing,
            ..LinkSettings::default()
        };
        for (pacing, count, carries) in [
            (None, 1, true),
            (Some(1000), 1, true),
            (Some(1000), 0, false),
            // The other end may open some.
            (None, 0, true),
        ] {
            let rules = StreamRules::new(settings(pacing), count, Arc::new(|_| ()));
            assert_eq!(rules.uses_further(), carries, "{pacing:?} {count}");
        }
    }

    #[test]
    fn pieces_are_smaller_on_a_measured_line() {
        let sizes = |line| {
            let streams = FurtherStreams::new(Vec::new(), rules(), line).unwrap();
            streams.piece_sizes()
        };
        assert_eq!(sizes(None), PIECES);
        assert_eq!(sizes(Some(Arc::default())), PIECES_OF_A_LINE);
    }
}
