//! One end of a session: a socket of a link on one side, and circuits that come and go on the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use titin_os::{Descriptor, sockets};
use titin_wire::LinkSettings;
use titin_wire::session::{Session, SessionId};

use super::circuit::{CircuitLoss, CircuitRoute, OpeningCircuit};
use super::congestion_window::{CongestionWindow, MIN_WINDOW, SHARED_GAIN, SOLE_GAIN};
use super::link_side::{AT_ONCE, LEAST_ROOM, LinkSide};
use super::stream::CircuitStream;
use crate::delivery_rate::DeliveryRate;
use crate::error::LinkError;
use crate::flight::{Flight, SessionProgress};
use crate::line_meter::FULL_STREAM;
use crate::medium::{LinkFigures, LinkPatience};
use crate::stream_meter::StreamMeter;

// A stream counts as full from `FULL_STREAM` bytes on. The smallest window, when full, must keep at least
// as many.
const _: () = assert!(FULL_STREAM as usize <= MIN_WINDOW - LEAST_ROOM);

/// After this time without a byte of the other end, the other end is asked for one.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// After this time without a byte of the other end, the circuit is dead.
const DEAD_AFTER: Duration = Duration::from_secs(15);

/// After this time without a turn a process was stopped. An end that has turns knows before that its circuit
/// is dead.
const STOPPED_AFTER: Duration = Duration::from_millis(15_500);

/// How long a circuit may stay half-closed before the other process counts as gone. If this site's
/// relay has died, the system resets the connection within this time, also when it has to send the probe
/// again (after 200 to 400 ms within a site).
const GONE_AFTER: Duration = Duration::from_millis(500);

/// How soon a half-closed circuit is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The first and the longest pause before a circuit is dialled again.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A listener that is not there for so long, although its host answers, is a process that has ended. A host in the
/// middle of the line, which passes connections on, may be started again in this time.
const REFUSED_FOR: Duration = Duration::from_secs(3);

/// Why a process without the secret is not the other end.
const UNPROVED: &str = "what listens there has another secret";

/// The result of a turn.
#[derive(Debug, PartialEq)]
pub(super) enum EndProgress {
    Open,
    /// Both directions are over.
    Over,
    /// The session is lost.
    Lost(LinkError),
}

/// The circuit of a session.
enum CircuitState {
    /// There is none. The dialling end dials at the given time, the other end waits.
    None(Instant),
    Opening(Box<OpeningCircuit>),
    Open(OpenCircuit),
}

struct OpenCircuit {
    stream: CircuitStream,
    /// The number of the address to which it leads; `None` at the end that listens.
    number: Option<usize>,
    heard: Instant,
    /// Whether the other end was asked for a byte since the last one.
    is_probed: bool,
    /// Since when the other direction has been closed.
    half_closed_since: Option<Instant>,
    /// When a half-closed circuit is looked at again.
    next_look: Instant,
}

/// The terms of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionTerms {
    /// How long the session waits for a circuit.
    pub(super) patience: Duration,
    /// Whether one TCP connection fills a line.
    pub(super) is_filled_by_one_stream: bool,
    /// Whether the bytes are sealed from end to end.
    pub(super) is_sealed: bool,
    /// Whether circuits have no relays in the way.
    pub(super) is_direct: bool,
    /// What users call `patience`.
    pub(super) patience_setting: &'static str,
}

impl SessionTerms {
    /// The gain of the congestion windows.
    fn gain(&self) -> f64 {
        match self.is_filled_by_one_stream {
            true => SOLE_GAIN,
            false => SHARED_GAIN,
        }
    }
}

/// One end of a session.
pub(super) struct SessionEnd {
    session: Session,
    link: LinkSide,
    /// The way to the other end; `None` at the end that listens.
    route: Option<Arc<CircuitRoute>>,
    circuit: CircuitState,
    /// The last circuit that both ends have used, until they use the next one. Closing the circuit
    /// earlier would tell the other end that this end is gone.
    previous: Option<Descriptor>,
    terms: SessionTerms,
    /// Since when there has been no circuit that the other end has answered on.
    cut_since: Option<Instant>,
    /// Whether the other end has ever answered.
    was_up: bool,
    /// Attempts to dial since the last open circuit.
    attempts: usize,
    /// The number of the address that has served last.
    address: usize,
    /// Since when all attempts were answered by hosts where nothing listens, and how many these were.
    refusals: Option<(Instant, usize)>,
    /// How many processes without the secret have answered in a row.
    unproved: usize,
    /// Why the last attempt came to nothing.
    last_error: String,
    /// How many bytes the end may keep for the other end.
    window: CongestionWindow,
    /// As many bytes instead, if the user has set the send buffer.
    set_window: Option<usize>,
    /// How many bytes a second the circuit takes at most, if the user has set the pacing.
    pacing: Option<u64>,
    /// How many packets the system has sent again on earlier circuits.
    retransmissions: u64,
    /// When the window had room again after it was full; `None` if it has not been full since the last
    /// bytes were taken from the link.
    room_since: Option<Instant>,
    /// How many bytes the circuit carries in one flight; `None` while the session is not up.
    flight: Option<Flight>,
    /// Bytes that were taken from the link, and are not noted for the meter.
    newly_taken: usize,
    /// The meter of the link's stream, and how many bytes are noted for the line as acknowledged.
    meter: Option<(Arc<StreamMeter>, u64)>,
}

