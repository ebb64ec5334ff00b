//! Two ends that a medium connects, as two instances would be.

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

/// Two ends, left and right, and what connects them.
pub struct Pair {
    /// Messages go from here to the right, unless a test says otherwise.
    pub left: PairEnd,
    /// The other end.
    pub right: PairEnd,
    _watchdog: Watchdog,
}

/// One end of a [`Pair`].
pub struct PairEnd {
    /// Its conduit ends.
    pub conduits: Arc<ConduitTable>,
    /// Takes messages to the other end.
    pub carrier: Arc<dyn Carrier>,
    /// Where its instance waits.
    pub bell: Arc<Doorbell>,
    /// Between processes, its host and link.
    pub tcp: Option<(Host, Arc<Link>)>,
}

/// The sending end of a conduit.
pub struct Outlet {
    /// The conduit.
    pub conduit: ConduitId,
    /// Its window.
    pub window: Arc<Window>,
    /// The first of the messages whose place each later one takes.
    pub supersedes: Option<u64>,
    carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
    conduits: Arc<ConduitTable>,
}

/// The receiving end of a conduit.
pub struct Inlet {
    /// Its inbox.
    pub inbox: Arc<Inbox>,
    carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
}

/// Keeps an end from taking in anything, until dropped.
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

    /// Two processes, as far as titin can tell, and a connection over loopback.
    pub fn tcp() -> Self {
        Self::set(LinkSettings::default())
    }

    /// As [`Pair::tcp`], where so many streams carry large messages.
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

    /// Two processes of one host, as far as titin can tell, and the memory that they share.
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

    /// Two processes that share a folder of their own.
    pub fn file() -> Self {
        Self::meet(Host::listen_file)
    }

    /// Two processes that share this folder. The left one dials.
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

    /// The same, with so many bytes of memory to share.
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

    /// Keeps the right end from taking in anything, where the medium is one that could be kept from it.
    pub fn stall(&self) -> Stall {
        let (Some((_, link)), Some((host, _))) = (&self.left.tcp, &self.right.tcp) else {
            return Stall(None);
        };
        host.events.hold(|| link.tell(STAND_STILL));
        Stall(Some(host.events.clone()))
    }
}

impl PairEnd {
    /// Conduit ends of a host without a link of its own: what comes from peers by hand is taken, and not answered.
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
    /// Sends bytes, as soon as there is room.
    pub fn send(&self, bytes: &[u8]) -> SendReport {
        self.send_parts(&[IoSlice::new(bytes)])
    }

    /// Sends bytes in parts, as soon as there is room.
    pub fn send_parts(&self, parts: &[IoSlice<'_>]) -> SendReport {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let sequence = self.claim(length);
        self.send_numbered(sequence, parts)
            .expect("the other end is there")
    }

    /// Posts a copy of these bytes, in memory of the medium's own kind.
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

    /// Sends the message of this number, whatever the window says.
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

    /// Waits for room as the runtime does; the number of the message that may be sent.
    pub fn claim(&self, length: u64) -> u64 {
        let mut asked = false;
        loop {
            let rings = self.bell.rings();
            match self.window.claim(length) {
                Room::Free(sequence) => return sequence,
                Room::Full if asked => drop(self.bell.wait(rings, None, &[&*self.carrier])),
                Room::Full => self.carrier.ask(self.conduit, self.window.sent()),
                Room::Closed => panic!("the receiver takes no more"),
            }
            asked = true;
        }
    }

    /// Waits until the window is as wanted.
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
        let direct = self
            .inbox
            .has_no_news()
            .then(|| self.bell.glance(&*self.carrier, &self.inbox));
        direct.flatten().unwrap_or_else(|| self.receive())
    }

    /// Waits until the inbox is as wanted.
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
    /// The end of a host's one link.
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

/// Bytes that tell one message from another, and one place in it from another.
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

/// Waits at a bell until there is what is looked for, which may come by a carrier.
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
