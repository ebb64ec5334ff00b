//! Addresses as users write them.

use std::net::SocketAddr;

use titin_wire::Address;
use titin_wire::circuit::Destination;
use titin_wire::connection::SESSION;

use crate::error::{PathError, Result};

/// The beginning of an address for a plain connection.
const TCP: &str = "tcp:";

/// The beginning of an address at a site that relays lead to.
const RELAY: &str = "relay:";

/// Reads addresses: `HOST:PORT`, separated by commas or spaces. An address of IPv6 is in brackets.
///
/// A path to another host is encrypted and outlives cuts of the line; a path on this host is a plain connection.
/// `session:` or `tcp:` before an address says which of the two it is in any case. `relay:SITE/HOST:PORT` is a host at another
/// site, to which the relay of this process's site leads.
///
/// # Errors
/// [`PathError::NoAddress`] for a text without addresses, or with something else.
///
/// ```
/// let addresses = titin_path::parse_addresses("cluster.example:4711, [::1]:4711").unwrap();
/// assert_eq!(addresses.len(), 2);
/// ```
pub fn parse_addresses(text: &str) -> Result<Vec<Address>> {
    let words: Vec<&str> = text
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    let addresses = words
        .iter()
        .map(|word| {
            parse_address(word).ok_or_else(|| {
                PathError::NoAddress(format!(
                    "'{word}' is no address: write HOST:PORT, [ADDRESS]:PORT for IPv6, or relay:SITE/HOST:PORT"
                ))
            })
        })
        .collect::<Result<Vec<_>>>()?;
    if addresses.is_empty() {
        return Err(PathError::NoAddress(
            "no address was given: write HOST:PORT, or several of them with commas".into(),
        ));
    }
    if addresses.len() > 1 && addresses.iter().any(is_by_relays) {
        return Err(PathError::NoAddress(format!(
            "'{text}': an address by relays, which begins with {RELAY}, stands alone"
        )));
    }
    let is_plain = |word: &&str| word.starts_with(TCP);
    if addresses.iter().any(is_of_session) && words.iter().any(is_plain) {
        return Err(PathError::NoAddress(format!(
            "'{text}' is for a plain connection and for a session: write tcp: before all addresses, or before none"
        )));
    }
    Ok(addresses)
}

fn parse_address(word: &str) -> Option<Address> {
    if let Some(place) = word.strip_prefix(RELAY) {
        let destination = Destination::parse(place)?;
        let is_whole = !destination.site.is_empty() && destination.port > 0;
        let host = without_brackets(&destination.host)
            .filter(|_| is_whole)?
            .to_owned();
        let destination = Destination {
            host,
            ..destination
        };
        return Some(Address::Other(format!("{RELAY}{destination}")));
    }
    let (is_session, place) = match (word.strip_prefix(SESSION), word.strip_prefix(TCP)) {
        (Some(place), _) => (Some(true), place),
        (None, Some(place)) => (Some(false), place),
        (None, None) => (None, word),
    };
    let (host, port) = place.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let address = Address::Tcp(without_brackets(host)?.to_owned(), port);
    let is_session = is_session.unwrap_or_else(|| !address.is_loopback());
    Some(match is_session {
        true => Address::Other(format!("{SESSION}{place}")),
        false => address,
    })
}

/// Whether an address is for sessions.
fn is_of_session(address: &Address) -> bool {
    matches!(address, Address::Other(_))
}

/// Whether relays lead to an address.
pub(crate) fn is_by_relays(address: &Address) -> bool {
    address.site().is_some()
}

/// The addresses to dial, one after the other. If one of them is for sessions, all are one address for sessions: a session
/// tries its places in turn, again and again.
pub(crate) fn to_dial(addresses: &[Address]) -> Vec<Address> {
    if !addresses.iter().any(is_of_session) || addresses.iter().any(is_by_relays) {
        return addresses.to_vec();
    }
    let places: Vec<String> = addresses.iter().map(place_of).collect();
    vec![Address::Other(format!("{SESSION}{}", places.join(",")))]
}

/// A host without the brackets of IPv6; `None` for a text that is no host.
fn without_brackets(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|host| host.contains(':')),
        None => (!host.is_empty() && !host.contains([':', ']'])).then_some(host),
    }
}

/// The address of a place.
pub(crate) fn address_of(place: &SocketAddr) -> Address {
    Address::Tcp(place.ip().to_string(), place.port())
}

/// An address as users write it.
pub(crate) fn place_of(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp(host, port) => format!("{host}:{port}"),
        other => {
            let text = other.to_string();
            text.strip_prefix(SESSION).unwrap_or(&text).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive() {
        for text in ["host:1", "[::1]:4711", "10.0.0.1:2", "[fd00::1]:3"] {
            let addresses = parse_addresses(text).unwrap();
            assert_eq!(place_of(&addresses[0]), text);
        }
        let loopback = Address::Tcp("::1".into(), 4711);
        assert_eq!(parse_addresses("[::1]:4711").unwrap(), [loopback]);
    }

    #[test]
    fn a_path_to_another_host_is_a_session_unless_the_user_says_otherwise() {
        let is_session = |text| matches!(parse_addresses(text).unwrap()[..], [Address::Other(_)]);
        for text in ["host:1", "10.0.0.1:2", "[fd00::1]:3", "session:localhost:4"] {
            assert!(is_session(text), "{text}");
        }
        for text in ["localhost:1", "127.0.0.1:2", "[::1]:3", "tcp:host:4"] {
            assert!(!is_session(text), "{text}");
        }
    }

    #[test]
    fn a_session_has_all_its_places() {
        let addresses = parse_addresses("a:1 localhost:2 [fd00::1]:3").unwrap();
        let session = Address::Other("session:a:1,localhost:2,[fd00::1]:3".into());
        assert_eq!(to_dial(&addresses), [session]);
        let mixed = parse_addresses("a:1 tcp:b:2").unwrap_err().to_string();
        assert!(
            mixed.contains("before all addresses, or before none"),
            "{mixed}"
        );
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in [
            "",
            " ,",
            "host",
            "host:",
            "host:0",
            "host:65536",
            ":4711",
            "::1:4711",
            "[::1:4711",
            "::1]:4711",
            "[host]:1",
            "session:host",
            "session:",
            "tcp:session:host:1",
        ] {
            assert!(parse_addresses(text).is_err(), "{text:?}");
        }
        let several = parse_addresses("ok:1 wrong").unwrap_err();
        assert!(several.to_string().contains("'wrong'"), "{several}");
    }
}
