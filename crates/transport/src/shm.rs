//! The medium `shm`: shared memory between two processes of one host, with one ring of entries each
//! way, and blocks for larger payloads.
//!
//! Each process has a [`ShmCarrier`] beside a Unix socket. By the socket the processes have proved
//! themselves to each other and exchanged the memory; a successful exchange is the proof of a
//! common host. Small payloads travel in the ring itself ([`ring`]), larger payloads in blocks that
//! the receiver reads in place ([`pool`]).
//!
//! **Sending.** A thread that sends, tells, ends or asks puts entries in, one thread at a time. No
//! thread waits for room. An entry that finds no room in the ring is kept and counted as copied.
//! The next thread puts kept entries in, or the reactor does once the peer has told of room.
//!
//! **Receiving.** A waiting caller takes entries out, one thread at a time. While no caller waits,
//! a peer tells the receiving process's reactor to **look**: before the peer sleeps until an entry
//! is acted on, and when the peer's ring is full.
//!
//! **Order.** A larger payload for which there is no block goes by the socket, and an entry in the
//! ring keeps the payload's place: later entries of the conduit are put aside until the payload has
//! come. So the order of a conduit is the order of its entries, and other conduits do not wait.
//!
//! Nothing here has a name in the file system, and nothing is left when a process is killed. A peer
//! reads all entries finished by the killed process, and never sees an unfinished entry.

mod last_message;
mod pool;
mod receive;
mod returns;
mod ring;
mod segment;
mod send;
mod setup;

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use titin_os::Descriptor;
use titin_wire::frame::{Ack, Frame};
use titin_wire::{ConduitId, Malformed};

pub(crate) use pool::Pool;
pub(crate) use setup::ShmMedium;

use receive::{PeerSegment, PeerWants, RingInput};
use returns::Returns;
use send::RingOutput;
use setup::{OwnRing, PeerMemory};

use crate::carrier::{Carrier, Medium, Outgoing, SendReport};
use crate::doorbell::Doorbell;
use crate::error::LinkError;
use crate::inbox::{Acknowledge, Inbox, IncomingMessage};
use crate::link::{Link, Received, Receivers, SideCarrier};
use crate::shared_bells::PeerBells;
use crate::shared_memory::SharedRegion;
use crate::spin::{WaitPolicy, spin_until};
use crate::spin_lock::{SpinLock, SpinLockGuard};

/// Bytes of a ring: a window of the usual 64 messages of [`INLINE`] bytes, and their headers. After a
/// jump to the beginning ([`ring::HOME`]) the ring has less room until the peer has read on.
const RING: usize = 256 << 10;

/// The largest payload in an entry. Larger payloads go into blocks.
const INLINE: usize = 2 << 10;

/// The remainder of bell numbers reserved for the reactor.
const REACTOR: u32 = 63;

/// The memory shared by two processes, from the side of one of them.
pub(crate) struct ShmCarrier {
    link: Weak<Link>,
    receivers: Weak<Receivers>,
    pool: Arc<Pool>,
    peer_bells: PeerBells,
    output: SpinLock<RingOutput>,
    /// The process's own blocks, as returned by the peer.
    returned: Arc<Returns>,
    input: SpinLock<RingInput>,
    peer_region: Arc<SharedRegion>,
    peer_capacity: usize,
    /// Whether the reactor waits for the input.
    reactor_waits: AtomicBool,
    /// How far the peer's ring was read, for threads that only look for a waiting entry.
    read_position: Arc<ring::ReadPosition>,
    /// The peer is no more.
    gone: AtomicBool,
    /// Nothing more can be taken in.
    broken: AtomicBool,
    /// Why nothing more can be taken in.
    lost: Mutex<Option<LinkError>>,
}

