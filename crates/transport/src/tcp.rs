//! TCP: one link per pair of processes, which carries all their conduits and their control messages. It has one stream, or
//! [further ones](stripes) for large messages.
//!
//! **Who owns what.** One thread at a time reads: the reactor's, or for a moment a caller that waits for what the link
//! brings, which saves the way through the reactor. Whoever sends writes, from the caller's memory, one frame at a
//! time, each in its [turn](crate::turns); so messages of several threads interleave, and a control message waits for
//! one frame at most. A sender waits as long as bytes drain; what nothing has accepted for a while ([`STALL`]) is
//! copied, counted, and written by the reactor when the socket takes it. Nobody waits for a turn who could be needed
//! to drain the other end: the reactor, and whoever tells, ends, acknowledges or asks, leaves the frame to whoever is
//! writing.

mod inbound;
mod payload;
mod reader;
pub(crate) mod settings;
mod socket;
mod striped;
mod stripes;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use titin_wire::ConduitId;
use titin_wire::frame::{Ack, Frame, Header};

use crate::shm::{Segment, Shared};
use crate::turns::Turns;
use crate::{Attention, Carrier, Lost, Medium, Outgoing, Sent};
use stripes::{Failure, Stripes};
use titin_os::Descriptor;
use writer::{Kept, Left, Outcome, Writer, Writing};

pub(crate) use inbound::{Inbound, Sinks};
pub use reader::{Reader, Received};
pub(crate) use socket::{read, read_with_files};

/// How long a sender waits at least for a socket that accepts nothing, before the rest of its message is copied.
const STALL: Duration = Duration::from_millis(5);

/// Number of a link within its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// An authenticated connection to another process.
pub struct Link {
    id: LinkId,
    tag: Option<u128>,
    socket: Descriptor,
    epoll: Weak<Descriptor>,
    /// What the reactor is told of.
    watched: Mutex<epoll::EventFlags>,
    inbound: Mutex<Inbound>,
    turns: Turns<Writer, Left>,
    closed: AtomicBool,
    stripes: Option<Stripes>,
    /// Why we have broken it off.
    fault: OnceLock<Lost>,
    /// The memory shared with the other process, if there is some: then data go there.
    shared: Option<Arc<Shared>>,
    /// Why there is none, although it was tried.
    detour: OnceLock<String>,
    this: Weak<Link>,
}

impl Link {
    pub(crate) fn new(
        id: LinkId,
        tag: Option<u128>,
        (socket, further): (Descriptor, Vec<Descriptor>),
        epoll: &Arc<Descriptor>,
        inbound: Inbound,
        shared: impl FnOnce(&Weak<Link>) -> Option<Arc<Shared>>,
        detour: Option<String>,
    ) -> Result<Arc<Self>, Lost> {
        let stripes = if further.is_empty() {
            None
        } else {
            Some(Stripes::new(further)?)
        };
        let link = Arc::new_cyclic(|this| Link {
            id,
            tag,
            socket,
            epoll: Arc::downgrade(epoll),
            watched: Mutex::new(epoll::EventFlags::IN),
            inbound: Mutex::new(inbound),
            turns: Turns::new(Writer::default()),
            closed: AtomicBool::new(false),
            stripes,
            fault: OnceLock::new(),
            shared: shared(this),
            detour: detour.map(OnceLock::from).unwrap_or_default(),
            this: this.clone(),
        });
        Ok(link)
    }

    /// Its number in this process.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// What [`crate::Reactor::dial`] was told to remember; `None` on the listening side.
    pub fn tag(&self) -> Option<u128> {
        self.tag
    }

    /// What takes messages to the other process.
    pub fn carrier(self: &Arc<Self>) -> Arc<dyn Carrier> {
        match &self.shared {
            Some(shared) => shared.clone(),
            None => self.clone(),
        }
    }

    /// Why the two processes do not share memory, if that was tried.
    pub fn detour(&self) -> Option<&str> {
        self.detour.get().map(String::as_str)
    }

    /// Notes why the two processes do not share memory, as the other end has told.
    pub fn note_detour(&self, why: String) {
        let _ = self.detour.set(why);
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// Queues a frame, with which the descriptor of a segment may go. Never blocks.
    pub(crate) fn tell_frame(&self, frame: &Frame, segment: Option<Arc<Segment>>) {
        let bytes = Header::from(frame).encode().to_vec();
        self.leave(match segment {
            None => Left::Frame(bytes),
            Some(segment) => Left::Handing(bytes, segment),
        });
    }

    /// Has the reactor find that the link has ended, though nothing may be there to read any more.
    pub(crate) fn hang_up(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Read);
    }

