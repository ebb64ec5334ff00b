//! `--listen`: the address of this host for programs on other hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};

use titin_manager::launch::environment;
use titin_manager::slurm::has_several_nodes;

/// An address given by `--listen` that other hosts cannot use. The text says how to choose an
/// address.
#[derive(Debug, thiserror::Error)]
#[error("--listen {address}{fault}; {HINT}{}", if *or_all { ", or `all`" } else { "" })]
pub(crate) struct ListenError {
    address: String,
    fault: AddressFault,
    /// Whether the command also takes `all`.
    or_all: bool,
}

/// Why other hosts cannot use an address, in words that follow the address.
#[derive(Debug, thiserror::Error)]
enum AddressFault {
    #[error(" is no address that others can connect to")]
    Unspecified,
    #[error(" is no address of this host: {0}")]
    NotOwn(io::Error),
    #[error(": {0}")]
    NotFound(io::Error),
    #[error(" is known here as this host's loopback only")]
    Loopback,
}

const HINT: &str = "give a name or an address of this host, as the other one knows it";

/// The address of this host for `address`, a name or an address.
///
/// # Errors
/// [`ListenError`] if other hosts cannot use the address.
pub(crate) fn own_address(address: &str) -> Result<IpAddr, ListenError> {
    let own = match address.parse::<IpAddr>() {
        Ok(ip) => check_own(ip).map(|()| ip),
        Err(_) => look_up(address),
    };
    own.map_err(|fault| ListenError {
        address: address.to_owned(),
        fault,
        or_all: false,
    })
}

/// Checks that an address is an address of this host.
fn check_own(ip: IpAddr) -> Result<(), AddressFault> {
    if ip.is_unspecified() {
        return Err(AddressFault::Unspecified);
    }
    match TcpListener::bind((ip, 0)) {
        Err(error) => Err(AddressFault::NotOwn(error)),
        Ok(_) => Ok(()),
    }
}

/// The address of this host that has the given name.
fn look_up(name: &str) -> Result<IpAddr, AddressFault> {
    let found = (name, 0).to_socket_addrs();
    let found = found.map_err(AddressFault::NotFound)?;
    let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    // Programs listen by IPv4. The name of a host, looked up on the same host, often gives the
    // loopback.
    found.sort_by_key(IpAddr::is_ipv6);
    let beyond = found.into_iter().find(|ip| !ip.is_loopback());
    beyond.ok_or(AddressFault::Loopback)
}

/// The address at which the manager listens for programs on other hosts: the user's choice, or all
/// addresses if the run has further hosts or is in a Slurm job of several nodes. `None` if all programs
/// are on this host.
///
/// # Errors
/// As [`own_address`].
pub(crate) fn reach(asked: Option<&str>, has_hosts: bool) -> Result<Option<IpAddr>, ListenError> {
    let everywhere = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    match asked {
        Some("all") => Ok(everywhere),
        Some(address) => own_address(address).map(Some).map_err(|error| ListenError {
            or_all: true,
            ..error
        }),
        None => {
            let is_needed = has_hosts || has_several_nodes(&environment());
            Ok(everywhere.filter(|_| is_needed))
        }
    }
}
