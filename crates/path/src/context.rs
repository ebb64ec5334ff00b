//! The sockets of paths, and the requests for paths that come and go by them.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use titin_transport::{
    ConduitTable, Handler, Link, LinkError, LinkId, LinkPatience, Medium, Reactor,
};
use titin_wire::connection::PATIENCE;
use titin_wire::handshake::{Agreement, Purpose, Refusal};
use titin_wire::path::{CONDUIT, PathControl};
use titin_wire::{Address, Malformed, Secret};

use crate::address::{address_of, is_by_relays, place_of, to_dial};
use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::interrupt::Interrupt;
use crate::reached_sites::{ReachedSites, Unreached};
use crate::settings::PathSettings;
use crate::time_limit::TimeLimit;

/// The most paths that wait until a listening program takes them.
const MOST_WAITING: usize = 1024;

/// The pauses between attempts to open a path where no program listens: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// After this time without a sign of the other host, an idle path is lost.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a listener waits for a port of this program to become free.
const FREEING_TIME: Duration = Duration::from_millis(500);

/// The longest patience. A time further off is beyond the clock.
const LONGEST_PATIENCE: Duration = Duration::from_secs(365 * 86400);

/// The contexts of the paths that this process has opened: one for each key.
static CONTEXTS: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

/// The contexts of this process's listeners, with their places.
static LISTENING: Mutex<Vec<(SocketAddr, Weak<Context>)>> = Mutex::new(Vec::new());

/// The sockets of paths that share a key, and the thread that reads them.
pub(crate) struct Context {
    key: Secret,
    pub(crate) reactor: Arc<Reactor>,
    requests: Arc<PathRequests>,
    /// The sites that this process reaches by relays.
    sites: ReachedSites,
}

impl Context {
    /// The context for paths that this process opens with the key.
    pub(crate) fn to_open(key: &Secret) -> Result<Arc<Self>> {
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.retain(|context| context.strong_count() > 0);
        let known = contexts.iter().filter_map(Weak::upgrade);
        if let Some(context) = known.into_iter().find(|context| context.key == *key) {
            return Ok(context);
        }
        let context = Self::start(key, None)?;
        contexts.push(Arc::downgrade(&context));
        Ok(context)
    }

    /// A context of its own, which takes paths that others open at a place. Returns the place, too, with its port.
    pub(crate) fn to_listen(
        place: SocketAddr,
        key: &Secret,
        interrupt: &Interrupt,
    ) -> Result<(Arc<Self>, Address)> {
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        listening.retain(|(_, context)| context.strong_count() > 0);
        // Paths that are lost do not come back by their port.
        let contexts = listening
            .iter()
            .filter_map(|(_, context)| context.upgrade());
        contexts.for_each(|context| context.free_port());
        let known = listening.iter().filter(|(other, _)| *other == place);
        let mut known = known.filter_map(|(_, context)| context.upgrade());
        if let Some(context) = known.find(|context| context.listens_again(key, interrupt)) {
            return Ok((context, address_of(&place)));
        }
        let context = Self::start(key, Some(interrupt.clone()))?;
        let listen = || {
            let address = context.reactor.listen(Medium::Tcp, &place.to_string())?;
            context.reactor.listen(Medium::Relay, &place_of(&address))?;
            io::Result::Ok(address)
        };
        let is_kept = listening
            .iter()
            .any(|(other, _)| other.port() == place.port() && place.port() > 0);
        let refused = |error: io::Error| {
            let why = match is_kept && error.kind() == io::ErrorKind::AddrInUse {
                true => {
                    "; this program has paths that have come by this port, and come back by it after a cut: close them first"
                }
                false => "",
            };
            PathError::System(format!("cannot listen at {place}: {error}{why}"))
        };
        let mut listened = listen();
        // A port that is free is so once the reactor's thread has closed its socket.
        let until = Instant::now() + FREEING_TIME;
        while let Err(error) = &listened
            && error.kind() == io::ErrorKind::AddrInUse
            && is_kept
            && Instant::now() < until
        {
            std::thread::sleep(FIRST_PAUSE);
            listened = listen();
        }
        let address = listened.map_err(refused)?;
        if let Ok(place) = place_of(&address).parse() {
            listening.push((place, Arc::downgrade(&context)));
        }
        Ok((context, address))
    }

