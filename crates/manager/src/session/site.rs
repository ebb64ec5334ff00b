//! The site of the manager: the relay of the site admits the run as long as the run lasts.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use titin_os::{host, sockets, threads};
use titin_wire::circuit::{self, AwaySite, RELAY_KEY, RelayAnswer, RelayRequest, RunPermit};
use titin_wire::connection::{Connection, SiteAccess};
use titin_wire::{Address, EndpointId, Secret};

use super::SessionError;
use crate::host::HostId;
use crate::plan::Plan;

/// How long the relay may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// After this time without an answer the system gives the connection up.
const DEAD_RELAY: Duration = Duration::from_secs(15);

/// The pause before a relay that is away is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// The relay of the manager's site.
#[derive(Debug, Clone)]
pub struct HomeRelay {
    /// The address for processes of the site, `host:port`. An unspecified address (0.0.0.0) stands
    /// for an address of this host.
    pub address: String,
    /// The key by which the relay knows its managers.
    pub key: Secret,
}

/// The site of the manager.
pub(super) struct HomeSite {
    access: SiteAccess,
    /// The sites whose relays were not connected when the run was admitted.
    away: Vec<AwaySite>,
    _admission: Admission,
}

impl HomeSite {
    /// Has the relay of the site admit the run. `tell` is called with the time for which the relay was away
    /// when it has admitted the run again.
    ///
    /// # Errors
    /// If the relay does not answer, or refuses the run.
    pub(super) fn enter(
        plan: &Plan,
        relay: Option<HomeRelay>,
        tell: impl Fn(Duration) + Send + 'static,
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
        };
        let admitted = admit(&address, &relay.key, &permit);
        let RelayAdmission {
            stream,
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
        let admission = Admission::begin(stream, address.clone(), relay.key, permit, tell);
        Ok(HomeSite {
            access,
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

/// A run that the relay has admitted.
struct RelayAdmission {
    /// The connection, which stands as long as the run.
    stream: TcpStream,
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
        let answer = circuit::ask(&mut stream, (RELAY_KEY, key.clone()), &request)?;
        io::Result::Ok((stream, answer))
    };
    match ask() {
        Ok((
            stream,
            RelayAnswer::Admitted {
                site,
                away,
                congestion,
            },
        )) => Ok(RelayAdmission {
            stream,
            site,
            away,
            congestion,
        }),
        Ok((_, RelayAnswer::Refused(refusal))) => Err(AdmissionError::Refused(refusal.why)),
        Ok((_, other)) => {
            let why = format!("it {}", other.unexpected());
            Err(AdmissionError::Unanswered(why))
        }
        Err(error) => Err(AdmissionError::Unanswered(error.to_string())),
    }
}

/// Keeps the run admitted, until dropped.
struct Admission(Arc<AdmissionState>);

struct AdmissionState {
    /// The connection to the relay; `None` while the relay is away.
    stream: Mutex<Option<TcpStream>>,
    is_over: AtomicBool,
}

impl AdmissionState {
    /// Waits for a while. False once the connection has ended. Neither side sends anything, so
    /// keepalive ends the connection when the relay's host is gone.
    fn stands(&self, stream: &mut TcpStream) -> bool {
        match stream.read(&mut [0; 64]) {
            Ok(count) => count > 0,
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
    fn begin(
        stream: TcpStream,
        address: String,
        key: Secret,
        permit: RunPermit,
        tell: impl Fn(Duration) + Send + 'static,
    ) -> io::Result<Self> {
        let state = Arc::new(AdmissionState {
            stream: Mutex::new(Some(stream.try_clone()?)),
            is_over: AtomicBool::new(false),
        });
        let shared = state.clone();
        let keep = move || {
            let mut stream = stream;
            while !shared.is_over() {
                while shared.stands(&mut stream) {}
                *shared.stream() = None;
                let lost = Instant::now();
                while !shared.is_over() {
                    if let Ok(again) = admit(&address, &key, &permit)
                        && let Ok(copy) = again.stream.try_clone()
                    {
                        *shared.stream() = Some(copy);
                        stream = again.stream;
                        tell(lost.elapsed());
                        break;
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
    use super::*;

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
