//! Identities that cross a link. Each prints as users write it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Malformed, Medium};

/// The id of a process that takes part in a run. The id is random, so a restarted program is a new
/// endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EndpointId(pub u128);

impl EndpointId {
    /// A fresh identity.
    pub fn random() -> Self {
        EndpointId(u128::from_le_bytes(random_bytes()))
    }
}

/// Shows the first eight hexadecimal digits: enough to tell processes apart in a log.
impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", (self.0 >> 96) as u32)
    }
}

impl fmt::Debug for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointId({self})")
    }
}

/// The authority to take part in a run: every process of the run knows the secret, and no other
/// process does.
///
/// A secret never appears in a log: the debug output is a placeholder.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret([u8; 32]);

impl Secret {
    /// A fresh secret from the system's random source.
    pub fn random() -> Self {
        Secret(random_bytes())
    }

    pub(crate) fn of_bytes(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// The key for the handshake.
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits, for the private connection file and `TITIN_SECRET` only.
    pub fn reveal(&self) -> String {
        to_hex(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl FromStr for Secret {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong = || Malformed::new("secret", "expected 64 hexadecimal digits");
        from_hex(text.trim()).map(Secret).ok_or_else(wrong)
    }
}

/// The hexadecimal digits of bytes.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of pairs of hexadecimal digits; `None` for any other text.
pub(crate) fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(16 * digit(high)? + digit(low)?).ok();
    let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| rest.is_empty())
}

/// The bytes of 64 hexadecimal digits; `None` for any other text.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    bytes_of_hex(text)?.try_into().ok()
}

impl TryFrom<String> for Secret {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> String {
        secret.reveal()
    }
}

/// The address of an endpoint or a manager for one medium, written `tcp:host:port` or `shm:path`.
/// The address of any other medium is kept as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Address {
    /// A TCP listener: host name or address, and port.
    Tcp(String, u16),
    /// The file of a Unix socket, by which processes of one host hand shared memory over.
    Shm(String),
    /// The address of another medium, `key:place`. The medium reads the place, if this release knows
    /// the medium.
    Other(String),
}

impl Address {
    /// The medium of the address, if this release knows the medium.
    pub fn medium(&self) -> Option<Medium> {
        match self {
            Address::Tcp(..) => Some(Medium::Tcp),
            Address::Shm(_) => Some(Medium::Shm),
            Address::Other(text) => Medium::of_key(text.split_once(':')?.0),
        }
    }
}

impl Address {
    /// Whether this is the address of a TCP listener that only its own host reaches.
    pub fn is_loopback(&self) -> bool {
        let Address::Tcp(host, _) = self else {
            return false;
        };
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// The site of the listener, in an address of the medium `relay`.
    pub fn site(&self) -> Option<&str> {
        match self {
            Address::Other(text) if self.medium() == Some(Medium::Relay) => {
                let (_, place) = text.split_once(':')?;
                Some(place.split_once('/')?.0)
            }
            _ => None,
        }
    }
}

/// Those of a process's addresses that lead there from the site `own`: within a site the process
/// itself, between sites the relays. A process that is at no site is on the way to no relay.
pub fn addresses_from_site<'a>(
    own: Option<&str>,
    addresses: &'a [Address],
) -> impl Iterator<Item = &'a Address> {
    let mut sites = addresses.iter().filter_map(Address::site);
    let is_elsewhere = sites.next().is_some_and(|site| Some(site) != own) && own.is_some();
    addresses
        .iter()
        .filter(move |address| address.site().is_some() == is_elsewhere)
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        if let Some(path) = text.strip_prefix("shm:") {
            return Address::Shm(path.to_owned());
        }
        let tcp = text.strip_prefix("tcp:").and_then(|rest| {
            let (host, port) = rest.rsplit_once(':')?;
            Some(Address::Tcp(host.to_owned(), port.parse().ok()?))
        });
        tcp.unwrap_or(Address::Other(text))
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
            Address::Shm(path) => write!(f, "shm:{path}"),
            Address::Other(text) => f.write_str(text),
        }
    }
}

/// Random bytes from the system.
///
/// # Panics
/// If the system has no random source: then there is no secret.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system's random source works");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_debug_output_and_survives_its_text_form() {
        let secret = Secret::random();
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        assert_eq!(secret.reveal().parse::<Secret>().unwrap(), secret);
        assert!("abc".parse::<Secret>().is_err());
        assert!("zz".repeat(32).parse::<Secret>().is_err());
    }

    #[test]
    fn another_site_is_reached_by_relays_alone() {
        let texts = ["shm:/dev/shm/a", "tcp:10.0.0.1:9", "relay:north/10.0.0.1:9"];
        let addresses = texts.map(|text| Address::from(text.to_owned()));
        let found = |own| {
            let found = addresses_from_site(own, &addresses);
            found.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(Some("north")), texts[..2]);
        assert_eq!(found(Some("south")), texts[2..]);
        assert_eq!(found(None), texts[..2]);
        let direct: Vec<_> = addresses_from_site(Some("south"), &addresses[..2]).collect();
        assert_eq!(direct.len(), 2);
    }

    #[test]
    fn addresses_keep_what_they_do_not_know() {
        assert_eq!(
            Address::from("tcp:node1:90".to_owned()),
            Address::Tcp("node1".into(), 90)
        );
        assert_eq!(
            Address::from("shm:/dev/shm/a".to_owned()).to_string(),
            "shm:/dev/shm/a"
        );
        assert_eq!(Address::from("ucx:abcd".to_owned()).to_string(), "ucx:abcd");
        assert_eq!(
            Address::from("tcp:node1:nine".to_owned()),
            Address::Other("tcp:node1:nine".into())
        );
    }
}
