//! Two ends that a medium connects, as it connects two instances.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use titin_transport::{
    Carrier, ConduitTable, Doorbell, Inbox, InboxOptions, IncomingMessage, Inproc, Link, Outgoing,
    Room, SendReport, SharedBuffer, Window,
};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};
use titin_wire::{Address, ConduitId, LinkSettings, Secret};

use crate::events::STAND_STILL;
use crate::{Events, Host, Watchdog, progress};

/// Two connected ends, left and right.
pub struct Pair {
    /// The left end. Messages go from left to right unless a test says otherwise.
    pub left: PairEnd,
    /// The right end.
    pub right: PairEnd,
    _watchdog: Watchdog,
}

/// One end of a [`Pair`].
pub struct PairEnd {
    /// The conduit ends of this end.
    pub conduits: Arc<ConduitTable>,
    /// Carries messages to the other end.
    pub carrier: Arc<dyn Carrier>,
    /// The bell at which the instance of this end waits.
    pub bell: Arc<Doorbell>,
    /// The host and the link of this end, if the pair plays two processes.
    pub tcp: Option<(Host, Arc<Link>)>,
}

/// The sending end of a conduit.
pub struct Outlet {
    /// The conduit.
    pub conduit: ConduitId,
    /// The window of the conduit.
    pub window: Arc<Window>,
    /// If set, each message takes the place of the earlier messages from this number on.
    pub supersedes: Option<u64>,
    carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
    conduits: Arc<ConduitTable>,
}

/// The receiving end of a conduit.
pub struct Inlet {
    /// The inbox of the conduit.
    pub inbox: Arc<Inbox>,
    carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
}

/// Keeps an end from taking in anything until the value is dropped.
pub struct Stall(Option<Arc<Events>>);

impl Pair {
    /// Two instances in one process.
    pub fn inproc() -> Self {
        let conduits = Arc::new(ConduitTable::default());
        let side = || PairEnd {
            conduits: conduits.clone(),
            carrier: Arc::new(Inproc::new(conduits.clone())),
            bell: Arc::default(),
            tcp: None,
        };
        Pair {
            left: side(),
            right: side(),
            _watchdog: Watchdog::start(),
        }
    }

    /// Two hosts that titin takes for two processes, and a connection over loopback.
    pub fn tcp() -> Self {
        Self::set(LinkSettings::default())
    }

    /// As [`Pair::tcp`]. `count` streams carry large messages.
    pub fn streams(count: u32) -> Self {
        Self::set(LinkSettings {
            streams: Some(count),
            ..LinkSettings::default()
        })
    }

    /// As [`Pair::tcp`], with these settings of the link.
    pub fn set(settings: LinkSettings) -> Self {
        let secret = Secret::random();
        let (left, right) = (Host::start(&secret), Host::start(&secret));
        left.dial_with(&[right.listen()], 0, settings);
        Pair {
            left: left.into(),
            right: right.into(),
            _watchdog: Watchdog::start(),
        }
    }

    /// Two hosts that titin takes for two processes of one machine, and the memory that they share.
    pub fn shm() -> Self {
        let secret = Secret::random();
        let (left, right) = (Host::start(&secret), Host::start(&secret));
        left.dial(&[right.listen_shm()], 0);
        Pair {
            left: left.into(),
            right: right.into(),
            _watchdog: Watchdog::start(),
        }
    }

    /// Two hosts that exchange messages through a new folder.
    pub fn file() -> Self {
        Self::meet(Host::listen_file)
    }

    /// Two hosts that exchange messages through this folder. The left host dials.
    pub fn file_in(folder: &Path) -> Self {
        Self::meet(|host| host.listen_in(folder).expect("the folder serves"))
    }

    fn meet(listen: impl Fn(&Host) -> Address) -> Self {
        let secret = Secret::random();
        let (left, right) = (Host::start(&secret), Host::start(&secret));
        left.dial(&[listen(&right)], 0);
        Pair {
            left: left.into(),
            right: right.into(),
            _watchdog: Watchdog::start(),
        }
    }