impl ShmCarrier {
    fn new(
        own: OwnRing,
        peer: PeerMemory,
        pool: Arc<Pool>,
        link: Weak<Link>,
        receivers: Weak<Receivers>,
        process: Option<Descriptor>,
    ) -> Arc<Self> {
        let PeerMemory {
            region: peer_region,
            bells: peer_bells,
            capacity: peer_capacity,
        } = peer;
        let returns = Returns::shared(peer_region.clone(), ring::length(peer_capacity), None);
        let consumer = ring::Consumer::new(peer_region.clone(), peer_capacity);
        let producer = ring::Producer::new(own.region.clone(), RING);
        Arc::new(ShmCarrier {
            link,
            receivers,
            pool,
            peer_bells,
            output: SpinLock::new(RingOutput::new(producer)),
            returned: Returns::shared(own.region, ring::length(RING), process),
            read_position: consumer.read_position().clone(),
            input: SpinLock::new(RingInput::new(consumer, returns)),
            reactor_waits: AtomicBool::new(false),
            peer_region,
            peer_capacity,
            gone: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            lost: Mutex::default(),
        })
    }

    /// Whether an entry waits in the peer's ring.
    fn has_entry(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
            && ring::has_entry(&*self.peer_region, self.peer_capacity, &self.read_position)
    }

    /// Takes in all entries of the ring; how many. The reactor tells of an error.
    fn take_in(&self, input: &mut RingInput) -> usize {
        let Some(receivers) = self.receivers.upgrade() else {
            return 0;
        };
        let mut count = 0;
        self.take_in_to(input, |received| {
            count += 1;
            receivers
                .deliver(received, || Some(self.link.upgrade()?.id()))
                .map(ControlFlow::Continue)
        });
        count
    }

    fn take_in_to(
        &self,
        input: &mut RingInput,
        sink: impl FnMut(Received) -> Result<ControlFlow<()>, LinkError>,
    ) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let outcome = input.take_in(sink);
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

    /// Takes entries in until the policy ends the spin, or until the next message of the wanted
    /// inbox has come, if an inbox is given; whether it has come.
    fn attend_to(
        &self,
        input: &mut RingInput,
        mut wanted: Option<(&Inbox, &mut IncomingMessage)>,
        policy: &mut dyn WaitPolicy,
    ) -> bool {
        loop {
            let (mut count, mut found) = (0, false);
            if self.has_entry() {
                if let Some((inbox, message)) = &mut wanted
                    && self.take_alike(input, inbox, message)
                {
                    return true;
                }
                let Some(receivers) = self.receivers.upgrade() else {
                    return false;
                };
                self.take_in_to(input, |received| {
                    count += 1;
                    match (received, &mut wanted) {
                        (Received::Message(arrived), Some((inbox, message)))
                            if is_taken_by(inbox, &arrived) =>
                        {
                            **message = arrived;
                            found = true;
                            Ok(ControlFlow::Break(()))
                        }
                        (received, _) => receivers
                            .deliver(received, || Some(self.link.upgrade()?.id()))
                            .map(ControlFlow::Continue),
                    }
                });
            }
            if found || policy.is_over(count) || self.reactor_waits.load(Ordering::Relaxed) {
                return found;
            }
            spin_until(policy, || self.has_entry());
        }
    }

    /// Takes the next message of an empty inbox, if the next entry is like the last.
    #[inline(always)]
    fn take_alike(
        &self,
        input: &mut RingInput,
        inbox: &Inbox,
        message: &mut IncomingMessage,
    ) -> bool {
        if self.broken.load(Ordering::Relaxed) {
            return false;
        }
        let taken = input.take_alike(inbox, message);
        if taken == Some(PeerWants::Look) {
            self.tell_to_look();
        }
        taken.is_some()
    }

    /// Locks the input for the reactor. A spinning caller lets go of the lock: otherwise the caller
    /// would hold it for long, and all other links wait for the reactor.
    fn lock_for_reactor(&self) -> SpinLockGuard<'_, RingInput> {
        self.reactor_waits.store(true, Ordering::Relaxed);
        let input = self.input.lock();
        self.reactor_waits.store(false, Ordering::Relaxed);
        input
    }

    /// Has the peer's reactor look at its ring.
    fn tell_to_look(&self) {
        if let Some(link) = self.link.upgrade() {
            link.tell_frame(&Frame::Look, None);
        }
    }

    /// Takes in the waiting entries, unless another thread does so; how many.
    fn take_in_if_free(&self) -> usize {
        if !self.has_entry() {
            return 0;
        }
        self.input
            .try_lock()
            .map_or(0, |mut input| self.take_in(&mut input))
    }
}