impl SessionEnd {
    /// An end above the pump's end `socket` of the socket of the link with the id `link`.
    pub(super) fn new(
        id: SessionId,
        socket: Descriptor,
        link: u64,
        route: Option<Arc<CircuitRoute>>,
        terms: SessionTerms,
    ) -> Self {
        let now = Instant::now();
        SessionEnd {
            session: Session::new(id),
            link: LinkSide::new(link, socket),
            route,
            circuit: CircuitState::None(now),
            previous: None,
            terms,
            cut_since: Some(now),
            was_up: false,
            attempts: 0,
            address: 0,
            refusals: None,
            unproved: 0,
            last_error: String::new(),
            window: CongestionWindow::new(terms.gain()),
            set_window: None,
            pacing: None,
            retransmissions: 0,
            room_since: None,
            flight: None,
            newly_taken: 0,
            meter: None,
        }
    }

    /// The link has closed its socket. The bytes in the socket can still be read.
    pub(super) fn note_closed_link(&mut self) -> EndProgress {
        self.link.note_closed();
        self.advance()
    }

    /// The system says that the circuit has ended both ways. An end that reads finds out why; otherwise the
    /// circuit is lost. A host without relays in the way that has ended its direction, and then resets the circuit, has
    /// closed its socket: the other process has ended.
    pub(super) fn note_broken_circuit(&mut self) -> EndProgress {
        let is_half_closed = self.half_closed_since().is_some();
        match (self.takes_bytes(), is_half_closed) {
            (true, false) => self.advance(),
            (_, true) if self.terms.is_direct => self.lose(CircuitLoss::Lasting(LinkError::Closed)),
            _ => self.lose_circuit("the circuit has broken".to_owned()),
        }
    }

    pub(super) fn id(&self) -> SessionId {
        self.session.id()
    }

    /// The id of the link's end.
    pub(super) fn link_id(&self) -> u64 {
        self.link.id
    }

    pub(super) fn is_link_closed(&self) -> bool {
        self.link.is_closed()
    }

    /// Begins to measure the line of the link.
    pub(super) fn measure(&mut self, meter: Arc<StreamMeter>) {
        let (now, kept) = (Instant::now(), self.session.kept() as u64);
        let round_trip = self.window.base_round_trip();
        if let Some(sample) = round_trip {
            meter.line().note(|rate| rate.note_round_trip(sample, now));
        }
        meter.note_line(kept, None, now);
        let (_, acknowledged) = self.session.sent_and_acknowledged();
        meter.set_untaken(self.link.bytes_in_socket());
        self.newly_taken = 0;
        meter.note_circuit(self.measured_circuit());
        self.meter = Some((meter, acknowledged));
    }

    /// Sets those buffers of the session of which the settings tell. The send buffer has the bytes that the other
    /// end has not acknowledged, the receive buffer those that the link has not taken.
    pub(super) fn set_buffers(&mut self, settings: &LinkSettings) {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        if let Some(size) = settings.send_buffer {
            self.set_window = Some(bytes(size).max(MIN_WINDOW));
        }
        if let Some(size) = settings.receive_buffer {
            self.link.set_receive_buffer(bytes(size));
        }
    }

    /// Waits for a circuit for so long, from the loss of the last one on.
    pub(super) fn set_patience(&mut self, patience: LinkPatience) {
        self.terms.patience = patience.outage;
        self.terms.is_direct = !patience.is_by_relays;
    }

    /// The figures of the session, and of its present circuit.
    pub(super) fn figures(&self) -> LinkFigures {
        let socket = match &self.circuit {
            CircuitState::Open(circuit) => Some(&circuit.stream.socket),
            _ => None,
        };
        let circuit = socket.map(LinkFigures::of_socket).unwrap_or_default();
        LinkFigures {
            retransmissions: Some(
                self.retransmissions + circuit.retransmissions.unwrap_or_default(),
            ),
            pacing: self.pacing.filter(|rate| *rate < sockets::NO_PACING),
            buffers: Some([self.window_bytes() as u64, self.link.waiting as u64]),
            ..circuit
        }
    }

    /// Has each circuit take at most `rate` bytes a second, which the system paces.
    pub(super) fn pace(&mut self, rate: u64) {
        self.pacing = Some(rate);
        if let CircuitState::Open(circuit) = &self.circuit {
            sockets::set_pacing_rate(&circuit.stream.socket, rate);
        }
    }

    /// Goes on with a circuit that the other end has dialled. The circuit before is closed.
    pub(super) fn take_circuit(&mut self, stream: CircuitStream, records: &[u8]) -> EndProgress {
        self.open(stream, None);
        match self.take_records(records) {
            Ok(()) => self.advance(),
            Err(loss) => self.lose(loss),
        }
    }

    /// The descriptors to wait for, and their events. The link's socket comes first, until the link
    /// is closed.
    pub(super) fn wanted(&self) -> Vec<(&Descriptor, PollFlags)> {
        let mut wanted = Vec::with_capacity(2);
        wanted.extend(self.link.wanted(self.has_room()));
        match &self.circuit {
            CircuitState::None(_) => {}
            CircuitState::Opening(opening) => wanted.push((&opening.socket, opening.wanted())),
            CircuitState::Open(circuit) => {
                let mut events = PollFlags::empty();
                let may_read = self.takes_bytes() && circuit.half_closed_since.is_none();
                events.set(PollFlags::IN, may_read);
                let has_more = self.session.is_up() && !self.session.is_written();
                events.set(PollFlags::OUT, !circuit.stream.is_flushed() || has_more);
                wanted.push((&circuit.stream.socket, events));
            }
        }
        wanted
    }

