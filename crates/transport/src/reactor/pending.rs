//! A socket before the link: connecting, and the handshake.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt;
use titin_wire::frame::{Frame, HEADER, Header};
use titin_wire::handshake::{Agreement, Handshake, Purpose};
use titin_wire::token::{TokenEnd, TokenRequest};
use titin_wire::{LinkSettings, Malformed, Secret};

use super::dial::{Connecting, Dialling, Target};
use crate::error::LinkError;
use crate::line_meter::LineMeter;
use crate::link::{
    FurtherStream, Link, LinkCarrier, LinkId, LinkInput, LinkSockets, Receivers, StreamRules, read,
    read_with_files,
};
use crate::medium::{LinkSetup, ProvedConnection, SocketMedium, send_whole};
use crate::token_connection::TokenConnection;
use titin_os::Descriptor;

/// How long the other end at least has to say that a stream has joined an open link.
const CONFIRMATION_TIME: Duration = Duration::from_secs(600);

/// A socket whose ends have not proved themselves yet.
pub(super) struct Pending {
    pub(super) socket: Descriptor,
    pub(super) deadline: Instant,
    pub(super) medium: Arc<dyn SocketMedium>,
    /// How the link will carry messages.
    setup: LinkSetup,
    /// Whether the socket may belong to a process of the same user.
    may_be_own_user: bool,
    /// The request for which the process dialled; `None` for an accepted connection.
    dialling: Option<Dialling>,
    /// The link to join, if the process dialled for a further stream.
    pub(super) joins: Option<JoiningStream>,
    /// Whether the link is open. The other end then says once the stream has joined there.
    pub(super) joins_open_link: bool,
    /// When the connection began, or when the stranger greeted.
    since: Instant,
    /// The outcome of the proofs, if steps follow the proofs.
    agreed: Option<Agreement>,
    /// The handshake, once connected, and the bytes after the handshake.
    shake: Option<(Handshake, Vec<u8>)>,
    /// Descriptors that came, not used yet.
    files: VecDeque<OwnedFd>,
    /// This end of the connection, if an agent with a token has dialled.
    token_end: Option<TokenEnd>,
}

/// A further stream on the way to its link.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoiningStream {
    /// The token of the link.
    pub(super) token: u64,
    pub(super) key: u64,
    /// From 1.
    pub(super) number: u64,
}

/// The further streams for a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamsRequest {
    pub(super) agreement: Agreement,
    /// Names the link to further streams.
    pub(super) key: u64,
    /// The number of further streams.
    pub(super) count: u64,
    pub(super) settings: LinkSettings,
}

/// The rank of a connection without a proof. When places run out, the lowest ranks are closed. A
/// process of the run greets at once, before strangers that come meanwhile can fill all places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StrangerRank {
    /// Whether the peer may be of the process's own user. Only a Unix socket tells.
    may_be_own_user: bool,
    /// When the connection came, or greeted.
    since: Instant,
}

/// The next step for a pending connection.
pub(super) enum HandshakeStep {
    /// Wait until bytes come in.
    Wait,
    /// Both ends have proved themselves.
    Agreed(Agreement),
    /// The dialler is to prove the one-time key of this number. The caller goes on by
    /// [`Pending::use_one_time_key`].
    OneTimeKey(u64),
    /// Both ends have proved a one-time key, and the dialler asks for the way to the run.
    Asked(TokenRequest),
    /// Both ends have proved themselves, and records of a session follow.
    Session,
    /// Both ends have proved themselves, and the requested streams are to follow.
    Gather(StreamsRequest),
    /// The other end has proved itself: a further stream, given by the key of the link and the
    /// number of the stream.
    Join(u64, u64),
    /// The process has dialled a further stream.
    Joined(JoiningStream),
}

impl Pending {
    fn new(socket: Descriptor, medium: Arc<dyn SocketMedium>, deadline: Instant) -> Self {
        Pending {
            socket,
            deadline,
            setup: medium.setup(),
            medium,
            may_be_own_user: true,
            dialling: None,
            joins: None,
            joins_open_link: false,
            since: Instant::now(),
            agreed: None,
            shake: None,
            files: VecDeque::new(),
            token_end: None,
        }
    }

