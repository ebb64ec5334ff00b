//! Addresses as users write them.

use titin_wire::Address;

use crate::error::{PathError, Result};

/// Reads addresses: `HOST:PORT`, separated by commas or spaces. An address of IPv6 is in brackets.
///
/// # Errors
/// [`PathError::NoAddress`] for a text without addresses, or with something else.
///
/// ```
/// let addresses = titin_path::parse_addresses("cluster.example:4711, [::1]:4711").unwrap();
/// assert_eq!(addresses.len(), 2);
/// ```
pub fn parse_addresses(text: &str) -> Result<Vec<Address>> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let addresses = words
        .map(|word| {
            let place = word.strip_prefix("tcp:").unwrap_or(word).rsplit_once(':');
            let address = place.and_then(|(host, port)| {
                let port = port.parse().ok().filter(|port| *port > 0)?;
                Some(Address::Tcp(without_brackets(host)?.to_owned(), port))
            });
            address.ok_or_else(|| {
                PathError::NoAddress(format!(
                    "'{word}' is no address: write HOST:PORT, and [ADDRESS]:PORT for IPv6"
                ))
            })
        })
        .collect::<Result<Vec<_>>>()?;
    if addresses.is_empty() {
        return Err(PathError::NoAddress(
            "no address was given: write HOST:PORT, or several of them with commas".into(),
        ));
    }
    Ok(addresses)
}

/// A host without the brackets of IPv6; `None` for a text that is no host.
fn without_brackets(host: &str) -> Option<&str> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|host| host.contains(':')),
        None => (!host.is_empty() && !host.contains([':', ']'])).then_some(host),
    }
}

/// An address as users write it.
pub(crate) fn place_of(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp(host, port) => format!("{host}:{port}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive() {
        for text in ["host:1", "[::1]:4711", "10.0.0.1:2"] {
            let addresses = parse_addresses(text).unwrap();
            assert_eq!(place_of(&addresses[0]), text);
        }
        let loopback = Address::Tcp("::1".into(), 4711);
        assert_eq!(parse_addresses("[::1]:4711").unwrap(), [loopback]);
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
        ] {
            assert!(parse_addresses(text).is_err(), "{text:?}");
        }
        let several = parse_addresses("ok:1 wrong").unwrap_err();
        assert!(several.to_string().contains("'wrong'"), "{several}");
    }
}
