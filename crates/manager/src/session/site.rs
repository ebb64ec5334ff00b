//! The site of the manager: the relay of the site admits the run as long as the run lasts.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use titin_os::{host, sockets, threads};
use titin_wire::circuit::{self, AwaySite, RELAY_KEY, RelayAnswer, RelayRequest, RunPermit};
use titin_wire::connection::{Connection, SiteAccess};
use titin_wire::{Address, EndpointId, Malformed, Secret};

use super::{RunView, Session, SessionError};
use crate::event::Level;
use crate::host::HostId;
use crate::plan::Plan;

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How long two relays take at most to notice that the line between them is away.
const NOTICE_TIME: Duration = Duration::from_secs(15);

/// The most refusals of relays that the user is told.
const MOST_TOLD: usize = 100;

/// After this time without an answer the system gives the connection up.
const DEAD_RELAY: Duration = Duration::from_secs(15);

/// The pause before a relay that is away is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before a relay is asked again that drops the run soon after it has admitted it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The relay of the manager's site.
#[derive(Debug, Clone)]
pub struct HomeRelay {
    /// The address for processes of the site, `host:port`. An unspecified address (0.0.0.0) stands
    /// for an address of this host.
    pub address: String,
    /// The key by which the relay knows its managers.
    pub key: Secret,
}

/// News of the admission of the run.
pub(super) enum AdmissionNews {
    /// The relay of the site was away for this time, and has admitted the run again.
    Again(Duration),
    /// Why relays do not take the run over, do not pass it on, or cannot, in words: all reasons of now.
    Refused(Vec<String>),
}

/// The site of the manager.
pub(super) struct HomeSite {
    access: SiteAccess,
    /// With an address of this host in place of an unspecified one.
    relay: HomeRelay,
    /// The sites whose relays were not connected when the run was admitted.
    away: Vec<AwaySite>,
    _admission: Admission,
}

impl HomeSite {
    /// Has the relay of the site admit the run. `tell` is called with news of the admission.
    ///
    /// # Errors
    /// If the relay does not answer, or refuses the run.
    pub(super) fn enter(
        plan: &Plan,
        relay: Option<HomeRelay>,
        tell: impl Fn(AdmissionNews) + Send + 'static,
    ) -> Result<Self, SessionError> {
        let relay = relay.ok_or(SessionError::NoRelay)?;
        let address = specified(&relay.address);
        let failed = |why: String| SessionError::Relay {
            address: address.clone(),
            why,
        };
        let refused = |error| match error {
            AdmissionError::Unanswered(why) => failed(why),
            AdmissionError::Refused(why) => SessionError::NotAdmitted {
                address: address.clone(),
                why,
            },
        };
        let run = (EndpointId::random().0 as u64).max(RELAY_KEY + 1);
        let permit = RunPermit {
            run,
            permit: Secret::random(),
            name: plan.model.clone(),
            sites: plan.sites_of_hosts().map(str::to_owned).collect(),
            is_over: false,
            hops: 0,
        };
        let admitted = admit(&address, &relay.key, &permit);
        let RelayAdmission {
            stream,
            unread,
            site,
            away,
            congestion,
        } = admitted.map_err(refused)?;
        let known = plan.sites.iter().find(|known| known.name == site);
        let access = SiteAccess {
            relay: known.map_or_else(|| address.clone(), |known| known.relay.clone()),
            site,
            run,
            permit: permit.permit.clone(),
            patience: plan.options.line_patience.as_secs_f64(),
            encrypt: plan.options.encrypt,
            congestion,
        };
        let relay = HomeRelay {
            address: address.clone(),
            key: relay.key,
        };
        let admission = Admission::begin((stream, unread), relay.clone(), permit, tell);
        Ok(HomeSite {
            access,
            relay,
            away,
            _admission: admission.map_err(|error| failed(error.to_string()))?,
        })
    }