    /// When the end wants a turn, even without an event.
    pub(super) fn next_turn(&self) -> Instant {
        let line = match &self.circuit {
            CircuitState::None(again) if self.route.is_some() => Some(*again),
            CircuitState::None(_) => None,
            CircuitState::Opening(opening) => Some(opening.deadline),
            // The link's socket tells when the link has taken the last bytes.
            CircuitState::Open(OpenCircuit {
                half_closed_since: Some(_),
                ..
            }) if self.is_link_behind() => None,
            CircuitState::Open(OpenCircuit {
                half_closed_since: Some(_),
                next_look,
                ..
            }) => Some(*next_look),
            CircuitState::Open(circuit) if circuit.is_probed && self.takes_bytes() => {
                Some(circuit.heard + DEAD_AFTER)
            }
            CircuitState::Open(circuit) => Some(circuit.heard + PROBE_AFTER),
        };
        let has_more = self.link.may_have_more() && self.has_room();
        let turns = [line, self.given_up(), has_more.then(Instant::now)]
            .into_iter()
            .flatten();
        turns
            .min()
            .unwrap_or_else(|| Instant::now() + self.terms.patience)
    }

    /// Moves bytes both ways, as far as they move without waiting.
    pub(super) fn advance(&mut self) -> EndProgress {
        self.take_from_link();
        let outcome = match self.circuit {
            CircuitState::None(_) => self.dial(),
            CircuitState::Opening(_) => self.go_on_opening(),
            CircuitState::Open(_) => Ok(()),
        };
        let outcome = outcome.and_then(|()| self.exchange());
        self.link.pass(self.session.has_peer_ended());
        match outcome {
            Ok(()) => self.progress(),
            Err(loss) => self.lose(loss),
        }
    }

    /// There is no circuit, for the time being or for ever.
    fn lose(&mut self, loss: CircuitLoss) -> EndProgress {
        match loss {
            CircuitLoss::Passing(why) => {
                (self.refusals, self.unproved) = (None, 0);
                self.lose_circuit(why)
            }
            CircuitLoss::Unproved(why) => {
                self.refusals = None;
                self.unproved += 1;
                let addresses = self.route.as_ref().map_or(1, |route| route.addresses.len());
                match self.was_up || self.unproved < addresses {
                    true => self.lose_circuit(UNPROVED.to_owned()),
                    false => EndProgress::Lost(why),
                }
            }
            CircuitLoss::NobodyListens(why) => {
                self.refusals.get_or_insert_with(|| (Instant::now(), 0)).1 += 1;
                self.lose_circuit(why)
            }
            // The other end is gone, and perhaps has ended in good order.
            CircuitLoss::Lasting(_) if self.session.has_peer_ended() => EndProgress::Over,
            CircuitLoss::Lasting(why) => EndProgress::Lost(why),
        }
    }

    /// Whether the circuit leads to another address than the one by which the other end was reached.
    fn is_at_another_address(&self) -> bool {
        match &self.circuit {
            CircuitState::Open(circuit) => circuit
                .number
                .is_some_and(|number| self.was_up && number != self.address),
            _ => false,
        }
    }

    fn progress(&mut self) -> EndProgress {
        if self.session.is_gone() || self.is_other_process_gone() {
            return match self.session.has_peer_ended() {
                false => EndProgress::Lost(LinkError::Closed),
                true if self.is_link_behind() => EndProgress::Open,
                true => EndProgress::Over,
            };
        }
        let is_told = match &self.circuit {
            CircuitState::Open(circuit) => self.session.is_told() && circuit.stream.is_flushed(),
            // The other end has closed the circuit, and asks again if it misses something.
            _ => self.session.is_over(),
        };
        if is_told && self.link.is_told() {
            return EndProgress::Over;
        }
        if self.link.is_closed() && !self.was_up {
            // The other end may have begun the session, and would wait for another circuit.
            let last = std::mem::replace(&mut self.circuit, CircuitState::None(Instant::now()));
            if let CircuitState::Open(circuit) = last {
                circuit.stream.say_gone();
            }
            return EndProgress::Over;
        }
        let now = Instant::now();
        match self.given_up() {
            Some(time) if time <= now => EndProgress::Lost(match self.listener_is_gone() {
                Some(gone) if gone <= now => LinkError::Closed,
                _ => LinkError::System(self.patience_text()),
            }),
            _ => EndProgress::Open,
        }
    }

    /// When the end gives up to wait for a circuit. Whoever asks for a link says how long to try: an end
    /// that has never been answered goes on until the link is closed.
    fn given_up(&self) -> Option<Instant> {
        let cut_since = self.cut_since.filter(|_| !self.is_unanswered())?;
        let late = cut_since + self.terms.patience;
        Some(self.listener_is_gone().map_or(late, |gone| gone.min(late)))
    }

    /// When the process that has answered before counts as gone, if all of its addresses say that nothing listens.
    fn listener_is_gone(&self) -> Option<Instant> {
        let (since, count) = self.refusals?;
        let addresses = self.route.as_ref()?.addresses.len();
        let is_opening = matches!(self.circuit, CircuitState::Opening(_));
        (count >= addresses && !is_opening).then_some(since + REFUSED_FOR)
    }

    /// Whether this end dials, and the other end has never answered.
    pub(super) fn is_unanswered(&self) -> bool {
        self.route.is_some() && !self.was_up
    }

    /// Why the other end has never answered; `None` if it has, or if this end listens.
    pub(super) fn obstacle(&self) -> Option<LinkError> {
        self.is_unanswered()
            .then(|| match self.last_error.as_str() {
                "" => LinkError::Silent,
                why => LinkError::Hindered(why.to_owned()),
            })
    }

    fn patience_text(&self) -> String {
        let time = self.terms.patience.as_secs_f64();
        let (to, from) = match &self.route {
            Some(route) => (format!(" to {}", route.destination()), ""),
            None => (String::new(), " from the other end"),
        };
        let why = match self.last_error.as_str() {
            "" => String::new(),
            why => format!(": {why}"),
        };
        let setting = self.terms.patience_setting;
        let what = match self.terms.is_direct {
            true => "connection",
            false => "circuit",
        };
        format!("no {what}{to} has come{from} for {time} s (`{setting}`){why}")
    }

