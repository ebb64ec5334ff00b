//! The configuration of a relay: the folder with its key, and the file `relay.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use titin_os::private_file::{self, Unread, write_private};
use titin_wire::Secret;

use crate::check::check;
use crate::edit;
use crate::identity::{Fingerprint, Identity};

/// The most circuits of a peer, unless the configuration says otherwise.
const STREAMS: usize = 4096;

/// The most runs of a peer, unless the configuration says otherwise.
const RUNS: usize = 64;

/// The file `relay.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name of the site, by which other sites know the relay.
    pub site: String,
    /// The address for processes of the site, `host:port`.
    pub local: String,
    /// The address for relays of other sites; without it no relay can dial this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// The congestion control of connections to other relays, by the system's name for it. Without a
    /// name: BBR if the system has it, and otherwise the system's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// How many seconds circuits may go on once the relay is told to end.
    #[serde(default = "usual_drain")]
    pub drain: f64,
    /// The relays of other sites.
    #[serde(default, rename = "peer", skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerConfig>,
}

fn usual_drain() -> f64 {
    5.0
}

impl Config {
    /// The configuration of a relay that trusts no other yet.
    pub fn new(site: String, local: String, listen: Option<String>) -> Self {
        Config {
            site,
            local,
            listen,
            congestion: None,
            drain: usual_drain(),
            peers: Vec::new(),
        }
    }
}

/// A relay of another site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// The name of the site.
    pub site: String,
    /// The fingerprint of the relay's key. A site behind another relay has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// Where the relay listens. Without an address the relay dials this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The site whose relay leads to the site, if no line does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The last day on which the key counts, `YYYY-MM-DD` in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether runs of the relay may go on to other sites by this relay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transit: bool,
    /// The most runs that the relay may bring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// The most circuits at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<usize>,
    /// The most bytes of memory for circuits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl PeerConfig {
    /// The most circuits at a time.
    pub fn most_circuits(&self) -> usize {
        let by_memory = self
            .memory
            .map_or(usize::MAX, |bytes| bytes as usize / crate::CIRCUIT_MEMORY);
        self.streams.unwrap_or(STREAMS).min(by_memory)
    }

    /// The most runs.
    pub fn most_runs(&self) -> usize {
        self.runs.unwrap_or(RUNS)
    }
}

/// Why a configuration does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file has no sense.
    #[error("{path}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to write.
        why: String,
    },
}

/// The folder of a relay: its configuration, its key, and the key for managers.
#[derive(Debug, Clone)]
pub struct RelayFolder(PathBuf);

