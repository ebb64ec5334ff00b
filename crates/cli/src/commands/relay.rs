//! `titin relay`: the relay of a site, its key, and the relays that it trusts.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use clap::{Args, Subcommand};
use serde_json::Value;
use titin_draw::units::{bytes, count};
use titin_relay::{Config, Fingerprint, PeerConfig, RelayFolder, ask_status, end_of_day};

use super::config::prefix_with;
use super::refusal;
use crate::python::become_process;
use crate::table::{Column, table};
use crate::terminal::{self, BOLD, WARNING, complain};

/// The program of a relay, in the directory of an installation.
const RELAYD: &str = "lib/titin-relayd";

/// The relay of a site: passes the messages of runs between sites
///
/// A relay is a process of a user, without privileges. Its folder has the key, the file relay.toml,
/// and the file `access`, which lets managers use the relay.
#[derive(Args)]
pub(crate) struct RelayCommand {
    #[command(subcommand)]
    action: RelayAction,
}

#[derive(Subcommand)]
enum RelayAction {
    Init(Init),
    Trust(Trust),
    Distrust(Distrust),
    /// Prints the fingerprint of the relay's key, for the other site's `titin relay trust`
    Fingerprint(Folder),
    Run(RunRelay),
    Status(Status),
}

#[derive(Args)]
struct Folder {
    /// The folder of the relay [default: ~/.config/titin/relay]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Folder {
    fn relay(&self) -> RelayFolder {
        self.folder
            .clone()
            .map_or_else(RelayFolder::usual, RelayFolder::at)
    }
}

/// Makes a relay: a key and a configuration
#[derive(Args)]
struct Init {
    /// The name of the site, by which other sites know the relay
    site: String,
    /// The address for programs of the site
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4710")]
    local: String,
    /// The address for relays of other sites. Without an address, no relay can dial this one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    folder: Folder,
}

/// Trusts the relay of another site, by the fingerprint of its key
#[derive(Args)]
#[command(
    override_usage = "titin relay trust [OPTIONS] <SITE> <FINGERPRINT>\n       titin relay trust [OPTIONS] --via <SITE> <SITE>"
)]
struct Trust {
    /// The name of the other site
    site: String,
    /// The fingerprint, as `titin relay fingerprint` prints it at the other site
    #[arg(required_unless_present = "via", conflicts_with = "via")]
    fingerprint: Option<Fingerprint>,
    /// Where the other relay listens. Without an address, the other relay dials this one
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "via")]
    address: Option<String>,
    /// The site whose relay leads to the other site, in place of a fingerprint
    #[arg(long, value_name = "SITE")]
    via: Option<String>,
    /// Let runs of the other site go on to further sites by this relay
    #[arg(long, conflicts_with = "via")]
    transit: bool,
    /// The last day on which the key counts, in UTC
    #[arg(long, value_name = "YYYY-MM-DD")]
    until: Option<String>,
    /// Replace the entry of the site, as for a new key: give all options that still hold. The limits
    /// `runs`, `streams` and `memory` in relay.toml stay
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    folder: Folder,
}

/// Removes the relay of another site from those that are trusted
#[derive(Args)]
struct Distrust {
    /// The name of the other site
    site: String,
    #[command(flatten)]
    folder: Folder,
}

/// Runs the relay, until SIGTERM or Ctrl-C. SIGHUP has it read its configuration again
#[derive(Args)]
struct RunRelay {
    #[command(flatten)]
    folder: Folder,
}

/// Shows the links to other relays, and the runs
#[derive(Args)]
struct Status {
    /// Print the state as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: Folder,
}

impl RelayCommand {
    pub(crate) fn run(self) -> ExitCode {
        match self.action {
            RelayAction::Init(init) => init.run(),
            RelayAction::Trust(trust) => trust.run(),
            RelayAction::Distrust(distrust) => distrust.run(),
            RelayAction::Fingerprint(folder) => {
                let identity = folder.relay().identity();
                answer(identity.map(|identity| format!("{}\n", identity.fingerprint())))
            }
            RelayAction::Run(run) => run.run(),
            RelayAction::Status(status) => status.run(),
        }
    }
}

/// Prints a text, or why there is none.
fn answer(text: Result<String, impl Display>) -> ExitCode {
    text.map_or_else(complain, |text| terminal::answer(&text))
}

impl Init {
    fn run(self) -> ExitCode {
        let relay = self.folder.relay();
        let config = Config::new(self.site, self.local, self.listen);
        let text = relay.init(&config).map(|identity| {
            let fingerprint = identity.fingerprint();
            let (site, path) = (&config.site, relay.config_path());
            let address = config
                .listen
                .map(|address| format!(" --address {address}"))
                .unwrap_or_default();
            format!(
                "The relay of {site}: {}\nAt the other site:\n    titin relay trust {site} {fingerprint}{address}\n",
                path.display()
            )
        });
        answer(text)
    }
}

impl Trust {
    fn run(self) -> ExitCode {
        let relay = self.folder.relay();
        if let Some(day) = &self.until
            && end_of_day(day).is_some_and(|end| end < SystemTime::now())
        {
            return complain(format!("--until {day}: this day is over"));
        }
        let peer = PeerConfig {
            site: self.site,
            fingerprint: self.fingerprint,
            address: self.address,
            via: self.via,
            until: self.until,
            transit: self.transit,
            ..PeerConfig::default()
        };
        let trusted = match self.replace {
            true => relay.replace(&peer),
            false => relay.trust(&peer),
        };
        let text = trusted.map(|()| {
            let site = &peer.site;
            format!("The site {site} is trusted. A relay that runs reads it at SIGHUP.\n")
        });
        answer(text)
    }
}