    /// Whether the circuit has been half-closed for long, and the relay of this site lives: its host
    /// has acknowledged the probe, and has not reset the connection.
    fn is_other_process_gone(&mut self) -> bool {
        let CircuitState::Open(circuit) = &mut self.circuit else {
            return false;
        };
        let now = Instant::now();
        if circuit.half_closed_since.is_none() || now < circuit.next_look {
            return false;
        }
        circuit.next_look = now + LOOK_AGAIN;
        let seen = sockets::acknowledgements(&circuit.stream.socket);
        seen.is_none_or(|seen| !seen.in_flight)
    }

    /// Whether the other end has sent all, and the link has not taken it all yet.
    fn is_link_behind(&self) -> bool {
        self.session.has_peer_ended() && self.link.can_be_told()
    }

    /// Since when nothing more can come by the circuit.
    fn half_closed_since(&self) -> Option<Instant> {
        match &self.circuit {
            CircuitState::Open(circuit) => circuit.half_closed_since,
            _ => None,
        }
    }

    /// How many bytes the end may keep for the other end.
    fn window_bytes(&self) -> usize {
        self.set_window.unwrap_or(self.window.bytes())
    }

    /// How many bytes more the end may keep for the other end.
    fn room(&self) -> usize {
        self.window_bytes().saturating_sub(self.session.kept())
    }

    fn has_room(&self) -> bool {
        self.room() >= LEAST_ROOM
    }

    /// Whether the link has taken enough of the received bytes for more to come. The records that
    /// resume a session are always read.
    fn takes_bytes(&self) -> bool {
        self.link.takes_bytes() || !self.session.is_up()
    }

    /// Takes bytes from the link, and notes them for the meter.
    fn take_from_link(&mut self) {
        let window = self.window_bytes();
        let taken = self.link.take(&mut self.session, window);
        self.newly_taken += taken.count;
        let meter = self.meter.as_ref().map(|(meter, _)| meter);
        if let (Some(meter), true) = (meter, taken.is_all) {
            meter.set_untaken(self.newly_taken);
        }
        if taken.count > 0 {
            let room_since = self.room_since.take();
            let count = taken.count as u64;
            meter.inspect(|meter| meter.note_line(count, room_since, Instant::now()));
        }
    }

    /// Begins a circuit, if it is time.
    fn dial(&mut self) -> Result<(), CircuitLoss> {
        let (CircuitState::None(again), Some(route)) = (&self.circuit, &self.route) else {
            return Ok(());
        };
        if Instant::now() < *again {
            return Ok(());
        }
        let opening = OpeningCircuit::begin(route, self.address, self.attempts)?;
        self.circuit = CircuitState::Opening(Box::new(opening));
        Ok(())
    }

    fn go_on_opening(&mut self) -> Result<(), CircuitLoss> {
        let (CircuitState::Opening(opening), Some(route)) = (&mut self.circuit, &self.route) else {
            return Ok(());
        };
        if !opening.advance(route)? {
            return Ok(());
        }
        let now = Instant::now();
        let opened = std::mem::replace(&mut self.circuit, CircuitState::None(now));
        let CircuitState::Opening(opening) = opened else {
            return Ok(());
        };
        let number = opening.number;
        let Some(proved) = opening.into_proved() else {
            return Ok(());
        };
        let (stream, records) = CircuitStream::begin(proved, self.terms.is_sealed)?;
        self.open(stream, Some(number));
        self.take_records(&records)
    }

    fn open(&mut self, stream: CircuitStream, number: Option<usize>) {
        self.note_retransmissions();
        self.session.cut();
        self.session.connect();
        self.note_cut();
        self.window = CongestionWindow::new(self.terms.gain());
        self.pacing
            .inspect(|rate| sockets::set_pacing_rate(&stream.socket, *rate));
        self.circuit = CircuitState::Open(OpenCircuit {
            stream,
            number,
            heard: Instant::now(),
            is_probed: false,
            half_closed_since: None,
            next_look: Instant::now(),
        });
    }

    /// Takes over what the present circuit has counted, which ends.
    fn note_retransmissions(&mut self) {
        if let CircuitState::Open(circuit) = &self.circuit {
            self.retransmissions +=
                sockets::retransmissions(&circuit.stream.socket).unwrap_or_default();
        }
    }

    /// The circuit is lost. The dialling end dials again.
    fn lose_circuit(&mut self, why: String) -> EndProgress {
        let now = Instant::now();
        let was_up = self.session.is_up();
        self.note_retransmissions();
        self.session.cut();
        self.note_cut();
        self.cut_since.get_or_insert(now);
        let pause = PAUSE * (1 << self.attempts.min(8));
        // After a circuit that was up, the same address is the first.
        self.attempts += usize::from(!was_up);
        self.last_error = why;
        let next = CircuitState::None(now + pause.min(LONGEST_PAUSE));
        let lost = std::mem::replace(&mut self.circuit, next);
        if let (CircuitState::Open(lost), true) = (lost, was_up) {
            self.previous = Some(lost.stream.socket);
        }
        self.progress()
    }

    /// Moves bytes between the session and the circuit.
    fn exchange(&mut self) -> Result<(), CircuitLoss> {
        if !matches!(self.circuit, CircuitState::Open(_)) {
            return Ok(());
        }
        if self.was_stopped() {
            return Err(CircuitLoss::passing("this process was stopped"));
        }
        let was_full = !self.has_room();
        self.receive()?;
        self.check_life()?;
        let CircuitState::Open(circuit) = &mut self.circuit else {
            return Ok(());
        };
        circuit.stream.write(&mut self.session, AT_ONCE)?;
        if self.session.is_up() {
            let progress = self.session_progress();
            let round_trip = self.window.note(progress);
            let flight = self.flight.get_or_insert_with(|| Flight::new(progress));
            flight.note(progress, self.window.base_round_trip());
            self.note_progress(progress, round_trip);
            if was_full {
                self.room_since = Some(progress.time);
            }
        }
        Ok(())
    }

