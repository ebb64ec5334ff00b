//! The pump of the medium: the one thread of a process that moves bytes between the sockets of links
//! and the circuits of their sessions.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;
use titin_os::Descriptor;
use titin_os::time::timespec;
use titin_wire::LinkSettings;
use titin_wire::session::{RESUME, SessionGreeting, SessionId};

use super::circuit::CircuitRoute;
use super::session_end::{EndProgress, SessionEnd, SessionTerms};
use super::stream::CircuitStream;
use crate::error::LinkError;
use crate::medium::{LinkFigures, LinkPatience, ProvedConnection};
use crate::pump::{PumpHandle, PumpOrder, PumpShared, ReadyConnections, new_listener, socket_pair};
use crate::stream_meter::{SMALLEST_BUFFER, StreamMeter};

/// How long a circuit may take to name its session.
const GREETING_TIME: Duration = Duration::from_secs(30);

/// How long the pump may take to answer a question.
const FIGURES_TIME: Duration = Duration::from_secs(1);

/// The pump, for the reactor and its callers.
pub(super) type RelayPump = PumpHandle<RelayOrder>;

pub(super) enum RelayOrder {
    /// Take sessions from other processes.
    Listen(ReadyConnections, SessionTerms),
    /// A session that this process dials.
    Dial(Box<SessionEnd>),
    /// A circuit that another process has dialled.
    Adopt(Box<NewCircuit>),
    /// Measure the line by the session of the link's socket with this id.
    Measure(u64, Arc<StreamMeter>),
    /// Set the buffers of the session of the link's socket with this id.
    SetBuffers(u64, LinkSettings),
    /// Have the session of the link's socket with this id send at most so many bytes a second.
    Pace(u64, u64),
    /// Have the session of the link's socket with this id wait so long for a circuit.
    SetPatience(u64, LinkPatience),
    /// Answer with the figures of the session of the link's socket with this id.
    Figures(u64, SyncSender<LinkFigures>),
    /// End once the last bytes are acknowledged, after this time at the latest.
    Finish(Duration),
}

impl PumpOrder for RelayOrder {
    const THREAD: &'static str = "titin-relay";

    fn finish(waits: Option<Duration>) -> Self {
        RelayOrder::Finish(waits.unwrap_or_default())
    }

    fn run(shared: Arc<PumpShared<Self>>) {
        SessionPump::new(shared).run();
    }
}

impl RelayPump {
    /// Starts to take sessions of other processes. The returned descriptor is readable when there are new sessions.
    pub(super) fn listen(&self, terms: SessionTerms) -> io::Result<Descriptor> {
        let (listener, ready) = new_listener()?;
        self.shared()?.command(RelayOrder::Listen(ready, terms));
        Ok(listener)
    }

    /// Begins a session. Returns the link's end of the socket.
    pub(super) fn dial(
        &self,
        route: Arc<CircuitRoute>,
        terms: SessionTerms,
        settings: &LinkSettings,
    ) -> io::Result<Descriptor> {
        let shared = self.shared()?;
        let [link, socket] = session_sockets()?;
        let id = SessionId::random();
        let mut end = SessionEnd::new(id, socket, link.id(), Some(route), terms);
        end.set_buffers(settings);
        shared.command(RelayOrder::Dial(Box::new(end)));
        Ok(link)
    }

    /// Begins to measure the line of a link by one of its sockets.
    pub(super) fn measure(&self, socket: &Descriptor, meter: &Arc<StreamMeter>) {
        if let Ok(shared) = self.shared() {
            shared.command(RelayOrder::Measure(socket.id(), meter.clone()));
        }
    }

    /// Sets the buffers of the session of a link's socket.
    pub(super) fn set_buffers(&self, socket: &Descriptor, settings: &LinkSettings) {
        if let Ok(shared) = self.shared() {
            shared.command(RelayOrder::SetBuffers(socket.id(), *settings));
        }
    }

    /// Has the session of a link's socket send at most `rate` bytes a second.
    pub(super) fn pace(&self, socket: &Descriptor, rate: u64) {
        if let Ok(shared) = self.shared() {
            shared.command(RelayOrder::Pace(socket.id(), rate));
        }
    }

    /// Tells the session of a link's socket for how long it waits for a circuit.
    pub(super) fn set_patience(&self, socket: &Descriptor, patience: LinkPatience) {
        if let Ok(shared) = self.shared() {
            shared.command(RelayOrder::SetPatience(socket.id(), patience));
        }
    }

    /// The figures of the session of a link's socket; `None` once the session has ended. Waits for the
    /// pump's next turn.
    pub(super) fn figures(&self, socket: &Descriptor) -> Option<LinkFigures> {
        let (answer, figures) = sync_channel(1);
        let order = RelayOrder::Figures(socket.id(), answer);
        self.shared().ok()?.command(order);
        figures.recv_timeout(FIGURES_TIME).ok()
    }

