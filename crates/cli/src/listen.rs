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
    let wrong = |why: String| ListenError {
        address: address.to_owned(),
        why,
        or_all: false,
    };
    if let Ok(ip) = address.parse::<IpAddr>() {
        return match TcpListener::bind((ip, 0)) {
            _ if ip.is_unspecified() => {
                Err(wrong(" is no address that others can connect to".into()))
            }
            Err(error) => Err(wrong(format!(" is no address of this host: {error}"))),
            Ok(_) => Ok(ip),
        };
    }
    let found = (address, 0)
        .to_socket_addrs()
        .map_err(|error| wrong(format!(": {error}")))?;
    let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    // Programs listen by IPv4. The name of a host, looked up on the same host, often gives the
    // loopback.
    found.sort_by_key(IpAddr::is_ipv6);
    let beyond = found.into_iter().find(|ip| !ip.is_loopback());
    beyond.ok_or_else(|| wrong(" is known here as this host's loopback only".into()))
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