    /// Queues a control message. Never blocks.
    pub fn tell(&self, body: &[u8]) {
        let header = Header::from(&Frame::Control {
            body: body.len() as u64,
        })
        .encode();
        self.leave(Left::Frame([&header[..], body].concat()));
    }

    /// Ends the connection, once what was queued has been written as far as the socket takes it. What the other end
    /// still sends is dropped.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.flush();
        self.stripes
            .iter()
            .for_each(|stripes| drop(stripes.flush()));
        // Our half only: had we closed the other one too, the next bytes to come in would make the system throw away
        // what it has not delivered of ours.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
        self.stripes
            .iter()
            .for_each(|stripes| stripes.shut(rustix::net::Shutdown::Write));
    }

    /// Whether we closed it ourselves.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn socket(&self) -> &Descriptor {
        &self.socket
    }

    /// What is ready when something can be done on a further stream.
    pub(crate) fn bundle(&self) -> Option<&Descriptor> {
        self.stripes.as_ref().map(Stripes::bundle)
    }

    /// Writes what is queued, as far as the socket takes it. Leaves it to whoever is writing, if somebody is.
    pub(crate) fn flush(&self) {
        self.turns.visit(|writer, left| self.pump(writer, left));
    }

    fn leave(&self, left: Left) {
        self.turns
            .leave(left, |writer, left| self.pump(writer, left));
    }

    /// Writes what waits, as far as the socket takes it without waiting. An error shows at the reactor as well.
    fn pump(&self, writer: &mut Writer, left: Vec<Left>) {
        writer.absorb(left);
        let _ = writer.pump(&self.socket);
        self.watch(writer);
    }

    /// One step of a message: a frame of it, or a copy of what is left of it.
    fn step(
        &self,
        writing: &mut Writing<'_>,
        writer: &mut Writer,
        left: Vec<Left>,
    ) -> Result<(Outcome, u64), Lost> {
        writer.absorb(left);
        let (mut copied, stall) = (0, stall(writing.length()));
        let free = writer.make_way(&self.socket, stall)? && !writer.holds(writing.conduit());
        let outcome = if free {
            writing.write_next(writer, &self.socket, stall, &mut copied)?
        } else {
            Outcome::Stalled
        };
        if outcome == Outcome::Stalled {
            copied += writer.keep(writing)?;
        }
        self.watch(writer);
        Ok((outcome, copied))
    }

    /// Asks the reactor to call [`Link::flush`] when the socket can take more, or no longer to.
    fn watch(&self, writer: &mut Writer) {
        let wanted = writer.waits();
        if writer.watched != wanted && self.have_watched(epoll::EventFlags::OUT, wanted) {
            writer.watched = wanted;
        }
    }

    /// Has the reactor watch for this, or no longer; false if it has ended.
    fn have_watched(&self, what: epoll::EventFlags, wanted: bool) -> bool {
        let Some(epoll) = self.epoll.upgrade() else {
            return false;
        };
        let mut flags = self
            .watched
            .lock()
            .expect("nothing panics while it is locked");
        flags.set(what, wanted);
        let data = epoll::EventData::new_u64(self.id.0);
        let _ = epoll::modify(&*epoll, &self.socket, data, *flags);
        if let Some(bundle) = self.bundle().filter(|_| what == epoll::EventFlags::IN) {
            let _ = epoll::modify(&*epoll, bundle, data, *flags & what);
        }
        true
    }

    /// Reads what is there, for the reactor; when it is to read again though nothing has come, if it is.
    ///
    /// # Errors
    /// [`Lost`] if nothing more can be read.
    pub(crate) fn read(self: &Arc<Self>) -> Result<Option<Instant>, Lost> {
        let mut inbound = self
            .inbound
            .lock()
            .map_err(|_| Lost::System("reading it has failed".to_owned()))?;
        let outcome = match inbound.pour(self) {
            Ok(_) => Ok(self
                .stripes
                .as_ref()
                .and_then(|stripes| inbound.doubts(stripes))),
            Err(why) => Err(self.fault.get().cloned().unwrap_or(why)),
        };
        match self.shared.as_ref().and_then(|shared| shared.lost()) {
            Some(lost) => Err(lost),
            None => outcome,
        }
    }
}

/// The same at most: what is larger than some hundred megabytes is copied where a receiver reads nothing for so long.
const UTMOST: Duration = Duration::from_millis(500);

