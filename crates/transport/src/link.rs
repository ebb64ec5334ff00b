//! A link: two processes connected by sockets. Over the sockets both have proved themselves.
//!
//! A link carries control messages, frames of messages, and the descriptors of frames. A link has a
//! single stream, or [further streams](streams) for large messages. The carriers of media with
//! sockets are built on links.
//!
//! **Reading.** One thread at a time reads: a caller that waits for a message of the link, a sender
//! without [room], or else the reactor's thread. A caller's read saves the way through the reactor.
//! While callers read, the reactor watches the link for its end alone. The last caller to leave has
//! the reactor watch for bytes again, so no bytes stay unread.
//!
//! **Writing.** A sender writes from its own memory, one frame at a time, each in its
//! [turn](crate::ticket_queue). So messages of several threads interleave, and a control message
//! waits for one frame at most. A sender waits while bytes drain. When the socket has accepted
//! nothing for a while ([`room`]), the rest of the message is copied, counted, and written by the
//! reactor. The socket of the other end may drain only once certain threads here read on: the
//! reactor, and callers that tell, end, acknowledge or ask. Such a thread never waits for a turn,
//! and leaves its frames to the writing thread.

mod assembly;
mod full_time;
mod input;
mod payload;
mod reader;
mod received;
mod room;
mod socket;
mod stream_rules;
mod stream_shares;
mod streams;
mod writer;

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError, Weak};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::net::{Shutdown, shutdown};
use titin_os::{Descriptor, sockets};
use titin_wire::frame::{Frame, Header};
use titin_wire::handshake::Agreement;
use titin_wire::token::TokenRequest;
use titin_wire::{ConduitId, LinkSettings, Secret};

use crate::carrier::{Carrier, Medium, Outgoing, SendReport};
use crate::conduit_table::ConduitTable;
use crate::error::LinkError;
use crate::line_meter::LineMeter;
use crate::medium::{LinkFigures, LinkPatience, SocketMedium};
use crate::spin::WaitPolicy;
use crate::ticket_queue::TicketQueue;
use crate::token_connection::TokenConnection;
use room::RoomWait;
use streams::{FurtherStreams, StreamFailure};
use writer::{Deferred, FrameWriter, MessageInProgress, QueuedMessage, WriteProgress};

pub(crate) use input::{LinkInput, Receivers};
pub use reader::FrameReader;
pub use received::Received;
pub(crate) use socket::{read, read_with_files};
pub use stream_rules::PIECE_SIZES;
pub(crate) use stream_rules::StreamRules;
pub(crate) use streams::FurtherStream;

/// How long a caller waits until the reactor leaves the reading side: as long as a system call for a
/// large piece of a payload.
const HANDOVER: Duration = Duration::from_micros(200);

/// Number of a link, unique in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// Receives the events of a reactor's links. The caller of a method is the reactor's thread, or a
/// thread that reads a link while the thread waits for a message or for room. No method may block.
pub trait Handler: Send + Sync {
    /// A link is up: both ends have proved themselves.
    fn opened(&self, link: &Arc<Link>, agreement: Agreement);

    /// A control message came in.
    fn control(&self, link: &Arc<Link>, body: &[u8]);

    /// A link is down, by the other end or by an error. Not called for links closed by the process.
    fn lost(&self, link: &Arc<Link>, why: LinkError);

    /// The first message has come of a conduit for which the process has not asked, and may still
    /// ask. The message came by `link`, if the link still exists.
    fn stray(&self, link: Option<LinkId>, conduit: ConduitId) {
        let _ = (link, conduit);
    }

    /// None of the addresses dialled with `tag` answered as a titin of the run.
    fn unreachable(&self, tag: u128, why: LinkError) {
        let _ = (tag, why);
    }

    /// None of the addresses dialled with `tag` has answered yet, for the given reasons. Called before
    /// each [`Handler::tick`].
    fn hindered(&self, tag: u128, why: String) {
        let _ = (tag, why);
    }

