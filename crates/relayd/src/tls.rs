//! TLS 1.3 between relays. Both ends prove themselves by their keys, which are pinned: no authority
//! signs anything.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, SignatureScheme, version,
};

use titin_relay::{Config, Fingerprint, Identity, end_of_day};

/// The protocol inside of TLS, which both ends have to name.
const PROTOCOL: &[u8] = b"titin-relay/1";

/// The keys that a relay trusts, with their sites, and until when.
#[derive(Debug, Default)]
pub(crate) struct PinnedKeys {
    keys: RwLock<HashMap<Fingerprint, PinnedKey>>,
    /// The last key of a relay that has dialled this one and is not trusted, and when that was.
    untrusted: Mutex<Option<(Fingerprint, Instant)>>,
}

#[derive(Debug, Clone)]
struct PinnedKey {
    site: String,
    until: Option<SystemTime>,
}

impl PinnedKeys {
    /// Trusts the keys of a configuration, and no others.
    pub(crate) fn set(&self, config: &Config) {
        let pinned = config.peers.iter().filter_map(|peer| {
            let key = PinnedKey {
                site: peer.site.clone(),
                until: peer.until.as_deref().and_then(end_of_day),
            };
            Some((peer.fingerprint?, key))
        });
        *self.keys.write().expect("never poisoned") = pinned.collect();
    }

    /// The site of a certificate's key.
    pub(crate) fn site_of(&self, certificate: &CertificateDer<'_>) -> Result<String, String> {
        self.site_at(certificate, None)
    }

    /// What to say of the last relay that was refused for its key, if there was one.
    pub(crate) fn last_refusal(&self) -> Option<String> {
        let (fingerprint, when) = (*self.untrusted.lock().expect("never poisoned"))?;
        if self
            .keys
            .read()
            .expect("never poisoned")
            .contains_key(&fingerprint)
        {
            return None;
        }
        let ago = when.elapsed().as_secs();
        Some(format!(
            "{ago} s ago a relay with the key {fingerprint} was refused, which is not trusted"
        ))
    }

    /// The site of a certificate's key, which the relay at the address of the site `dialled` has shown.
    fn site_at(
        &self,
        certificate: &CertificateDer<'_>,
        dialled: Option<&str>,
    ) -> Result<String, String> {
        let fingerprint = Fingerprint::of_certificate(certificate)?;
        let keys = self.keys.read().expect("never poisoned");
        let own = keys
            .iter()
            .find(|(_, key)| Some(key.site.as_str()) == dialled);
        let key = keys.get(&fingerprint).ok_or_else(|| match own {
            Some((expected, PinnedKey { site, .. })) => format!(
                "the relay that answers has the key {fingerprint}, and this one trusts {expected} for {site}: if the key there \
                 is new, `titin relay trust {site} FINGERPRINT --replace` puts it in the place of the old one"
            ),
            None => {
                let now = Some((fingerprint, Instant::now()));
                *self.untrusted.lock().expect("never poisoned") = now;
                format!("the key {fingerprint} is not trusted: `titin relay trust` adds it")
            }
        })?;
        match key.until {
            Some(until) if until <= SystemTime::now() => Err(format!(
                "the key of the site {} has been trusted until a day that is over",
                key.site
            )),
            _ => Ok(key.site.clone()),
        }
    }
}

/// Fails if the other end has not named the protocol.
pub(crate) fn check_protocol(named: Option<&[u8]>) -> Result<(), String> {
    match named == Some(PROTOCOL) {
        true => Ok(()),
        false => Err("the other end does not speak the protocol of relays".to_owned()),
    }
}

/// What a relay needs for TLS.
pub(crate) struct Tls {
    pub(crate) keys: Arc<PinnedKeys>,
    /// For the relays that dial this one.
    pub(crate) server: Arc<ServerConfig>,
    identity: Identity,
    provider: Arc<CryptoProvider>,
}

impl Tls {
    pub(crate) fn new(identity: Identity) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let keys = Arc::new(PinnedKeys::default());
        let verifier = PinVerifier {
            keys: keys.clone(),
            site: None,
            provider: provider.clone(),
        };
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(chain(&identity), private_key(&identity))?;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Each connection shows the key again, so a key that is trusted no more is noticed.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Tls {
            keys,
            server: Arc::new(server),
            identity,
            provider,
        })
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    /// For dialling the relay of a site.
    pub(crate) fn client(&self, site: &str) -> Result<Arc<ClientConfig>, Error> {
        let verifier = PinVerifier {
            keys: self.keys.clone(),
            site: Some(site.to_owned()),
            provider: self.provider.clone(),
        };
        let mut client = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(chain(&self.identity), private_key(&self.identity))?;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        client.resumption = Resumption::disabled();
        Ok(Arc::new(client))
    }

    /// Why a connection to another relay has failed, for the log and for refusals.
    pub(crate) fn why(&self, error: &io::Error) -> String {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<Error>()) {
            // The texts of this file.
            Some(Error::General(why)) => why.clone(),
            // A relay answers so to a key that its verifier does not accept.
            Some(Error::AlertReceived(AlertDescription::HandshakeFailure)) => format!(
                "the other relay has refused the handshake of TLS: it may not trust the key of this one, {}, and \
                 `titin relay trust` there adds it",
                self.fingerprint()
            ),
            _ => error.to_string(),
        }
    }

    /// The name in the greeting of TLS. It is the same for all relays, and tells nothing.
    pub(crate) fn name() -> ServerName<'static> {
        ServerName::try_from("relay.titin").expect("a name")
    }
}