impl RelayFolder {
    /// The folder at a path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        RelayFolder(path.into())
    }

    /// The usual folder of the user: `~/.config/titin/relay`.
    pub fn usual() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let config = variable("XDG_CONFIG_HOME")
            .or_else(|| Some(variable("HOME")?.join(".config")))
            .unwrap_or_else(|| ".".into());
        RelayFolder(config.join("titin/relay"))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of `relay.toml`.
    pub fn config_path(&self) -> PathBuf {
        self.0.join("relay.toml")
    }

    fn key_path(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    /// The path of the key by which a manager, or `titin relay status`, proves itself.
    pub fn access_path(&self) -> PathBuf {
        self.0.join("access")
    }

    /// The path of the address for processes of the site, which the relay writes when it starts.
    pub fn address_path(&self) -> PathBuf {
        self.0.join("address")
    }

    /// Makes the folder with a new key and a configuration.
    ///
    /// # Errors
    /// If there is one already, or a file cannot be written.
    pub fn init(&self, config: &Config) -> Result<Identity, ConfigError> {
        let path = self.config_path();
        if path.exists() {
            let why =
                "there is a relay already; edit the file, or name another --folder".to_owned();
            return Err(ConfigError::Content { path, why });
        }
        let rests = [self.key_path(), self.access_path()];
        if let Some(rest) = rests.into_iter().find(|path| path.exists()) {
            let why = "this is of an earlier relay, whose relay.toml is gone: remove it for a new key, or name \
                       another --folder"
                .to_owned();
            return Err(ConfigError::Content { path: rest, why });
        }
        check(&path, config)?;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| ConfigError::File { path, error }
        };
        fs::create_dir_all(&self.0).map_err(at(&self.0))?;
        let identity = Identity::generate(&config.site);
        write_private(&self.key_path(), &identity.key_pem()).map_err(at(&self.key_path()))?;
        let access = Secret::random().reveal();
        write_private(&self.access_path(), &access).map_err(at(&self.access_path()))?;
        let text = toml::to_string_pretty(config).expect("plain data");
        let head = format!(
            "# The relay of the site {}. Its fingerprint: {}\n",
            config.site,
            identity.fingerprint()
        );
        write_private(&path, &(head + &text)).map_err(at(&path))?;
        Ok(identity)
    }

    /// Adds a peer to the configuration.
    ///
    /// # Errors
    /// If there is such a peer already, or a file cannot be read or written.
    pub fn trust(&self, peer: &PeerConfig) -> Result<(), ConfigError> {
        let path = self.config_path();
        let mut config = self.config()?;
        if let Some(known) = config.peers.iter().find(|known| known.site == peer.site) {
            let why = trusted_already(known);
            return Err(ConfigError::Content { path, why });
        }
        config.peers.push(peer.clone());
        let text = format!("{}\n{}", self.read(&path)?, edit::entry(peer));
        self.rewrite(Some(text), &config, &peer.site)
    }

    /// Replaces the entry of a peer, as for a new key. The limits of the old entry (`runs`, `streams`
    /// and `memory`) stay. Without an entry the peer is added.
    ///
    /// # Errors
    /// If the new entry contradicts others, or a file cannot be read or written.
    pub fn replace(&self, peer: &PeerConfig) -> Result<(), ConfigError> {
        let path = self.config_path();
        let mut config = self.config()?;
        let mut peers = config.peers.iter_mut();
        let Some(place) = peers.position(|known| known.site == peer.site) else {
            return self.trust(peer);
        };
        let known = &mut config.peers[place];
        *known = PeerConfig {
            runs: known.runs,
            streams: known.streams,
            memory: known.memory,
            ..peer.clone()
        };
        let known = known.clone();
        let text = edit::with_entry(&self.read(&path)?, place, &known);
        self.rewrite(text, &config, &peer.site)
    }

    /// Removes the entry of a peer.
    ///
    /// # Errors
    /// If there is none, if another entry needs it, or if a file cannot be read or written.
    pub fn distrust(&self, site: &str) -> Result<(), ConfigError> {
        let path = self.config_path();
        let mut config = self.config()?;
        let mut peers = config.peers.iter();
        let Some(place) = peers.position(|known| known.site == site) else {
            let names = config.peers.iter().map(|known| known.site.as_str());
            let why = match config.peers.is_empty() {
                true => format!("there is no entry of a site {site}, nor of any other"),
                false => format!(
                    "there is no entry of a site {site}, but of {}",
                    names.collect::<Vec<_>>().join(", ")
                ),
            };
            return Err(ConfigError::Content { path, why });
        };
        let is_behind = |peer: &&PeerConfig| peer.via.as_deref() == Some(site);
        if let Some(behind) = config.peers.iter().find(is_behind) {
            let behind = &behind.site;
            let why = format!(
                "the way to the site {behind} leads by {site} (`via`): remove the entry of {behind} first"
            );
            return Err(ConfigError::Content { path, why });
        }
        config.peers.remove(place);
        let text = edit::without_entry(&self.read(&path)?, place);
        self.rewrite(text, &config, site)
    }

    /// Writes a text of the configuration, with another entry of a site or without it, if it says what `config` is.
    fn rewrite(
        &self,
        text: Option<String>,
        config: &Config,
        site: &str,
    ) -> Result<(), ConfigError> {
        let path = self.config_path();
        check(&path, config)?;
        self.check_own_key(&path, config)?;
        let is_right = |text: &String| toml::from_str::<Config>(text).is_ok_and(|it| it == *config);
        let Some(text) = text.filter(is_right) else {
            let why = format!(
                "the peers are not written as `titin relay trust` writes them: change the entry of the site {site} by hand"
            );
            return Err(ConfigError::Content { path, why });
        };
        overwrite(&path, &text).map_err(|error| ConfigError::File { path, error })
    }

    /// Fails if the relay is to trust its own key. A copy of the folder may be without the key.
    fn check_own_key(&self, path: &Path, config: &Config) -> Result<(), ConfigError> {
        let Ok(identity) = self.identity() else {
            return Ok(());
        };
        let own = identity.fingerprint();
        let mut peers = config.peers.iter();
        match peers.find(|peer| peer.fingerprint.as_ref() == Some(&own)) {
            None => Ok(()),
            Some(peer) => Err(ConfigError::Content {
                path: path.to_owned(),
                why: format!(
                    "the fingerprint for the site {} is that of this relay itself: give that of the other relay, which `titin \
                     relay status` shows there",
                    peer.site
                ),
            }),
        }
    }

    /// The configuration.
    ///
    /// # Errors
    /// If the file cannot be read, or has no sense.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let path = self.config_path();
        let text = self.read(&path)?;
        let config: Config = toml::from_str(&text).map_err(|error| ConfigError::Content {
            path: path.clone(),
            why: error.to_string(),
        })?;
        check(&path, &config)?;
        Ok(config)
    }

    /// The key of the relay.
    ///
    /// # Errors
    /// If the file cannot be read, is no key, or is open to others than its owner.
    pub fn identity(&self) -> Result<Identity, ConfigError> {
        let path = self.key_path();
        let text = self.read_private(&path, 0o077)?;
        let site = self.config()?.site;
        Identity::from_pem(&text, &site).map_err(|why| ConfigError::Content { path, why })
    }

    /// The key by which a manager, or `titin relay status`, proves itself. A group may share it.
    ///
    /// # Errors
    /// If the file cannot be read, is no key, or is open to everybody.
    pub fn access(&self) -> Result<Secret, ConfigError> {
        let path = self.access_path();
        let text = self.read_private(&path, 0o007)?;
        text.parse()
            .map_err(|error: titin_wire::Malformed| ConfigError::Content {
                path,
                why: error.to_string(),
            })
    }

    /// Reads a secret. Fails if the file's mode has one of the bits `forbidden`.
    fn read_private(&self, path: &Path, forbidden: u32) -> Result<String, ConfigError> {
        private_file::read_private(path, forbidden).map_err(|why| self.unread(path, why))
    }

    fn read(&self, path: &Path) -> Result<String, ConfigError> {
        private_file::read_ordinary(path).map_err(|why| self.unread(path, why))
    }

    /// The error for a file that was not read.
    fn unread(&self, path: &Path, why: Unread) -> ConfigError {
        let path = path.to_owned();
        match why {
            Unread::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ConfigError::Content {
                    path,
                    why: format!("there is no such file: {}", self.advice()),
                }
            }
            Unread::Io(error) => ConfigError::File { path, error },
            why => ConfigError::Content {
                path,
                why: why.to_string(),
            },
        }
    }

    /// What to do where a file is missing.
    fn advice(&self) -> &'static str {
        let has_some = self.config_path().exists() || self.access_path().exists();
        match has_some {
            true => {
                "a copy of the relay's folder needs the files relay.toml and access for `titin run --relay` and \
                 `titin relay status`; the relay itself runs with the folder that `titin relay init` has made"
            }
            false => {
                "make a relay with `titin relay init`, or name the folder of one (--folder; `titin run`: --relay)"
            }
        }
    }
}

