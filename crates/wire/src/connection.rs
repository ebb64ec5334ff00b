//! How a program finds its run: the private connection file, and the environment.
//!
//! `TITIN_MANAGER` names a file that only its owner may read, which holds the manager's addresses, the run and its
//! secret. Without a shared file system `TITIN_MANAGER` holds the addresses themselves, separated by commas
//! (`tcp:host:port`), and `TITIN_SECRET` the secret. `TITIN_INSTANCE` names the instance that a program is. The
//! `MUSCLE_*` names are honoured when the `TITIN_*` ones are not set.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Address, Malformed, Secret};

/// Names the connection file, or the manager's addresses.
pub const MANAGER: [&str; 2] = ["TITIN_MANAGER", "MUSCLE_MANAGER"];

/// Names the instance.
pub const INSTANCE: [&str; 2] = ["TITIN_INSTANCE", "MUSCLE_INSTANCE"];

/// Holds the secret where there is no connection file.
pub const SECRET: &str = "TITIN_SECRET";

/// How long instances may take to join the run where nothing else is said.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A hundred years: no run waits longer, and no clock overflows with it.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a program must know to join a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Where the manager listens; tried in order.
    pub addresses: Vec<Address>,
    /// The authority to take part in it.
    pub secret: Secret,
    /// Whether programs must be reachable from other hosts, so that they listen on more than loopback.
    #[serde(default)]
    pub spans_hosts: bool,
    /// How many seconds instances may take to join the run.
    #[serde(default = "usual_patience")]
    pub patience: f64,
}

fn usual_patience() -> f64 {
    PATIENCE.as_secs_f64()
}

/// Where processes of one host meet that take part in the run with this secret: a folder in memory, in which each makes
/// a socket. Whoever manages the run makes and removes it. Its name tells nobody anything.
pub fn meeting_place(secret: &Secret) -> PathBuf {
    Path::new("/dev/shm").join(format!("{MEETING_PLACES}{}", meeting_name(secret)))
}

/// As [`meeting_place`], for the processes of one user, who cannot write to that of another. The digits stand last there too:
/// by them a folder that was left over is known.
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

/// How the names of meeting places begin.
pub const MEETING_PLACES: &str = "titin-";

impl Connection {
    /// How long instances may take to join the run. It can be added to a point in time.
    pub fn patience(&self) -> Duration {
        let patience = if self.patience >= LONGEST.as_secs_f64() {
            LONGEST.as_secs_f64()
        } else {
            self.patience
        };
        Duration::try_from_secs_f64(patience).unwrap_or(PATIENCE)
    }

    /// The text of a connection file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }

    /// Reads the text of a connection file.
    ///
    /// # Errors
    /// [`Malformed`] if it is no JSON of this shape.
    pub fn from_json(text: &str) -> Result<Self, Malformed> {
        serde_json::from_str(text)
            .map_err(|error| Malformed::new("connection file", error.to_string()))
    }

    /// Reads `TITIN_MANAGER` when it holds addresses instead of a file's name; `None` if it does not.
    pub fn from_addresses(manager: &str, secret: Secret) -> Option<Self> {
        let addresses: Vec<Address> = manager
            .strip_prefix("tcp:")?
            .split(',')
            .map(|address| Address::from(format!("tcp:{address}")))
            .collect();
        let spans_hosts = !addresses.iter().all(is_loopback);
        Some(Connection {
            addresses,
            secret,
            spans_hosts,
            patience: usual_patience(),
        })
    }
}

fn is_loopback(address: &Address) -> bool {
    let Address::Tcp(host, _) = address else {
        return false;
    };
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
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
            patience: 17.5,
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
        let earlier = text.replace(",\n  \"patience\": 17.5", "");
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
                patience,
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
