//! How the two ends of a connection find each other.
//!
//! Both programs make the same call with the other one's host, and either may be first. Each end alternates: it calls the
//! other end, and then listens for a while. Neither does both at once, so two ends on one host do not meet themselves. The
//! times are random, so that two ends do not keep step.
//!
//! The end that calls sends an empty message once the path of titin is open, and the listening end answers with the
//! reason for which it refuses, or with nothing. So both ends know that the other one has not given up meanwhile.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use titin_path::{Key, Listener, Path, PathError, PathSettings, parse_addresses};
use titin_runtime::{Error, Result};

use crate::error::usage;
use crate::mpwide::connection::{Route, streams_in};
use crate::path::translated;

/// How long an end listens at most: at first, and later.
const FIRST_LISTENING: Duration = Duration::from_millis(250);
const LONGEST_LISTENING: Duration = Duration::from_secs(2);

/// How long a host may take to take or refuse a connection.
const CALL: Duration = Duration::from_secs(3);

/// How long the other end may take for the handshake, and for its answer.
const HANDSHAKE: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(60);

/// How long an end that does not listen calls the other end.
const PATIENCE: Duration = Duration::from_secs(5);

/// After this time an end says what it waits for.
const SILENCE: Duration = Duration::from_secs(10);

/// One end's search for the other end.
pub(super) struct Meeting<'a> {
    pub(super) call: &'static str,
    pub(super) route: Route,
    pub(super) settings: PathSettings,
    pub(super) key: &'a Key,
    /// Whether this end also listens, and waits without a limit.
    pub(super) listens: bool,
    /// What the meetings of one call share.
    pub(super) group: &'a MeetingGroup,
}

/// What the meetings of one call share.
#[derive(Default)]
pub(super) struct MeetingGroup {
    /// Whether one has failed, so that the others end, too.
    has_failed: AtomicBool,
    /// Whether one has said what it waits for.
    has_told: AtomicBool,
}

/// How a call to the other end, or a while of listening, has ended.
enum Attempt {
    Met(Path),
    /// Nobody was there, for this reason.
    Alone(String),
}