/// Whether a message belongs to the inbox and need not pass its queue. The inbox has then counted the
/// message as taken.
fn is_taken_by(inbox: &Inbox, message: &IncomingMessage) -> bool {
    let IncomingMessage { head, meta, body } = message;
    head.conduit == inbox.conduit()
        && meta.supersedes.is_none()
        && inbox.count_as_taken(head.sequence, body.len() as u64)
}

impl SideCarrier for ShmCarrier {
    fn receive(&self, received: Received, file: Option<OwnedFd>) -> Result<(), LinkError> {
        // Mapping and unmapping take time, so no lock is held.
        let mapped = match received {
            Received::Segment { first, size, count } => {
                Some(PeerSegment::map(first, size, count, file)?)
            }
            _ => None,
        };
        let mut input = self.lock_for_reactor();
        let mut unmapped = mapped.map(|segment| input.add(segment)).unwrap_or_default();
        match received {
            Received::Message(message) => input.add_from_socket(message),
            Received::Withdrawn(first) => unmapped.extend(input.withdraw(first)),
            Received::Segment { .. } | Received::Look => {}
            other => {
                let why = format!("{other:?} came by the socket, and belongs in the ring");
                return Err(Malformed::new("frame", why).into());
            }
        }
        self.take_in(&mut input);
        drop(input);
        drop(unmapped);
        self.flush();
        self.lost().map_or(Ok(()), Err)
    }

    /// The peer holds its viewed blocks until the peer lets go of them, or ends.
    fn leave(&self) {
        self.take_in(&mut self.lock_for_reactor());
        self.gone.store(true, Ordering::Release);
        self.returned.leave();
    }

    fn lost(&self) -> Option<LinkError> {
        self.lost.lock().expect("never poisoned").clone()
    }
}

impl Acknowledge for ShmCarrier {
    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.put_frame(&Frame::Acknowledge { conduit, ack }, ack.ended);
    }
}

impl Carrier for ShmCarrier {
    fn medium(&self) -> Medium {
        Medium::Shm
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(LinkError::Closed);
        }
        self.put(message, Link::send)
    }

    fn post(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(LinkError::Closed);
        }
        self.put(message, Link::post)
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        self.put_frame(&Frame::End { conduit, sequence }, true);
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.put_frame(&Frame::Ask { conduit, sequence }, true);
    }

    fn attend(&self, policy: &mut dyn WaitPolicy) {
        // Locked during the spin: the caller delivers messages for other threads, and wakes them.
        if let Some(mut input) = self.input.try_lock() {
            self.attend_to(&mut input, None, policy);
        }
    }

    fn attend_one(
        &self,
        inbox: &Inbox,
        policy: &mut dyn WaitPolicy,
        message: &mut IncomingMessage,
    ) -> bool {
        let Some(mut input) = self.input.try_lock() else {
            return false;
        };
        // Most messages are there, or are like the last.
        self.take_alike(&mut input, inbox, message)
            || self.attend_to(&mut input, Some((inbox, message)), policy)
    }

    fn look(&self) {
        // Another thread with the input delivers messages for the caller, too. The other thread may
        // hold the input for as long as it waits for a message of its own.
        self.take_in_if_free();
    }

    fn has_news(&self) -> bool {
        self.has_entry()
    }

    fn arm(&self, bell: &Doorbell) -> bool {
        // The process's own reactor rings a bell that no other process can ring.
        let number = bell.number().unwrap_or(REACTOR);
        ring::announce_sleep(
            &*self.peer_region,
            if number % 64 == REACTOR {
                REACTOR
            } else {
                number
            },
        );
        if self.has_entry() && self.take_in_if_free() > 0 {
            return false;
        }
        self.urge();
        // An entry that waits now has just come in.
        !self.has_entry()
    }
}
