//! `--listen`: the address of this host for programs on other hosts.

use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};

/// An address given by `--listen` that other hosts cannot use. The text says how to choose an
/// address.
#[derive(Debug, thiserror::Error)]
#[error("--listen {address}{why}; {HINT}{}", if *or_all { ", or `all`" } else { "" })]
pub(crate) struct ListenError {
    address: String,
    why: String,
    /// Whether the command also takes `all`.
    or_all: bool,
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
    own.map_err(|why| ListenError {
        address: address.to_owned(),
        why,
        or_all: false,
    })
}

/// Checks that an address is an address of this host.
///
/// # Errors
/// Why not, in words that follow the address.
fn check_own(ip: IpAddr) -> Result<(), String> {
    if ip.is_unspecified() {
        return Err(" is no address that others can connect to".into());
    }
    match TcpListener::bind((ip, 0)) {
        Err(error) => Err(format!(" is no address of this host: {error}")),
        Ok(_) => Ok(()),
    }
}

/// The address of this host that has the given name.
///
/// # Errors
/// Why there is no address, in words that follow the name.
fn look_up(name: &str) -> Result<IpAddr, String> {
    let found = (name, 0).to_socket_addrs();
    let found = found.map_err(|error| format!(": {error}"))?;
    let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    // Programs listen by IPv4. The name of a host, looked up on the same host, often gives the
    // loopback.
    found.sort_by_key(IpAddr::is_ipv6);
    let beyond = found.into_iter().find(|ip| !ip.is_loopback());
    beyond.ok_or_else(|| " is known here as this host's loopback only".into())
}

/// The address at which a run listens for other hosts. The user's address, if given; any address,
/// for `all` or in a Slurm job of several nodes; else no address.
///
/// # Errors
/// As [`own_address`].
pub(crate) fn reach(asked: Option<&str>) -> Result<Option<IpAddr>, ListenError> {
    let everywhere = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    match asked {
        Some("all") => Ok(everywhere),
        Some(address) => own_address(address).map(Some).map_err(|error| ListenError {
            or_all: true,
            ..error
        }),
        None => {
            let nodes = std::env::var("SLURM_JOB_NUM_NODES")
                .ok()
                .and_then(|nodes| nodes.parse::<u32>().ok());
            Ok(everywhere.filter(|_| nodes.is_some_and(|nodes| nodes > 1)))
        }
    }
}
