//! The key of a relay, and the fingerprints of keys.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use titin_wire::ids::from_hex;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The SHA-256 of a public key, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a public key in the form SubjectPublicKeyInfo (RFC 5280).
    fn of_public_key(der: &[u8]) -> Self {
        Fingerprint(Sha256::digest(der).into())
    }

    /// The fingerprint of the key in a certificate. Fails if the certificate cannot be read, or
    /// does not count at this time.
    ///
    /// # Errors
    /// As said, in words.
    pub fn of_certificate(certificate: &[u8]) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        if !parsed.validity().is_valid() {
            return Err("the certificate has expired, or does not count yet".to_owned());
        }
        Ok(Fingerprint::of_public_key(parsed.public_key().raw))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no fingerprint: write sha256: and 64 hexadecimal digits");
        let digits = text.strip_prefix("sha256:").ok_or_else(wrong)?;
        from_hex(digits).map(Fingerprint).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

/// The key of a relay, with the certificate that carries it in TLS. Only the key counts: the
/// certificate is signed by the key itself.
pub struct Identity {
    key: KeyPair,
    certificate: Vec<u8>,
}

impl Identity {
    /// A new key.
    ///
    /// # Panics
    /// If the system has no random source.
    pub fn generate(site: &str) -> Self {
        let key = KeyPair::generate().expect("the system's random source works");
        Identity::of(key, site).expect("a new key signs")
    }

    /// Reads a key as [`Identity::key_pem`] writes it.
    pub(crate) fn from_pem(text: &str, site: &str) -> Result<Self, String> {
        let key = KeyPair::from_pem(text).map_err(|error| error.to_string())?;
        Identity::of(key, site)
    }

    fn of(key: KeyPair, site: &str) -> Result<Self, String> {
        let name = format!("{site}.titin-relay");
        let params = CertificateParams::new([name]).map_err(|error| error.to_string())?;
        let certificate = params
            .self_signed(&key)
            .map_err(|error| error.to_string())?;
        Ok(Identity {
            certificate: certificate.der().to_vec(),
            key,
        })
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The fingerprint of the key.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_public_key(&self.key.subject_public_key_info())
    }

    /// The certificate, as DER.
    pub fn certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }

    /// The private key, in the form PKCS #8 as DER.
    pub fn private_key(&self) -> Vec<u8> {
        self.key.serialize_der()
    }
}

/// The end of a day written `YYYY-MM-DD`, in UTC.
pub fn end_of_day(text: &str) -> Option<SystemTime> {
    let day: Date = text.parse().ok()?;
    let days = day.since(Date::constant(1970, 1, 1)).ok()?.get_days();
    let days = u32::try_from(days).ok()?;
    Some(SystemTime::UNIX_EPOCH + DAY * (days + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_the_key_in_the_certificate() {
        let identity = Identity::generate("north");
        let found = Fingerprint::of_certificate(&identity.certificate()).unwrap();
        assert_eq!(found, identity.fingerprint());
        let text = found.to_string();
        assert_eq!(text.parse::<Fingerprint>().unwrap(), found);
        let again = Identity::from_pem(&identity.key_pem(), "north").unwrap();
        assert_eq!(again.fingerprint(), found);
        for wrong in [
            "",
            "sha256:12",
            "md5:00",
            &text.replace("sha256:", "sha256:g")[..71],
        ] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let seconds = |day| {
            let end = end_of_day(day)?;
            Some(
                end.duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap()
                    .as_secs(),
            )
        };
        assert_eq!(seconds("1970-01-01"), Some(86_400));
        assert_eq!(seconds("2000-02-29"), Some(951_868_800));
        assert_eq!(seconds("2026-11-26"), Some(1_795_737_600));
        assert_eq!(seconds("9999-12-31"), Some(253_402_300_800));
        for wrong in ["", "2026-11", "2026-00-01", "2026-1-32", "x-1-1"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
