//! A socket before it is a link: connecting, and shaking hands.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sockopt};

use titin_wire::frame::{Frame, HEADER, Header};
use titin_wire::handshake::{Agreement, Handshake, Purpose};
use titin_wire::{LinkSettings, Secret};

use super::dial::{Attempt, Dialled};
use crate::Lost;
use crate::shm::{Offer, Shared, Taken};
use crate::tcp::{self, Inbound, Link, LinkId, Reader, Sinks, settings};
use titin_os::{Descriptor, sockets};

/// A socket whose ends have not proved themselves yet.
pub(super) struct Pending {
    pub(super) socket: Descriptor,
    pub(super) deadline: Instant,
    /// Whether it is known to be of another user than this process.
    foreign: bool,
    /// What we wanted when we dialled; `None` for a stranger that has come to a listener.
    dialled: Option<Dialled>,
    /// What it is to join, where we dialled for that.
    pub(super) joins: Option<Joining>,
    /// When it was begun; of a stranger that has greeted, when it did.
    since: Instant,
    /// What was agreed on, where there is more to say.
    agreed: Option<Agreement>,
    /// The handshake, once connected, and bytes that came behind it.
    shake: Option<(Handshake, Vec<u8>)>,
    /// Where memory is to be shared: how far that has come.
    sharing: Option<Sharing>,
}

/// Two processes on their way to shared memory.
#[derive(Default)]
struct Sharing {
    /// Descriptors that came and were not used yet.
    files: VecDeque<OwnedFd>,
    agreed: Option<Agreement>,
    offer: Option<Offer>,
    taken: Option<Taken>,
}

/// A further stream on its way to its link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joining {
    /// Which of those that gather.
    pub(super) token: u64,
    pub(super) key: u64,
    /// From 1.
    pub(super) number: u64,
}

/// What a link is to have beside its first stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) agreement: Agreement,
    /// Names it to further streams.
    pub(super) key: u64,
    /// How many there are to be.
    pub(super) count: u64,
    pub(super) settings: LinkSettings,
}

/// What speaks for a connection that has not proved itself. Where places run out, the one with the least of it is closed. A process
/// of this run greets at once: it does so before strangers, who come meanwhile, can have filled all places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    /// Whether it may be of the same user as this process: only a Unix socket tells.
    of_user: bool,
    /// When it came, or greeted.
    since: Instant,
}

/// What to do next with a pending connection.
pub(super) enum Step {
    /// Wait until something comes in.
    Wait,
    /// Both ends have proved themselves.
    Agreed(Agreement),
    /// They have, and this is what the link is to have.
    Gather(Wish),
    /// The other end has proved itself, and is a further stream of the link of this key.
    Join(u64, u64),
    /// This is the further stream that we wanted.
    Joined(Joining),
}

impl Pending {
    fn new(socket: Descriptor, deadline: Instant) -> Self {
        let (foreign, since) = (false, Instant::now());
        let (dialled, joins, agreed, shake, sharing) = (None, None, None, None, None);
        Pending {
            socket,
            deadline,
            foreign,
            dialled,
            joins,
            since,
            agreed,
            shake,
            sharing,
        }
    }

    /// A stranger that has come to a listener, and has so long to prove itself.
    pub(super) fn accepted(
        socket: Descriptor,
        shares: bool,
        shake: Handshake,
        time: Duration,
    ) -> Self {
        let mut foreign = false;
        if shares {
            foreign = sockets::is_of_other_user(&socket);
        } else {
            sockets::prepare_tcp(&socket);
        }
        let shake = Some((shake, Vec::new()));
        let sharing = shares.then(Sharing::default);
        Pending {
            foreign,
            shake,
            sharing,
            ..Pending::new(socket, Instant::now() + time)
        }
    }

    /// A socket that was dialled.
    pub(super) fn dialled(
        socket: Descriptor,
        Attempt {
            dialled,
            deadline,
            shares,
        }: Attempt,
    ) -> Self {
        let sharing = shares.then(Sharing::default);
        Pending {
            dialled: Some(dialled),
            sharing,
            ..Pending::new(socket, deadline)
        }
    }

