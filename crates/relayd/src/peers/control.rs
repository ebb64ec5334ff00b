//! Control connections: what two relays tell each other of runs, and their calls for connections.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_wire::circuit::{self, LONGEST_PERMIT, RunPermit};
use titin_wire::line::{ControlMessage, LinePurpose, PeerGreeting};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{Peer, dial};
use crate::admission::{AdmittedRuns, NotAdmitted};
use crate::circuits::PeerStream;
use crate::log_limit::bounded;
use crate::messages;
use crate::refused_runs::MOST_OWN;
use crate::server::{Relay, hex};
use crate::tls::HANDSHAKE_TIME;

/// How often the round trip is measured.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// After this time without a message the control connection is dead.
const SILENCE: Duration = Duration::from_secs(15);

/// How long the runs of a peer are kept when the control connection is lost.
const RUNS_KEPT: Duration = Duration::from_secs(600);

/// The most control connections of a peer: one that each of the two has dialled, and as many of the process that
/// a restarted relay takes the place of. The oldest goes first.
const CONTROLS: usize = 4;

/// Control messages on their way to a peer, at most.
const QUEUE: usize = 256;

/// Changes of runs are told at most once in this time: another relay may cause any number.
const CHANGE_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct ControlState {
    /// Since when no control connection is open, if none is.
    pub(super) down_since: Instant,
    /// Why no control connection is open, as far as this relay knows.
    pub(super) down: Option<String>,
    /// The oldest first.
    pub(super) open: VecDeque<ControlConnection>,
    /// The runs of the peer that were not admitted, as the log has them.
    not_admitted: NotAdmitted,
    /// Whether a task waits to forget the runs of the peer.
    is_forgetting: bool,
}

impl Default for ControlState {
    fn default() -> Self {
        ControlState {
            down_since: Instant::now(),
            down: None,
            open: VecDeque::new(),
            not_admitted: NotAdmitted::default(),
            is_forgetting: false,
        }
    }
}

pub(super) struct ControlConnection {
    number: u64,
    queue: mpsc::Sender<ControlMessage>,
    /// Ends the connection, for newer ones.
    superseded: watch::Sender<bool>,
    /// The runs of which the peer has told last, by this connection.
    runs: Option<Vec<RunPermit>>,
}

impl ControlState {
    /// Notes a control connection. Returns what tells that the connection is to end.
    fn begin(&mut self, number: u64, queue: mpsc::Sender<ControlMessage>) -> watch::Receiver<bool> {
        let (superseded, is_superseded) = watch::channel(false);
        self.down = None;
        self.open.push_back(ControlConnection {
            number,
            queue,
            superseded,
            runs: None,
        });
        if self.open.len() > CONTROLS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.superseded.send_replace(true);
        }
        is_superseded
    }

    /// Notes the end of a control connection, and why it has ended. True if none is left.
    fn end(&mut self, number: u64, why: Option<&str>) -> bool {
        self.open.retain(|open| open.number != number);
        self.down_since = Instant::now();
        self.down = why.map(str::to_owned);
        self.open.is_empty()
    }

    /// Notes the runs of which the peer has told by a connection.
    fn set_runs(&mut self, number: u64, runs: Vec<RunPermit>) {
        if let Some(open) = self.open.iter_mut().find(|open| open.number == number) {
            open.runs = Some(runs);
        }
    }

    /// The runs of the peer: those of all its connections. The peer may be two processes, one of which takes the place of
    /// the other. Where they tell different things of a run, the newer connection counts.
    fn runs(&self) -> Vec<RunPermit> {
        let mut known = HashSet::new();
        let newest_first = self.open.iter().rev().filter_map(|open| open.runs.as_ref());
        let runs = newest_first.flatten();
        runs.filter(|run| known.insert(run.run)).cloned().collect()
    }

    /// Whether the peer has told of its runs by all connections.
    fn is_complete(&self) -> bool {
        self.open.iter().all(|open| open.runs.is_some())
    }

    pub(super) fn queue(&self) -> Option<mpsc::Sender<ControlMessage>> {
        self.open.back().map(|newest| newest.queue.clone())
    }
}

