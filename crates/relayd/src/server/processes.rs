//! Connections of processes of the site: programs, agents, managers, and commands.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use titin_os::sockets;
use titin_wire::Secret;
use titin_wire::circuit::{
    self, AwaySite, CircuitRefusal, CircuitRequest, LONGEST_PERMIT, RELAY_KEY, RelayAnswer,
    RelayRequest, RunPermit,
};
use titin_wire::handshake::{HELLO, Handshake, Purpose, Refusal, run_of};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{CircuitCount, Relay, hex};
use crate::admission::ManagerAdmission;
use crate::circuits::{self, CircuitEnd, CircuitOrigin, FarSide, REDIAL_TIME};
use crate::log_limit::bounded;
use crate::strangers::StrangerPlace;
use crate::tls::HANDSHAKE_TIME;
use crate::{messages, peers, status};

/// In place of a site, for the admission of a run.
const NO_SITE: &str = "";

/// How long a run stays known after the end of its manager. Processes at other sites that dial again
/// meanwhile hear that the run is over, and end.
const OVER_TIME: Duration = Duration::from_secs(60);

/// The most bytes that are read of a manager behind its request. This release sends none.
const MOST_UNWANTED: usize = 64 << 10;

/// After this time without an answer of its host a manager is gone. A manager that lost its connection has dialled
/// again long before.
const MANAGER_GONE_AFTER: Duration = Duration::from_secs(600);

