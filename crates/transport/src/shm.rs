//! Shared memory: between two processes of one host, one ring of entries each way, and blocks for what is larger.
//!
//! Each process holds its end, a [`Shared`], beside the Unix socket by which they have proved themselves to each other
//! and handed the memory over; that they could is the proof that they share a host. What is small travels in the ring itself
//! ([`ring`]), what is larger in a block that the receiver reads in place ([`pool`]).
//!
//! **Who owns what.** Whoever sends, tells, ends or asks puts entries in, one thread at a time; nobody waits for room:
//! what the ring does not take is kept, counted as copied, and put in by whoever comes next, or by the reactor once the
//! peer has told that there is room. A caller that waits takes entries out, one thread at a time; where none does, since
//! the program is busy with something else, the reactor is told to **look**: by a peer that would sleep until something
//! is acted upon, and by one whose ring is full. A payload for which there is no block goes by the socket, and an entry
//! in the ring keeps its place: what follows on its conduit is put aside until it has come. So the order of a conduit is
//! that of its entries, and others do not wait for it.
//!
//! Nothing here has a name in the file system, and nothing is left when a process is killed. What it had finished can be
//! read to the end, what it had not is never seen.

mod bells;
mod memory;
mod pool;
mod receive;
mod returns;
mod ring;
mod send;

use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use titin_wire::frame::{Ack, Frame};
use titin_wire::{ConduitId, Malformed};

pub(crate) use bells::Place;
pub use pool::Shortage;
pub(crate) use pool::{Placed, Pool, Segment};
pub(crate) use receive::View;

use bells::PeerBells;
use memory::{Region, Writers};
use pool::BLOCKS;
use receive::Inbound;
use returns::Returns;
use send::Outbound;

use crate::carrier::look;
use crate::latch::Latch;
use crate::tcp::{Link, Received, Sinks};
use crate::{Attention, Carrier, Doorbell, Inbox, Lost, Medium, Message, Outgoing, Sent};
use titin_os::Descriptor;

/// Bytes of a ring: a window of the usual 64 messages of [`INLINE`] bytes, and their headers.
const RING: usize = 256 << 10;

/// Larger payloads are placed in blocks.
const INLINE: usize = 2 << 10;

/// What one process has made to share with another: the ring that it sends by, and the peer's counts of returns.
pub(crate) struct Offer {
    region: Arc<Region>,
    file: OwnedFd,
}

/// What the other one has.
pub(crate) struct Taken {
    region: Arc<Region>,
    bells: PeerBells,
    capacity: usize,
}

/// The memory that two processes share, as one of them sees it.
pub(crate) struct Shared {
    link: Weak<Link>,
    sinks: Weak<Sinks>,
    pool: Arc<Pool>,
    bells: PeerBells,
    outbound: Latch<Outbound>,
    /// What the peer has returned of our blocks.
    returned: Arc<Returns>,
    inbound: Mutex<Inbound>,
    theirs: Arc<Region>,
    capacity: usize,
    /// Whether the reactor waits for the inbound side.
    knocked: AtomicBool,
    /// How far their ring was read, for those that only look whether something waits there.
    shown: Arc<ring::Shown>,
    /// The peer is no more.
    gone: AtomicBool,
    /// Nothing more can be taken in.
    broken: AtomicBool,
    /// What is wrong with what came in.
    lost: Mutex<Option<Lost>>,
}

impl Offer {
    /// Makes a ring.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub(crate) fn new() -> io::Result<Self> {
        let (region, file) = Region::create("titin-ring", length(RING), Writers::All)?;
        Ok(Offer {
            region: Arc::new(region),
            file,
        })
    }

    /// What announces it to the peer, and the descriptors that go with it.
    ///
    /// # Errors
    /// If this process has no bells.
    pub(crate) fn announcement(&self) -> io::Result<(Frame, [&OwnedFd; 2])> {
        let bells = bells::file().ok_or_else(|| io::Error::other("no memory for the bells"))?;
        Ok((
            Frame::Share {
                ring: RING as u64,
                blocks: BLOCKS as u64,
            },
            [&self.file, bells],
        ))
    }
}