    /// What the user is told of sites whose relays were not connected when the run was admitted, and of
    /// sites without a host.
    pub(super) fn warnings(&self, plan: &Plan) -> Vec<String> {
        let away = self.away.iter().map(away_text);
        let is_unused = |name: &&str| {
            *name != self.access.site && plan.sites_of_hosts().all(|used| used != *name)
        };
        let unused = plan.sites.iter().map(|site| site.name.as_str());
        let unused = unused.filter(is_unused).map(|name| {
            format!("no host is at the site {name}, which `titin: sites` lists: write `site: {name}` in the entry of its hosts")
        });
        away.chain(unused).collect()
    }

    /// Asks the relay, in a thread of its own, whether the relay of another site is connected, until it is not
    /// or has had the time to notice. `tell` is called with the answer in words.
    pub(super) fn ask_about_line(&self, site: &str, tell: impl FnOnce(String) + Send + 'static) {
        let (relay, site) = (self.relay.clone(), site.to_owned());
        let ask = move || {
            let until = Instant::now() + NOTICE_TIME;
            let text = loop {
                match state(&relay).map(|state| line_text(&state, &site)) {
                    Ok(LineText { text, is_up: true }) if Instant::now() >= until => break text,
                    Ok(LineText { is_up: true, .. }) => std::thread::sleep(Duration::from_secs(1)),
                    Ok(LineText { text, .. }) => break text,
                    Err(error) => break unanswered(&relay, &error),
                }
            };
            tell(text);
        };
        // Without the thread the user hears no more.
        drop(threads::spawn_without_signals("titin-line", ask));
    }

    /// Those of the sites to which the relay has no connection now, in words.
    pub(super) fn lines_down<'a>(&self, sites: impl Iterator<Item = &'a str>) -> Vec<String> {
        let state = match state(&self.relay) {
            Ok(state) => state,
            Err(error) => return vec![unanswered(&self.relay, &error)],
        };
        let elsewhere = sites.filter(|site| *site != self.access.site);
        let lines = elsewhere.map(|site| line_text(&state, site));
        let mut texts: Vec<String> = lines
            .filter(|line| !line.is_up)
            .map(|line| line.text)
            .collect();
        texts.sort();
        texts.dedup();
        texts
    }

    /// How processes of the manager's host reach other sites.
    pub(super) fn access(&self) -> &SiteAccess {
        &self.access
    }

    /// How the agent and the programs of a host find the manager.
    pub(super) fn connection_for(
        &self,
        plan: &Plan,
        host: HostId,
        connection: &Connection,
    ) -> Connection {
        let site = plan.further_host(host).and_then(|host| host.site);
        let site = site.and_then(|site| plan.sites.get(site));
        let Some(site) = site.filter(|site| site.name != self.access.site) else {
            return connection.clone();
        };
        let is_relayed = |address: &&Address| address.site().is_some();
        let addresses = connection.addresses.iter();
        Connection {
            addresses: addresses.filter(is_relayed).cloned().collect(),
            folders: Default::default(),
            site: Some(SiteAccess {
                site: site.name.clone(),
                relay: site.relay.clone(),
                ..self.access.clone()
            }),
            ..connection.clone()
        }
    }
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

fn away_text(AwaySite { site, relay, why }: &AwaySite) -> String {
    let way = match site == relay {
        true => String::new(),
        false => format!(", on the way to the site {site},"),
    };
    let why = why
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    format!("the relay of the site {relay}{way} is not connected{why}; the run waits for it")
}

/// The state of a relay, as `titin relay status --json` prints it.
fn state(relay: &HomeRelay) -> io::Result<Value> {
    let mut stream = sockets::connect(&relay.address, ANSWER_TIME, ANSWER_TIME)?;
    circuit::ask_state(&mut stream, relay.key.clone())
}

/// What the user hears if the relay does not answer.
fn unanswered(relay: &HomeRelay, error: &io::Error) -> String {
    format!(
        "the relay of this site does not answer at {}: {error}; `titin relay run` starts it",
        relay.address
    )
}

/// What a relay knows of the line to a site.
struct LineText {
    text: String,
    is_up: bool,
}

