//! What `relay.toml` may say: names, addresses, and entries that agree with each other.

use std::path::Path;
use std::time::Duration;

use titin_model::is_identifier;

use crate::config::{Config, ConfigError, PeerConfig};
use crate::identity::end_of_day;

/// Fails if a name or an address has no sense, or entries contradict each other.
pub(crate) fn check(path: &Path, config: &Config) -> Result<(), ConfigError> {
    let content = |why: String| ConfigError::Content {
        path: path.to_owned(),
        why,
    };
    check_site(&config.site).map_err(content)?;
    check_address("local", &config.local).map_err(content)?;
    if let Some(listen) = &config.listen {
        check_address("listen", listen).map_err(content)?;
    }
    if Duration::try_from_secs_f64(config.drain).is_err() {
        return Err(content(format!(
            "drain = {}: a number of seconds from 0 on is expected",
            config.drain
        )));
    }
    for place in 0..config.peers.len() {
        check_peer(config, place).map_err(content)?;
    }
    Ok(())
}

/// Fails if an entry has no sense, or contradicts those before it.
fn check_peer(config: &Config, place: usize) -> Result<(), String> {
    let peer = &config.peers[place];
    let before = &config.peers[..place];
    let site = &peer.site;
    check_site(site)?;
    if *site == config.site {
        return Err(format!(
            "the site {site} is that of this relay: name the other site"
        ));
    }
    if before.iter().any(|other| other.site == *site) {
        return Err(format!(
            "the site {site} is there twice: remove one of the two"
        ));
    }
    if let Some(fingerprint) = peer.fingerprint
        && let Some(other) = before
            .iter()
            .find(|other| other.fingerprint == Some(fingerprint))
    {
        return Err(format!(
            "the key {fingerprint} is that of the site {} and of {site}: remove one of the two, or give {site} the \
             fingerprint that `titin relay fingerprint` prints there",
            other.site
        ));
    }
    check_way(config, peer)?;
    if let Some(address) = &peer.address {
        check_address("address", address)?;
    }
    match peer.until.as_deref() {
        Some(day) if end_of_day(day).is_none() => {
            Err(format!("until = {day:?}: write a day as \"2027-12-31\""))
        }
        _ => Ok(()),
    }
}

/// Fails unless the peer has either a key or a known site that leads to it.
fn check_way(config: &Config, peer: &PeerConfig) -> Result<(), String> {
    let site = &peer.site;
    let is_known = |name: &String| {
        let mut peers = config.peers.iter();
        peers.any(|other| other.site == *name && other.fingerprint.is_some())
    };
    match (&peer.fingerprint, &peer.via) {
        (Some(_), Some(_)) => Err(format!(
            "the site {site} has a fingerprint and `via`: a relay behind another one is trusted there"
        )),
        (None, None) => Err(format!(
            "the site {site} has no fingerprint: `titin relay fingerprint` prints it there; a site behind another relay has \
             `via` (`--via SITE`) in its place"
        )),
        (None, Some(via)) if !is_known(via) => Err(format!(
            "the site {site} is behind {via}, which has no fingerprint here"
        )),
        _ => Ok(()),
    }
}

/// Fails unless a description can name the site.
fn check_site(name: &str) -> Result<(), String> {
    match name.split('.').all(is_identifier) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no name of a site: letters, digits and underscores are expected, and no digit first, such \
             as north_2"
        )),
    }
}

/// Fails unless an address has a host and a port.
fn check_address(key: &str, address: &str) -> Result<(), String> {
    let parts = address.rsplit_once(':');
    match parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        true => Ok(()),
        false => Err(format!(
            "{key} = {address:?}: HOST:PORT is expected, such as \"login.north.example:4711\""
        )),
    }
}