/// How long a sender of so many bytes waits: no shorter than it would take to copy them to fresh memory, a byte in a
/// nanosecond. A receiver that makes room for a large message may read nothing for as long.
fn stall(length: u64) -> Duration {
    Duration::from_nanos(length).clamp(STALL, UTMOST)
}

/// A caller that reads a link in the reactor's place, for as long as this lives.
struct Attending<'a>(&'a Link);

impl<'a> Attending<'a> {
    fn begin(link: &'a Link) -> Self {
        link.have_watched(epoll::EventFlags::IN, false);
        Attending(link)
    }
}

impl Drop for Attending<'_> {
    /// Whatever has come in meanwhile, or an error, has the reactor woken.
    fn drop(&mut self) {
        self.0.have_watched(epoll::EventFlags::IN, true);
    }
}

impl Carrier for Link {
    fn medium(&self) -> Medium {
        Medium::Tcp
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        match self
            .stripes
            .as_ref()
            .filter(|stripes| stripes.takes(message))
        {
            Some(stripes) => self.send_striped(stripes, message),
            None => self.send_by_socket(message),
        }
    }

    fn post(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        self.leave(Left::Message(message.head.conduit, Kept::whole(message)?));
        Ok(Sent::default())
    }

    fn streams(&self) -> usize {
        self.stripes.as_ref().map_or(1, Stripes::count)
    }

    fn attend(&self, attention: &mut dyn Attention) {
        let Some(this) = self.this.upgrade() else {
            return;
        };
        let Ok(mut inbound) = self.inbound.try_lock() else {
            return;
        };
        let _attending = Attending::begin(self);
        loop {
            match inbound.pour(&this) {
                Ok(count) if attention.enough(count) => break,
                Ok(_) => {}
                Err(_) => {
                    self.hang_up();
                    break;
                }
            }
        }
        // The reactor, woken by what has come in meanwhile, is not to wait for us.
        drop(inbound);
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        let frame = Header::from(&Frame::End { conduit, sequence }).encode();
        self.leave(Left::Behind(conduit, frame.to_vec()));
    }

    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.leave(Left::Frame(
            Header::from(&Frame::Acknowledge { conduit, ack })
                .encode()
                .to_vec(),
        ));
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.leave(Left::Frame(
            Header::from(&Frame::Ask { conduit, sequence })
                .encode()
                .to_vec(),
        ));
    }
}

impl Link {
    /// Sends a message by the socket, whatever else there is.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn send_by_socket(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        let mut writing = Writing::new(message);
        let mut sent = Sent::default();
        loop {
            let (outcome, copied) = self.turns.wait(
                |writer, left| {
                    self.step(&mut writing, writer, left).inspect_err(|_| {
                        // Half of it is out, and nothing may follow that: the other end is to learn so.
                        if writing.begun() {
                            let _ =
                                rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
                        }
                    })
                },
                |writer, left| self.pump(writer, left),
            )?;
            sent.copied += copied;
            if outcome != Outcome::More {
                return Ok(sent);
            }
        }
    }
    /// Sends a message by the further streams, and its head behind it by the first one.
    fn send_striped(&self, stripes: &Stripes, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        let copied = match stripes.send(message, stall(message.length())) {
            Ok(copied) => copied,
            Err(failure) if !failure.torn && failure.why.is_of_message() => return Err(failure.why),
            Err(failure) => return Err(self.break_off(stripes, failure)),
        };
        let meta = message.meta.encode();
        let head = message.head;
        let frame = Frame::Data {
            head,
            meta: meta.len() as u32,
            body: 0,
            total: message.length(),
        };
        let bytes = [&Header::from(&frame).encode()[..], &meta].concat();
        self.leave(Left::Behind(head.conduit, bytes));
        Ok(Sent {
            copied,
            ..Sent::default()
        })
    }

    /// Ends the link because of one of its streams. Gives what to tell.
    fn break_off(&self, stripes: &Stripes, failure: Failure) -> Lost {
        let Failure { stream, why, .. } = failure;
        // If the other end has gone as a whole, nothing is special about this stream.
        let why = match stream.filter(|_| !socket::has_ended(&self.socket)) {
            Some(number) => Lost::Stream {
                number,
                count: stripes.count(),
                why: why.to_string(),
            },
            None => why,
        };
        let why = self.fault.get_or_init(|| why).clone();
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        stripes.shut(rustix::net::Shutdown::Both);
        why
    }
}