    /// The one-time key of this number, which a dialler with a token is to prove; `None` if the key
    /// does not serve, or does not serve any more.
    fn one_time_key(&self, number: u64) -> Option<Secret> {
        let _ = number;
        None
    }

    /// An agent that has proved a one-time key asks for the way to the run.
    fn asked(&self, request: TokenRequest, connection: TokenConnection) {
        let _ = (request, connection);
    }

    /// Called once at the start, and again whenever the returned time has passed; `None` ends the
    /// calls.
    fn tick(&self) -> Option<Duration> {
        None
    }

    /// The reactor's thread has ended by an internal error; nothing comes in any more.
    fn broken(&self, text: String) {
        let _ = text;
    }

    /// The first of the further streams of an open link has joined. A caller that sleeps at the sockets of the link is to look
    /// again.
    fn got_streams(&self, link: &Arc<Link>) {
        let _ = link;
    }
}

/// A carrier beside the link's sockets. The link hands all frames but control messages to the
/// carrier.
pub(crate) trait SideCarrier: Carrier {
    /// Takes a frame from the socket, with the descriptor of the frame, for the reactor.
    ///
    /// # Errors
    /// [`LinkError`] if the frame makes no sense.
    fn receive(&self, received: Received, file: Option<OwnedFd>) -> Result<(), LinkError>;

    /// The link has ended: takes in all messages finished by the peer.
    fn leave(&self);

    /// Why nothing more can be taken in, if so.
    fn lost(&self) -> Option<LinkError>;
}

/// The sockets of a new link.
pub(crate) struct LinkSockets {
    pub(crate) first: Descriptor,
    pub(crate) medium: Arc<dyn SocketMedium>,
    /// The further streams that have joined.
    pub(crate) further: Vec<FurtherStream>,
    /// The rules for further streams; `None` if the link takes none.
    pub(crate) rules: Option<Arc<StreamRules>>,
    /// The meter of the line, if the medium measures the line.
    pub(crate) line: Option<Arc<LineMeter>>,
}

/// How a link carries messages.
pub(crate) enum LinkCarrier {
    /// By the link's sockets. The function makes the carrier.
    Sockets(fn(&Arc<Link>) -> Arc<dyn Carrier>),
    Beside(Arc<dyn SideCarrier>),
}

/// An authenticated connection to another process.
pub struct Link {
    id: LinkId,
    tag: Option<u128>,
    this: Weak<Link>,
    socket: Descriptor,
    medium: Arc<dyn SocketMedium>,
    /// How long a stream may be away, if the user has said.
    patience: OnceLock<LinkPatience>,
    epoll: Weak<Descriptor>,
    /// Whether the reactor is to write once the first stream has room.
    awaits_room: Mutex<bool>,
    /// The callers that read, or try to, in the reactor's place. The reactor watches for bytes while
    /// there are none. Changed while `awaits_room` is locked.
    attending: AtomicUsize,
    /// Whether the reactor has the reading side, or is about to take it.
    reactor_reads: AtomicBool,
    input: Mutex<LinkInput>,
    output: TicketQueue<FrameWriter, Deferred>,
    closed: AtomicBool,
    /// The further streams, once there are some.
    streams: OnceLock<FurtherStreams>,
    /// The rules for them; `None` if the link takes none.
    rules: Option<Arc<StreamRules>>,
    line: Option<Arc<LineMeter>>,
    /// The conduits of the link alone, if it has any.
    conduits: OnceLock<Arc<ConduitTable>>,
    /// Why the process has broken the link off.
    fault: OnceLock<LinkError>,
    carrier: LinkCarrier,
    /// Why the two processes do not use a better medium, although they tried.
    detour: OnceLock<String>,
    /// The addresses of the two ends of a tcp connection, with that of this process first.
    addresses: Option<[IpAddr; 2]>,
}