impl Distrust {
    fn run(self) -> ExitCode {
        let distrusted = self.folder.relay().distrust(&self.site);
        let text = distrusted.map(|()| {
            let site = &self.site;
            format!("The site {site} is trusted no more. A relay that runs ends its connections at SIGHUP.\n")
        });
        answer(text)
    }
}

impl RunRelay {
    fn run(self) -> ExitCode {
        become_relayd([self.folder.relay().path()])
    }
}

/// Becomes the program of relays. Returns only if it cannot be started.
pub(super) fn become_relayd(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> ExitCode {
    let program = match prefix_with(RELAYD) {
        Ok(prefix) => prefix.join(RELAYD),
        Err(error) => return complain(error),
    };
    // A service manager watches this process, so the relay replaces it.
    become_process(Command::new(program).args(arguments))
}

impl Status {
    fn run(self) -> ExitCode {
        match ask_status(&self.folder.relay()) {
            Ok(state) if self.json => terminal::answer(&format!("{state:#}\n")),
            Ok(state) => terminal::answer(&text_of(&state, terminal::width())),
            Err(why) => refusal::of(why, self.json),
        }
    }
}

const PEERS: [Column; 7] = [
    Column::name("site"),
    Column::name("link"),
    Column::figure("round trip"),
    Column::figure("circuits"),
    Column::figure("sent/s"),
    Column::figure("received/s"),
    Column::spare("sent again"),
];

/// The state for people.
fn text_of(state: &Value, width: Option<usize>) -> String {
    let peers = list(&state["peers"]);
    let rows: Vec<_> = peers.iter().flat_map(rows_of).collect();
    let mut out = format!(
        "{BOLD}{}{BOLD:#}, {}\n\n{}\n",
        terminal::harmless(&text(&state["site"])),
        terminal::harmless(&text(&state["fingerprint"])),
        table(&PEERS, &rows, width),
    );
    let reasons: String = peers.iter().filter_map(reason_of).collect();
    if !reasons.is_empty() {
        out += &(reasons + "\n");
    }
    if state["is_config_current"] == false {
        out += &format!(
            "{WARNING}relay.toml has changed since the relay has read it: `kill -HUP {}` on its host has it read again, but for `local` \
             and `listen`, which want a new start{WARNING:#}\n\n",
            state["process"]
        );
    }
    let runs = list(&state["runs"]);
    let all = state["run_count"].as_u64().unwrap_or(runs.len() as u64);
    out += &format!("{}\n", count(all, "run"));
    for run in &runs {
        out += &format!(
            "  {} of {}, {}\n",
            terminal::harmless(&text(&run["name"])),
            terminal::harmless(&text(&run["from"])),
            terminal::harmless(&text(&run["run"]))
        );
    }
    if all > runs.len() as u64 {
        out += &format!("  and {} more\n", all - runs.len() as u64);
    }
    out
}

/// The rows of a peer, and of the sites behind it.
fn rows_of(peer: &Value) -> Vec<Vec<String>> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let round_trip = peer["round_trip_ms"].as_f64();
    let link = match peer["connected"] == true {
        true => "up",
        false => "down",
    };
    let mut rows = vec![vec![
        text(&peer["site"]),
        link.to_owned(),
        round_trip.map_or_else(|| "-".to_owned(), |time| format!("{time:.1} ms")),
        number(&peer["circuits"]).to_string(),
        bytes(number(&peer["bytes_sent_per_second"])),
        bytes(number(&peer["bytes_received_per_second"])),
        number(&peer["retransmissions"]).to_string(),
    ]];
    for site in list(&peer["behind"]) {
        let mut row = vec!["-".to_owned(); PEERS.len()];
        row[0] = text(&site);
        row[1] = format!("via {}", text(&peer["site"]));
        rows.push(row);
    }
    rows
}

/// The line that says why the link to a peer is down, if the relay knows it.
fn reason_of(peer: &Value) -> Option<String> {
    let why = peer["down"].as_str()?;
    let site = text(&peer["site"]);
    let line = format!("{site} is down: {why}");
    Some(terminal::harmless(&line) + "\n")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_shows_routes_and_why_a_link_is_down() {
        let mut state = json!({
            "site": "north",
            "process": 7,
            "is_config_current": true,
            "fingerprint": "sha256:00",
            "peers": [
                {"site": "east", "connected": true, "behind": ["south"], "down": null},
                {"site": "west", "connected": false, "behind": [], "down": "Connection refused"},
            ],
            "runs": [],
        });
        let shown = text_of(&state, None);
        let row = |site: &str| {
            let line = shown.lines().find(|line| line.starts_with(site)).unwrap();
            line.split_whitespace().take(3).collect::<Vec<_>>()
        };
        assert_eq!(row("east"), ["east", "up", "-"]);
        assert_eq!(row("south"), ["south", "via", "east"]);
        assert_eq!(row("west"), ["west", "down", "-"]);
        let end = "\nwest is down: Connection refused\n\n0 runs\n";
        assert!(shown.ends_with(end), "{shown}");
        assert!(!shown.contains("east is down"), "{shown}");
        assert!(!shown.contains("relay.toml"), "{shown}");
        state["is_config_current"] = false.into();
        let shown = text_of(&state, None);
        assert!(shown.contains("`kill -HUP 7` on its host"), "{shown}");
    }
}