impl Meeting<'_> {
    /// Waits for the other end. `None` if another meeting of the group has failed.
    pub(super) fn meet(&self) -> Result<Option<Path>> {
        let met = self.search();
        if met.is_err() {
            self.group.has_failed.store(true, Ordering::Relaxed);
        }
        met
    }

    fn search(&self) -> Result<Option<Path>> {
        let begun = Instant::now();
        let mut longest = match self.route.host {
            Some(_) => FIRST_LISTENING,
            None => LONGEST_LISTENING,
        };
        let mut reasons = Vec::new();
        loop {
            reasons.clear();
            let called = Instant::now();
            if let Some(host) = &self.route.host {
                match self.call(host)? {
                    Attempt::Met(path) => return Ok(Some(path)),
                    Attempt::Alone(why) => reasons.push(why),
                }
            }
            if self.listens {
                // A host that cannot be reached takes its time, in which the other end finds nobody listening here.
                let listening = between(longest / 2, longest) + called.elapsed();
                match self.listen(listening)? {
                    Attempt::Met(path) => return Ok(Some(path)),
                    Attempt::Alone(why) => reasons.push(why),
                }
                longest = LONGEST_LISTENING.min(2 * longest);
            } else if begun.elapsed() > PATIENCE {
                return Err(usage(format!(
                    "nobody answers at {}: {}; start the other end first, or call again",
                    self.route.place(),
                    reasons.join("; ")
                )));
            } else {
                pause();
            }
            if self.group.has_failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let is_silent = begun.elapsed() > SILENCE;
            if is_silent && !self.group.has_told.swap(true, Ordering::Relaxed) {
                eprintln!(
                    "MPWide: {}: still waiting for the other end, {}: {}",
                    self.call,
                    self.route.place(),
                    reasons.join("; ")
                );
            }
        }
    }

    /// Calls the other end.
    fn call(&self, host: &str) -> Result<Attempt> {
        let (place, port) = (self.route.place(), self.route.port);
        let found = match (host, port).to_socket_addrs() {
            Ok(found) => found,
            Err(why) => return Ok(Attempt::Alone(format!("the host '{host}': {why}"))),
        };
        if let Err(why) = check_listens(found) {
            return Ok(Attempt::Alone(format!("calling {place}: {why}")));
        }
        let addresses = parse_addresses(&place).map_err(translated)?;
        let settings = PathSettings {
            patience: HANDSHAKE,
            ..self.settings.clone()
        };
        let path = match Path::open(&addresses, &self.route.name, self.key, &settings) {
            Ok(path) => path,
            Err(PathError::OtherKey) => return Err(translated(PathError::OtherKey)),
            Err(why) => return Ok(Attempt::Alone(why.to_string())),
        };
        let answered = path
            .send(&[], None)
            .and_then(|()| path.receive(Some(ANSWER)));
        match answered {
            Ok(answer) if answer.bytes.is_empty() => Ok(Attempt::Met(path)),
            Ok(answer) => Err(usage(String::from_utf8_lossy(&answer.bytes))),
            Err(why) => Ok(Attempt::Alone(format!("calling {place}: {why}"))),
        }
    }

    /// Listens for the other end.
    fn listen(&self, duration: Duration) -> Result<Attempt> {
        let (port, begun) = (self.route.port, Instant::now());
        let listener = Listener::start(&format!("[::]:{port}"), self.key)
            // The host may have no IPv6.
            .or_else(|_| Listener::start(&format!("0.0.0.0:{port}"), self.key));
        let listener = match listener {
            Ok(listener) => listener,
            Err(why) => {
                // The other end may be on this host, and listen there.
                pause();
                return Ok(Attempt::Alone(why.to_string()));
            }
        };
        loop {
            let left = duration.saturating_sub(begun.elapsed());
            match listener.accept(Some(left)) {
                Ok(path) => {
                    if let Some(path) = self.welcome(path)? {
                        return Ok(Attempt::Met(path));
                    }
                }
                Err(PathError::Late { .. }) => {
                    return Ok(Attempt::Alone(format!("nobody calls port {port} here")));
                }
                Err(why) => return Ok(Attempt::Alone(why.to_string())),
            }
        }
    }

    /// Answers an end that has called. `None` if that end has given up, or is no program of MPWide.
    fn welcome(&self, path: Path) -> Result<Option<Path>> {
        let Some(theirs) = streams_in(path.name()) else {
            return Ok(None);
        };
        if path.receive(Some(HANDSHAKE)).is_err() {
            return Ok(None);
        }
        let own = self.route.streams;
        if theirs != own {
            let _ = path.send(unequal(theirs, own).text.as_bytes(), Some(HANDSHAKE));
            let _ = path.close(Some(HANDSHAKE));
            return Err(unequal(own, theirs));
        }
        Ok(path.send(&[], None).is_ok().then_some(path))
    }
}

/// The error for ends with different numbers of streams.
fn unequal(own: u32, theirs: u32) -> Error {
    usage(format!(
        "this end has streams: {own}, and the other end: {theirs}; give both ends the same number (a channel of MPW_Init is one stream)"
    ))
}

/// Whether a program listens at one of the addresses. A port without a program is refused at once, so that the search goes
/// on, whereas a handshake may take several round trips.
fn check_listens(addresses: impl Iterator<Item = SocketAddr>) -> std::io::Result<()> {
    let mut why = std::io::ErrorKind::NotFound.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CALL) {
            // A socket of this host may happen to be connected to itself.
            Ok(socket) if socket.local_addr()? == address => {
                why = std::io::ErrorKind::ConnectionRefused.into();
            }
            Ok(_) => return Ok(()),
            Err(refusal) => why = refusal,
        }
    }
    Err(why)
}

/// A short random pause.
fn pause() {
    std::thread::sleep(between(
        Duration::from_millis(20),
        Duration::from_millis(80),
    ));
}

/// A random time.
fn between(least: Duration, most: Duration) -> Duration {
    // Each hasher has keys of its own.
    let random = RandomState::new().build_hasher().finish();
    least + (most - least).mul_f64(random as f64 / u64::MAX as f64)
}
