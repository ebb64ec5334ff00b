//! TLS 1.3 between relays. Both ends prove themselves by their keys, which are pinned: no authority
//! signs anything.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme, version,
};

use titin_relay::{Config, Fingerprint, Identity, end_of_day};

/// The protocol inside of TLS, which both ends have to name.
const PROTOCOL: &[u8] = b"titin-relay/1";

/// The keys that a relay trusts, with their sites, and until when.
#[derive(Debug, Default)]
pub(crate) struct PinnedKeys(RwLock<HashMap<Fingerprint, PinnedKey>>);

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
        *self.0.write().expect("never poisoned") = pinned.collect();
    }

    /// The site of a certificate's key.
    pub(crate) fn site_of(&self, certificate: &CertificateDer<'_>) -> Result<String, String> {
        let fingerprint = Fingerprint::of_certificate(certificate)?;
        let keys = self.0.read().expect("never poisoned");
        let key = keys.get(&fingerprint).ok_or_else(|| {
            format!("the key {fingerprint} is not trusted: `titin relay trust` adds it")
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
        let site = self.keys.site_of(certificate).map_err(Error::General)?;
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