/// What to do with a site that has an entry.
fn trusted_already(known: &PeerConfig) -> String {
    let site = &known.site;
    let by = match (&known.fingerprint, &known.via) {
        (Some(fingerprint), _) => format!("by the key {fingerprint}"),
        (None, via) => format!("via {}", via.as_deref().unwrap_or_default()),
    };
    format!(
        "the site {site} is trusted already, {by}: to renew the key or change the entry, give the same command with \
         all its options and --replace"
    )
}

/// Writes a new text in place of a file's, at once: a reader finds the old text or the new one.
fn overwrite(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?;
    let fresh = path.with_extension("toml.new");
    let _ = fs::remove_file(&fresh);
    let write = || {
        write_private(&fresh, text)?;
        fs::set_permissions(&fresh, fs::metadata(&path)?.permissions())?;
        fs::rename(&fresh, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&fresh)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn config() -> Config {
        let listen = Some("0.0.0.0:4711".into());
        Config::new("north".into(), "127.0.0.1:0".into(), listen)
    }

    fn peer(site: &str) -> PeerConfig {
        PeerConfig {
            site: site.into(),
            fingerprint: Some(Identity::generate("south").fingerprint()),
            address: Some("south.example:4711".into()),
            ..PeerConfig::default()
        }
    }

    #[test]
    fn a_relay_is_made_once_and_trusts_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path().join("relay"));
        let identity = relay.init(&config()).unwrap();
        assert_eq!(
            relay.identity().unwrap().fingerprint(),
            identity.fingerprint()
        );
        for file in [relay.key_path(), relay.access_path()] {
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        let again = relay.init(&config()).err().unwrap().to_string();
        assert!(again.contains("a relay already"), "{again}");

        relay.trust(&peer("south")).unwrap();
        let found = relay.config().unwrap();
        assert_eq!(found.peers[0].site, "south");
        let twice = relay.trust(&peer("south")).unwrap_err().to_string();
        assert!(twice.contains("trusted already"), "{twice}");
        assert!(twice.contains("--replace"), "{twice}");
        assert_eq!(relay.config().unwrap(), found);
        let behind = PeerConfig {
            fingerprint: None,
            via: Some("south".into()),
            ..peer("east")
        };
        relay.trust(&behind).unwrap();

        let needed = relay.distrust("south").unwrap_err().to_string();
        assert!(
            needed.contains("east") && needed.contains("via"),
            "{needed}"
        );
        relay.distrust("east").unwrap();
        assert_eq!(relay.config().unwrap(), found);
        let unknown = relay.distrust("east").unwrap_err().to_string();
        assert!(
            unknown.contains("no entry of a site east, but of south"),
            "{unknown}"
        );
        relay.distrust("south").unwrap();
        assert!(relay.config().unwrap().peers.is_empty());
        let none = relay.distrust("south").unwrap_err().to_string();
        assert!(none.contains("nor of any other"), "{none}");
    }

    #[test]
    fn a_key_of_an_earlier_relay_is_named_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay.init(&config()).unwrap();
        let key = fs::read(relay.key_path()).unwrap();
        fs::remove_file(relay.config_path()).unwrap();
        let why = relay.init(&config()).err().unwrap().to_string();
        assert!(
            why.contains("key.pem") && why.contains("earlier relay"),
            "{why}"
        );
        assert_eq!(fs::read(relay.key_path()).unwrap(), key);
    }

    #[test]
    fn what_contradicts_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay.init(&config()).unwrap();
        let cases = [
            (
                PeerConfig {
                    fingerprint: None,
                    ..peer("south")
                },
                "no fingerprint",
            ),
            (
                PeerConfig {
                    via: Some("west".into()),
                    ..peer("south")
                },
                "trusted there",
            ),
            (
                PeerConfig {
                    fingerprint: None,
                    via: Some("west".into()),
                    ..peer("south")
                },
                "no fingerprint here",
            ),
            (
                PeerConfig {
                    until: Some("2027-13-01".into()),
                    ..peer("south")
                },
                "write a day",
            ),
            (peer("north"), "that of this relay"),
            (peer("bad name!"), "no name of a site"),
            (
                PeerConfig {
                    address: Some("south.example".into()),
                    ..peer("south")
                },
                "HOST:PORT is expected",
            ),
        ];
        for (peer, expected) in cases {
            let refused = relay.trust(&peer).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn a_key_has_one_site() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay.init(&config()).unwrap();
        let south = peer("south");
        relay.trust(&south).unwrap();
        let east = PeerConfig {
            site: "east".into(),
            ..south
        };
        for refused in [relay.trust(&east), relay.replace(&east)] {
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("that of the site south and of east"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_new_key_takes_the_place_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay.init(&config()).unwrap();
        for site in ["east", "south", "west"] {
            relay.trust(&peer(site)).unwrap();
        }
        let path = relay.config_path();
        let text = fs::read_to_string(&path).unwrap();
        let limited = text.replace("site = \"south\"", "site = \"south\"\nruns = 3");
        fs::write(&path, limited).unwrap();
        let before = relay.config().unwrap();

        let renewed = PeerConfig {
            until: Some("2027-12-31".into()),
            ..peer("south")
        };
        relay.replace(&renewed).unwrap();
        let expected = PeerConfig {
            runs: Some(3),
            ..renewed
        };
        let after = relay.config().unwrap();
        assert_eq!(after.peers[1], expected);
        assert_eq!(
            (&after.peers[0], &after.peers[2]),
            (&before.peers[0], &before.peers[2])
        );
        relay.replace(&peer("other")).unwrap();
        assert_eq!(relay.config().unwrap().peers[3].site, "other");
    }

    #[test]
    fn a_file_of_another_form_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        relay.init(&config()).unwrap();
        let fingerprint = peer("south").fingerprint.unwrap();
        let text = format!(
            "site = \"north\"\nlocal = \"a:1\"\npeer = [{{site = \"south\", fingerprint = \"{fingerprint}\"}}]\n"
        );
        fs::write(relay.config_path(), &text).unwrap();
        let refused = relay.replace(&peer("south")).unwrap_err().to_string();
        assert!(refused.contains("by hand"), "{refused}");
        assert_eq!(fs::read_to_string(relay.config_path()).unwrap(), text);
    }

    #[test]
    fn names_and_addresses_are_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path());
        let of = |site: &str, local: &str, listen: Option<&str>| {
            Config::new(site.into(), local.into(), listen.map(Into::into))
        };
        for (wrong, expected) in [
            (of("bad name!", "a:1", None), "no name of a site"),
            (of("", "a:1", None), "no name of a site"),
            (of("north", "localhost", None), "local = \"localhost\""),
            (of("north", "a:1", Some("a:x")), "listen = \"a:x\""),
            (of("north", "a:1", Some(":1")), "HOST:PORT"),
        ] {
            let refused = relay.init(&wrong).err().unwrap().to_string();
            assert!(refused.contains(expected), "{refused}");
            assert!(!relay.config_path().exists());
            let text = toml::to_string(&wrong).unwrap();
            fs::write(relay.config_path(), text).unwrap();
            let refused = relay.config().unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
            fs::remove_file(relay.config_path()).unwrap();
        }
    }

    #[test]
    fn secrets_that_others_may_open_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path().join("relay"));
        relay.init(&config()).unwrap();
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        // A group may use the relay, and not be it.
        set_mode(&relay.access_path(), 0o640);
        relay.access().unwrap();
        for mode in [0o644, 0o602] {
            set_mode(&relay.access_path(), mode);
            let refused = relay.access().unwrap_err().to_string();
            let mend = format!("`chmod {:03o} ", mode & 0o770);
            assert!(refused.contains(&mend), "{refused}");
        }
        set_mode(&relay.key_path(), 0o640);
        let refused = relay.identity().err().unwrap().to_string();
        assert!(refused.contains("(mode 640)"), "{refused}");
        assert!(refused.contains("`chmod 600 "), "{refused}");
    }

    #[test]
    fn a_peer_is_not_added_to_a_file_of_another_form() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path().join("relay"));
        relay.init(&config()).unwrap();
        let text = fs::read_to_string(relay.config_path()).unwrap() + "peer = []\n";
        fs::write(relay.config_path(), &text).unwrap();
        let refused = relay.trust(&peer("south")).unwrap_err().to_string();
        assert!(
            refused.contains("change the entry of the site south by hand"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(relay.config_path()).unwrap(), text);
    }

    #[test]
    fn a_copy_without_the_key_says_which_files_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let relay = RelayFolder::at(folder.path().join("relay"));
        let none = relay.config().unwrap_err().to_string();
        assert!(none.contains("titin relay init"), "{none}");
        relay.init(&config()).unwrap();

        let copy = RelayFolder::at(folder.path().join("copy"));
        fs::create_dir(copy.path()).unwrap();
        fs::copy(relay.access_path(), copy.access_path()).unwrap();
        let refused = copy.config().unwrap_err().to_string();
        assert!(refused.contains("relay.toml and access"), "{refused}");
        fs::copy(relay.config_path(), copy.config_path()).unwrap();
        assert_eq!(copy.config().unwrap(), relay.config().unwrap());
        copy.access().unwrap();
        assert!(copy.identity().is_err());
    }

    #[test]
    fn memory_bounds_the_circuits() {
        let bounded = PeerConfig {
            memory: Some(10 * crate::CIRCUIT_MEMORY as u64),
            ..peer("south")
        };
        assert_eq!(bounded.most_circuits(), 10);
        assert_eq!(peer("south").most_circuits(), STREAMS);
    }
}