    /// Takes paths again that others open, after the last listener has gone. False if it has not, or if the key is
    /// another one.
    fn listens_again(&self, key: &Secret, interrupt: &Interrupt) -> bool {
        let mut state = self.requests.state();
        let can_listen = state.has_stopped && !state.is_port_free && self.key == *key;
        if can_listen {
            state.has_stopped = false;
            state.listens = Some(interrupt.clone());
        }
        can_listen
    }

    fn start(key: &Secret, listens: Option<Interrupt>) -> Result<Arc<Self>> {
        let requests = Arc::new(PathRequests {
            next_tag: AtomicU64::new(1),
            state: Mutex::new(RequestState {
                listens,
                ..RequestState::default()
            }),
            changed: Condvar::new(),
        });
        // Each link has a table of its own.
        let conduits = Arc::new(ConduitTable::default());
        let reactor = Reactor::with_conduits(key.clone(), requests.clone(), conduits, PATIENCE);
        let reactor = reactor.map_err(|error| PathError::System(error.to_string()))?;
        reactor.reach_hosts();
        Ok(Arc::new(Context {
            key: key.clone(),
            reactor,
            requests,
            sites: ReachedSites::default(),
        }))
    }

    /// Opens a path to the first of the addresses that answers. Waits for a program that listens there.
    pub(crate) fn open(
        &self,
        addresses: &[Address],
        name: &str,
        settings: &PathSettings,
    ) -> Result<Arc<PathEnd>> {
        let addresses = &to_dial(addresses);
        let opened = self.open_reached(addresses, name, settings);
        opened.map_err(|why| self.sites.explain(why, addresses))
    }