    /// Takes a circuit over, after the proofs of both ends. Gives the circuit back if the process
    /// has left the run.
    pub(super) fn adopt(
        &self,
        circuit: ProvedConnection,
        is_sealed: bool,
    ) -> Option<ProvedConnection> {
        let Ok(shared) = self.shared() else {
            return Some(circuit);
        };
        // If the first bytes are not sealed by the other end, the circuit is closed, and the other
        // end dials again.
        if let Ok((stream, input)) = CircuitStream::begin(circuit, is_sealed) {
            shared.command(RelayOrder::Adopt(Box::new(NewCircuit {
                stream,
                input,
                deadline: Instant::now() + GREETING_TIME,
            })));
        }
        None
    }
}

/// The link's and the pump's end of the socket of a session.
fn session_sockets() -> io::Result<[Descriptor; 2]> {
    let [link, pump] = socket_pair()?;
    sockopt::set_socket_send_buffer_size(&link, SMALLEST_BUFFER)?;
    Ok([link, pump])
}

/// A circuit that has not named its session.
pub(super) struct NewCircuit {
    stream: CircuitStream,
    /// Records that have come.
    input: Vec<u8>,
    deadline: Instant,
}

impl NewCircuit {
    /// The session, once known.
    ///
    /// # Errors
    /// If the circuit comes to nothing.
    fn greeting(&mut self) -> Result<Option<SessionGreeting>, LinkError> {
        if self.input.len() < RESUME {
            let count = self.stream.read(&mut self.input)?;
            if count == Some(0) {
                return Err(LinkError::Closed);
            }
        }
        if self.input.len() >= RESUME {
            return Ok(Some(SessionGreeting::read(&self.input)?));
        }
        match Instant::now() >= self.deadline {
            true => Err(LinkError::Unanswered),
            false => Ok(None),
        }
    }
}

/// What a wait has found of a session's socket.
#[derive(Clone, Copy)]
enum SocketState {
    /// There may be something to do.
    Ready,
    /// The link has closed its socket.
    LinkClosed,
    /// The other end of the circuit has gone.
    CircuitBroken,
}

impl SocketState {
    fn of(is_link: bool, events: PollFlags) -> Self {
        match (events.intersects(PollFlags::HUP | PollFlags::ERR), is_link) {
            (false, _) => SocketState::Ready,
            (true, true) => SocketState::LinkClosed,
            (true, false) => SocketState::CircuitBroken,
        }
    }
}

/// The state of the pump's thread.
struct SessionPump {
    shared: Arc<PumpShared<RelayOrder>>,
    listener: Option<(ReadyConnections, SessionTerms)>,
    sessions: HashMap<SessionId, SessionEnd>,
    new_circuits: Vec<NewCircuit>,
    /// When to end even if bytes are left.
    until: Option<Instant>,
}

impl SessionPump {
    fn new(shared: Arc<PumpShared<RelayOrder>>) -> Self {
        SessionPump {
            shared,
            listener: None,
            sessions: HashMap::new(),
            new_circuits: Vec::new(),
            until: None,
        }
    }

    fn run(mut self) {
        while !self.is_over() {
            let ready = self.wait();
            self.obey();
            for (id, state) in ready {
                self.advance(id, |end| match state {
                    SocketState::Ready => end.advance(),
                    SocketState::LinkClosed => end.note_closed_link(),
                    SocketState::CircuitBroken => end.note_broken_circuit(),
                });
            }
            self.greet();
        }
    }

    /// Whether the pump has been told to end, and has done so.
    fn is_over(&self) -> bool {
        self.until
            .is_some_and(|until| self.sessions.is_empty() || Instant::now() >= until)
    }

    /// Waits for orders, sockets, or a time. Returns the sessions with something to do.
    fn wait(&self) -> Vec<(SessionId, SocketState)> {
        let mut ready = self.poll();
        let now = Instant::now();
        let due = self
            .sessions
            .iter()
            .filter(|(_, end)| end.next_turn() <= now);
        ready.extend(due.map(|(id, _)| (*id, SocketState::Ready)));
        ready
    }

    /// Waits until the next time at the latest. Returns the sessions with an event of a socket.
    fn poll(&self) -> Vec<(SessionId, SocketState)> {
        let mut descriptors = vec![PollFd::new(self.shared.wake(), PollFlags::IN)];
        let circuits = self.new_circuits.iter();
        descriptors
            .extend(circuits.map(|circuit| PollFd::new(&circuit.stream.socket, PollFlags::IN)));
        // The session of each further descriptor, and whether the descriptor is the link's socket.
        let first = descriptors.len();
        let mut owners = Vec::new();
        for (id, end) in &self.sessions {
            for (place, (socket, events)) in end.wanted().into_iter().enumerate() {
                descriptors.push(PollFd::new(socket, events));
                owners.push((*id, place == 0 && !end.is_link_closed()));
            }
        }
        let next = self.next_turn();
        let limit = next.map(|next| timespec(next.saturating_duration_since(Instant::now())));
        let _ = poll(&mut descriptors, limit.as_ref());
        let events = descriptors[first..].iter().map(PollFd::revents);
        let ready = owners.into_iter().zip(events);
        ready
            .filter(|(_, events)| !events.is_empty())
            .map(|((id, is_link), events)| (id, SocketState::of(is_link, events)))
            .collect()
    }