    /// Whether this end, which dials, has had no turn for so long that the other end has given the circuit up.
    fn was_stopped(&self) -> bool {
        match &self.circuit {
            CircuitState::Open(circuit) => {
                self.route.is_some() && circuit.heard.elapsed() >= STOPPED_AFTER
            }
            _ => false,
        }
    }

    /// The flight and the window of the circuit, if the session is up.
    fn measured_circuit(&self) -> Option<(Flight, usize)> {
        Some((self.flight?, self.window_bytes()))
    }

    fn session_progress(&self) -> SessionProgress {
        let (sent, acknowledged) = self.session.sent_and_acknowledged();
        SessionProgress {
            sent,
            acknowledged,
            kept: self.session.kept(),
            time: Instant::now(),
        }
    }

    /// Notes for the meter what is acknowledged, and a round trip that has ended.
    fn note_progress(&mut self, progress: SessionProgress, round_trip: Option<Duration>) {
        let circuit = self.measured_circuit();
        let Some((meter, noted)) = &mut self.meter else {
            return;
        };
        // The flight first, whose kept bytes include the taken ones: a sender that looks between the two
        // calls counts those bytes twice, and not never.
        meter.note_circuit(circuit);
        meter.note_taken(std::mem::take(&mut self.newly_taken));
        let bytes = progress.acknowledged - *noted;
        if bytes > 0 {
            *noted = progress.acknowledged;
            meter
                .line()
                .note_acknowledged(bytes, round_trip, progress.time);
        }
    }

    /// Notes for the meter that a circuit was lost or opened.
    fn note_cut(&mut self) {
        self.flight = None;
        if let Some((meter, _)) = &self.meter {
            meter.line().note(DeliveryRate::note_cut);
            meter.note_circuit(None);
        }
    }

    fn receive(&mut self) -> Result<(), CircuitLoss> {
        let mut records = Vec::new();
        let mut taken = 0;
        while self.takes_bytes() && taken < AT_ONCE {
            let CircuitState::Open(circuit) = &mut self.circuit else {
                break;
            };
            if circuit.half_closed_since.is_some() {
                break;
            }
            records.clear();
            match circuit.stream.read(&mut records)? {
                // The relays have passed on that the other process closed this circuit. A relay that
                // loses a line drops the circuit instead, and the dialling end keeps a lost circuit open
                // until its next one is up. So the other process is gone, unless this site's own relay
                // has died: the probe is then answered by a reset. (The end that dials finds out by
                // dialling again.)
                Some(0) if self.route.is_none() && self.session.is_confirmed() => {
                    let now = Instant::now();
                    circuit.half_closed_since = Some(now);
                    circuit.next_look = now + GONE_AFTER;
                    self.session.probe();
                }
                Some(0) => return Err(LinkError::Closed.into()),
                Some(count) => {
                    self.take_records(&records)?;
                    taken += count;
                }
                None => break,
            }
        }
        Ok(())
    }

    fn take_records(&mut self, records: &[u8]) -> Result<(), CircuitLoss> {
        let outcome = self.session.read(records, self.link.memory());
        outcome.map_err(LinkError::from)?;
        if self.session.is_gone() && self.is_at_another_address() {
            // Another process that knows the secret listens there.
            self.session.disregard_gone();
            return Err(CircuitLoss::NobodyListens(
                "another program listens there".to_owned(),
            ));
        }
        if let CircuitState::Open(circuit) = &mut self.circuit {
            circuit.heard = Instant::now();
            circuit.is_probed = false;
            if self.session.is_up() {
                self.address = circuit.number.unwrap_or_default();
            }
        }
        if self.session.is_up() {
            self.cut_since = None;
            self.previous = None;
            self.was_up = true;
            self.attempts = 0;
            self.refusals = None;
        }
        Ok(())
    }

