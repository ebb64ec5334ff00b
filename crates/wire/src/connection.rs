//! How a program finds its run: the private connection file, and the environment.
//!
//! `TITIN_MANAGER` names a file that only the owner may read, with the manager's addresses and the
//! secret of the run. Without a shared file system `TITIN_MANAGER` holds the addresses, separated
//! by commas (`tcp:host:port`), and `TITIN_SECRET` holds the secret. `TITIN_INSTANCE` names the
//! instance of a program. Where a `TITIN_*` variable is not set, the `MUSCLE_*` variable counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::circuit::Destination;
use crate::{Address, HostNetwork, Malformed, Medium, Secret};

/// The variables that name the connection file, or hold the manager's addresses.
pub const MANAGER: [&str; 2] = ["TITIN_MANAGER", "MUSCLE_MANAGER"];

/// The variables that name the instance.
pub const INSTANCE: [&str; 2] = ["TITIN_INSTANCE", "MUSCLE_INSTANCE"];

/// The variable with the secret, where there is no connection file.
pub const SECRET: &str = "TITIN_SECRET";

/// How long instances may take to join the run, unless the description says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A hundred years: no run waits longer, and no clock overflows with it.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The data that a program needs to join a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The manager's addresses, which a program tries in this order.
    pub addresses: Vec<Address>,
    /// The authority to take part in the run.
    pub secret: Secret,
    /// Whether programs must be reachable from other hosts, and so listen on more than loopback.
    #[serde(default)]
    pub spans_hosts: bool,
    /// The folders of media whose processes meet in a folder, by the key of the medium. Made by the
    /// manager, and removed with the connection file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub folders: BTreeMap<String, PathBuf>,
    /// How many seconds instances may take to join the run.
    #[serde(default = "usual_patience")]
    pub patience: f64,
    /// The way to the other sites, if the run spans sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteAccess>,
    /// The network of the host by which its programs are reached; `None` for all networks. The file
    /// of the manager has the network of the manager's host, and an agent's file that of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<HostNetwork>,
}

/// The site of a process, and the way to the other sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteAccess {
    /// The name of the site.
    pub site: String,
    /// The address of the site's relay for processes of the site, `host:port`.
    pub relay: String,
    /// The number of the run at relays.
    pub run: u64,
    /// The proof to relays that the run is admitted. Relays know the permit, and not the run's
    /// secret.
    pub permit: Secret,
    /// How many seconds a session waits for a connection that was lost.
    pub patience: f64,
    /// Whether the bytes between sites are sealed from end to end.
    #[serde(default = "usually_sealed")]
    pub encrypt: bool,
    /// The congestion control between relays, as the relay of the manager's site says; `None` if it is that
    /// of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

fn usually_sealed() -> bool {
    true
}

impl SiteAccess {
    /// The address of a tcp listener of this site for processes of other sites.
    pub fn address_of(&self, host: &str, port: u16) -> Address {
        let place = Destination {
            site: self.site.clone(),
            host: host.to_owned(),
            port,
        };
        Address::Other(format!("{}:{place}", Medium::Relay.key()))
    }

    /// Whether one TCP connection fills a line between relays.
    pub fn is_filled_by_one_stream(&self) -> bool {
        self.congestion.as_deref().is_some_and(is_rate_based)
    }

    /// How long a session waits for a connection that was lost.
    pub fn patience(&self) -> Duration {
        seconds(self.patience).unwrap_or(SESSION_PATIENCE)
    }
}

/// The beginning of the address of a listener that is reached by sessions without relays. One or more `HOST:PORT`
/// follow, with commas.
pub const SESSION: &str = "session:";

/// Whether a congestion control sends at the rate that it measures, so that a lost packet does not halve the
/// rate: one TCP connection then fills a line.
pub fn is_rate_based(congestion: &str) -> bool {
    congestion.starts_with("bbr")
}

/// How long a session waits for a connection that was lost, unless the description says otherwise.
pub const SESSION_PATIENCE: Duration = Duration::from_secs(600);

fn usual_patience() -> f64 {
    PATIENCE.as_secs_f64()
}

/// The folder in memory in which all processes of a run on this host make a socket, to find each
/// other. The manager, and on another host the agent, makes and removes the
/// folder. The name is a hash of the secret and
/// does not reveal the secret.
pub fn meeting_place(secret: &Secret) -> PathBuf {
    Path::new("/dev/shm").join(format!("{MEETING_PLACES}{}", meeting_name(secret)))
}