/// What a relay in this state knows of the line to a site.
fn line_text(state: &Value, site: &str) -> LineText {
    let is_on_way = |peer: &&Value| {
        let mut behind = peer["behind"].as_array().into_iter().flatten();
        peer["site"] == site || behind.any(|name| name == site)
    };
    let mut peers = state["peers"].as_array().into_iter().flatten();
    let down = |text| LineText { text, is_up: false };
    let Some(peer) = peers.find(is_on_way) else {
        let text = format!("the relay of this site knows no way to the site {site} any more");
        return down(text);
    };
    let next = peer["site"].as_str().unwrap_or(site);
    match peer["down"].as_str() {
        Some(why) => down(format!(
            "the relay of this site is not connected to that of {next}: {why}"
        )),
        None => LineText {
            text: format!(
                "the relay of this site is connected to that of {next}, so the host is away, or its way to the relay there"
            ),
            is_up: true,
        },
    }
}

impl Session {
    /// The sites of hosts to which there is no line now, in words.
    pub(super) fn lines_down(&self) -> Vec<String> {
        let own = self.site.as_ref();
        own.map_or_else(Vec::new, |own| own.lines_down(self.plan.sites_of_hosts()))
    }

    /// Notes why relays do not take the run over, do not pass it on, or cannot. Tells the user what is new.
    pub(super) fn note_refusals(&mut self, refusals: Vec<String>, view: &mut dyn RunView) {
        let known = std::mem::take(&mut self.refusals);
        for why in refusals.iter().filter(|why| !known.contains(why)) {
            if self.told_refusals < MOST_TOLD {
                self.told_refusals += 1;
                self.say(Level::Warning, why.clone(), view);
            }
        }
        if refusals.is_empty() && !known.is_empty() && self.told_refusals < MOST_TOLD {
            self.say(
                Level::Info,
                "no relay hinders the run any more".to_owned(),
                view,
            );
        }
        self.refusals = refusals;
    }
}

/// A run that the relay has admitted.
struct RelayAdmission {
    /// The connection, which stands as long as the run.
    stream: TcpStream,
    /// Bytes behind the answer.
    unread: Vec<u8>,
    /// The name of the relay's site.
    site: String,
    away: Vec<AwaySite>,
    /// The congestion control of the relay's connections to other relays.
    congestion: Option<String>,
}

/// Why a run is not admitted, in words.
enum AdmissionError {
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
) -> Result<RelayAdmission, AdmissionError> {
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
        )) => Ok(RelayAdmission {
            stream,
            unread,
            site,
            away,
            congestion,
        }),
        Ok((_, (RelayAnswer::Refused(refusal), _))) => Err(AdmissionError::Refused(refusal.why)),
        Ok((_, (other, _))) => {
            let why = format!("it {}", other.unexpected());
            Err(AdmissionError::Unanswered(why))
        }
        Err(error) => Err(AdmissionError::Unanswered(error.to_string())),
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

/// Keeps the run admitted, until dropped.
struct Admission(Arc<AdmissionState>);

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
    /// `unread` are bytes of the connection that were read.
    fn begin(
        (stream, unread): (TcpStream, Vec<u8>),
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
                        Ok(again) => {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn the_way_to_a_site_leads_by_the_site_or_one_before_it() {
        let state = json!({"peers": [
            {"site": "south", "down": null, "behind": []},
            {"site": "middle", "down": "connection refused", "behind": ["east"]},
        ]});
        let text = |site: &str| line_text(&state, site).text;
        assert_eq!(
            text("east"),
            "the relay of this site is not connected to that of middle: connection refused"
        );
        assert!(text("south").contains("is connected to that of south"));
        assert!(line_text(&state, "south").is_up);
        assert!(text("west").contains("knows no way to the site west"));
    }

    #[test]
    fn a_site_that_is_away_is_named_with_the_relay_on_the_way() {
        let away = |relay: &str, why: Option<&str>| {
            away_text(&AwaySite {
                site: "east".into(),
                relay: relay.into(),
                why: why.map(str::to_owned),
            })
        };
        assert_eq!(
            away("east", Some("connection refused")),
            "the relay of the site east is not connected: connection refused; the run waits for it"
        );
        assert_eq!(
            away("south", None),
            "the relay of the site south, on the way to the site east, is not connected; the run waits for it"
        );
    }
}