impl Link {
    pub(crate) fn new(
        id: LinkId,
        tag: Option<u128>,
        sockets: LinkSockets,
        epoll: &Arc<Descriptor>,
        input: LinkInput,
        carrier: impl FnOnce(&Descriptor, &Weak<Link>) -> LinkCarrier,
        detour: Option<String>,
    ) -> Result<Arc<Self>, LinkError> {
        let LinkSockets {
            first: socket,
            medium,
            further,
            rules,
            line,
        } = sockets;
        let streams = match &rules {
            Some(rules) if !further.is_empty() => {
                FurtherStreams::new(further, rules.clone(), line.clone())?.into()
            }
            _ => OnceLock::new(),
        };
        let addresses = sockets::addresses_of_ends(&socket);
        Ok(Arc::new_cyclic(|this| Link {
            id,
            tag,
            carrier: carrier(&socket, this),
            this: this.clone(),
            socket,
            medium,
            patience: OnceLock::new(),
            epoll: Arc::downgrade(epoll),
            awaits_room: Mutex::default(),
            attending: AtomicUsize::new(0),
            reactor_reads: AtomicBool::new(false),
            input: Mutex::new(input),
            output: TicketQueue::new(FrameWriter::default()),
            closed: AtomicBool::new(false),
            streams,
            rules,
            line,
            conduits: OnceLock::new(),
            fault: OnceLock::new(),
            detour: detour.map(OnceLock::from).unwrap_or_default(),
            addresses,
        }))
    }

    /// The link's number in the process.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// The tag given to [`crate::Reactor::dial`]; `None` on the listening side.
    pub fn tag(&self) -> Option<u128> {
        self.tag
    }

    /// Takes messages to the other process.
    pub fn carrier(self: &Arc<Self>) -> Arc<dyn Carrier> {
        match &self.carrier {
            LinkCarrier::Sockets(make) => make(self),
            LinkCarrier::Beside(carrier) => carrier.clone(),
        }
    }

    /// Has the system end the link after this time without a sign of the other host, while no bytes are in flight.
    pub fn set_keepalive(&self, time: Duration) {
        sockets::set_keepalive(&self.socket, time);
    }

    /// Has the messages of the link come from and go to conduits of its own, and not to those of the process. For a
    /// link whose medium is a socket. Called by [`Handler::opened`], before the first message comes.
    pub fn use_own_conduits(&self, conduits: Arc<ConduitTable>) {
        let _ = self.conduits.set(conduits);
    }

    /// The conduits of the link alone, if it has any.
    pub fn own_conduits(&self) -> Option<&Arc<ConduitTable>> {
        self.conduits.get()
    }

    /// Why the two processes do not share memory, if they tried to.
    pub fn detour(&self) -> Option<&str> {
        self.detour.get().map(String::as_str)
    }

    /// Notes why the two processes do not share memory, as the other end has told.
    pub fn note_detour(&self, why: String) {
        let _ = self.detour.set(why);
    }

    /// The addresses of the two ends of a tcp connection, with that of this process first; `None` for
    /// other sockets.
    pub fn addresses(&self) -> Option<[IpAddr; 2]> {
        self.addresses
    }

    pub(crate) fn side_carrier(&self) -> Option<&Arc<dyn SideCarrier>> {
        match &self.carrier {
            LinkCarrier::Sockets(_) => None,
            LinkCarrier::Beside(carrier) => Some(carrier),
        }
    }

    /// Queues a control message. Never blocks.
    pub fn tell(&self, body: &[u8]) {
        let header = Header::from(&Frame::Control {
            body: body.len() as u64,
        })
        .encode();
        self.defer(Deferred::Frame([&header[..], body].concat()));
    }

