//! The site of the manager: the relay of the site admits the run as long as the run lasts.

use std::io;
use std::time::{Duration, Instant};

use serde_json::Value;
use titin_os::{sockets, threads};
use titin_transport::{Admission, AdmissionError, AdmissionNews, AdmittedRun, HomeRelay};
use titin_wire::Address;
use titin_wire::circuit::{self, AwaySite, RunPermit};
use titin_wire::connection::{Connection, SiteAccess};

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
        let relay = relay.ok_or(SessionError::NoRelay)?.specified();
        let address = relay.address.clone();
        let refused = |error| match error {
            AdmissionError::Unanswered(why) => SessionError::Relay {
                address: address.clone(),
                why,
            },
            AdmissionError::Refused(why) => SessionError::NotAdmitted {
                address: address.clone(),
                why,
            },
        };
        let sites = plan.sites_of_hosts().map(str::to_owned).collect();
        let permit = RunPermit::new(plan.model.clone(), sites);
        let (run, secret) = (permit.run, permit.permit.clone());
        let admitted = Admission::begin(relay.clone(), permit, tell);
        let (admission, admitted) = admitted.map_err(refused)?;
        let AdmittedRun {
            site,
            away,
            congestion,
        } = admitted;
        let known = plan.sites.iter().find(|known| known.name == site);
        let access = SiteAccess {
            relay: known.map_or_else(|| address.clone(), |known| known.relay.clone()),
            site,
            run,
            permit: secret,
            patience: plan.options.line_patience.as_secs_f64(),
            encrypt: plan.options.encrypt,
            congestion,
        };
        Ok(HomeSite {
            access,
            relay,
            away,
            _admission: admission,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
