//! Addresses as users write them.

use titin_wire::Address;

use crate::error::{PathError, Result};

/// Reads addresses: `HOST:PORT`, separated by commas or spaces. An address of IPv6 is in brackets.
///
/// # Errors
/// [`PathError::NotOpened`] for a text without addresses, or with something else.
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
                let is_whole = !host.is_empty() && (!host.contains(':') || host.starts_with('['));
                let port = port.parse().ok().filter(|port| *port > 0)?;
                is_whole.then(|| Address::Tcp(host.to_owned(), port))
            });
            address.ok_or_else(|| {
                PathError::NotOpened(format!(
                    "'{word}' is no address: write HOST:PORT, and [ADDRESS]:PORT for IPv6"
                ))
            })
        })
        .collect::<Result<Vec<_>>>()?;
    if addresses.is_empty() {
        return Err(PathError::NotOpened(
            "no address was given: write HOST:PORT, or several of them with commas".into(),
        ));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(parse_addresses(text).is_err(), "{text:?}");
        }
        let several = parse_addresses("ok:1 wrong").unwrap_err();
        assert!(several.to_string().contains("'wrong'"), "{several}");
    }
}
