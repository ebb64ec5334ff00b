//! `--listen`: the address of this host for programs on other hosts.

use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};

/// The address of this host for `address`, a name or an address.
///
/// # Errors
/// Other hosts cannot use the address. The text says how to choose an address.
pub(crate) fn own_address(address: &str) -> Result<IpAddr, String> {
    let hint = "give a name or an address of this host, as the other one knows it";
    if let Ok(ip) = address.parse::<IpAddr>() {
        return match TcpListener::bind((ip, 0)) {
            _ if ip.is_unspecified() => Err(format!(
                "--listen {address} is no address that others can connect to; {hint}"
            )),
            Err(error) => Err(format!(
                "--listen {address} is no address of this host: {error}; {hint}"
            )),
            Ok(_) => Ok(ip),
        };
    }
    let found = (address, 0)
        .to_socket_addrs()
        .map_err(|error| format!("--listen {address}: {error}; {hint}"))?;
    let mut found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    // Programs listen by IPv4. The name of a host, looked up on the same host, often gives the
    // loopback.
    found.sort_by_key(IpAddr::is_ipv6);
    let beyond = found.into_iter().find(|ip| !ip.is_loopback());
    beyond.ok_or_else(|| {
        format!("--listen {address} is known here as this host's loopback only; {hint}")
    })
}

/// The address at which a run listens for other hosts. The user's address, if given; any address,
/// for `all` or in a Slurm job of several nodes; else no address.
///
/// # Errors
/// As [`own_address`].
pub(crate) fn reach(asked: Option<&str>) -> Result<Option<IpAddr>, String> {
    let everywhere = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    match asked {
        Some("all") => Ok(everywhere),
        Some(address) => own_address(address)
            .map(Some)
            .map_err(|text| format!("{text}, or `all`")),
        None => {
            let nodes = std::env::var("SLURM_JOB_NUM_NODES")
                .ok()
                .and_then(|nodes| nodes.parse::<u32>().ok());
            Ok(everywhere.filter(|_| nodes.is_some_and(|nodes| nodes > 1)))
        }
    }
}