impl Taken {
    /// Maps what the peer has announced.
    ///
    /// # Errors
    /// If it is not what it says, or the system does not map it.
    pub(crate) fn open(ring: u64, blocks: u64, files: &[OwnedFd]) -> io::Result<Self> {
        let [file, bells] = files else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a ring without its descriptors",
            ));
        };
        let capacity = usize::try_from(ring).unwrap_or(0);
        let fits = capacity.is_power_of_two() && (4 * INLINE..=1 << 30).contains(&capacity);
        if !fits || blocks != BLOCKS as u64 {
            let text =
                format!("a ring of {ring} bytes with {blocks} blocks: not one of this release");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let region = Arc::new(Region::open(file, length(capacity), Writers::All)?);
        Ok(Taken {
            region,
            bells: PeerBells::open(bells)?,
            capacity,
        })
    }
}

/// Bytes of the region of a ring of this capacity, with the counts of returns behind it.
fn length(capacity: usize) -> usize {
    ring::length(capacity) + BLOCKS * size_of::<u32>()
}

impl Shared {
    pub(crate) fn new(
        offer: Offer,
        taken: Taken,
        pool: Arc<Pool>,
        link: Weak<Link>,
        sinks: Weak<Sinks>,
        peer: Option<Descriptor>,
    ) -> Arc<Self> {
        let Taken {
            region: theirs,
            bells,
            capacity,
        } = taken;
        let returns = Returns::shared(theirs.clone(), ring::length(capacity), None);
        let inbound = Inbound::new(ring::Consumer::new(theirs.clone(), capacity), returns);
        Arc::new(Shared {
            link,
            sinks,
            pool,
            bells,
            outbound: Latch::new(Outbound::new(ring::Producer::new(
                offer.region.clone(),
                RING,
            ))),
            returned: Returns::shared(offer.region, ring::length(RING), peer),
            shown: inbound.shown().clone(),
            inbound: Mutex::new(inbound),
            knocked: AtomicBool::new(false),
            theirs,
            capacity,
            gone: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            lost: Mutex::default(),
        })
    }

    /// The link has ended: what the peer has put in is taken in. It holds what it views until it lets go of that, or ends.
    pub(crate) fn leave(&self) {
        self.take_in(&mut self.inbound.lock().expect(POISONED));
        self.gone.store(true, Ordering::Release);
        self.returned.leave();
    }