    /// A further stream of the link that this has become the first stream of.
    ///
    /// # Errors
    /// [`Lost`] if there cannot be one.
    pub(super) fn further(&self, joining: Joining) -> Result<Self, Lost> {
        let dialled = self.dialled.as_ref().ok_or(Lost::Closed)?;
        let socket = dialled.connect_further()?;
        Ok(Pending {
            joins: Some(joining),
            ..Pending::new(socket, dialled.until())
        })
    }

    /// When what was dialled is given up; `None` for a stranger.
    pub(super) fn until(&self) -> Option<Instant> {
        self.dialled.as_ref().map(Dialled::until)
    }

    /// Whether it has come to us.
    pub(super) fn stranger(&self) -> bool {
        self.dialled.is_none() && self.joins.is_none()
    }

    /// Of a stranger that has not proved itself, what speaks for it.
    pub(super) fn standing(&self) -> Option<Standing> {
        let (shake, _) = self.shake.as_ref().filter(|_| self.stranger())?;
        (!shake.is_done()).then_some(Standing {
            of_user: !self.foreign,
            since: self.since,
        })
    }

    /// Why it is given up, once its time is over.
    pub(super) fn late(&self) -> Lost {
        if self.shake.is_some() {
            Lost::Unanswered
        } else {
            Lost::Silent
        }
    }

    /// Gives this socket up; where that was because of a further stream, its number. What was dialled goes on, if it was dialled.
    pub(super) fn give_up(self, stream: Option<u64>, why: Lost) -> Option<Dialled> {
        let proved = self.shake.is_some_and(|(shake, _)| shake.is_done());
        let mut dialled = self.dialled?;
        dialled.fail(stream, why, proved);
        Some(dialled)
    }

    /// Goes on with what the socket has to say.
    ///
    /// # Errors
    /// [`Lost`] if this connection comes to nothing.
    pub(super) fn advance(&mut self, secret: &Secret) -> Result<Step, Lost> {
        let Some((shake, ahead)) = &mut self.shake else {
            return self.connected(secret);
        };
        let mut bytes = [0; 4096];
        let read = match &mut self.sharing {
            None => tcp::read(&self.socket, &mut [IoSliceMut::new(&mut bytes)]),
            Some(sharing) => tcp::read_with_files(
                &self.socket,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut sharing.files,
            ),
        };
        let count = match read {
            Ok(0) => return Ok(Step::Wait),
            Ok(count) => count,
            Err(why) => return Err(why),
        };
        if let Some(sharing) = self
            .sharing
            .as_mut()
            .filter(|sharing| sharing.agreed.is_some())
        {
            ahead.extend_from_slice(&bytes[..count]);
            return sharing.advance(&self.socket, ahead);
        }
        if self.agreed.is_some() {
            ahead.extend_from_slice(&bytes[..count]);
            return self.hear();
        }
        let was_greeted = shake.is_greeted();
        let progress = shake.advance(&bytes[..count])?;
        ahead.extend_from_slice(&bytes[progress.used..count]);
        write_whole(&self.socket, &progress.reply)?;
        // A stranger that sends a proof byte by byte gains no time by that.
        if shake.is_greeted() && !was_greeted {
            self.since = Instant::now();
        }
        match (progress.agreed, &mut self.sharing) {
            (None, _) => Ok(Step::Wait),
            (Some(agreement), None) => self.settle(agreement),
            (Some(agreement), Some(sharing)) => {
                sharing.begin(&self.socket, agreement)?;
                sharing.advance(&self.socket, ahead)
            }
        }
    }

    /// Goes on behind the proofs: says what more there is to say, or waits for it.
    fn settle(&mut self, agreement: Agreement) -> Result<Step, Lost> {
        if let Some(joins) = self.joins {
            let frame = Frame::Join {
                key: joins.key,
                number: joins.number,
            };
            write_whole(&self.socket, &Header::from(&frame).encode())?;
            return Ok(Step::Joined(joins));
        }
        if matches!(agreement.purpose, Purpose::Control | Purpose::Data) {
            return Ok(Step::Agreed(agreement));
        }
        self.agreed = Some(agreement);
        if let Some(dialled) = &self.dialled {
            write_whole(&self.socket, &Header::from(&dialled.wish()).encode())?;
        }
        self.hear()
    }