/// Sends and takes control messages, as long as the connection lives.
pub(crate) async fn serve_control(
    relay: &Arc<Relay>,
    peer: &Arc<Peer>,
    stream: PeerStream,
    mut buffer: Vec<u8>,
) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let number = relay.next_number();
    let mut superseded = peer.control().begin(number, sender.clone());
    // A relay may connect again and again.
    let is_logged = peer.may_log();
    if is_logged {
        info!(site = peer.site(), "connected");
    }
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        let outcome = send_control(relay, peer, &mut writer, queue).await;
        let _ = writer.shutdown().await;
        outcome
    };
    let reading = async {
        loop {
            let message = timeout(SILENCE, messages::read(&mut reader, &mut buffer)).await;
            let why = || format!("nothing has come for {} s", SILENCE.as_secs());
            let silent = |_| io::Error::new(io::ErrorKind::TimedOut, why());
            take_control(relay, (peer, number), message.map_err(silent)??, &sender);
        }
    };
    let outcome: io::Result<()> = tokio::select! {
        outcome = writing => outcome,
        outcome = reading => outcome,
        () = peer.revoked() => Err(io::Error::other(peer.revocation().unwrap_or_default())),
        _ = superseded.wait_for(|superseded| *superseded) => {
            Err(io::Error::other("newer connections have taken its place"))
        }
    };
    let why = outcome.err().map(|error| bounded(&relay.tls.why(&error)));
    let (is_last, is_complete) = {
        let mut state = peer.control();
        let is_last = state.end(number, why.as_deref());
        if is_last {
            relay.runs.note_away(peer.site());
        }
        (is_last, state.is_complete())
    };
    if is_last {
        peer.counts.round_trip.store(0, Ordering::Relaxed);
        if !std::mem::replace(&mut peer.control().is_forgetting, true) {
            let (relay, peer) = (relay.clone(), peer.clone());
            tokio::spawn(async move { forget_runs(&relay, &peer).await });
        }
    } else if is_complete {
        // What was told by the connection that has ended goes with it.
        admit_runs(relay, peer);
    }
    if is_logged {
        info!(site = peer.site(), why, "disconnected");
    }
}

/// Forgets the runs of a peer once it has been away for long. Until then the runs go on: circuits do not need the
/// control connection. Ends when the peer is connected.
async fn forget_runs(relay: &Relay, peer: &Arc<Peer>) {
    loop {
        let away = {
            let mut state = peer.control();
            let away = state.down_since.elapsed();
            if !state.open.is_empty() || away >= RUNS_KEPT {
                state.is_forgetting = false;
                if state.open.is_empty() {
                    // A peer that comes now tells of its runs afterwards.
                    relay.runs.set_of_peer(peer.site(), Vec::new(), 0);
                    relay.forget_refusals_of(peer);
                }
                return;
            }
            away
        };
        tokio::select! {
            () = sleep(RUNS_KEPT - away) => {}
            // The runs were forgotten with the trust.
            () = peer.revoked() => return,
        }
    }
}

impl Peer {
    /// Forgets the runs that the peer has brought.
    pub(crate) fn forget_runs(&self, runs: &AdmittedRuns) {
        let mut state = self.control();
        state.open.iter_mut().for_each(|open| open.runs = None);
        runs.set_of_peer(self.site(), Vec::new(), 0);
    }
}

async fn send_control(
    relay: &Relay,
    peer: &Peer,
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    mut queue: mpsc::Receiver<ControlMessage>,
) -> io::Result<()> {
    let mut changes = relay.runs.changes();
    let mut told = None;
    let mut told_refusals = None;
    let mut ping = tokio::time::interval(PING_INTERVAL);
    let mut last_change: Option<Instant> = None;
    let mut has_changed = false;
    loop {
        if std::mem::take(&mut has_changed) {
            // A number may be free again that another run had.
            admit_runs(relay, peer);
        }
        let all = relay.runs.for_peer(&peer.far_sites(), &relay.transit());
        let (runs, left_out) = fitting(all, told.as_deref().unwrap_or_default());
        if told.as_ref() != Some(&runs) {
            if left_out > 0 && peer.may_log() {
                let why = "their permits do not fit into a message";
                warn!(site = peer.site(), left_out, why, "runs are not passed on");
            }
            messages::write(writer, &ControlMessage::Runs(runs.clone())).await?;
            told = Some(runs);
        }
        let refusals = relay.refusals_for(peer);
        if told_refusals.as_ref() != Some(&refusals) {
            messages::write(writer, &ControlMessage::RefusedRuns(refusals.clone())).await?;
            told_refusals = Some(refusals);
        }
        let change = async {
            let changed = changes.changed().await;
            let since = last_change.map_or(CHANGE_INTERVAL, |last| last.elapsed());
            sleep(CHANGE_INTERVAL.saturating_sub(since)).await;
            changed
        };
        tokio::select! {
            changed = change => {
                if changed.is_err() {
                    return Ok(());
                }
                (last_change, has_changed) = (Some(Instant::now()), true);
            }
            _ = ping.tick() => {
                let now = relay.begun.elapsed().as_micros() as u64;
                messages::write(writer, &ControlMessage::Ping(now)).await?;
            }
            message = queue.recv() => match message {
                Some(message) => messages::write(writer, &message).await?,
                None => return Ok(()),
            },
        }
    }
}

