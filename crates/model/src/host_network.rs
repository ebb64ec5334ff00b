//! A network of a host, as users name it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most bytes in the name of an interface.
const LONGEST_NAME: usize = 15;

/// A network of a host: `eth1`, `10.70.0.0/24`, or one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostNetwork {
    /// The addresses of the interface with this name.
    Interface(String),
    /// The addresses that have the first bits in common with an address.
    Prefix {
        /// The address.
        address: Ipv4Addr,
        /// The number of bits.
        bits: u32,
    },
}

/// Why a text names no network. Displayed as a sentence that follows "this is no network".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The text has an IPv6 address.
    Ipv6(String),
    /// The text has a slash, and is no prefix of IPv4 addresses.
    Prefix(String),
    /// The text is no address, and no name that an interface may have.
    Name(String),
}

impl std::error::Error for NetworkError {}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkError::Ipv6(text) => {
                write!(f, "{text} is of IPv6, and titin listens by IPv4")
            }
            NetworkError::Prefix(text) => write!(
                f,
                "{text} is no IPv4 address with a number of bits from 0 to 32 behind the slash"
            ),
            NetworkError::Name(text) => write!(
                f,
                "\"{text}\" is no IPv4 address, and no name of an interface, which has 1 to {LONGEST_NAME} characters without blanks"
            ),
        }
    }
}

impl HostNetwork {
    /// Whether an address of an interface is in the network. An interface with several addresses may
    /// have a label behind its name, such as `eth0:1`.
    pub fn includes(&self, interface: &str, other: Ipv4Addr) -> bool {
        match self {
            HostNetwork::Interface(name) => {
                let label = interface.strip_prefix(name.as_str());
                label.is_some_and(|label| label.is_empty() || label.starts_with(':'))
            }
            HostNetwork::Prefix { address, bits } => {
                // Without bits, all addresses are in the network.
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                address.to_bits() & mask == other.to_bits() & mask
            }
        }
    }
}

impl FromStr for HostNetwork {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        if address.parse::<Ipv6Addr>().is_ok() {
            return Err(NetworkError::Ipv6(text.to_owned()));
        }
        let bits = bits.parse().ok().filter(|bits| *bits <= 32);
        match (address.parse(), bits) {
            (Ok(address), Some(bits)) => Ok(HostNetwork::Prefix { address, bits }),
            _ if text.contains('/') => Err(NetworkError::Prefix(text.to_owned())),
            _ if is_interface(text) => Ok(HostNetwork::Interface(text.to_owned())),
            _ => Err(NetworkError::Name(text.to_owned())),
        }
    }
}

/// Whether an interface may have the name. A text of digits and dots is a mistyped address.
fn is_interface(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let is_of_address = |c: char| c.is_ascii_digit() || c == '.';
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.contains(is_odd)
        && !name.chars().all(is_of_address)
}

impl fmt::Display for HostNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostNetwork::Interface(name) => f.write_str(name),
            HostNetwork::Prefix { address, bits: 32 } => address.fmt(f),
            HostNetwork::Prefix { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

impl TryFrom<String> for HostNetwork {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl From<HostNetwork> for String {
    fn from(network: HostNetwork) -> String {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn includes(network: &str, interface: &str, address: [u8; 4]) -> bool {
        let network: HostNetwork = network.parse().unwrap();
        network.includes(interface, address.into())
    }

    #[test]
    fn an_interface_has_its_addresses_and_those_with_a_label() {
        assert!(includes("eth1", "eth1", [10, 71, 0, 2]));
        assert!(includes("eth1", "eth1:2", [10, 71, 0, 3]));
        assert!(!includes("eth1", "eth10", [10, 71, 0, 2]));
        assert!(!includes("eth1", "eth0", [10, 71, 0, 2]));
    }

    #[test]
    fn a_prefix_has_the_addresses_with_the_same_first_bits() {
        assert!(includes("10.70.0.0/23", "eth0", [10, 70, 1, 9]));
        assert!(!includes("10.70.0.0/23", "eth0", [10, 70, 2, 9]));
        // The bits behind the prefix do not count.
        assert!(includes("10.70.0.1/24", "eth0", [10, 70, 0, 2]));
        assert!(includes("10.70.0.1", "eth0", [10, 70, 0, 1]));
        assert!(!includes("10.70.0.1", "eth0", [10, 70, 0, 2]));
        assert!(includes("0.0.0.0/0", "eth0", [192, 168, 0, 2]));
    }

    #[test]
    fn a_network_prints_as_it_is_written() {
        for text in ["eth1", "ib0:1", "10.70.0.0/24", "10.70.0.1", "0.0.0.0/0"] {
            let network: HostNetwork = text.parse().unwrap();
            assert_eq!(network.to_string(), text);
        }
    }

    #[test]
    fn what_names_no_network_is_refused_with_a_reason() {
        let why = |text: &str| text.parse::<HostNetwork>().unwrap_err().to_string();
        assert_eq!(
            why("fe80::1/64"),
            "fe80::1/64 is of IPv6, and titin listens by IPv4"
        );
        for text in ["10.70.0.0/33", "10.70.0/24", "eth1/24", "10.70.0.0/"] {
            assert_eq!(
                why(text),
                format!(
                    "{text} is no IPv4 address with a number of bits from 0 to 32 behind the slash"
                )
            );
        }
        for text in ["", "10.70.0", "a b", "a-name-of-17-chars"] {
            assert_eq!(
                why(text),
                format!(
                    "\"{text}\" is no IPv4 address, and no name of an interface, which has 1 to 15 characters without blanks"
                )
            );
        }
    }
}