    /// Goes on with what the other end has said about streams.
    fn hear(&mut self) -> Result<Step, Lost> {
        let (Some(agreement), Some((_, ahead))) = (self.agreed, &mut self.shake) else {
            return Ok(Step::Wait);
        };
        let Some(header) = ahead.first_chunk::<HEADER>() else {
            return Ok(Step::Wait);
        };
        let (header, frame) = (*header, Header::decode(header)?.frame()?);
        ahead.drain(..HEADER);
        match (frame, agreement.purpose, &self.dialled) {
            (Frame::Streams { key, count, .. }, Purpose::Streams, Some(dialled))
                if frame == dialled.wish() =>
            {
                Ok(Step::Gather(Wish {
                    agreement,
                    key,
                    count,
                    settings: dialled.settings(),
                }))
            }
            (
                Frame::Streams {
                    key,
                    count,
                    pacing,
                    send_buffer,
                    receive_buffer,
                },
                Purpose::Streams,
                None,
            ) => {
                let wished = LinkSettings::told(pacing, send_buffer, receive_buffer);
                settings::size(&self.socket, &wished);
                write_whole(&self.socket, &header)?;
                Ok(Step::Gather(Wish {
                    agreement,
                    key,
                    count,
                    settings: wished,
                }))
            }
            (Frame::Join { key, number }, Purpose::Stream, None) => Ok(Step::Join(key, number)),
            _ => Err(titin_wire::Malformed::new(
                "frame",
                format!("{frame:?} before all streams are there"),
            )
            .into()),
        }
    }

    fn connected(&mut self, secret: &Secret) -> Result<Step, Lost> {
        sockopt::socket_error(&self.socket)?.map_err(unconnected)?;
        let purpose = match &mut self.dialled {
            Some(dialled) => dialled.connected(self.since.elapsed()),
            None => Purpose::Stream,
        };
        let (shake, hello) = Handshake::dial(secret.clone(), purpose);
        let meant = self.dialled.as_ref().and_then(Dialled::meant);
        write_whole(&self.socket, &hello)?;
        self.shake = Some((shake.to(meant), Vec::new()));
        Ok(Step::Wait)
    }

    /// The bytes that came behind all that was said so far.
    fn ahead(&mut self) -> Vec<u8> {
        self.shake
            .take()
            .map(|(_, ahead)| ahead)
            .unwrap_or_default()
    }

    /// The link that it has become, after the handshake, with further streams.
    ///
    /// # Errors
    /// If the system refuses descriptors; with the tag, if it was dialled.
    pub(super) fn open(
        mut self,
        further: Vec<Pending>,
        id: LinkId,
        epoll: &Arc<Descriptor>,
        sinks: &Arc<Sinks>,
    ) -> Result<Arc<Link>, (Option<u128>, Lost)> {
        let ahead = self.ahead();
        let (further, further_ahead): (Vec<_>, Vec<_>) = further
            .into_iter()
            .map(|mut pending| {
                let ahead = pending.ahead();
                (pending.socket, ahead)
            })
            .unzip();
        let tag = self.dialled.as_ref().map(Dialled::tag);
        let detour = self.dialled.and_then(|dialled| dialled.detour());
        let (files, shared) = self
            .sharing
            .map(|sharing| (sharing.files, (sharing.offer, sharing.taken)))
            .unzip();
        let peer = shared
            .is_some()
            .then(|| sockets::peer_process(&self.socket))
            .flatten();
        let shared = |link: &Weak<Link>| {
            let (offer, taken) = shared?;
            let pool = sinks.exchange.as_ref()?.pool().clone();
            Some(Shared::new(
                offer?,
                taken?,
                pool,
                link.clone(),
                Arc::downgrade(sinks),
                peer,
            ))
        };
        let reader = Reader::with_streams(&ahead, &further_ahead);
        let inbound = Inbound::new(reader, files.unwrap_or_default(), sinks);
        let link = Link::new(
            id,
            tag,
            (self.socket, further),
            epoll,
            inbound,
            shared,
            detour,
        );
        link.map_err(|why| (tag, why))
    }
}

