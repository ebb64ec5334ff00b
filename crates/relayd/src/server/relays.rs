//! Connections of the relays of other sites.

use std::sync::Arc;

use titin_wire::circuit::{CircuitRefusal, Destination};
use titin_wire::line::{LinePurpose, PeerAnswer, PeerGreeting};
use titin_wire::versions;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{CircuitCount, Relay, hex};
use crate::circuits::{self, CircuitEnd, CircuitOrigin, PeerLine, PeerStream};
use crate::messages;
use crate::peers::{self, Peer, prepare_line};
use crate::strangers::StrangerPlace;
use crate::tls::{HANDSHAKE_TIME, check_protocol};

impl Relay {
    /// Takes a connection of another relay, after the proofs of both.
    pub(super) async fn take_peer(self: &Arc<Self>, stream: TcpStream, place: StrangerPlace) {
        prepare_line(&stream, self.congestion().as_deref());
        let accepting = TlsAcceptor::from(self.tls.server.clone()).accept(stream);
        let stream = match timeout(HANDSHAKE_TIME, accepting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return place.log_refusal(&self.tls.why(&error)),
            Err(_) => return place.log_refusal("no proof in time"),
        };
        if let Err(why) = check_protocol(stream.get_ref().1.alpn_protocol()) {
            return place.log_refusal(&why);
        }
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(|chain| chain.first());
        let site = certificate
            .ok_or_else(|| "there is no certificate".to_owned())
            .and_then(|certificate| self.tls.keys.site_of(certificate));
        let peer = site.map(|site| self.lock().get(&site).cloned());
        match peer {
            Ok(Some(peer)) => self.serve_peer(&peer, stream.into(), place).await,
            Ok(None) => place.log_refusal("the site is trusted no more"),
            Err(why) => place.log_refusal(&why),
        }
    }

    /// Serves a connection of another relay: its greeting says what it is for.
    /// `place` bounds the connections without a greeting.
    pub(crate) async fn serve_peer(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut stream: PeerStream,
        place: impl Send,
    ) {
        let mut buffer = Vec::new();
        let greeting = messages::read_short::<PeerGreeting>(&mut stream, &mut buffer);
        let greeting = match timeout(HANDSHAKE_TIME, greeting).await {
            Ok(Ok(greeting)) => greeting,
            Ok(Err(error)) => {
                return peer.log_refusal(&self.tls.why(&error));
            }
            Err(_) => return peer.log_refusal("no greeting in time"),
        };
        drop(place);
        let (lowest, highest) = greeting.versions;
        let own = versions::relay();
        if lowest > own.1 || highest < own.0 {
            let why = format!(
                "the relay of the site {} speaks versions {lowest} to {highest}, that of {} {} to {}: use releases of titin \
                 that share a version",
                peer.site(),
                self.site,
                own.0,
                own.1
            );
            peer.log_refusal(&why);
            return refuse_peer(&mut stream, CircuitRefusal::lasting(why)).await;
        }
        match greeting.purpose {
            LinePurpose::Control => {
                let answered = messages::write(&mut stream, &PeerAnswer::Welcome).await;
                if answered.is_ok() {
                    peers::serve_control(self, peer, stream, buffer).await;
                }
            }
            LinePurpose::Circuit {
                run,
                destination,
                hops,
            } => {
                let request = (run, &destination, hops);
                let serving = self.serve_circuit_of_peer(peer, stream, &buffer, request);
                tokio::select! {
                    () = serving => {}
                    () = peer.revoked() => {}
                }
            }
            LinePurpose::Callback { call } => {
                if !peer.take_callback(call, stream, buffer) {
                    peer.log_refusal(&format!("there is no call {call}"));
                }
            }
        }
    }

    fn check_use(&self, peer: &Peer, run: u64) -> Result<(), CircuitRefusal> {
        match self.runs.is_for(run, &peer.far_sites()) {
            true => Ok(()),
            false => Err(CircuitRefusal::passing(format!(
                "the run {} is not admitted for the site {} by the relay of {}",
                hex(run),
                peer.site(),
                self.site
            ))),
        }
    }

    async fn serve_circuit_of_peer(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        mut stream: PeerStream,
        first_bytes: &[u8],
        (run, destination, hops): (u64, &Destination, u8),
    ) {
        let opening = async {
            self.check_use(peer, run)?;
            let place = peer.enter()?;
            let origin = CircuitOrigin::Relay(peer, hops);
            let far = circuits::open(self, run, destination, origin).await?;
            Result::<_, CircuitRefusal>::Ok((far, place))
        };
        let opened = opening.await;
        self.log_refused_circuit((peer.site(), Some(peer)), run, destination, &opened);
        let (far, _place) = match opened {
            Ok(opened) => opened,
            Err(refusal) => return refuse_peer(&mut stream, refusal).await,
        };
        let Ok(line) = PeerLine::of(peer, &stream) else {
            return;
        };
        if messages::write(&mut stream, &PeerAnswer::Welcome)
            .await
            .is_ok()
        {
            let _open = CircuitCount::of(self);
            // A circuit that breaks tells no more than its end.
            let _ = circuits::pass(stream, first_bytes, CircuitEnd::Relay(line), far).await;
        }
    }
}

async fn refuse_peer(stream: &mut PeerStream, refusal: CircuitRefusal) {
    let _ = messages::write(stream, &PeerAnswer::Refused(refusal)).await;
    let _ = stream.shutdown().await;
}