    /// A stranger accepted by a listener, with `time` for a proof.
    pub(super) fn accepted(
        socket: Descriptor,
        medium: &Arc<dyn SocketMedium>,
        shake: Handshake,
        time: Duration,
    ) -> Self {
        let may_be_own_user = medium.greet(&socket);
        Pending {
            may_be_own_user,
            shake: Some((shake, Vec::new())),
            ..Pending::new(socket, medium.clone(), Instant::now() + time)
        }
    }

    /// A dialled socket.
    pub(super) fn dialled(socket: Descriptor, connecting: Connecting) -> Self {
        let Connecting {
            dialling,
            deadline,
            medium,
        } = connecting;
        Pending {
            dialling: Some(dialling),
            ..Pending::new(socket, medium, deadline)
        }
    }

    /// A further stream of a link; `self` is the link's first stream.
    ///
    /// # Errors
    /// [`LinkError`] if there can be no further stream.
    pub(super) fn further(&self, joining: JoiningStream) -> Result<Self, LinkError> {
        let dialling = self.dialling.as_ref().ok_or(LinkError::Closed)?;
        let target = dialling.target().ok_or(LinkError::Closed)?;
        let socket = target.connect(&dialling.settings())?;
        Ok(Pending {
            joins: Some(joining),
            ..Pending::new(socket, self.medium.clone(), dialling.until())
        })
    }

    /// A further stream of an open link to `target`.
    ///
    /// # Errors
    /// If the system refuses the connection.
    pub(super) fn growing(
        target: &Target,
        settings: &LinkSettings,
        joining: JoiningStream,
        deadline: Instant,
    ) -> Result<Self, LinkError> {
        let socket = target.connect(settings)?;
        Ok(Pending {
            joins: Some(joining),
            joins_open_link: true,
            ..Pending::new(socket, target.medium().clone(), deadline)
        })
    }

    /// The target of the request; `None` for an accepted connection.
    pub(super) fn target(&self) -> Option<Target> {
        self.dialling.as_ref().and_then(Dialling::target).cloned()
    }

    /// Why the request has no answer yet, with its tag; `None` for an accepted connection.
    pub(super) fn obstacles(&self) -> Option<(u128, String)> {
        let dialling = self.dialling.as_ref()?;
        let why = self.late_error();
        Some((dialling.tag(), dialling.obstacles(Some((None, &why)))))
    }

    /// Why a further stream of the link of this stream has not joined yet, with the tag of the request;
    /// `None` for an accepted connection.
    pub(super) fn obstacles_of(&self, joining: &Pending) -> Option<(u128, String)> {
        let (dialling, stream) = (self.dialling.as_ref()?, joining.joins?);
        let why = joining.late_error();
        Some((
            dialling.tag(),
            dialling.obstacles(Some((Some(stream.number), &why))),
        ))
    }

    /// When the dialled request is given up; `None` for an accepted connection.
    pub(super) fn until(&self) -> Option<Instant> {
        self.dialling.as_ref().map(Dialling::until)
    }

    /// Whether a listener has accepted the connection.
    pub(super) fn is_stranger(&self) -> bool {
        self.dialling.is_none() && self.joins.is_none()
    }

    /// The rank of a stranger without a proof.
    pub(super) fn rank(&self) -> Option<StrangerRank> {
        let (shake, _) = self.shake.as_ref().filter(|_| self.is_stranger())?;
        (!shake.is_done()).then_some(StrangerRank {
            may_be_own_user: self.may_be_own_user,
            since: self.since,
        })
    }

    /// The error once the time is over, or why there is no answer before.
    pub(super) fn late_error(&self) -> LinkError {
        if let Some(why) = self.medium.obstacle(&self.socket) {
            why
        } else if self.shake.is_some() {
            LinkError::Unanswered
        } else {
            LinkError::Silent
        }
    }

