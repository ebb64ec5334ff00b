//! The admission of a run at the relay of a site: the relay lets circuits of the run through as long as a process of the site
//! stays connected.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use titin_os::{host, sockets, threads};
use titin_wire::circuit::{self, AwaySite, RELAY_KEY, RelayAnswer, RelayRequest, RunPermit};
use titin_wire::{Malformed, Secret};

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// After this time without an answer the system gives the connection up.
const DEAD_RELAY: Duration = Duration::from_secs(15);

/// The pause before a relay that is away is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before a relay is asked again that drops the run soon after it has admitted it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The relay of this process's site.
#[derive(Debug, Clone)]
pub struct HomeRelay {
    /// The address for processes of the site, `host:port`. An unspecified address (0.0.0.0) stands
    /// for an address of this host.
    pub address: String,
    /// The key by which the relay knows the processes that may have runs admitted.
    pub key: Secret,
}

impl HomeRelay {
    /// The relay, with an address of this host in place of an unspecified one.
    pub fn specified(self) -> Self {
        HomeRelay {
            address: specified(&self.address),
            ..self
        }
    }
}

/// News of the admission of the run.
pub enum AdmissionNews {
    /// The relay of the site was away for this time, and has admitted the run again.
    Again(Duration),
    /// Why relays do not take the run over, do not pass it on, or cannot, in words: all reasons of now.
    Refused(Vec<String>),
}

/// What the relay says that has admitted a run.
pub struct AdmittedRun {
    /// The name of the relay's site.
    pub site: String,
    /// The sites without a connection to their relay at present.
    pub away: Vec<AwaySite>,
    /// The congestion control of the relay's connections to other relays.
    pub congestion: Option<String>,
}

/// A connection to the relay, which stands as long as the run.
struct RelayConnection {
    stream: TcpStream,
    /// Bytes behind the answer.
    unread: Vec<u8>,
}

/// Why a run is not admitted, in words.
pub enum AdmissionError {
    /// The relay does not answer, or not as a relay does.
    Unanswered(String),
    /// The relay has refused the run.
    Refused(String),
}

/// Asks a relay to admit a run.
fn admit(
    address: &str,
    key: &Secret,
    permit: &RunPermit,
) -> Result<(RelayConnection, AdmittedRun), AdmissionError> {
    let ask = || {
        let mut stream = sockets::connect(address, ANSWER_TIME, ANSWER_TIME)?;
        sockets::set_keepalive(&stream, DEAD_RELAY);
        let request = RelayRequest::Admit(permit.clone());
        let answer = circuit::ask_for_more(&mut stream, (RELAY_KEY, key.clone()), &request)?;
        io::Result::Ok((stream, answer))
    };
    match ask() {
        Ok((
            stream,
            (
                RelayAnswer::Admitted {
                    site,
                    away,
                    congestion,
                },
                unread,
            ),
        )) => {
            let admitted = AdmittedRun {
                site,
                away,
                congestion,
            };
            Ok((RelayConnection { stream, unread }, admitted))
        }
        Ok((_, (RelayAnswer::Refused(refusal), _))) => Err(AdmissionError::Refused(refusal.why)),
        Ok((_, (other, _))) => {
            let why = format!("it {}", other.unexpected());
            Err(AdmissionError::Unanswered(why))
        }
        Err(error) => Err(AdmissionError::Unanswered(error.to_string())),
    }
}

/// Keeps the run admitted, until dropped.
pub struct Admission(Arc<AdmissionState>);

struct AdmissionState {
    /// The connection to the relay; `None` while the relay is away.
    stream: Mutex<Option<TcpStream>>,
    is_over: AtomicBool,
}

impl AdmissionState {
    /// Waits for a while for bytes. False once the connection has ended. The relay rarely sends anything,
    /// so keepalive ends the connection when the relay's host is gone.
    fn read(&self, stream: &mut TcpStream, unread: &mut Vec<u8>) -> bool {
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(count) => {
                unread.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => !self.is_over(),
            Err(_) => false,
        }
    }