    /// Why nothing more can be taken in.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.lost.lock().expect("never poisoned").clone()
    }

    /// Takes what has come by the socket, for the reactor.
    ///
    /// # Errors
    /// [`Lost`] if it makes no sense.
    pub(crate) fn receive(&self, received: Received, file: Option<OwnedFd>) -> Result<(), Lost> {
        // To map memory takes its time, and to unmap it: not while others would have to wait for it.
        let mapped = match received {
            Received::Segment { first, size, count } => {
                Some(receive::Segment::map(first, size, count, file)?)
            }
            _ => None,
        };
        // A caller that waits would have it for long; all other links wait for the reactor.
        self.knocked.store(true, Ordering::Relaxed);
        let mut inbound = self.inbound.lock().expect(POISONED);
        self.knocked.store(false, Ordering::Relaxed);
        let mut unmapped = mapped
            .map(|segment| inbound.add(segment))
            .unwrap_or_default();
        match received {
            Received::Message(message) => inbound.elsewhere(message),
            Received::Withdrawn(first) => unmapped.extend(inbound.withdraw(first)),
            Received::Segment { .. } | Received::Look => {}
            other => {
                let why = format!("{other:?} came by the socket, and belongs in the ring");
                return Err(Malformed::new("frame", why).into());
            }
        }
        self.take_in(&mut inbound);
        drop(inbound);
        drop(unmapped);
        self.flush();
        self.lost().map_or(Ok(()), Err)
    }

    fn waits(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
            && ring::waits(&*self.theirs, self.capacity, &self.shown)
    }

    /// Takes in all that the ring holds; how many entries. The reactor tells of what goes wrong.
    fn take_in(&self, inbound: &mut Inbound) -> usize {
        let Some(sinks) = self.sinks.upgrade() else {
            return 0;
        };
        let mut count = 0;
        self.take_in_to(inbound, |received| {
            count += 1;
            sinks
                .deliver(received, || Some(self.link.upgrade()?.id()))
                .map(ControlFlow::Continue)
        });
        count
    }

    fn take_in_to(
        &self,
        inbound: &mut Inbound,
        sink: impl FnMut(Received) -> Result<ControlFlow<()>, Lost>,
    ) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let outcome = inbound.take_in(sink);
        match outcome {
            Ok(false) => {}
            Ok(true) => self.tell_to_look(),
            Err(why) => {
                self.lost.lock().expect("never poisoned").get_or_insert(why);
                self.broken.store(true, Ordering::Relaxed);
                if let Some(link) = self.link.upgrade() {
                    link.hang_up();
                }
            }
        }
    }

    /// Takes in what comes until it is enough, or until the next message of this inbox comes, if one is given.
    fn stay(&self, wanted: Option<&Inbox>, attention: &mut dyn Attention) -> Option<Message> {
        let sinks = self.sinks.upgrade()?;
        // Descriptor while we look: what comes for others is handed on from here, and they are woken.
        let mut inbound = self.inbound.try_lock().ok()?;
        let mut found = None;
        loop {
            let mut count = 0;
            if self.waits() {
                self.take_in_to(&mut inbound, |received| {
                    count += 1;
                    match (received, wanted) {
                        (Received::Message(message), Some(inbox))
                            if message.head.conduit == inbox.conduit() && inbox.pass(&message) =>
                        {
                            found = Some(message);
                            Ok(ControlFlow::Break(()))
                        }
                        (received, _) => sinks
                            .deliver(received, || Some(self.link.upgrade()?.id()))
                            .map(ControlFlow::Continue),
                    }
                });
            }
            if found.is_some() || attention.enough(count) || self.knocked.load(Ordering::Relaxed) {
                return found;
            }
            look(attention, || self.waits());
        }
    }

    /// Has the peer's reactor look at its ring.
    fn tell_to_look(&self) {
        if let Some(link) = self.link.upgrade() {
            link.tell_frame(&Frame::Look, None);
        }
    }

    /// Takes in what has come meanwhile, if nobody else is at it; how many entries.
    fn visit(&self) -> usize {
        if !self.waits() {
            return 0;
        }
        match self.inbound.try_lock() {
            Ok(mut inbound) => self.take_in(&mut inbound),
            Err(_) => 0,
        }
    }
}

const POISONED: &str = "nothing panics at work";

impl Carrier for Shared {
    fn medium(&self) -> Medium {
        Medium::Shm
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Lost::Closed);
        }
        self.put(message, Link::send_by_socket)
    }

    fn post(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Lost::Closed);
        }
        self.put(message, <Link as Carrier>::post)
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        self.put_frame(&Frame::End { conduit, sequence }, true);
    }

    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.put_frame(&Frame::Acknowledge { conduit, ack }, ack.ended);
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.put_frame(&Frame::Ask { conduit, sequence }, true);
    }

    fn attend(&self, attention: &mut dyn Attention) {
        self.stay(None, attention);
    }

    fn attend_one(&self, inbox: &Inbox, attention: &mut dyn Attention) -> Option<Message> {
        self.stay(Some(inbox), attention)
    }

    fn look(&self) {
        // Whoever else is at it hands on what is for us; to wait until he goes would be to wait for what he waits for.
        self.visit();
    }

    fn arm(&self, bell: &Doorbell) -> bool {
        // A bell that no other process can ring is rung by our reactor.
        let number = bell.number().unwrap_or(REACTOR);
        ring::fall_asleep(
            &*self.theirs,
            if number % 64 == REACTOR {
                REACTOR
            } else {
                number
            },
        );
        if self.waits() && self.visit() > 0 {
            return false;
        }
        self.urge();
        // What waits now came in this moment.
        !self.waits()
    }
}

/// The remainder of bells that stands for the reactor.
const REACTOR: u32 = 63;