    /// Gives the socket up, because of the further stream `stream` if given. Returns the request,
    /// if the process dialled.
    pub(super) fn give_up(self, stream: Option<u64>, why: LinkError) -> Option<Dialling> {
        let proved = self.shake.is_some_and(|(shake, _)| shake.is_done());
        let mut dialling = self.dialling?;
        dialling.fail(stream, why, proved);
        Some(dialling)
    }

    /// Goes on with the bytes in the socket.
    ///
    /// # Errors
    /// [`LinkError`] if the connection comes to nothing.
    pub(super) fn advance(&mut self, secret: &Secret) -> Result<HandshakeStep, LinkError> {
        let Some((shake, first_bytes)) = &mut self.shake else {
            return self.connected(secret);
        };
        let mut bytes = [0; 4096];
        // What follows the confirmation of a stream stays in the socket, where the epoll descriptor of the link's streams
        // sees it.
        let is_confirmed_next = self.joins_open_link && self.agreed.is_some();
        let most = match is_confirmed_next {
            true => HEADER - first_bytes.len(),
            false => bytes.len(),
        };
        let slices = &mut [IoSliceMut::new(&mut bytes[..most])];
        let count = match &self.setup {
            LinkSetup::Sockets(_) => read(&self.socket, slices)?,
            LinkSetup::Negotiated(_) => read_with_files(&self.socket, slices, &mut self.files)?,
        };
        if count == 0 {
            return Ok(HandshakeStep::Wait);
        }
        if let Some(agreement) = self.agreed {
            first_bytes.extend_from_slice(&bytes[..count]);
            return self.advance_setup(agreement);
        }
        let was_greeted = shake.is_greeted();
        let progress = shake.advance(&bytes[..count])?;
        first_bytes.extend_from_slice(&bytes[progress.used..count]);
        send_whole(&self.socket, &progress.reply)?;
        // A stranger gains no time by sending a proof byte by byte.
        if shake.is_greeted() && !was_greeted {
            self.since = Instant::now();
        }
        match (progress.agreed, progress.one_time_key) {
            (None, None) => Ok(HandshakeStep::Wait),
            (None, Some(number)) => Ok(HandshakeStep::OneTimeKey(number)),
            (Some(agreement), _) => self.begin_setup(agreement),
        }
    }

    /// Answers a dialler that is to prove the one-time key of this number.
    ///
    /// # Errors
    /// [`LinkError`] if the connection comes to nothing.
    pub(super) fn use_one_time_key(&mut self, number: u64, key: Secret) -> Result<(), LinkError> {
        let Some((shake, _)) = &mut self.shake else {
            return Ok(());
        };
        let reply = shake.use_one_time_key(key)?;
        let keys = shake.seal_keys();
        self.token_end = keys.map(|keys| TokenEnd::new(number, &keys));
        self.since = Instant::now();
        send_whole(&self.socket, &reply)
    }

    /// Begins the steps after the proofs.
    fn begin_setup(&mut self, agreement: Agreement) -> Result<HandshakeStep, LinkError> {
        if self.token_end.is_some() {
            self.agreed = Some(agreement);
            return self.advance_setup(agreement);
        }
        if let LinkSetup::Negotiated(negotiation) = &mut self.setup {
            negotiation.begin(&self.socket)?;
            self.agreed = Some(agreement);
            return self.advance_setup(agreement);
        }
        if let Some(joins) = self.joins {
            let frame = Frame::Join {
                key: joins.key,
                number: joins.number,
            };
            send_whole(&self.socket, &Header::from(&frame).encode())?;
            if !self.joins_open_link {
                return Ok(HandshakeStep::Joined(joins));
            }
            // From here on the other end may use the stream, so this end does not give it up.
            self.deadline = Instant::now() + self.medium.end_grace().max(CONFIRMATION_TIME);
            self.agreed = Some(agreement);
            return self.advance_setup(agreement);
        }
        if agreement.purpose == Purpose::Session {
            return Ok(HandshakeStep::Session);
        }
        if matches!(
            agreement.purpose,
            Purpose::Control | Purpose::Data | Purpose::Agent
        ) {
            return Ok(HandshakeStep::Agreed(agreement));
        }
        self.agreed = Some(agreement);
        if let Some(dialling) = &self.dialling {
            let frame = dialling.streams_frame();
            send_whole(&self.socket, &Header::from(&frame).encode())?;
        }
        self.advance_setup(agreement)
    }