fn chain(identity: &Identity) -> Vec<CertificateDer<'static>> {
    vec![identity.certificate().into()]
}

fn private_key(identity: &Identity) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.private_key()))
}

/// How long a handshake may take: many round trips of the longest line.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Accepts pinned keys, and no others.
#[derive(Debug)]
struct PinVerifier {
    keys: Arc<PinnedKeys>,
    /// The site that is meant; `None` for all.
    site: Option<String>,
    provider: Arc<CryptoProvider>,
}

impl PinVerifier {
    fn verify(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let site = self.keys.site_at(certificate, self.site.as_deref());
        let site = site.map_err(Error::General)?;
        match &self.site {
            Some(meant) if *meant != site => Err(Error::General(format!(
                "the relay of the site {site} has answered in place of that of {meant}"
            ))),
            _ => Ok(()),
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// TLS 1.2 is not offered, so nothing is signed by it.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::InvalidCertificate(CertificateError::BadSignature))
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(certificate)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for PinVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(certificate)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

#[cfg(test)]
mod tests {
    use titin_relay::PeerConfig;
    use tokio::io::duplex;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;
    use titin_wire::line::PeerAnswer;

    use crate::messages;

    fn relay(site: &str) -> Tls {
        Tls::new(Identity::generate(site)).unwrap()
    }

    fn trust(relay: &Tls, site: &str, other: &Tls) {
        let mut config = Config::new("north".into(), "127.0.0.1:0".into(), None);
        config.peers.push(PeerConfig {
            site: site.into(),
            fingerprint: Some(other.fingerprint()),
            ..PeerConfig::default()
        });
        relay.keys.set(&config);
    }

    /// Has north dial south, which then says nothing and is gone. Returns why each of the two fails.
    fn dial(north: &Tls, south: &Tls) -> (String, Option<String>) {
        let (near, far) = duplex(1 << 16);
        let dialling = async {
            let connector = TlsConnector::from(north.client("south").unwrap());
            let mut stream = connector.connect(Tls::name(), near).await?;
            messages::read::<PeerAnswer>(&mut stream, &mut Vec::new()).await
        };
        let accepting = async {
            let accepted = TlsAcceptor::from(south.server.clone()).accept(far).await;
            accepted.err().map(|error| south.why(&error))
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (dialled, accepted) = runtime.block_on(async { tokio::join!(dialling, accepting) });
        (north.why(&dialled.unwrap_err()), accepted)
    }

    #[test]
    fn a_relay_that_is_not_trusted_hears_which_key_is_to_be_trusted() {
        let (north, south) = (relay("north"), relay("south"));
        trust(&north, "south", &south);
        let (dialled, accepted) = dial(&north, &south);
        let key = north.fingerprint().to_string();
        assert!(
            dialled.contains(&key) && dialled.contains("titin relay trust"),
            "{dialled}"
        );
        let expected = format!("the key {key} is not trusted: `titin relay trust` adds it");
        assert_eq!(accepted.unwrap(), expected);
    }

    #[test]
    fn a_relay_with_a_new_key_is_told_beside_the_old_key() {
        let (north, old, new) = (relay("north"), relay("south"), relay("south"));
        trust(&north, "south", &old);
        let (dialled, _) = dial(&north, &new);
        let expected = format!(
            "the relay that answers has the key {}, and this one trusts {} for south: ",
            new.fingerprint(),
            old.fingerprint()
        );
        assert!(dialled.starts_with(&expected), "{dialled}");
    }

    #[test]
    fn a_relay_that_trusts_without_being_trusted_hears_it_too() {
        let (north, south) = (relay("north"), relay("south"));
        trust(&south, "north", &north);
        let (dialled, accepted) = dial(&north, &south);
        let key = south.fingerprint().to_string();
        let expected = format!("the key {key} is not trusted: `titin relay trust` adds it");
        assert_eq!(dialled, expected);
        let accepted = accepted.unwrap();
        assert!(
            accepted.contains(&key) && accepted.contains("may not trust"),
            "{accepted}"
        );
    }

    #[test]
    fn a_relay_that_is_killed_does_not_close_its_connection() {
        let (north, south) = (relay("north"), relay("south"));
        trust(&north, "south", &south);
        trust(&south, "north", &north);
        let (dialled, accepted) = dial(&north, &south);
        assert_eq!(
            dialled,
            "the other relay has ended without closing the connection: it was killed, or told to end"
        );
        assert_eq!(accepted, None);
    }
}