    /// Queues a frame before all messages, with a descriptor if given. Never blocks.
    pub(crate) fn tell_frame(&self, frame: &Frame, file: Option<Arc<dyn AsFd + Send + Sync>>) {
        let bytes = Header::from(frame).encode().to_vec();
        self.defer(match file {
            None => Deferred::Frame(bytes),
            Some(file) => Deferred::FrameWithFile(bytes, file),
        });
    }

    /// Queues a frame behind the messages of a conduit. Never blocks.
    pub(crate) fn tell_behind(&self, conduit: ConduitId, frame: &Frame) {
        let bytes = Header::from(frame).encode().to_vec();
        self.defer(Deferred::Behind(conduit, bytes));
    }

    /// Sends a message by the sockets, waiting while bytes drain.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn send(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.send_with(message, RoomWait::new(self, message.length()))
    }

    /// As [`Link::send`], without waiting: [`Carrier::send_or_copy`].
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn send_or_copy(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.send_with(message, RoomWait::none(self))
    }

    fn send_with(
        &self,
        message: &Outgoing<'_>,
        room: RoomWait<'_>,
    ) -> Result<SendReport, LinkError> {
        match self.streams.get() {
            Some(streams) if streams.should_carry(message) => {
                self.send_by_streams(streams, message, room)
            }
            _ => self.send_by_first_stream(message, room),
        }
    }

    /// As [`Link::send`], without waiting: [`Carrier::post`].
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn post(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        let queued = QueuedMessage::whole(message)?;
        self.defer(Deferred::Message(message.head.conduit, queued));
        Ok(SendReport::default())
    }

    /// Reads in the reactor's place until the policy ends the wait: [`Carrier::attend`].
    pub(crate) fn attend(self: &Arc<Self>, policy: &mut dyn WaitPolicy) {
        // Dropped after the input: the reactor then wakes for bytes that have come in meanwhile,
        // and finds the input free.
        let _attended = AttendedLink::new(self);
        let Some(mut input) = self.take_input() else {
            return;
        };
        loop {
            match input.read(self, &|| false) {
                Ok(count) if policy.is_over(count) && !input.sleep(self, policy) => return,
                Ok(_) => {}
                Err(_) => return self.hang_up(),
            }
        }
    }

    /// The reading side, for a caller that counts as attending; `None` if another caller has it.
    fn take_input(&self) -> Option<MutexGuard<'_, LinkInput>> {
        let mut begun = None;
        loop {
            if let Ok(input) = self.input.try_lock() {
                return Some(input);
            }
            // The reactor leaves the reading side to callers after its system call.
            let is_left = self.reactor_reads.load(Ordering::Relaxed)
                && begun.get_or_insert_with(Instant::now).elapsed() < HANDOVER;
            if !is_left {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// How many streams carry large messages.
    pub(crate) fn streams(&self) -> usize {
        self.streams.get().map_or(1, FurtherStreams::used)
    }

    /// Has this end send large messages by at most so many streams from now on, and asks for those that are missing, which
    /// join soon, unless the system or the other end has no room for them. `None`: titin chooses. A link whose medium has no
    /// further streams stays as it is.
    pub fn set_streams(&self, most: Option<usize>) {
        let Some(rules) = &self.rules else {
            return;
        };
        rules.set_most(most, self.streams.get().map_or(0, FurtherStreams::count));
        if most.is_none() {
            self.streams.get().inspect(|streams| streams.choose_anew());
        }
        self.pace_streams(&rules.lock_settings());
    }

    /// Has this end send large messages in pieces of so many bytes from now on, where several streams carry them. `None`:
    /// titin chooses.
    pub fn set_piece(&self, bytes: Option<u64>) {
        self.rules.iter().for_each(|rules| rules.set_piece(bytes));
    }

    /// What is known of the link's streams.
    pub fn figures(&self) -> LinkFigures {
        let figures = self.sockets().map(|socket| self.medium.figures(socket));
        let figures: Vec<LinkFigures> = figures.collect();
        let (first, last) = (figures.first(), figures.last());
        LinkFigures {
            round_trip: figures.iter().filter_map(|stream| stream.round_trip).min(),
            retransmissions: figures.iter().map(|stream| stream.retransmissions).sum(),
            pacing: first.and_then(|stream| stream.pacing),
            buffers: last.and_then(|stream| stream.buffers),
            piece: self.rules.as_ref().and_then(|rules| rules.piece()),
        }
    }

    /// Has this end send at most so many bytes a second by all streams; `None` is for no limit. For streams over a
    /// network.
    pub fn set_pacing(&self, rate: Option<u64>) {
        let changed = LinkSettings {
            pacing: Some(rate.unwrap_or(sockets::NO_PACING)),
            ..LinkSettings::default()
        };
        let Some(rules) = &self.rules else {
            return self.medium.set_pacing(&self.socket, &changed, 1);
        };
        let mut settings = rules.lock_settings();
        settings.pacing = changed.pacing;
        self.medium.set_pacing(&self.socket, &settings, 1);
        self.pace_streams(&settings);
    }

    /// Has the further streams share the pacing of the link.
    fn pace_streams(&self, settings: &LinkSettings) {
        for socket in self.further_sockets() {
            self.pace_stream(socket, settings, self.streams());
        }
    }

    /// Has one of `streams` further streams take its share of the pacing.
    fn pace_stream(&self, socket: &Descriptor, settings: &LinkSettings, streams: usize) {
        // No limit has no shares.
        let streams = match settings.pacing {
            None => return,
            Some(sockets::NO_PACING) => 1,
            Some(_) => streams as u64,
        };
        self.medium.set_pacing(socket, settings, streams);
    }

    /// Sets the sizes of the buffers of each stream at this end, in bytes; `None` leaves a size as it is. The
    /// system may have a limit.
    pub fn set_buffers(&self, send: Option<u64>, receive: Option<u64>) {
        let changed = LinkSettings {
            send_buffer: send,
            receive_buffer: receive,
            ..LinkSettings::default()
        };
        let mut settings = self.rules.as_ref().map(|rules| rules.lock_settings());
        if let Some(settings) = &mut settings {
            settings.send_buffer = send.or(settings.send_buffer);
            settings.receive_buffer = receive.or(settings.receive_buffer);
        }
        self.sockets()
            .for_each(|socket| self.medium.set_buffers(socket, &changed));
    }

    /// Has the link be lost when a stream has not reached the other end for so long, if the link
    /// [outlives cuts](Link::outlives_cuts). Called once.
    pub fn set_patience(&self, patience: LinkPatience) {
        if self.outlives_cuts() {
            let _ = self.patience.set(patience);
            self.apply_patience();
        }
    }

    fn apply_patience(&self) {
        if let Some(patience) = self.patience() {
            self.sockets()
                .for_each(|socket| self.medium.set_patience(socket, patience));
        }
    }

    /// How long a stream may be away, if [`Link::set_patience`] has said.
    fn patience(&self) -> Option<LinkPatience> {
        self.patience.get().copied()
    }

    /// Whether the link outlives a cut of the line.
    pub fn outlives_cuts(&self) -> bool {
        self.medium.medium() == Medium::Relay
    }

    fn sockets(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.socket).chain(self.further_sockets())
    }

    fn further_sockets(&self) -> impl Iterator<Item = &Descriptor> {
        let streams = self.streams.get().into_iter();
        streams.flat_map(FurtherStreams::sockets)
    }

    /// The meter of the line, if the medium measures the line.
    pub(crate) fn line(&self) -> Option<&Arc<LineMeter>> {
        self.line.as_ref()
    }

    /// The rate of the line in bytes a second, once measured.
    pub(crate) fn line_rate(&self) -> Option<u64> {
        self.line.as_ref()?.rate()
    }

    /// See [`Carrier::bytes_of_line`](crate::Carrier::bytes_of_line).
    pub(crate) fn bytes_of_line(&self) -> Option<u64> {
        self.line.as_ref().map(|line| line.bytes_of_line())
    }

    /// Adds a further stream that has joined.
    ///
    /// # Errors
    /// If the system does not watch the socket, or the link takes no further streams.
    pub(crate) fn add_stream(&self, stream: FurtherStream) -> Result<(), LinkError> {
        let rules = self.rules.as_ref().ok_or(LinkError::Closed)?;
        let settings = rules.lock_settings();
        self.medium.set_buffers(stream.socket(), &settings);
        self.pace_stream(stream.socket(), &settings, self.streams() + 1);
        match self.streams.get() {
            Some(streams) => streams.add(stream)?,
            None => self.begin_streams(stream, rules)?,
        }
        self.pace_streams(&settings);
        drop(settings);
        self.apply_patience();
        Ok(())
    }

    /// Adds the first of the further streams, and has the reactor watch them.
    fn begin_streams(
        &self,
        stream: FurtherStream,
        rules: &Arc<StreamRules>,
    ) -> Result<(), LinkError> {
        let streams = FurtherStreams::new(vec![stream], rules.clone(), self.line.clone())?;
        // Callers that attend change what the reactor watches.
        let _lock = self.awaits_room();
        let epoll = self.epoll.upgrade().ok_or(LinkError::Closed)?;
        let data = epoll::EventData::new_u64(self.id.0);
        epoll::add(&*epoll, streams.epoll(), data, self.events(false))?;
        let _ = self.streams.set(streams);
        Ok(())
    }

    /// The other end asks for further streams: so many in all. Only the end that dials is asked.
    pub(crate) fn request_streams(&self, count: usize) {
        let rules = self.rules.iter().filter(|_| self.tag.is_some());
        rules.for_each(|rules| rules.request(count));
    }

    /// The settings of a stream that is to join.
    pub(crate) fn stream_settings(&self) -> LinkSettings {
        let rules = self.rules.as_ref();
        rules.map_or_else(LinkSettings::default, |rules| *rules.lock_settings())
    }

    /// Has the reactor find the end of the link, even if the socket has no more bytes.
    pub(crate) fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Read);
    }

    /// Ends the connection once the queued frames are written, as far as the socket takes them.
    /// Anything that the other end still sends is dropped.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.streams.get().inspect(|streams| drop(streams.flush()));
        // Another thread may be about to write the last frames.
        self.defer(Deferred::Close);
    }

    /// Whether the process closed the link.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn socket(&self) -> &Descriptor {
        &self.socket
    }

    /// A descriptor that is ready when a further stream is, if there are further streams.
    pub(crate) fn streams_epoll(&self) -> Option<&Descriptor> {
        self.streams.get().map(FurtherStreams::epoll)
    }

    /// Writes the queue, as far as the socket takes the bytes. A thread already at work does so
    /// instead.
    pub(crate) fn flush(&self) {
        self.output
            .work_if_free(|writer, deferred| self.write_queue_and_watch(writer, deferred));
    }

    /// Reads available bytes, for the reactor. If a caller reads, the reactor waits for the end of
    /// the link (`is_ending`) only: a caller may sleep at a socket without bytes, but not at a
    /// socket that has ended. Returns when to read again although nothing has come, if so.
    ///
    /// # Errors
    /// [`LinkError`] if nothing more can be read.
    pub(crate) fn read(self: &Arc<Self>, is_ending: bool) -> Result<Option<Instant>, LinkError> {
        self.reactor_reads.store(true, Ordering::Relaxed);
        let outcome = self.read_unless_attended(is_ending);
        self.reactor_reads.store(false, Ordering::Relaxed);
        outcome
    }

    fn read_unless_attended(
        self: &Arc<Self>,
        is_ending: bool,
    ) -> Result<Option<Instant>, LinkError> {
        let input = match self.input.try_lock() {
            // The caller has the reactor look again.
            Err(TryLockError::WouldBlock) if !is_ending => return Ok(None),
            Err(TryLockError::WouldBlock) => self.input.lock().ok(),
            input => input.ok(),
        };
        let mut input =
            input.ok_or_else(|| LinkError::System("reading it has failed".to_owned()))?;
        let is_wanted = || self.attending.load(Ordering::Relaxed) > 0;
        let outcome = match input.read(self, &is_wanted) {
            Ok(_) => Ok(self
                .streams
                .get()
                .and_then(|streams| input.unwatch_ended(streams))),
            Err(why) => Err(self.fault.get().cloned().unwrap_or(why)),
        };
        match self.side_carrier().and_then(|carrier| carrier.lost()) {
            Some(lost) => Err(lost),
            None => outcome,
        }
    }

    fn defer(&self, deferred: Deferred) {
        self.output.leave(deferred, |writer, deferred| {
            self.write_queue_and_watch(writer, deferred)
        });
    }

    /// Writes the queue, as far as the socket takes bytes without a wait. The reactor sees an error
    /// as well.
    fn write_queue_and_watch(&self, writer: &mut FrameWriter, deferred: Vec<Deferred>) {
        writer.queue(deferred);
        let _ = writer.write_queue(&self.socket);
        self.end_turn(writer);
    }

    /// Ends the connection if that is wanted, and has the reactor watch for room.
    fn end_turn(&self, writer: &mut FrameWriter) {
        if writer.take_closing() {
            let _ = writer.write_queue(&self.socket);
            // Only the sending half: if the receiving half were closed too, the next bytes to come in
            // would make the system drop sent bytes that are not delivered yet.
            self.shut(Shutdown::Write);
        }
        self.watch_for_room(writer);
    }

    /// Sends a message by the first stream.
    fn send_by_first_stream(
        &self,
        message: &Outgoing<'_>,
        room: RoomWait<'_>,
    ) -> Result<SendReport, LinkError> {
        let mut progress = MessageInProgress::new(message);
        let mut sent = SendReport::default();
        let room = RefCell::new(room);
        loop {
            let (outcome, copied) = self.output.work_in_turn_after(
                || room.borrow_mut().release(),
                |writer, deferred| {
                    self.write_step(&mut progress, writer, deferred, &mut room.borrow_mut())
                        .inspect_err(|_| {
                            // Nothing may follow half a message, so the other end is to see the
                            // end.
                            if progress.begun() {
                                let _ = shutdown(&self.socket, Shutdown::Both);
                            }
                        })
                },
                |writer, deferred| self.write_queue_and_watch(writer, deferred),
            )?;
            sent.copied += copied;
            room.borrow_mut().go_on();
            if outcome != WriteProgress::More {
                return Ok(sent);
            }
        }
    }

    /// One step of a message: writes a frame, or copies the rest. Returns how many bytes were
    /// copied.
    fn write_step(
        &self,
        progress: &mut MessageInProgress<'_>,
        writer: &mut FrameWriter,
        deferred: Vec<Deferred>,
        room: &mut RoomWait<'_>,
    ) -> Result<(WriteProgress, u64), LinkError> {
        writer.queue(deferred);
        let mut copied = 0;
        let is_free = writer.make_way(&self.socket, room)? && !writer.holds(progress.conduit());
        let outcome = if is_free {
            progress.write_next(writer, &self.socket, room, &mut copied)?
        } else {
            WriteProgress::Stalled
        };
        if outcome == WriteProgress::Stalled {
            copied += writer.copy_rest(progress)?;
        }
        self.end_turn(writer);
        Ok((outcome, copied))
    }

    /// Sends the payload of a message by the further streams, and then the head by the first
    /// stream.
    fn send_by_streams(
        &self,
        streams: &FurtherStreams,
        message: &Outgoing<'_>,
        mut room: RoomWait<'_>,
    ) -> Result<SendReport, LinkError> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        let copied = match streams.send(message, &mut room) {
            Ok(copied) => copied,
            Err(failure) if !failure.torn && failure.why.is_of_message() => {
                return Err(failure.why);
            }
            Err(failure) => return Err(self.break_off(streams, failure)),
        };
        drop(room);
        let meta = message.meta.encode();
        let frame = Frame::Data {
            head: message.head,
            meta: meta.len() as u32,
            body: 0,
            total: message.length(),
        };
        let bytes = [&Header::from(&frame).encode()[..], &meta].concat();
        self.defer(Deferred::Behind(message.head.conduit, bytes));
        Ok(SendReport {
            copied,
            ..SendReport::default()
        })
    }

    /// Ends the link because a stream has failed. Returns the error of the link.
    fn break_off(&self, streams: &FurtherStreams, failure: StreamFailure) -> LinkError {
        let StreamFailure { stream, why, .. } = failure;
        // When the other end has gone as a whole, the error is not about the stream.
        let why = match stream.filter(|_| !socket::has_ended(&self.socket)) {
            Some(number) => LinkError::Stream {
                number,
                count: streams.count(),
                why: why.to_string(),
            },
            None => why,
        };
        let why = self.fault.get_or_init(|| why).clone();
        self.shut(Shutdown::Both);
        why
    }

    fn shut(&self, how: Shutdown) {
        let _ = shutdown(&self.socket, how);
        self.streams.get().inspect(|streams| streams.shut(how));
    }

    /// Asks the reactor to call [`Link::flush`] when the socket can take more, or no longer to.
    fn watch_for_room(&self, writer: &mut FrameWriter) {
        let wanted = writer.has_queue();
        if writer.watched != wanted {
            let mut awaits_room = self.awaits_room();
            *awaits_room = wanted;
            if self.watch(&self.socket, self.events(*awaits_room)) {
                writer.watched = wanted;
            }
        }
    }

    /// Counts callers that read in the reactor's place: adds `change`, 1 or -1. The reactor watches
    /// for bytes while there are none.
    fn add_attending(&self, change: isize) {
        let awaits_room = self.awaits_room();
        let before = self.attending.load(Ordering::Relaxed);
        let after = before.wrapping_add_signed(change);
        self.attending.store(after, Ordering::Relaxed);
        if (before == 0) != (after == 0) {
            self.watch(&self.socket, self.events(*awaits_room));
            if let Some(epoll) = self.streams_epoll() {
                self.watch(epoll, self.events(false));
            }
        }
    }

    /// The events for which the reactor watches the first stream.
    fn events(&self, awaits_room: bool) -> epoll::EventFlags {
        let mut events = epoll::EventFlags::empty();
        events.set(
            epoll::EventFlags::IN,
            self.attending.load(Ordering::Relaxed) == 0,
        );
        events.set(epoll::EventFlags::OUT, awaits_room);
        events
    }

    /// Has the reactor watch a socket for the events; false if the reactor has ended.
    fn watch(&self, socket: &Descriptor, flags: epoll::EventFlags) -> bool {
        let data = epoll::EventData::new_u64(self.id.0);
        let epoll = self.epoll.upgrade();
        epoll.is_some_and(|epoll| epoll::modify(&*epoll, socket, data, flags).is_ok())
    }

    fn awaits_room(&self) -> MutexGuard<'_, bool> {
        self.awaits_room
            .lock()
            .expect("nothing panics while it is locked")
    }
}

/// A link read by a caller in the reactor's place.
struct AttendedLink<'a>(&'a Link);

impl<'a> AttendedLink<'a> {
    fn new(link: &'a Link) -> Self {
        link.add_attending(1);
        AttendedLink(link)
    }
}

impl Drop for AttendedLink<'_> {
    /// The reactor wakes for bytes that have come in meanwhile, and for an error.
    fn drop(&mut self) {
        self.0.add_attending(-1);
    }
}
