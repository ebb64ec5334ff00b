//! How an agent that the user has started gets its input from the manager: for a token.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use titin_os::sockets;
use titin_wire::circuit::{self, CircuitRequest, Destination, RelayAnswer, RelayRequest};
use titin_wire::handshake::Refusal;
use titin_wire::token::{AskError, Token, TokenAnswer, TokenRelay, TokenRequest, ask};
use titin_wire::{Address, Medium};

use super::AgentInput;
use super::input::hint_if_unreachable;

/// How long a host may take to accept a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// How long the manager, or a relay, may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Why the manager has not given an agent its input. Each printed error says how to go on.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The manager has refused the agent.
    #[error("the manager does not let this agent in: {0}")]
    Refused(String),
    /// The manager has not proved the one-time key.
    #[error(
        "the manager does not take the token: it has served already, or is of another run, or is not as the run has printed it. If \
         you have used the line before, give it again after some seconds, and the run prints a new one. If it is whole and was \
         not used, somebody else may have used it, who then knows the secret of the run: end the run{others}"
    )]
    Unknown {
        /// Why other addresses of the manager do not answer, behind a semicolon; empty if all answer.
        others: String,
    },
    /// The manager cannot be reached.
    #[error("cannot reach the manager: {why}. {hint}")]
    Unreachable {
        /// Why each address does not answer.
        why: String,
        /// What to look at, in questions.
        hint: String,
    },
}

/// Asks the manager for the input of an agent. `host` is the name of the host in the description.
///
/// # Errors
/// [`ExchangeError`] if there is no input.
pub(super) fn exchange(
    token: &Token,
    host: String,
    system_name: String,
) -> Result<AgentInput, ExchangeError> {
    let request = TokenRequest {
        host,
        system_name,
        release: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let unreachable = |why: String| {
        let relay = token.relay.as_ref().map(|relay| relay.address.as_str());
        let hint = hint_if_unreachable(&token.addresses, relay);
        ExchangeError::Unreachable { why, hint }
    };
    if token.addresses.is_empty() {
        return Err(unreachable(
            "the token has no address of the manager".to_owned(),
        ));
    }
    let mut failures = Vec::new();
    let mut is_unknown = false;
    for address in &token.addresses {
        match ask_at(address, token, &request) {
            Ok(TokenAnswer::Granted {
                connection,
                run_directory,
            }) => {
                return Ok(AgentInput {
                    connection: *connection,
                    run_directory,
                });
            }
            Ok(TokenAnswer::Refused { why }) => return Err(ExchangeError::Refused(why)),
            Err(AskError::Refused(why @ Refusal::Versions { .. })) => {
                return Err(ExchangeError::Refused(why.to_string()));
            }
            // Another host may have the same address, so the next address is tried.
            Err(AskError::Refused(Refusal::Secret)) => is_unknown = true,
            Err(why) => failures.push(format!("{address}: {why}")),
        }
    }
    let failures = failures.join("; ");
    Err(match is_unknown {
        true if failures.is_empty() => ExchangeError::Unknown { others: failures },
        true => ExchangeError::Unknown {
            others: format!("; other addresses of the manager: {failures}"),
        },
        false => unreachable(failures),
    })
}

/// Asks the manager at one of its addresses.
fn ask_at(
    address: &Address,
    token: &Token,
    request: &TokenRequest,
) -> Result<TokenAnswer, AskError> {
    let mut stream = match (address, &token.relay) {
        (Address::Tcp(host, port), _) => {
            sockets::connect((host.as_str(), *port), CONNECTION_TIME, ANSWER_TIME)?
        }
        (Address::Other(text), Some(relay)) if address.medium() == Some(Medium::Relay) => {
            open_circuit(text, relay)?
        }
        _ => return Err(io::Error::other("an agent cannot dial this address").into()),
    };
    ask(&mut stream, token, request).map_err(|error| match error {
        AskError::System(error) if error.kind() == io::ErrorKind::WouldBlock => {
            io::Error::other(format!("no answer within {ANSWER_TIME:?}")).into()
        }
        error => error,
    })
}

/// Opens a circuit to a listener at another site. The address is `relay:SITE/HOST:PORT`.
fn open_circuit(address: &str, relay: &TokenRelay) -> io::Result<TcpStream> {
    let place = address.split_once(':').map_or("", |(_, place)| place);
    let wrong = || io::Error::other("the address is not relay:SITE/HOST:PORT");
    let destination = Destination::parse(place).ok_or_else(wrong)?;
    let at_relay = |why: String| {
        let address = &relay.address;
        io::Error::other(format!("the relay {address} of this site: {why}"))
    };
    let dial = || {
        let mut stream = sockets::connect(relay.address.as_str(), CONNECTION_TIME, ANSWER_TIME)?;
        let request = RelayRequest::Circuit(CircuitRequest {
            destination,
            from: relay.site.clone(),
        });
        let permit = (relay.run, relay.permit.clone());
        io::Result::Ok((circuit::ask(&mut stream, permit, &request)?, stream))
    };
    match dial().map_err(|why| at_relay(why.to_string()))? {
        (RelayAnswer::Opened, stream) => Ok(stream),
        (RelayAnswer::Refused(refusal), _) => Err(at_relay(refusal.why)),
        (other, _) => Err(at_relay(format!("it {}", other.unexpected()))),
    }
}