impl Sharing {
    /// Offers memory to the peer, which has just proved itself.
    fn begin(&mut self, socket: &Descriptor, agreement: Agreement) -> Result<(), Lost> {
        let offer = Offer::new()?;
        let (frame, files) = offer.announcement()?;
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
            return Err(Lost::System(
                "the socket does not take an offer of memory".to_owned(),
            ));
        }
        (self.agreed, self.offer) = (Some(agreement), Some(offer));
        Ok(())
    }

    /// Goes on with what the peer has said since: that it offers memory too, and that it has ours.
    fn advance(&mut self, socket: &Descriptor, ahead: &mut Vec<u8>) -> Result<Step, Lost> {
        while let Some(header) = ahead.first_chunk::<HEADER>() {
            match Header::decode(header)?.frame()? {
                Frame::Share { ring, blocks } if self.taken.is_none() => {
                    let files: Vec<OwnedFd> = self.files.drain(..).collect();
                    self.taken = Some(Taken::open(ring, blocks, &files)?);
                    write_whole(socket, &Header::from(&Frame::Shared).encode())?;
                }
                Frame::Shared if self.taken.is_some() => {
                    ahead.drain(..HEADER);
                    return Ok(self.agreed.map_or(Step::Wait, Step::Agreed));
                }
                frame => {
                    let why = format!("{frame:?} before memory is shared");
                    return Err(titin_wire::Malformed::new("frame", why).into());
                }
            }
            ahead.drain(..HEADER);
        }
        Ok(Step::Wait)
    }
}

/// Why no connection came about. A host that drops what it is sent may take it later.
fn unconnected(error: Errno) -> Lost {
    if error == Errno::TIMEDOUT {
        Lost::Silent
    } else {
        error.into()
    }
}

/// Writes the few bytes of a handshake, which always fit a fresh socket's buffer.
fn write_whole(socket: &Descriptor, bytes: &[u8]) -> Result<(), Lost> {
    if !bytes.is_empty() && net::send(socket, bytes, SendFlags::NOSIGNAL)? != bytes.len() {
        return Err(Lost::System(
            "the socket does not take a handshake".to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_drops_what_it_is_sent_is_dialled_again() {
        assert_eq!(unconnected(Errno::TIMEDOUT), Lost::Silent);
        assert!(matches!(unconnected(Errno::CONNREFUSED), Lost::System(_)));
    }

    #[test]
    fn a_proof_in_pieces_gains_a_stranger_no_time() {
        use std::io::Write as _;
        let (mut stranger, socket) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let secret = Secret::random();
        let socket = Descriptor::from(OwnedFd::from(socket));
        let mut pending = Pending::accepted(
            socket,
            false,
            Handshake::listen(secret.clone()),
            Duration::from_secs(60),
        );
        let begun = pending.since;
        let mut say = |bytes: &[u8]| {
            stranger.write_all(bytes).unwrap();
            assert!(matches!(pending.advance(&secret), Ok(Step::Wait)));
            pending.since
        };
        let greeted = say(&Handshake::dial(Secret::random(), Purpose::Data).1);
        assert!(greeted > begun);
        assert_eq!([say(&[1]), say(&[2])], [greeted; 2]);
    }

    #[test]
    fn strangers_of_other_users_go_first_and_then_those_that_wait_longest() {
        let begun = Instant::now();
        let at = |of_user, millis| Standing {
            of_user,
            since: begun + Duration::from_millis(millis),
        };
        let mut all = vec![at(true, 1), at(false, 3), at(true, 0), at(false, 2)];
        all.sort();
        assert_eq!(all, [at(false, 2), at(false, 3), at(true, 0), at(true, 1)]);
    }
}
