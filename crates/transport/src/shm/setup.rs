//! How two processes of one host come to share memory.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Weak};

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use titin_os::{Descriptor, sockets};
use titin_wire::frame::{Frame, HEADER, Header};
use titin_wire::{Address, LinkSettings, Malformed};

use super::pool::{BLOCKS, Pool};
use super::{INLINE, RING, ShmCarrier, ring};
use crate::carrier::Medium;
use crate::error::LinkError;
use crate::link::{Link, Receivers, SideCarrier};
use crate::medium::{BACKLOG, DialTarget, LinkSetup, Negotiation, SocketMedium, send_whole};
use crate::shared_bells::{self, PeerBells};
use crate::shared_memory::{SharedRegion, Writers};

/// The medium, for a reactor.
pub(crate) struct ShmMedium;

impl SocketMedium for ShmMedium {
    fn medium(&self) -> Medium {
        Medium::Shm
    }

    /// Listens at a file: `listen` makes the file, and the caller removes it later.
    fn listen(&self, place: &str) -> io::Result<(Descriptor, Address)> {
        let socket = unix_socket()?;
        net::bind(&socket, &SocketAddrUnix::new(place)?)?;
        net::listen(&socket, BACKLOG)?;
        Ok((socket, Address::Shm(place.to_owned())))
    }

    fn greet(&self, socket: &Descriptor) -> bool {
        !sockets::is_of_other_user(socket)
    }

    fn targets(&self, address: &Address) -> Vec<Arc<dyn DialTarget>> {
        match address {
            Address::Shm(path) => vec![Arc::new(ShmTarget(path.clone()))],
            _ => Vec::new(),
        }
    }

    fn setup(&self) -> LinkSetup {
        LinkSetup::Negotiated(Box::<ShmNegotiation>::default())
    }
}

/// The file of a Unix socket; by the socket two processes come to share memory.
struct ShmTarget(String);

impl fmt::Display for ShmTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl DialTarget for ShmTarget {
    fn connect(&self, _: &LinkSettings) -> io::Result<Descriptor> {
        let socket = unix_socket()?;
        net::connect(&socket, &SocketAddrUnix::new(self.0.as_str())?)?;
        Ok(socket)
    }

    fn is_on_this_host(&self) -> bool {
        true
    }

    fn detour(&self, why: &LinkError) -> Option<String> {
        Some(if *why == LinkError::from(Errno::NOENT) {
            "they do not share /dev/shm: the socket of the one there is not seen by the other"
                .to_owned()
        } else {
            format!("memory cannot be shared by way of {self}: {why}")
        })
    }
}

fn unix_socket() -> Result<Descriptor, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?.into())
}

/// Two processes on the way to shared memory. Each offers a ring, and confirms the other's.
#[derive(Default)]
struct ShmNegotiation {
    own: Option<OwnRing>,
    peer: Option<PeerMemory>,
}

impl Negotiation for ShmNegotiation {
    fn begin(&mut self, socket: &Descriptor) -> Result<(), LinkError> {
        let own = OwnRing::new()?;
        let (frame, files) = own.announcement()?;
        let files = files.map(|file| file.as_fd());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = Header::from(&frame).encode();
        let sent = net::sendmsg(
            socket,
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        if sent != bytes.len() {
            return Err(LinkError::System(
                "the socket does not take an offer of memory".to_owned(),
            ));
        }
        self.own = Some(own);
        Ok(())
    }

    fn advance(
        &mut self,
        socket: &Descriptor,
        bytes: &mut Vec<u8>,
        files: &mut VecDeque<OwnedFd>,
    ) -> Result<bool, LinkError> {
        while let Some(header) = bytes.first_chunk::<HEADER>() {
            match Header::decode(header)?.frame()? {
                Frame::Share { ring, blocks } if self.peer.is_none() => {
                    let files: Vec<OwnedFd> = files.drain(..).collect();
                    self.peer = Some(PeerMemory::open(ring, blocks, &files)?);
                    send_whole(socket, &Header::from(&Frame::Shared).encode())?;
                }
                Frame::Shared if self.peer.is_some() => {
                    bytes.drain(..HEADER);
                    return Ok(true);
                }
                frame => {
                    let why = format!("{frame:?} before memory is shared");
                    return Err(Malformed::new("frame", why).into());
                }
            }
            bytes.drain(..HEADER);
        }
        Ok(false)
    }

    fn finish(
        self: Box<Self>,
        socket: &Descriptor,
        link: &Weak<Link>,
        receivers: &Arc<Receivers>,
    ) -> Arc<dyn SideCarrier> {
        let conduits = receivers.conduits.as_ref();
        // A process without conduits shares no blocks.
        let pool = conduits
            .and_then(|conduits| conduits.memory())
            .unwrap_or_else(|| Pool::new(Some(0)));
        ShmCarrier::new(
            self.own.expect("the negotiation has begun"),
            self.peer.expect("the negotiation is over"),
            pool,
            link.clone(),
            Arc::downgrade(receivers),
            sockets::peer_process(socket),
        )
    }
}

/// The memory made by the process for a peer: the ring for sending, and the peer's counts of
/// returns.
pub(super) struct OwnRing {
    pub(super) region: Arc<SharedRegion>,
    file: OwnedFd,
}

/// The memory made by the peer.
pub(super) struct PeerMemory {
    pub(super) region: Arc<SharedRegion>,
    pub(super) bells: PeerBells,
    pub(super) capacity: usize,
}

impl OwnRing {
    /// # Errors
    /// If the system has no memory for the ring.
    fn new() -> io::Result<Self> {
        let (region, file) = SharedRegion::create("titin-ring", length(RING), Writers::All)?;
        region.prefault(ring::ENTRIES + ring::HOME as usize);
        Ok(OwnRing {
            region: Arc::new(region),
            file,
        })
    }

    /// The frame that announces the ring to the peer, and the descriptors for the same frame.
    ///
    /// # Errors
    /// If the process has no bells.
    fn announcement(&self) -> io::Result<(Frame, [&OwnedFd; 2])> {
        let bells =
            shared_bells::own_file().ok_or_else(|| io::Error::other("no memory for the bells"))?;
        Ok((
            Frame::Share {
                ring: RING as u64,
                blocks: BLOCKS as u64,
            },
            [&self.file, bells],
        ))
    }
}

impl PeerMemory {
    /// Maps the memory announced by the peer.
    ///
    /// # Errors
    /// If the memory is not as announced, or the system does not map it.
    fn open(ring: u64, blocks: u64, files: &[OwnedFd]) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let [file, bells] = files else {
            return Err(invalid("a ring without its descriptors".to_owned()));
        };
        let capacity = usize::try_from(ring).unwrap_or(0);
        let fits = capacity.is_power_of_two() && (4 * INLINE..=1 << 30).contains(&capacity);
        if !fits || blocks != BLOCKS as u64 {
            return Err(invalid(format!(
                "a ring of {ring} bytes with {blocks} blocks: not one of this release"
            )));
        }
        let region = SharedRegion::open(file, length(capacity), Writers::All)?;
        region.prefault((ring::ENTRIES + ring::HOME as usize).min(region.length()));
        Ok(PeerMemory {
            region: Arc::new(region),
            bells: PeerBells::open(bells)?,
            capacity,
        })
    }
}

/// Bytes of the region of a ring of `capacity` bytes, with the counts of returns behind the ring.
fn length(capacity: usize) -> usize {
    ring::length(capacity) + BLOCKS * size_of::<u32>()
}