/// As [`meeting_place`], for the processes of one user, who cannot write to the folder of another
/// user. The name ends with the digits of the hash too, by which a left-over folder is recognized.
pub fn meeting_place_of(secret: &Secret, user: u32) -> PathBuf {
    Path::new("/dev/shm").join(format!("{MEETING_PLACES}{user}-{}", meeting_name(secret)))
}

fn meeting_name(secret: &Secret) -> String {
    let digest = Sha256::new()
        .chain_update(b"titin meeting place")
        .chain_update(secret.key())
        .finalize();
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The beginning of the names of all meeting places.
pub const MEETING_PLACES: &str = "titin-";

impl Connection {
    /// How long instances may take to join the run; short enough to be added to any point in time.
    pub fn patience(&self) -> Duration {
        seconds(self.patience).unwrap_or(PATIENCE)
    }

    /// The text of a connection file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }

    /// Reads the text of a connection file.
    ///
    /// # Errors
    /// [`Malformed`] if the text is no JSON of this form.
    pub fn from_json(text: &str) -> Result<Self, Malformed> {
        serde_json::from_str(text)
            .map_err(|error| Malformed::new("connection file", error.to_string()))
    }

    /// Reads the addresses in `TITIN_MANAGER`; `None` if the variable holds the name of a file.
    pub fn from_addresses(manager: &str, secret: Secret) -> Option<Self> {
        let addresses: Vec<Address> = manager
            .strip_prefix("tcp:")?
            .split(',')
            .map(|address| Address::from(format!("tcp:{address}")))
            .collect();
        let spans_hosts = !addresses.iter().all(Address::is_loopback);
        Some(Connection {
            addresses,
            secret,
            spans_hosts,
            folders: BTreeMap::new(),
            patience: usual_patience(),
            site: None,
            network: None,
        })
    }
}

/// A time that is short enough to be added to any point in time; `None` for what is no time.
fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number.min(LONGEST.as_secs_f64())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_file_survives_and_unknown_keys_are_skipped() {
        let connection = Connection {
            addresses: vec![Address::Tcp("127.0.0.1".into(), 4000)],
            secret: Secret::random(),
            spans_hosts: false,
            folders: BTreeMap::from([("file".to_owned(), "/shared/run".into())]),
            patience: 17.5,
            site: Some(SiteAccess {
                site: "north".into(),
                relay: "10.0.0.1:4711".into(),
                run: 7,
                permit: Secret::random(),
                patience: 600.0,
                encrypt: true,
                congestion: Some("bbr".into()),
            }),
            network: Some("10.70.0.0/24".parse().unwrap()),
        };
        let text = connection.to_json();
        assert_eq!(Connection::from_json(&text).unwrap(), connection);
        let later = text.replacen('{', "{\"later\": 1,", 1);
        assert_eq!(Connection::from_json(&later).unwrap(), connection);
        assert!(
            Connection::from_json("{}")
                .unwrap_err()
                .to_string()
                .contains("addresses")
        );
        let earlier = text.replace("\n  \"patience\": 17.5,", "");
        assert_eq!(
            Connection::from_json(&earlier).unwrap().patience(),
            PATIENCE
        );
    }

    #[test]
    fn patience_can_be_added_to_any_point_in_time() {
        for (patience, expected) in [
            (17.5, Duration::from_millis(17_500)),
            (1e18, LONGEST),
            (1e300, LONGEST),
            (-1.0, PATIENCE),
        ] {
            let secret = Secret::random();
            let connection = Connection {
                addresses: Vec::new(),
                secret,
                spans_hosts: false,
                folders: BTreeMap::new(),
                patience,
                site: None,
                network: None,
            };
            assert_eq!(connection.patience(), expected, "{patience}");
            assert!(
                std::time::Instant::now()
                    .checked_add(2 * expected)
                    .is_some()
            );
        }
    }

    #[test]
    fn addresses_may_stand_in_the_environment() {
        let found =
            Connection::from_addresses("tcp:node1:9000,10.0.0.1:9000", Secret::random()).unwrap();
        assert_eq!(found.addresses[1], Address::Tcp("10.0.0.1".into(), 9000));
        assert!(found.spans_hosts);
        assert!(
            !Connection::from_addresses("tcp:127.0.0.1:9000", Secret::random())
                .unwrap()
                .spans_hosts
        );
        assert!(Connection::from_addresses("/run/connection.json", Secret::random()).is_none());
    }
}