    fn open_reached(
        &self,
        addresses: &[Address],
        name: &str,
        settings: &PathSettings,
    ) -> Result<Arc<PathEnd>> {
        let patience = settings.patience.min(LONGEST_PATIENCE);
        let (until, mut pause) = (Instant::now() + patience, FIRST_PAUSE);
        let mut known = None;
        loop {
            let left = || until.saturating_duration_since(Instant::now());
            let opening = match self.reach_sites(addresses) {
                Ok(()) => self.try_to_open(addresses, name, settings, left()),
                Err(opening) => opening,
            };
            match opening {
                Opening::Done(opened) => return opened,
                Opening::NobodyListens(why) if left() <= pause => {
                    let why = more_telling(known, why);
                    let why = format!("{why}; tried for {:.1} s", patience.as_secs_f64());
                    return Err(PathError::NotOpened(why));
                }
                Opening::NobodyListens(_) if settings.interrupt.is_wanted() => {
                    return Err(PathError::Interrupted("opening a path"));
                }
                Opening::NobodyListens(why) => {
                    known = Some(more_telling(known, why));
                    std::thread::sleep(pause);
                }
            }
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    /// Has the relay of this site let paths to the sites of the addresses through. A relay that does not answer may soon.
    fn reach_sites(&self, addresses: &[Address]) -> std::result::Result<(), Opening> {
        for site in addresses.iter().filter_map(Address::site) {
            self.sites.reach(site, &self.reactor)?;
        }
        Ok(())
    }

    fn try_to_open(
        &self,
        addresses: &[Address],
        name: &str,
        settings: &PathSettings,
        patience: Duration,
    ) -> Opening {
        let requests = &self.requests;
        let tag = u128::from(requests.next_tag.fetch_add(1, Ordering::Relaxed));
        let request = OpenRequest::Dialling(RequestedPath {
            name: name.to_owned(),
            outage: settings.outage.min(LONGEST_PATIENCE),
            is_by_relays: addresses.iter().any(is_by_relays),
            interrupt: settings.interrupt.clone(),
        });
        requests.state().opening.insert(tag, request);
        let dialled = self.reactor.dial(
            addresses,
            Purpose::Data,
            tag,
            None,
            settings.of_link(),
            patience,
        );
        let opened = match dialled {
            Ok(()) => requests.await_open(tag, patience, &settings.interrupt),
            // No name of a host is known.
            Err(_) => {
                let places: Vec<String> = addresses.iter().map(place_of).collect();
                let why = format!("{}: no such host is known here", places.join(", "));
                Opening::Done(Err(PathError::NotOpened(why)))
            }
        };
        // The answer may have come as the wait ended for another reason.
        match requests.state().opening.remove(&tag) {
            Some(OpenRequest::Answered(answer)) => answer,
            _ => opened,
        }
    }

    /// The next path that another program has opened to this one.
    pub(crate) fn accept(&self, limit: Option<Duration>) -> Result<Arc<PathEnd>> {
        self.requests.accept(limit)
    }

    /// Takes no more paths that others open, and ends those that were not accepted.
    pub(crate) fn stop_listening(&self) {
        let mut state = self.requests.state();
        state.has_stopped = true;
        let waiting: Vec<_> = state.waiting.drain(..).collect();
        for end in &waiting {
            state.ends.remove(&end.link.id());
        }
        drop(state);
        waiting.iter().for_each(|end| end.end());
        self.free_port();
    }

    /// Forgets a path that has ended.
    pub(crate) fn forget(&self, end: &PathEnd) {
        self.requests.state().ends.remove(&end.link.id());
        self.free_port();
    }

    /// Frees the port once the listener has gone, and the last path that comes back by the port after a cut.
    fn free_port(&self) {
        let mut state = self.requests.state();
        let is_needed = || state.ends.values().any(|end| end.link.outlives_cuts());
        if state.has_stopped && !state.is_port_free && !is_needed() {
            state.is_port_free = true;
            self.reactor.stop_listening();
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.stop_listening();
        let ends = std::mem::take(&mut self.requests.state().ends);
        ends.values().for_each(|end| end.end());
        self.reactor.stop();
    }
}

/// The requests for paths.
struct PathRequests {
    next_tag: AtomicU64,
    state: Mutex<RequestState>,
    changed: Condvar,
}

#[derive(Default)]
struct RequestState {
    /// The paths that this process is opening, by the tag of their link.
    opening: HashMap<u128, OpenRequest>,
    /// The ends of all paths.
    ends: HashMap<LinkId, Arc<PathEnd>>,
    /// The paths that another program has opened, until this program accepts them.
    waiting: VecDeque<Arc<PathEnd>>,
    /// Interrupts the calls on paths that others open, if the process takes such paths.
    listens: Option<Interrupt>,
    /// Whether the process takes no more paths that others open.
    has_stopped: bool,
    /// Whether the port at which the process has listened is free again.
    is_port_free: bool,
    /// Why the reactor's thread has ended, if it has.
    broken: Option<String>,
}

/// A path that this process is opening.
enum OpenRequest {
    /// There is no link yet.
    Dialling(RequestedPath),
    /// The other end is asked for the path.
    Asked(RequestedPath),
    Answered(Opening),
}

/// What the end of a path takes over from the call that opens it.
#[derive(Default)]
struct RequestedPath {
    name: String,
    outage: Duration,
    is_by_relays: bool,
    interrupt: Interrupt,
}

impl From<Unreached> for Opening {
    fn from(why: Unreached) -> Self {
        match why {
            Unreached::Passing(why) => Opening::NobodyListens(LinkError::System(why)),
            Unreached::Lasting(why) => Opening::Done(Err(PathError::NotOpened(why))),
        }
    }
}

/// How an attempt to open a path has ended.
enum Opening {
    Done(Result<Arc<PathEnd>>),
    /// No program listens at any of the addresses, for this reason.
    NobodyListens(LinkError),
}

/// Which of two reasons is told, of an attempt and of the attempts before it. An attempt that only ran out of
/// time, as the last one often does, says less than an answer before it.
fn more_telling(before: Option<LinkError>, now: LinkError) -> LinkError {
    match (before, &now) {
        (Some(answer @ LinkError::Unreachable(_)), LinkError::Late(_)) => answer,
        _ => now,
    }
}

impl PathRequests {
    fn state(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something in the state.
    fn wait<T>(
        &self,
        what: &'static str,
        limit: Option<Duration>,
        interrupt: &Interrupt,
        mut look: impl FnMut(&mut RequestState) -> Option<T>,
    ) -> Result<T> {
        let (time, mut watch) = (TimeLimit::begin(limit), interrupt.watch());
        let mut state = self.state();
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(text) = &state.broken {
                return Err(PathError::System(text.clone()));
            }
            if let Some(limit) = time.exceeded() {
                return Err(PathError::Late { what, limit });
            }
            state = match interrupt.sleep(time.left()) {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(sleep) => {
                    let waited = self.changed.wait_timeout(state, sleep);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            drop(state);
            // The function of the user may call the library.
            if watch.is_wanted() {
                return Err(PathError::Interrupted(what));
            }
            state = self.state();
        }
    }

    fn accept(&self, limit: Option<Duration>) -> Result<Arc<PathEnd>> {
        let interrupt = self.state().listens.clone().unwrap_or_default();
        self.wait("a path of another program", limit, &interrupt, |state| {
            state.waiting.pop_front()
        })
    }

    fn await_open(&self, tag: u128, patience: Duration, interrupt: &Interrupt) -> Opening {
        // The reactor gives up after `patience`, with the reason.
        let limit = patience.saturating_add(Duration::from_secs(5));
        let what = "opening a path";
        let answer = self.wait(what, Some(limit), interrupt, |state| {
            let answered = matches!(state.opening.get(&tag), Some(OpenRequest::Answered(_)));
            match answered.then(|| state.opening.remove(&tag)).flatten() {
                Some(OpenRequest::Answered(answer)) => Some(answer),
                _ => None,
            }
        });
        answer.unwrap_or_else(|why| {
            Opening::Done(Err(match why {
                PathError::Late { .. } => {
                    PathError::NotOpened("the other end has not answered".into())
                }
                why => why,
            }))
        })
    }

    /// Asks the other end of a new link for the path.
    fn ask(&self, state: &mut RequestState, link: &Arc<Link>, tag: u128) {
        if let Some(request) = state.opening.get_mut(&tag)
            && let OpenRequest::Dialling(wanted) = request
        {
            let wanted = std::mem::take(wanted);
            let open = PathControl::Open {
                name: wanted.name.clone(),
                outage: wanted.outage.as_millis() as u64,
                by_relays: wanted.is_by_relays,
            };
            *request = OpenRequest::Asked(wanted);
            link.tell(&open.encode());
        } else {
            link.close();
        }
    }

    /// Takes the answer to a request of this process.
    fn take_answer(
        &self,
        state: &mut RequestState,
        link: &Arc<Link>,
        answer: PathControl,
    ) -> std::result::Result<(), Malformed> {
        let unasked = || Malformed::new("answer to a request for a path", "nobody has asked");
        let tag = link.tag().ok_or_else(unasked)?;
        let Some(OpenRequest::Asked(wanted)) = state.opening.get_mut(&tag) else {
            return Err(unasked());
        };
        let answer = match answer {
            PathControl::Opened => {
                let end = new_end(std::mem::take(wanted), link);
                state.ends.insert(link.id(), end.clone());
                Opening::Done(Ok(end))
            }
            PathControl::Refused { why, may_pass } => {
                link.close();
                let why = format!("the other end refuses the path: {why}");
                match may_pass {
                    true => Opening::NobodyListens(LinkError::System(why)),
                    false => Opening::Done(Err(PathError::NotOpened(why))),
                }
            }
            _ => return Err(unasked()),
        };
        state.opening.insert(tag, OpenRequest::Answered(answer));
        self.changed.notify_all();
        Ok(())
    }

    /// Takes a path that the other end of a link opens.
    fn take_path(&self, state: &mut RequestState, link: &Arc<Link>, mut wanted: RequestedPath) {
        let refusal = if state.listens.is_none() || state.has_stopped {
            Some("the program does not listen")
        } else if state.waiting.len() >= MOST_WAITING {
            Some("too many paths wait until the program accepts them")
        } else {
            None
        };
        if let Some(why) = refusal {
            let refused = PathControl::Refused {
                why: why.into(),
                may_pass: state.has_stopped,
            };
            link.tell(&refused.encode());
            return link.close();
        }
        wanted.interrupt = state.listens.clone().unwrap_or_default();
        let end = new_end(wanted, link);
        end.tell(&PathControl::Opened);
        state.ends.insert(link.id(), end.clone());
        state.waiting.push_back(end);
        self.changed.notify_all();
    }

    fn hear(&self, link: &Arc<Link>, body: &[u8]) -> std::result::Result<(), Malformed> {
        let control = PathControl::decode(body)?;
        let mut state = self.state();
        if let Some(end) = state.ends.get(&link.id()).cloned() {
            drop(state);
            return end.hear(control);
        }
        match control {
            PathControl::Open {
                name,
                outage,
                by_relays,
            } if link.tag().is_none() => {
                let wanted = RequestedPath {
                    name,
                    outage: Duration::from_millis(outage).min(LONGEST_PATIENCE),
                    is_by_relays: by_relays,
                    interrupt: Interrupt::default(),
                };
                self.take_path(&mut state, link, wanted);
                Ok(())
            }
            answer => self.take_answer(&mut state, link, answer),
        }
    }

    /// Notes why a path that this process is opening does not open.
    fn give_up(&self, tag: u128, why: LinkError) {
        if let Some(request) = self.state().opening.get_mut(&tag)
            && !matches!(request, OpenRequest::Answered(_))
        {
            *request = OpenRequest::Answered(match why {
                LinkError::Unreachable(_) => Opening::NobodyListens(why),
                LinkError::Refused(Refusal::Secret) => Opening::Done(Err(PathError::OtherKey)),
                why => Opening::Done(Err(PathError::NotOpened(why.to_string()))),
            });
            self.changed.notify_all();
        }
    }
}

/// The end of a path by a new link.
fn new_end(wanted: RequestedPath, link: &Arc<Link>) -> Arc<PathEnd> {
    let conduits = link.own_conduits().expect("set when the link was opened");
    link.set_patience(LinkPatience {
        outage: wanted.outage,
        is_by_relays: wanted.is_by_relays,
    });
    PathEnd::new(wanted.name, link, conduits, wanted.interrupt)
}

impl Handler for PathRequests {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        link.set_keepalive(SILENCE);
        // What comes before the end is made finds the inbox.
        link.use_own_conduits(Arc::new(ConduitTable::with_inbox(CONDUIT)));
        if let Some(tag) = link.tag() {
            self.ask(&mut self.state(), link, tag);
        }
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        if let Err(why) = self.hear(link, body) {
            let end = self.state().ends.get(&link.id()).cloned();
            match end {
                Some(end) => drop(end.refuse(why)),
                None => link.close(),
            }
        }
    }

    fn got_streams(&self, link: &Arc<Link>) {
        let end = self.state().ends.get(&link.id()).cloned();
        end.inspect(|end| end.ring());
    }

    fn lost(&self, link: &Arc<Link>, why: LinkError) {
        let end = self.state().ends.remove(&link.id());
        if let Some(end) = end {
            let why = match why {
                LinkError::Closed if end.window.closed() => PathError::Closed,
                why => PathError::Lost(why),
            };
            return end.fail(why);
        }
        if let Some(tag) = link.tag() {
            self.give_up(tag, why);
        }
    }

    fn unreachable(&self, tag: u128, why: LinkError) {
        self.give_up(tag, why);
    }

    fn broken(&self, text: String) {
        let mut state = self.state();
        let ends: Vec<_> = state.ends.drain().collect();
        state.broken = Some(text.clone());
        drop(state);
        self.changed.notify_all();
        for (_, end) in ends {
            end.fail(PathError::System(text.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_after_an_attempt_that_ran_out_of_time() {
        let answer = || LinkError::Unreachable("nothing listens there".into());
        let late = || LinkError::Late("nothing has answered".into());
        assert_eq!(more_telling(Some(answer()), late()), answer());
        assert_eq!(more_telling(Some(late()), answer()), answer());
        assert_eq!(more_telling(None, late()), late());
    }
}