    /// Goes on with the steps after the proofs.
    fn advance_setup(&mut self, agreement: Agreement) -> Result<HandshakeStep, LinkError> {
        let Some((_, first_bytes)) = &mut self.shake else {
            return Ok(HandshakeStep::Wait);
        };
        if let Some(end) = &mut self.token_end {
            let request = end.read(&std::mem::take(first_bytes))?;
            return Ok(request.map_or(HandshakeStep::Wait, HandshakeStep::Asked));
        }
        if let LinkSetup::Negotiated(negotiation) = &mut self.setup {
            let is_over = negotiation.advance(&self.socket, first_bytes, &mut self.files)?;
            return Ok(if is_over {
                HandshakeStep::Agreed(agreement)
            } else {
                HandshakeStep::Wait
            });
        }
        let Some(header) = first_bytes.first_chunk::<HEADER>() else {
            return Ok(HandshakeStep::Wait);
        };
        let (header, frame) = (*header, Header::decode(header)?.frame()?);
        first_bytes.drain(..HEADER);
        self.agree_on_streams(agreement, &header, frame)
    }

    /// Acts on the other end's frame about streams.
    fn agree_on_streams(
        &mut self,
        agreement: Agreement,
        header: &[u8],
        frame: Frame,
    ) -> Result<HandshakeStep, LinkError> {
        match (frame, agreement.purpose, &self.dialling) {
            (Frame::Streams { key, count, .. }, Purpose::Streams, Some(dialling))
                if frame == dialling.streams_frame() =>
            {
                Ok(HandshakeStep::Gather(StreamsRequest {
                    agreement,
                    key,
                    count,
                    settings: dialling.settings(),
                }))
            }
            (
                Frame::Streams {
                    key,
                    count,
                    is_count_set,
                    pacing,
                    send_buffer,
                    receive_buffer,
                },
                Purpose::Streams,
                None,
            ) => {
                let settings = LinkSettings::told(
                    is_count_set.then_some(count),
                    pacing,
                    send_buffer,
                    receive_buffer,
                );
                self.medium.set_buffers(&self.socket, &settings);
                send_whole(&self.socket, header)?;
                Ok(HandshakeStep::Gather(StreamsRequest {
                    agreement,
                    key,
                    count,
                    settings,
                }))
            }
            (Frame::Join { key, number }, Purpose::Stream, None) => match self.joins {
                None => Ok(HandshakeStep::Join(key, number)),
                Some(joins) => Ok(HandshakeStep::Joined(joins)),
            },
            _ => Err(
                Malformed::new("frame", format!("{frame:?} before all streams are there")).into(),
            ),
        }
    }

    fn connected(&mut self, secret: &Secret) -> Result<HandshakeStep, LinkError> {
        sockopt::socket_error(&self.socket)?.map_err(unconnected)?;
        let purpose = match &mut self.dialling {
            Some(dialling) => dialling.connected(self.since.elapsed()),
            None => Purpose::Stream,
        };
        let (shake, hello) = Handshake::dial(secret.clone(), purpose);
        let expected = self.dialling.as_ref().and_then(Dialling::expected);
        send_whole(&self.socket, &hello)?;
        self.shake = Some((shake.to(expected), Vec::new()));
        Ok(HandshakeStep::Wait)
    }

    /// The connection after the handshake; `None` before.
    pub(super) fn into_proved(self) -> Option<ProvedConnection> {
        let (shake, first_bytes) = self.shake?;
        Some(ProvedConnection {
            socket: self.socket,
            first_bytes,
            keys: shake.seal_keys()?,
        })
    }

    /// The connection of an agent with a token, after its request.
    pub(super) fn into_token_connection(self) -> Option<TokenConnection> {
        Some(TokenConnection::new(self.socket, self.token_end?))
    }