impl Relay {
    /// Serves a connection of a process of the site.
    pub(super) async fn serve_process(
        self: &Arc<Self>,
        mut stream: TcpStream,
        place: StrangerPlace,
    ) {
        let from = stream.peer_addr().map(|from| from.to_string());
        let from = from.unwrap_or_default();
        let proving = timeout(HANDSHAKE_TIME, self.prove(&mut stream));
        let (run, mut buffer) = match proving.await {
            Ok(Ok(proved)) => proved,
            Ok(Err(why)) => return place.log_refusal(&why),
            Err(_) => return place.log_refusal("no proof in time"),
        };
        let request = messages::read(&mut stream, &mut buffer);
        let request = match timeout(HANDSHAKE_TIME, request).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => return place.log_refusal(&error.to_string()),
            Err(_) => return place.log_refusal("no request in time"),
        };
        let is_of_run = matches!(request, RelayRequest::Circuit(_));
        if is_of_run == (run == RELAY_KEY) {
            let why = "the request is for another key than the one that was shown";
            place.log_refusal(why);
            // The process may be gone.
            let _ = refuse_process(&mut stream, CircuitRefusal::lasting(why)).await;
            return;
        }
        drop(place);
        let outcome = match request {
            RelayRequest::Circuit(CircuitRequest {
                destination,
                from: site,
            }) => {
                let far = match self.check_site(site.as_deref()) {
                    Ok(()) => circuits::open(self, run, &destination, CircuitOrigin::Process).await,
                    Err(refusal) => Err(refusal),
                };
                self.log_refused_circuit((&from, None), run, &destination, &far);
                self.serve_circuit(stream, &buffer, far).await
            }
            RelayRequest::Admit(permit) => self.serve_manager(stream, &permit).await,
            RelayRequest::Status => {
                let answer = RelayAnswer::Status(status::of(self));
                messages::write(&mut stream, &answer).await
            }
        };
        // A connection that fails tells no more than its end.
        drop(outcome);
    }

    /// Admits the run of a manager of this site as long as the connection stands.
    async fn serve_manager(&self, mut stream: TcpStream, permit: &RunPermit) -> io::Result<()> {
        let run = hex(permit.run);
        let admitted = self.admit(permit);
        // A manager whose run was admitted before asks again and again.
        if let Some(refusal) = self.refusal_to_log(permit.run, NO_SITE, &admitted, None)
            && peers::has_room(&self.run_lines)
        {
            let (name, why) = (bounded(&permit.name), bounded(&refusal.why));
            warn!(run, name, why, "not admitted");
        }
        match admitted {
            Ok(admission) => {
                sockets::set_keepalive(&stream, MANAGER_GONE_AFTER);
                // A user may have runs without end admitted.
                let is_logged = peers::has_room(&self.run_lines);
                if is_logged {
                    info!(run, name = bounded(&permit.name), "admitted");
                }
                let outcome = self.stay(&mut stream, permit).await;
                if outcome.is_err() {
                    // A network may have reset the connection. The manager then comes again.
                    sleep(REDIAL_TIME).await;
                }
                admission.note_end();
                if is_logged {
                    info!(run, "over");
                }
                tokio::spawn(async move {
                    sleep(OVER_TIME).await;
                    drop(admission);
                });
                outcome
            }
            Err(refusal) => refuse_process(&mut stream, refusal).await,
        }
    }

    /// Admits the run of a manager of this site. A run for a site to which no way is known would wait
    /// in vain, so it is refused, but not if the site was trusted and may be again.
    fn admit(&self, permit: &RunPermit) -> Result<ManagerAdmission, CircuitRefusal> {
        for site in self.other_sites(&permit.sites) {
            if let Err(refusal) = self.way_to(site)
                && !refusal.may_pass
            {
                let why = format!("{}. It knows {}", refusal.why, self.known_sites());
                return Err(CircuitRefusal::lasting(why));
            }
        }
        let mut permit = permit.clone();
        // The relays of the other sites are to let circuits to this site through.
        if !permit.sites.contains(&self.site) {
            permit.sites.push(self.site.clone());
        }
        if circuit::encode(&permit).len() > LONGEST_PERMIT {
            return Err(CircuitRefusal::lasting(circuit::too_long_permit()));
        }
        let admitted = self.runs.admit(permit, self.next_number());
        admitted.map_err(CircuitRefusal::passing)
    }

    fn other_sites<'a>(&self, sites: &'a [String]) -> impl Iterator<Item = &'a String> {
        sites.iter().filter(|site| **site != self.site)
    }

    /// The sites without a connection to the relay on the way to them.
    fn away(&self, sites: &[String]) -> Vec<AwaySite> {
        let of_site = |site: &String| {
            let away = |relay: &str, why| AwaySite {
                site: site.clone(),
                relay: relay.to_owned(),
                why,
            };
            match self.way_to(site) {
                Ok(peer) if peer.is_connected() => None,
                Ok(peer) => Some(away(peer.site(), peer.why_down(&self.tls.keys))),
                Err(refusal) => Some(away(site, Some(refusal.why))),
            }
        };
        self.other_sites(sites).filter_map(of_site).collect()
    }

    /// Answers that a run is admitted, and waits for the end of the manager's connection. Meanwhile tells why
    /// relays do not take the run over.
    async fn stay(&self, stream: &mut TcpStream, permit: &RunPermit) -> io::Result<()> {
        let site = self.site.clone();
        let admitted = RelayAnswer::Admitted {
            site,
            away: self.away(&permit.sites),
            congestion: peers::usable_congestion(self.congestion()),
        };
        messages::write(stream, &admitted).await?;
        let mut changes = self.runs.changes();
        let mut told = Vec::new();
        let mut bytes = [0; 1024];
        let mut unwanted = 0;
        loop {
            let refusals = self.refused_runs.of_run(permit.run);
            if told != refusals {
                messages::write(stream, &RelayAnswer::RefusedRun(refusals.clone())).await?;
                told = refusals;
            }
            if unwanted > MOST_UNWANTED {
                let why = "a manager that has had its run admitted sends on and on";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            tokio::select! {
                count = stream.read(&mut bytes) => match count? {
                    0 => return Ok(()),
                    count => unwanted += count,
                },
                changed = changes.changed() => if changed.is_err() {
                    return Ok(());
                },
            }
        }
    }

    /// The proofs of a process and of this relay. Returns the number of the run, and the bytes
    /// behind the proofs.
    async fn prove(&self, stream: &mut TcpStream) -> Result<(u64, Vec<u8>), String> {
        let text = |error: io::Error| error.to_string();
        let mut hello = [0; HELLO];
        stream.read_exact(&mut hello).await.map_err(text)?;
        let run = run_of(&hello);
        // A run that is not admitted has a permit that nobody knows.
        let permit = match run {
            RELAY_KEY => self.access.clone(),
            run => self.runs.permit(run).unwrap_or_else(Secret::random),
        };
        let mut shake = Handshake::listen(permit);
        let mut bytes = hello.to_vec();
        loop {
            let progress = shake.advance(&bytes).map_err(|why| why.to_string())?;
            stream.write_all(&progress.reply).await.map_err(text)?;
            match (shake.refusal(), run) {
                (Some(Refusal::Secret), RELAY_KEY) => {
                    return Err("the key is not that of this relay".to_owned());
                }
                (Some(Refusal::Secret), run) => {
                    let run = hex(run);
                    return Err(format!(
                        "the run {run} is not admitted, or the permit is another"
                    ));
                }
                (Some(other), _) => return Err(other.to_string()),
                (None, _) => {}
            }
            if progress.one_time_key.is_some() {
                return Err("the connection is meant for a manager".to_owned());
            }
            match progress.agreed {
                Some(agreement) if agreement.purpose == Purpose::Relay => {
                    return Ok((run, bytes.split_off(progress.used)));
                }
                Some(_) => return Err("the connection is meant for a process of a run".to_owned()),
                None => {}
            }
            bytes.drain(..progress.used);
            if stream.read_buf(&mut bytes).await.map_err(text)? == 0 {
                return Err(format!(
                    "the connection has ended before the proof (run {})",
                    hex(run)
                ));
            }
        }
    }

    /// Answers, and passes the bytes of a circuit.
    async fn serve_circuit(
        &self,
        mut stream: TcpStream,
        first_bytes: &[u8],
        far: Result<FarSide, CircuitRefusal>,
    ) -> io::Result<()> {
        match far {
            Ok(far) => {
                let end = CircuitEnd::dialler(&stream)?;
                messages::write(&mut stream, &RelayAnswer::Opened).await?;
                let _open = CircuitCount::of(self);
                circuits::pass(stream, first_bytes, end, far).await
            }
            Err(refusal) => refuse_process(&mut stream, refusal).await,
        }
    }

    /// Fails if a process is at another site than this relay.
    fn check_site(&self, site: Option<&str>) -> Result<(), CircuitRefusal> {
        match site {
            Some(site) if *site != *self.site => Err(CircuitRefusal::lasting(format!(
                "it is the relay of the site {}, and not of {site}: correct `relay` under `titin: sites` or the `site` of the \
                 host, or start the agent at that site",
                self.site
            ))),
            _ => Ok(()),
        }
    }
}

async fn refuse_process(stream: &mut TcpStream, refusal: CircuitRefusal) -> io::Result<()> {
    messages::write(stream, &RelayAnswer::Refused(refusal)).await
}