    /// When something is to be done without an event.
    fn next_turn(&self) -> Option<Instant> {
        let turns = self.sessions.values().map(SessionEnd::next_turn);
        let greetings = self.new_circuits.iter().map(|circuit| circuit.deadline);
        turns.chain(greetings).chain(self.until).min()
    }

    /// Carries out the orders of other threads.
    fn obey(&mut self) {
        for order in self.shared.take_commands() {
            match order {
                RelayOrder::Listen(ready, terms) => self.listener = Some((ready, terms)),
                RelayOrder::Dial(end) => {
                    let id = end.id();
                    self.sessions.insert(id, *end);
                    self.advance(id, |end| end.advance());
                }
                RelayOrder::Adopt(circuit) => self.new_circuits.push(*circuit),
                RelayOrder::Measure(link, meter) => {
                    if let Some(end) = self.end_of(link) {
                        end.measure(meter);
                    }
                }
                RelayOrder::SetBuffers(link, settings) => {
                    if let Some(end) = self.end_of(link) {
                        end.set_buffers(&settings);
                    }
                }
                RelayOrder::Pace(link, rate) => {
                    if let Some(end) = self.end_of(link) {
                        end.pace(rate);
                    }
                }
                RelayOrder::SetPatience(link, patience) => {
                    if let Some(end) = self.end_of(link) {
                        end.set_patience(patience);
                    }
                }
                RelayOrder::Figures(link, answer) => {
                    if let Some(end) = self.end_of(link) {
                        let _ = answer.try_send(end.figures());
                    }
                }
                RelayOrder::Finish(time) => {
                    self.until = Some(Instant::now() + time);
                    self.shared.drop_accepted();
                }
            }
        }
    }

    /// The end of the session of the link's socket with an id.
    fn end_of(&mut self, link: u64) -> Option<&mut SessionEnd> {
        self.sessions.values_mut().find(|end| end.link_id() == link)
    }

    /// Gives a session a turn.
    fn advance(&mut self, id: SessionId, turn: impl FnOnce(&mut SessionEnd) -> EndProgress) {
        let Some(end) = self.sessions.get_mut(&id) else {
            return;
        };
        let (link, was_unanswered) = (end.link_id(), end.is_unanswered());
        match turn(end) {
            EndProgress::Open => {}
            EndProgress::Over => drop(self.sessions.remove(&id)),
            EndProgress::Lost(why) => {
                self.shared.note_fault(end.link_id(), why);
                self.sessions.remove(&id);
            }
        }
        if was_unanswered {
            let end = self.sessions.get(&id);
            let obstacle = end.and_then(SessionEnd::obstacle);
            self.shared.note_obstacle(link, obstacle);
        }
    }

    /// Gives circuits to the sessions that they name.
    fn greet(&mut self) {
        for mut circuit in std::mem::take(&mut self.new_circuits) {
            match circuit.greeting() {
                Ok(None) => self.new_circuits.push(circuit),
                Ok(Some(greeting)) => self.join(circuit, greeting),
                // The other end dials again, if it lives.
                Err(_) => {}
            }
        }
    }

    fn join(&mut self, circuit: NewCircuit, SessionGreeting { id, may_be_new }: SessionGreeting) {
        let is_known = self.sessions.contains_key(&id) || may_be_new && self.begin(id);
        if !is_known {
            return circuit.stream.say_gone();
        }
        let NewCircuit { stream, input, .. } = circuit;
        self.advance(id, |end| end.take_circuit(stream, &input));
    }

    /// Begins a session that another process has dialled. False if this process takes none.
    fn begin(&mut self, id: SessionId) -> bool {
        let (Some((ready, terms)), None) = (&self.listener, self.until) else {
            return false;
        };
        let Ok([link, socket]) = session_sockets() else {
            return false;
        };
        let end = SessionEnd::new(id, socket, link.id(), None, *terms);
        self.sessions.insert(id, end);
        self.shared.accepted(ready, link);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leaves_few_bytes_to_a_stream_that_is_slow() {
        let [link, _pump] = session_sockets().unwrap();
        let mut taken = 0;
        while let Ok(count) = rustix::io::write(&link, &[7; 1 << 20]) {
            taken += count;
        }
        assert!(
            (SMALLEST_BUFFER..4 * SMALLEST_BUFFER).contains(&taken),
            "{taken}"
        );
    }
}