    /// The further stream after the handshake. `line` is the meter of its link's line.
    pub(super) fn into_stream(mut self, line: Option<&Arc<LineMeter>>) -> FurtherStream {
        let first_bytes = self.first_bytes();
        let meter = line.and_then(|line| self.medium.measure(&self.socket, line, false));
        FurtherStream::new(self.socket, first_bytes, meter)
    }

    /// The bytes that came after the handshake.
    fn first_bytes(&mut self) -> Vec<u8> {
        self.shake
            .take()
            .map(|(_, first_bytes)| first_bytes)
            .unwrap_or_default()
    }

    /// The link made of the socket, after the handshake, with further streams.
    ///
    /// # Errors
    /// If the system refuses descriptors; with the tag, if the process dialled.
    pub(super) fn open(
        mut self,
        further: Vec<Pending>,
        rules: Option<StreamRules>,
        id: LinkId,
        epoll: &Arc<Descriptor>,
        receivers: &Arc<Receivers>,
    ) -> Result<Arc<Link>, (Option<u128>, LinkError)> {
        let first_bytes = self.first_bytes();
        let line = Arc::default();
        let is_measured = self.medium.measure(&self.socket, &line, true).is_some();
        let line = is_measured.then_some(line);
        let further = further.into_iter();
        let further = further
            .map(|stream| stream.into_stream(line.as_ref()))
            .collect();
        let tag = self.dialling.as_ref().map(Dialling::tag);
        let detour = self.dialling.and_then(|dialling| dialling.detour());
        let grace = self.medium.end_grace();
        let input = LinkInput::new(&first_bytes, self.files, receivers, grace);
        let setup = self.setup;
        let carrier = |socket: &Descriptor, link: &Weak<Link>| match setup {
            LinkSetup::Sockets(make) => LinkCarrier::Sockets(make),
            LinkSetup::Negotiated(negotiation) => {
                LinkCarrier::Beside(negotiation.finish(socket, link, receivers))
            }
        };
        let sockets = LinkSockets {
            first: self.socket,
            medium: self.medium,
            further,
            rules: rules.map(Arc::new),
            line,
        };
        Link::new(id, tag, sockets, epoll, input, carrier, detour).map_err(|why| (tag, why))
    }
}

/// Why there is no connection. A host that drops packets may take them later.
fn unconnected(error: Errno) -> LinkError {
    if error == Errno::TIMEDOUT {
        LinkError::Silent
    } else {
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_drops_packets_is_dialled_again() {
        assert_eq!(unconnected(Errno::TIMEDOUT), LinkError::Silent);
        assert!(matches!(
            unconnected(Errno::CONNREFUSED),
            LinkError::System(_)
        ));
    }

    #[test]
    fn a_proof_in_pieces_gains_a_stranger_no_time() {
        use std::io::Write as _;
        let (mut stranger, socket) = std::os::unix::net::UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let secret = Secret::random();
        let socket = Descriptor::from(OwnedFd::from(socket));
        let medium: Arc<dyn SocketMedium> = Arc::new(crate::tcp::TcpMedium);
        let mut pending = Pending::accepted(
            socket,
            &medium,
            Handshake::listen(secret.clone()),
            Duration::from_secs(60),
        );
        let begun = pending.since;
        let mut say = |bytes: &[u8]| {
            stranger.write_all(bytes).unwrap();
            assert!(matches!(pending.advance(&secret), Ok(HandshakeStep::Wait)));
            pending.since
        };
        let greeted = say(&Handshake::dial(Secret::random(), Purpose::Data).1);
        assert!(greeted > begun);
        assert_eq!([say(&[1]), say(&[2])], [greeted; 2]);
    }

    #[test]
    fn strangers_of_other_users_rank_lowest_and_then_those_that_wait_longest() {
        let begun = Instant::now();
        let at = |may_be_own_user, millis| StrangerRank {
            may_be_own_user,
            since: begun + Duration::from_millis(millis),
        };
        let mut all = vec![at(true, 1), at(false, 3), at(true, 0), at(false, 2)];
        all.sort();
        assert_eq!(all, [at(false, 2), at(false, 3), at(true, 0), at(true, 1)]);
    }
}