/// The runs that fit into a message, and how many are left out. Runs that go on come first, of these the runs of
/// managers of this site, then runs that were `told` before, and then those with short permits.
fn fitting(mut runs: Vec<RunPermit>, told: &[RunPermit]) -> (Vec<RunPermit>, usize) {
    let told: HashSet<u64> = told.iter().map(|run| run.run).collect();
    runs.sort_by_cached_key(|run| {
        let is_new = !told.contains(&run.run);
        (
            run.is_over,
            run.hops > 1,
            is_new,
            circuit::encode(run).len(),
        )
    });
    let left_out = messages::keep_fitting(&mut runs);
    (runs, left_out)
}

fn take_control(
    relay: &Arc<Relay>,
    (peer, connection): (&Arc<Peer>, u64),
    message: ControlMessage,
    queue: &mpsc::Sender<ControlMessage>,
) {
    match message {
        // The entry of the peer has changed meanwhile.
        ControlMessage::Runs(_) | ControlMessage::RefusedRuns(_) if !relay.has_peer(peer) => {}
        ControlMessage::Runs(runs) => {
            peer.control().set_runs(connection, runs);
            admit_runs(relay, peer);
        }
        ControlMessage::RefusedRuns(mut refusals) => {
            let sites = peer.far_sites();
            refusals.retain(|refusal| {
                relay.runs.is_for(refusal.run, &sites)
                    && relay.is_on_way(peer, refusal.to.as_deref())
            });
            if relay.refused_runs.set_told(peer.site(), refusals) {
                relay.runs.note_change();
            }
        }
        ControlMessage::Call { call } => {
            let Some(address) = peer.config.address.clone() else {
                return;
            };
            let Ok(place) = peer.answers.clone().try_acquire_owned() else {
                return peer.log_refusal("too many calls at a time");
            };
            let (relay, peer) = (relay.clone(), peer.clone());
            tokio::spawn(async move { call_back(&relay, &peer, &address, call, place).await });
        }
        // A queue without room has other answers, and the next ping comes soon.
        ControlMessage::Ping(number) => drop(queue.try_send(ControlMessage::Pong(number))),
        ControlMessage::Pong(number) => {
            let now = relay.begun.elapsed().as_micros() as u64;
            let round_trip = now.saturating_sub(number).max(1);
            peer.counts.round_trip.store(round_trip, Ordering::Relaxed);
        }
    }
}

/// Takes over the runs of which a peer has told, as far as this relay does.
fn admit_runs(relay: &Relay, peer: &Peer) {
    let is_short = |run: &RunPermit| circuit::encode(run).len() <= LONGEST_PERMIT;
    let most = peer.config.most_runs();
    let mut state = peer.control();
    // Trust that is withdrawn while the state is locked takes the runs away afterwards.
    if peer.revocation().is_some() || state.open.iter().all(|open| open.runs.is_none()) {
        return;
    }
    let mut runs = state.runs();
    for run in &mut runs {
        run.sites.sort_unstable();
        run.sites.dedup();
    }
    let (runs, long): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_short);
    let is_new = |run: &&RunPermit| !run.is_over && relay.runs.permit(run.run).is_none();
    let new: Vec<RunPermit> = runs.iter().filter(is_new).cloned().collect();
    let not_admitted = relay.runs.set_of_peer(peer.site(), runs.clone(), most);
    let is_news = state.not_admitted != not_admitted;
    state.not_admitted = not_admitted.clone();
    drop(state);

    for RunPermit { run, name, .. } in &new {
        let is_admitted = relay.runs.is_of_peer(*run, peer.site());
        if is_admitted && peer.may_log_run() {
            let (run, name) = (hex(*run), bounded(name));
            info!(run, name, from = peer.site(), "admitted");
        }
    }
    let NotAdmitted { surplus, of_others } = not_admitted;
    if is_news && !surplus.is_empty() && peer.may_log_run() {
        let surplus = surplus.len();
        warn!(site = peer.site(), surplus, most, "refused: too many runs");
    }
    if is_news && !of_others.is_empty() && peer.may_log_run() {
        let (numbers, why) = (of_others.len(), "their numbers are those of other runs");
        warn!(site = peer.site(), numbers, why, "refused: runs");
    }
    let long = long.iter().map(|run| relay.too_long(run.run));
    let of_others = of_others.iter().map(|run| relay.number_in_use(*run));
    let surplus = surplus.iter().map(|run| relay.too_many_runs(peer, *run));
    let refusals = long.chain(of_others).chain(surplus).take(MOST_OWN / 2);
    let not_passed_on = relay.not_passed_on(peer, &runs);
    if relay
        .refused_runs
        .set_own(peer.site(), refusals.chain(not_passed_on).collect())
    {
        relay.runs.note_change();
    }
}