    /// Fails if the other end has been silent for too long.
    fn check_life(&mut self) -> Result<(), CircuitLoss> {
        let takes_bytes = self.takes_bytes();
        let CircuitState::Open(circuit) = &mut self.circuit else {
            return Ok(());
        };
        if let Some(since) = circuit.half_closed_since {
            let is_dead = since.elapsed() >= DEAD_AFTER && !self.session.has_peer_ended();
            return match is_dead {
                true => Err(CircuitLoss::passing(match self.terms.is_direct {
                    true => "the other host is silent",
                    false => "the relay of this site is silent",
                })),
                false => Ok(()),
            };
        }
        let silent = circuit.heard.elapsed();
        if !takes_bytes {
            // While the link takes nothing, the circuit is not read. The other end is to hear that
            // this end lives.
            if silent >= PROBE_AFTER {
                circuit.heard = Instant::now();
                self.session.probe();
            }
            return Ok(());
        }
        if silent >= DEAD_AFTER {
            let why = format!("nothing has come for {} s", DEAD_AFTER.as_secs());
            return Err(CircuitLoss::passing(why));
        }
        if silent >= PROBE_AFTER && !circuit.is_probed {
            circuit.is_probed = true;
            self.session.probe();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use rustix::net::{self, Shutdown};
    use titin_wire::Secret;
    use titin_wire::connection::is_rate_based;

    use super::super::circuit::CircuitKind;
    use super::super::link_side::WAITING;
    use super::*;
    use crate::line_meter::LineMeter;
    use crate::pump::socket_pair;
    use crate::stream_meter::StreamRoom;

    /// The way to a listener whose host is not known.
    fn route() -> CircuitRoute {
        CircuitRoute {
            kind: CircuitKind::Direct("node1:1".to_owned()),
            addresses: Vec::new(),
            secret: Secret::random(),
        }
    }

    /// The terms of sessions that wait for a circuit for so many milliseconds.
    fn terms(patience: u64) -> SessionTerms {
        SessionTerms {
            patience: Duration::from_millis(patience),
            is_filled_by_one_stream: false,
            is_sealed: true,
            is_direct: false,
            patience_setting: "patience",
        }
    }

    /// An end that another end has dialled: the end, its link's socket, and the far end of its
    /// circuit with a session of its own.
    struct Rig {
        end: SessionEnd,
        link: Descriptor,
        circuit: Descriptor,
        far: Session,
    }

    impl Rig {
        fn new() -> Self {
            let [link, socket] = socket_pair().unwrap();
            let [near, circuit] = socket_pair().unwrap();
            let id = SessionId(1);
            let mut end = SessionEnd::new(id, socket, link.id(), None, terms(60_000));
            let mut far = Session::new(id);
            far.connect();
            let mut resume = Vec::new();
            far.write(&mut resume, usize::MAX);
            assert_eq!(
                end.take_circuit(CircuitStream::unsealed(near), &resume),
                EndProgress::Open
            );
            let mut rig = Rig {
                end,
                link,
                circuit,
                far,
            };
            rig.receive();
            assert!(rig.end.session.is_up() && rig.far.is_up());
            rig
        }

        /// Takes what the end has sent by the circuit. Returns the bytes for the far link.
        fn receive(&mut self) -> Vec<u8> {
            let (mut piece, mut bytes) = (vec![0; 1 << 20], Vec::new());
            while let Ok(count) = rustix::io::read(&self.circuit, &mut piece) {
                self.far.read(&piece[..count], &mut bytes).unwrap();
            }
            bytes
        }

        /// Sends bytes to the end, as far as they go. Returns how many went.
        fn send(&mut self, bytes: &[u8]) -> usize {
            let mut out = Vec::new();
            self.far.send(bytes);
            self.far.write(&mut out, usize::MAX);
            let mut sent = 0;
            while let Ok(count) = rustix::io::write(&self.circuit, &out[sent..]) {
                sent += count;
                self.end.advance();
                if sent == out.len() {
                    break;
                }
            }
            sent
        }
    }

    #[test]
    fn an_end_with_more_to_say_than_fits_a_turn_wants_the_next_turn() {
        let mut rig = Rig::new();
        let message = vec![7; rig.end.window.bytes()];
        let (mut given, mut got) = (0, Vec::new());
        while got.len() < message.len() {
            if let Ok(count) = rustix::io::write(&rig.link, &message[given..]) {
                given += count;
            }
            rig.end.advance();
            let wanted = rig.end.wanted();
            let wants_out = wanted.last().unwrap().1.contains(PollFlags::OUT);
            let is_written = rig.end.session.is_written();
            assert!(wants_out || is_written, "after {} bytes", got.len());
            got.extend(rig.receive());
        }
        assert!(got == message);
    }

    #[test]
    fn a_link_that_takes_nothing_costs_no_turns_and_bounded_memory() {
        let mut rig = Rig::new();
        rig.send(&vec![1; 8 * WAITING]);
        assert!(rig.end.link.received.len() < 2 * WAITING + AT_ONCE);
        let CircuitState::Open(circuit) = &mut rig.end.circuit else {
            panic!("the circuit is open");
        };
        circuit.heard -= 2 * PROBE_AFTER;
        circuit.is_probed = true;
        assert_eq!(rig.end.advance(), EndProgress::Open);
        assert!(rig.end.next_turn() > Instant::now() + PROBE_AFTER / 2);
        // The other end hears that this end lives.
        let mut probe = Vec::new();
        rig.far.write(&mut probe, usize::MAX);
        rig.receive();
        rig.far.write(&mut probe, usize::MAX);
        assert!(!probe.is_empty(), "the probe wants an echo");
    }

    #[test]
    fn a_slow_link_does_not_fill_the_memory() {
        let mut rig = Rig::new();
        let (mut piece, mut most) = (vec![0; 1 << 16], 0);
        let (mut sent, mut got) = (0, 0);
        while got < 64 << 20 {
            if sent < 64 << 20 {
                rig.far.send(&[2; 1 << 17]);
                sent += 1 << 17;
            }
            let mut out = Vec::new();
            rig.far.write(&mut out, usize::MAX);
            let mut at = 0;
            while at < out.len() {
                match rustix::io::write(&rig.circuit, &out[at..]) {
                    Ok(count) => at += count,
                    Err(_) => {
                        got += rustix::io::read(&rig.link, &mut piece).unwrap_or(0);
                    }
                }
                rig.end.advance();
                rig.receive();
                most = most.max(rig.end.link.received.len());
            }
            got += rustix::io::read(&rig.link, &mut piece).unwrap_or(0);
            rig.end.advance();
            rig.receive();
        }
        assert!(most <= 3 * WAITING, "{most}");
    }

    #[test]
    fn an_end_whose_process_is_gone_is_told_from_a_broken_circuit() {
        let far_takes_bytes = |rig: &mut Rig| {
            // The first bytes behind `resume` confirm the circuit.
            rig.send(&[]);
            rig.end.advance();
            rig.receive();
        };
        // The other end's relay passes on that the process has closed the circuit.
        let mut rig = Rig::new();
        far_takes_bytes(&mut rig);
        net::shutdown(&rig.circuit, Shutdown::Write).unwrap();
        assert_eq!(rig.end.advance(), EndProgress::Open);
        let since = rig.end.half_closed_since().unwrap();
        assert_eq!(rig.end.next_turn(), since + GONE_AFTER);
        let CircuitState::Open(circuit) = &mut rig.end.circuit else {
            panic!("the circuit is open");
        };
        circuit.next_look = since;
        assert_eq!(rig.end.advance(), EndProgress::Lost(LinkError::Closed));

        // The relay of this site dies.
        let mut rig = Rig::new();
        far_takes_bytes(&mut rig);
        drop(rig.circuit);
        while matches!(rig.end.circuit, CircuitState::Open(_)) {
            assert_eq!(rig.end.advance(), EndProgress::Open);
        }
        assert!(rig.end.cut_since.is_some());

        // The other end cannot know that the circuit is in use.
        let rig = Rig::new();
        net::shutdown(&rig.circuit, Shutdown::Write).unwrap();
        let mut end = rig.end;
        assert_eq!(end.advance(), EndProgress::Open);
        assert!(matches!(end.circuit, CircuitState::None(_)));
    }

    #[test]
    fn the_line_is_told_of_all_bytes_over_several_circuits() {
        let mut rig = Rig::new();
        let line = Arc::new(LineMeter::default());
        let meter = Arc::new(StreamMeter::new(line.clone(), false));
        let write = |rig: &mut Rig| {
            rustix::io::write(&rig.link, &[7; 12_000]).unwrap();
            rig.end.advance();
        };
        write(&mut rig);
        rig.end.measure(meter);
        write(&mut rig);
        let under_way = || {
            let mut bytes = 0;
            line.note(|rate| bytes = rate.under_way());
            bytes
        };
        assert_eq!(under_way(), rig.end.session.kept() as u64);
        assert_eq!(rig.receive().len(), 24_000);

        // The acknowledgement is lost with the circuit.
        let [near, circuit] = socket_pair().unwrap();
        rig.far.cut();
        rig.far.connect();
        let mut resume = Vec::new();
        rig.far.write(&mut resume, usize::MAX);
        rig.end.take_circuit(CircuitStream::unsealed(near), &resume);
        rig.circuit = circuit;
        assert_eq!((under_way(), rig.end.session.kept()), (0, 0));
        write(&mut rig);
        assert_eq!(under_way(), 12_000);
        rig.receive();
        rig.send(&[]);
        rig.end.advance();
        assert_eq!(under_way(), 0);
    }

    #[test]
    fn the_link_knows_how_many_bytes_the_circuit_carries_at_once() {
        let mut rig = Rig::new();
        let meter = Arc::new(StreamMeter::new(Arc::default(), false));
        let room = || meter.room(Instant::now());
        rig.end.advance();
        rig.end.measure(meter.clone());
        let initial = room();
        assert!(initial.flight > 10_000 && initial.flight < initial.window);
        assert!(initial.window > 32_000);
        let has_less_by = |bytes: usize| {
            let StreamRoom { flight, window, .. } = room();
            for less in [initial.flight - flight, initial.window - window] {
                // Less a hundredth for headers.
                let bytes = bytes as u64;
                assert!((bytes - bytes / 50..=bytes).contains(&less), "{less}");
            }
        };
        meter.begin_write(5_000);
        rustix::io::write(&rig.link, &[7; 5_000]).unwrap();
        has_less_by(5_000);
        rig.end.advance();
        has_less_by(rig.end.session.kept());
        rig.receive();
        rig.send(&[]);
        rig.end.advance();
        assert_eq!(room(), initial);
        // A count that is wrong does not outlast an empty socket.
        meter.begin_write(5_000);
        rig.end.advance();
        assert_eq!(room(), initial);
        rig.end.lose_circuit(String::new());
        assert_eq!(room(), StreamRoom::default());
        // No sender counts on a lost circuit, and the next circuit is measured anew.
        rig.end.measure(meter.clone());
        assert_eq!(room(), StreamRoom::default());
        let [near, _circuit] = socket_pair().unwrap();
        rig.end.open(CircuitStream::unsealed(near), None);
        assert!(rig.end.flight.is_none());
    }

    #[test]
    fn the_end_keeps_as_many_bytes_as_its_window_has() {
        let mut rig = Rig::new();
        rustix::io::write(&rig.link, &[7; 100_000]).unwrap();
        rig.end.advance();
        assert_eq!(rig.end.session.kept(), rig.end.window.bytes());
    }

    #[test]
    fn buffers_are_as_set() {
        let bytes = 200_000;
        let mut rig = Rig::new();
        rig.end.set_buffers(&LinkSettings {
            send_buffer: Some(bytes as u64),
            receive_buffer: Some(bytes as u64),
            ..LinkSettings::default()
        });
        let (message, mut written) = (vec![7; 4 * bytes], 0);
        while let Ok(count) = rustix::io::write(&rig.link, &message[written..]) {
            written += count;
            rig.end.advance();
        }
        let kept = rig.end.session.kept();
        assert!((bytes - LEAST_ROOM..=bytes).contains(&kept), "{kept}");
        rig.send(&message);
        let waiting = rig.end.link.received.len() - rig.end.link.passed;
        assert!(
            (bytes..bytes + AT_ONCE).contains(&waiting) && bytes + AT_ONCE < WAITING,
            "{waiting}"
        );
    }

    #[test]
    fn little_room_is_none() {
        let mut rig = Rig::new();
        let bytes = vec![7; MIN_WINDOW - LEAST_ROOM + 1];
        rustix::io::write(&rig.link, &bytes).unwrap();
        rig.end.advance();
        assert_eq!(rig.end.room(), LEAST_ROOM - 1);
        rustix::io::write(&rig.link, &[7]).unwrap();
        rig.end.advance();
        assert_eq!(rig.end.session.kept(), bytes.len());
        assert!(!rig.end.wanted()[0].1.contains(PollFlags::IN));
    }

    #[test]
    fn the_end_knows_since_when_there_is_room() {
        let mut rig = Rig::new();
        rustix::io::write(&rig.link, &[7; 1000]).unwrap();
        rig.end.advance();
        assert_eq!(rig.end.room_since, None);
        // The end takes each piece at once, so none waits in the socket.
        while rig.end.has_room() {
            rustix::io::write(&rig.link, &[7; 10_000]).unwrap();
            rig.end.advance();
            rig.receive();
        }
        // The other end acknowledges what it has got.
        let acknowledged = Instant::now();
        while !rig.end.has_room() {
            rig.receive();
            rig.send(&[]);
            rig.end.advance();
        }
        let room_since = rig.end.room_since.unwrap();
        assert!(room_since >= acknowledged);
        // It stays while the program pauses.
        rig.end.advance();
        assert_eq!(rig.end.room_since, Some(room_since));
        rustix::io::write(&rig.link, &[7; 1000]).unwrap();
        rig.end.advance();
        assert_eq!(rig.end.room_since, None);
    }

    #[test]
    fn an_end_that_lives_closes_no_circuit_before_the_next_one_is_up() {
        let mut rig = Rig::new();
        let CircuitState::Open(circuit) = &mut rig.end.circuit else {
            panic!("the circuit is open");
        };
        circuit.heard -= DEAD_AFTER;
        circuit.is_probed = true;
        assert_eq!(rig.end.advance(), EndProgress::Open);
        assert!(rig.end.previous.is_some());
        let is_open =
            |circuit: &Descriptor| rustix::io::read(circuit, &mut [0; 100]) == Err(Errno::AGAIN);
        rig.receive();
        assert!(is_open(&rig.circuit));

        let [near, circuit] = socket_pair().unwrap();
        rig.far.cut();
        rig.far.connect();
        let mut resume = Vec::new();
        rig.far.write(&mut resume, usize::MAX);
        assert_eq!(
            rig.end.take_circuit(CircuitStream::unsealed(near), &resume),
            EndProgress::Open
        );
        assert!(!is_open(&rig.circuit));
        assert!(!is_open(&circuit), "the answer has come");
    }

    #[test]
    fn an_end_that_dials_and_was_stopped_dials_again_at_once() {
        for (pause, is_given_up) in [(PROBE_AFTER, false), (STOPPED_AFTER, true)] {
            let mut rig = Rig::new();
            rig.end.route = Some(Arc::new(route()));
            let CircuitState::Open(circuit) = &mut rig.end.circuit else {
                panic!("the circuit is open");
            };
            circuit.heard -= pause;
            // The bytes in the socket are of a circuit that the other end has given up.
            rig.send(&[7; 100]);
            rig.end.advance();
            assert_eq!(
                matches!(rig.end.circuit, CircuitState::None(_)),
                is_given_up
            );
        }
    }

    #[test]
    fn a_listener_is_gone_once_all_of_its_addresses_have_said_so() {
        let mut rig = Rig::new();
        let addresses = ["192.0.2.1:1", "192.0.2.2:1"].map(|address| address.parse().unwrap());
        rig.end.route = Some(Arc::new(CircuitRoute {
            addresses: addresses.to_vec(),
            ..route()
        }));
        let long_ago = Instant::now() - REFUSED_FOR;
        rig.end.circuit = CircuitState::None(Instant::now() + DEAD_AFTER);
        rig.end.cut_since = Some(long_ago);
        rig.end.refusals = Some((long_ago, 1));
        assert_eq!(rig.end.progress(), EndProgress::Open);
        rig.end.refusals = Some((long_ago, 2));
        assert_eq!(rig.end.progress(), EndProgress::Lost(LinkError::Closed));
    }

    #[test]
    fn a_session_that_never_was_goes_with_its_link() {
        let [link, socket] = socket_pair().unwrap();
        let mut end = SessionEnd::new(SessionId(1), socket, link.id(), None, terms(60_000));
        assert_eq!(end.advance(), EndProgress::Open);
        drop(link);
        assert_eq!(end.note_closed_link(), EndProgress::Over);
    }

    #[test]
    fn an_end_that_gives_up_before_the_answer_says_so() {
        let [link, socket] = socket_pair().unwrap();
        let [near, far] = socket_pair().unwrap();
        let id = SessionId(1);
        let way = Some(Arc::new(route()));
        let mut dialled = SessionEnd::new(id, socket, link.id(), way, terms(60_000));
        dialled.open(CircuitStream::unsealed(near), Some(0));
        assert_eq!(dialled.advance(), EndProgress::Open);
        drop(link);
        assert_eq!(dialled.note_closed_link(), EndProgress::Over);
        let [link, socket] = socket_pair().unwrap();
        let mut asked = SessionEnd::new(id, socket, link.id(), None, terms(60_000));
        let progress = asked.take_circuit(CircuitStream::unsealed(far), &[]);
        assert_eq!(progress, EndProgress::Lost(LinkError::Closed));
    }

    #[test]
    fn a_session_without_a_circuit_is_lost_in_time() {
        let [link, socket] = socket_pair().unwrap();
        let patience = Duration::from_millis(10);
        let mut end = SessionEnd::new(SessionId(1), socket, link.id(), None, terms(10));
        assert!(end.next_turn() <= Instant::now() + patience);
        std::thread::sleep(patience);
        let EndProgress::Lost(why) = end.advance() else {
            panic!("the session waits on");
        };
        assert!(why.to_string().contains("no circuit has come"), "{why}");
    }

    #[test]
    fn a_stream_that_fills_the_line_by_itself_has_the_larger_window() {
        let gain = |congestion| {
            let terms = SessionTerms {
                is_filled_by_one_stream: is_rate_based(congestion),
                ..terms(1)
            };
            terms.gain()
        };
        assert_eq!([gain("bbr"), gain("bbr2")], [SOLE_GAIN; 2]);
        assert_eq!(gain("cubic"), SHARED_GAIN);
    }
}