    fn stream(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Admission {
    /// Has a relay admit a run. `tell` is called with news of the admission, in a thread of its own.
    ///
    /// # Errors
    /// If the relay does not answer, or refuses the run.
    pub fn begin(
        relay: HomeRelay,
        permit: RunPermit,
        tell: impl Fn(AdmissionNews) + Send + 'static,
    ) -> Result<(Self, AdmittedRun), AdmissionError> {
        let (connection, admitted) = admit(&relay.address, &relay.key, &permit)?;
        let kept = Admission::keep(connection, relay, permit, tell);
        let kept = kept.map_err(|error| AdmissionError::Unanswered(error.to_string()))?;
        Ok((kept, admitted))
    }

    fn keep(
        RelayConnection { stream, unread }: RelayConnection,
        relay: HomeRelay,
        permit: RunPermit,
        tell: impl Fn(AdmissionNews) + Send + 'static,
    ) -> io::Result<Self> {
        let state = Arc::new(AdmissionState {
            stream: Mutex::new(Some(stream.try_clone()?)),
            is_over: AtomicBool::new(false),
        });
        let shared = state.clone();
        let keep = move || {
            let (mut stream, mut unread) = (stream, unread);
            let mut pause = PAUSE;
            while !shared.is_over() {
                let begun = Instant::now();
                let mut is_understood = true;
                loop {
                    match next_refusals(&mut unread) {
                        Ok(Some(refusals)) if is_understood => {
                            tell(AdmissionNews::Refused(refusals));
                            continue;
                        }
                        Ok(_) if is_understood => {}
                        // A later release may say more.
                        _ => (is_understood, unread) = (false, Vec::new()),
                    }
                    if !shared.read(&mut stream, &mut unread) {
                        break;
                    }
                }
                // A relay that admits the run and drops it at once is not to be asked without a pause.
                pause = match begun.elapsed() > LONGEST_PAUSE {
                    true => PAUSE,
                    false => (pause * 2).min(LONGEST_PAUSE),
                };
                if begun.elapsed() < LONGEST_PAUSE && !shared.is_over() {
                    std::thread::sleep(pause);
                }
                *shared.stream() = None;
                let lost = Instant::now();
                let mut is_refused = false;
                while !shared.is_over() {
                    match admit(&relay.address, &relay.key, &permit) {
                        Ok((again, _)) => {
                            if let Ok(copy) = again.stream.try_clone() {
                                *shared.stream() = Some(copy);
                                (stream, unread) = (again.stream, again.unread);
                                if is_refused {
                                    tell(AdmissionNews::Refused(Vec::new()));
                                }
                                tell(AdmissionNews::Again(lost.elapsed()));
                                break;
                            }
                        }
                        Err(AdmissionError::Refused(why)) => {
                            let why = format!(
                                "the relay of this site does not admit the run again: {why}"
                            );
                            is_refused = true;
                            tell(AdmissionNews::Refused(vec![why]));
                        }
                        Err(AdmissionError::Unanswered(_)) => {}
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        };
        threads::spawn_without_signals("titin-admission", keep)?;
        Ok(Admission(state))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        if let Some(stream) = self.0.stream().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Takes the next refusals out of what was read from the relay; `None` if no more have come.
fn next_refusals(unread: &mut Vec<u8>) -> Result<Option<Vec<String>>, Malformed> {
    while let Some(message) = circuit::decode(unread)? {
        if let RelayAnswer::RefusedRun(refusals) = message {
            return Ok(Some(refusals));
        }
    }
    Ok(None)
}

/// The address, or an address of this host in place of an unspecified one.
fn specified(address: &str) -> String {
    let port = ["0.0.0.0:", "[::]:"]
        .iter()
        .find_map(|any| address.strip_prefix(any));
    match (port, host::addresses().first()) {
        (Some(port), Some(own)) => format!("{own}:{port}"),
        (Some(port), None) => format!("127.0.0.1:{port}"),
        (None, _) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_as_they_come() {
        let refusals = |texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            circuit::encode(&RelayAnswer::RefusedRun(texts.collect()))
        };
        let mut unread = [refusals(&["full"]), refusals(&["full", "no transit"])].concat();
        let last = unread.pop();
        let mut next = |more: &[u8]| {
            unread.extend(more);
            next_refusals(&mut unread)
        };
        assert_eq!(next(&[]).unwrap().unwrap(), ["full"]);
        assert_eq!(next(&[]).unwrap(), None);
        let last = [last.unwrap()];
        assert_eq!(next(&last).unwrap().unwrap(), ["full", "no transit"]);
        assert!(next(&[255; 8]).is_err());
    }
}