    /// As [`Pair::shm`]. Each host shares at most `bytes` bytes of memory.
    pub fn shm_with_ceiling(bytes: u64) -> Self {
        let secret = Secret::random();
        let host = || Host::start_with(&secret, ConduitTable::with_ceiling(bytes));
        let (left, right) = (host(), host());
        left.dial(&[right.listen_shm()], 0);
        Pair {
            left: left.into(),
            right: right.into(),
            _watchdog: Watchdog::start(),
        }
    }

    /// A conduit from left to right, with the usual limits.
    pub fn conduit(&self, number: u32) -> (Outlet, Inlet) {
        self.limited(number, InboxOptions::default())
    }

    /// A conduit from left to right whose messages all take the place of those before them.
    pub fn superseding(&self, number: u32) -> (Outlet, Inlet) {
        (
            self.left.superseding(number),
            self.right.inlet(number, InboxOptions::default()),
        )
    }

    /// A conduit from left to right, with these limits.
    pub fn limited(&self, number: u32, options: InboxOptions) -> (Outlet, Inlet) {
        (
            self.left.outlet(number, options),
            self.right.inlet(number, options),
        )
    }

    /// Keeps the right end from taking in anything, if the medium allows it. Within a process
    /// nothing is taken in.
    pub fn stall(&self) -> Stall {
        let (Some((_, link)), Some((host, _))) = (&self.left.tcp, &self.right.tcp) else {
            return Stall(None);
        };
        host.events.hold(|| link.tell(STAND_STILL));
        Stall(Some(host.events.clone()))
    }
}

impl PairEnd {
    /// The conduit ends of a host without a link. Such an end takes messages of a
    /// [`RawPeer`](crate::RawPeer) and does not answer.
    pub fn of(host: &Host) -> Self {
        let conduits = host.conduits.clone();
        PairEnd {
            carrier: Arc::new(Inproc::new(Arc::default())),
            conduits,
            bell: Arc::default(),
            tcp: None,
        }
    }

    /// The sending end of a conduit.
    pub fn outlet(&self, number: u32, options: InboxOptions) -> Outlet {
        let conduit = ConduitId(number);
        let window = Arc::new(Window::new(
            self.bell.clone(),
            options.messages,
            options.bytes,
        ));
        self.conduits.open_window(conduit, window.clone());
        let (carrier, bell, conduits) = (
            self.carrier.clone(),
            self.bell.clone(),
            self.conduits.clone(),
        );
        Outlet {
            conduit,
            window,
            supersedes: None,
            carrier,
            bell,
            conduits,
        }
    }

    /// The sending end of a conduit whose messages all take the place of those before them.
    pub fn superseding(&self, number: u32) -> Outlet {
        let limits = InboxOptions {
            messages: u64::MAX,
            bytes: u64::MAX,
        };
        Outlet {
            supersedes: Some(0),
            ..self.outlet(number, limits)
        }
    }

    /// The receiving end of a conduit.
    pub fn inlet(&self, number: u32, options: InboxOptions) -> Inlet {
        let inbox = self.conduits.inbox(ConduitId(number));
        inbox.attach(self.bell.clone(), self.carrier.clone(), options);
        Inlet {
            inbox,
            carrier: self.carrier.clone(),
            bell: self.bell.clone(),
        }
    }
}

impl Outlet {
    /// Sends bytes as soon as the receiver has room.
    pub fn send(&self, bytes: &[u8]) -> SendReport {
        self.send_parts(&[IoSlice::new(bytes)])
    }

