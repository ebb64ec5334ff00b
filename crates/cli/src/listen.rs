//! `--listen`: the address at which programs on other hosts reach this one.

use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};

/// The address of this host that a name or an address means.
///
/// # Errors
/// Other hosts cannot use it. The text says what to give.
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
    // Programs listen by IPv4. The own name of a host often means its loopback.
    found.sort_by_key(IpAddr::is_ipv6);
    let beyond = found.into_iter().find(|ip| !ip.is_loopback());
    beyond.ok_or_else(|| {
        format!("--listen {address} is known here as this host's loopback only; {hint}")
    })
}

/// The address at which a run listens for other hosts: the one that the user gives; any, for `all` or in
/// a Slurm job of several nodes; else none.
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