/// Dials the peer, which then says what the connection is for.
async fn call_back(
    relay: &Arc<Relay>,
    peer: &Arc<Peer>,
    address: &str,
    call: u64,
    place: OwnedSemaphorePermit,
) {
    let calling = async {
        let mut stream = dial(relay, peer, address).await?;
        let greeting = PeerGreeting::new(LinePurpose::Callback { call });
        messages::write(&mut stream, &greeting).await?;
        io::Result::Ok(stream)
    };
    let why = match timeout(HANDSHAKE_TIME, calling).await {
        Ok(Ok(stream)) => return relay.serve_peer(peer, stream, place).await,
        Ok(Err(error)) => bounded(&relay.tls.why(&error)),
        Err(_) => "it does not answer".to_owned(),
    };
    if peer.may_log() {
        warn!(site = peer.site(), why, "no connection");
    }
}

#[cfg(test)]
mod tests {
    use titin_wire::Secret;

    use super::*;

    fn begin(state: &mut ControlState, number: u64) -> watch::Receiver<bool> {
        state.begin(number, mpsc::channel(1).0)
    }

    #[test]
    fn what_does_not_fit_into_a_message_is_left_out_new_and_long_runs_first() {
        let permit = |run, hops, letters| RunPermit {
            run,
            permit: Secret::random(),
            name: "x".repeat(letters),
            sites: vec!["south".into()],
            is_over: false,
            hops,
        };
        let of_others = (10..90).map(|run| permit(run, 2, LONGEST_PERMIT - 300));
        let short = (1..4).map(|run| permit(run, 2, 10));
        let own = permit(100, 1, LONGEST_PERMIT - 300);
        let over = RunPermit {
            is_over: true,
            ..permit(0, 1, 10)
        };
        let all: Vec<_> = of_others.chain(short).chain([own, over]).collect();
        let told = [all[79].clone(), permit(200, 2, 10)];
        let (kept, left_out) = fitting(all, &told);
        let numbers: Vec<u64> = kept.iter().map(|run| run.run).collect();
        assert_eq!(numbers[..5], [100, 89, 1, 2, 3]);
        assert_eq!(numbers.last(), Some(&0), "runs that are over come last");
        assert_eq!((numbers.len(), left_out), (5 + 63, 79 - 62), "{numbers:?}");
        let message = circuit::encode(&ControlMessage::Runs(kept));
        assert!(message.len() <= circuit::LONGEST, "{}", message.len());
    }

    #[test]
    fn the_last_control_connection_to_end_is_known() {
        let mut state = ControlState::default();
        begin(&mut state, 1);
        begin(&mut state, 2);
        assert!(!state.end(2, None));
        assert!(state.end(1, Some("it is gone")));
        assert_eq!(state.down.as_deref(), Some("it is gone"));
        begin(&mut state, 3);
        assert_eq!(state.down, None);
        assert!(state.end(3, None));
    }

    #[test]
    fn runs_are_those_of_all_connections_and_the_newest_counts() {
        let permit = |run, is_over| RunPermit {
            run,
            permit: Secret::random(),
            name: String::new(),
            sites: Vec::new(),
            is_over,
            hops: 1,
        };
        let mut state = ControlState::default();
        begin(&mut state, 1);
        begin(&mut state, 2);
        state.set_runs(2, vec![permit(2, true), permit(3, false)]);
        assert!(!state.is_complete());
        // The old process tells later.
        state.set_runs(1, vec![permit(1, false), permit(2, false)]);
        state.set_runs(9, vec![permit(9, false)]);
        let told = |state: &ControlState| {
            let mut runs = state.runs();
            runs.sort_by_key(|run| run.run);
            runs.iter()
                .map(|run| (run.run, run.is_over))
                .collect::<Vec<_>>()
        };
        assert!(state.is_complete());
        assert_eq!(told(&state), [(1, false), (2, true), (3, false)]);
        state.end(1, None);
        assert_eq!(told(&state), [(2, true), (3, false)]);
    }

    #[test]
    fn a_control_connection_too_many_ends_the_oldest() {
        let mut state = ControlState::default();
        let ends: Vec<_> = (0..=CONTROLS as u64)
            .map(|number| begin(&mut state, number))
            .collect();
        let is_to_end: Vec<bool> = ends.iter().map(|end| *end.borrow()).collect();
        assert_eq!(is_to_end, [true, false, false, false, false]);
        assert!(!state.end(0, None));
    }
}