    /// Sends bytes in parts as soon as the receiver has room.
    pub fn send_parts(&self, parts: &[IoSlice<'_>]) -> SendReport {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let sequence = self.claim(length);
        self.send_numbered(sequence, parts)
            .expect("the other end is there")
    }

    /// Posts a copy of these bytes. The copy lies in memory of the medium's own kind.
    pub fn post(&self, bytes: &[u8]) -> SendReport {
        let mut memory = self
            .conduits
            .loan(bytes.len() as u64)
            .expect("there is memory");
        memory.rest().copy_from_slice(bytes);
        let copy = SharedBuffer::from(memory.finish());
        let meta = Arc::new(meta(bytes.len() as u64));
        let (head, parts) = (
            head(self.conduit, self.claim(bytes.len() as u64)),
            [IoSlice::new(&copy)],
        );
        let message = Outgoing::new(head, &meta, &parts);
        message.share(copy.clone());
        let sent = self.carrier.post(&message).expect("the other end is there");
        progress();
        sent
    }

    /// Sends a message with this number, without asking the window.
    pub fn send_numbered(
        &self,
        sequence: u64,
        parts: &[IoSlice<'_>],
    ) -> Result<SendReport, titin_transport::LinkError> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let meta = Arc::new(Meta {
            supersedes: self.supersedes,
            ..meta(length)
        });
        let sent = self
            .carrier
            .send(&Outgoing::new(head(self.conduit, sequence), &meta, parts));
        progress();
        sent
    }

    /// Says that no message follows.
    pub fn end(&self) {
        self.carrier.end(self.conduit, self.window.sent());
    }

    /// Waits for room as the runtime does. Returns the number of the message that may be sent.
    pub fn claim(&self, length: u64) -> u64 {
        let mut asked = false;
        loop {
            let rings = self.bell.rings();
            match self.window.claim(length) {
                Room::Free(sequence) => return sequence,
                Room::Full if asked => drop(self.bell.wait(rings, None, &[&*self.carrier])),
                Room::Full => {
                    // The second question is that of a sender that sleeps.
                    self.carrier.ask(self.conduit, self.window.sent());
                    self.carrier.ask(self.conduit, self.window.sent());
                }
                Room::Closed => panic!("the receiver takes no more"),
            }
            asked = true;
        }
    }

    /// Waits until `wanted` is true of the window.
    pub fn wait(&self, wanted: impl Fn(&Window) -> bool) {
        until(&self.bell, Some(&*self.carrier), || {
            wanted(&self.window).then_some(())
        });
    }
}

impl Inlet {
    /// Waits for a message.
    pub fn receive(&self) -> IncomingMessage {
        until(&self.bell, Some(&*self.carrier), || self.inbox.take())
    }

    /// As [`Inlet::receive`]. The message comes past the queue of the inbox if the medium allows so,
    /// as a waiting instance takes most messages.
    pub fn receive_directly(&self) -> IncomingMessage {
        let mut message = IncomingMessage::default();
        let is_here =
            self.inbox.has_no_news() && self.bell.glance(&*self.carrier, &self.inbox, &mut message);
        if is_here { message } else { self.receive() }
    }

    /// Waits until `wanted` is true of the inbox.
    pub fn wait(&self, wanted: impl Fn(&Inbox) -> bool) {
        until(&self.bell, Some(&*self.carrier), || {
            wanted(&self.inbox).then_some(())
        });
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.iter().for_each(|events| events.release());
    }
}

impl From<Host> for PairEnd {
    /// The end of the only link of a host.
    fn from(host: Host) -> Self {
        let link = host.events.opened();
        let (conduits, carrier) = (host.conduits.clone(), link.carrier());
        PairEnd {
            conduits,
            carrier,
            bell: Arc::default(),
            tcp: Some((host, link)),
        }
    }
}

/// Returns bytes that differ from message to message, and from place to place in a message.
pub fn pattern(sequence: u64, length: usize) -> Vec<u8> {
    let mut state = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn head(conduit: ConduitId, sequence: u64) -> Head {
    let (timestamp, next_timestamp) = (sequence as f64, Some(sequence as f64 + 1.0));
    Head::new(conduit, sequence, timestamp, next_timestamp)
}

fn meta(length: u64) -> Meta {
    Meta {
        content: Content::Array(Layout::new(Dtype::UInt8, StorageOrder::C, [length])),
        ..Meta::default()
    }
}

/// Waits at a bell until `poll` returns a value. The wait also looks at the carrier, if there is
/// one.
pub fn until<T>(
    bell: &Doorbell,
    carrier: Option<&dyn Carrier>,
    mut poll: impl FnMut() -> Option<T>,
) -> T {
    loop {
        let rings = bell.rings();
        if let Some(found) = poll() {
            progress();
            return found;
        }
        bell.wait(rings, None, carrier.as_slice());
    }
}
