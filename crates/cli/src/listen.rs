//! `--listen`: where programs on other hosts reach this one.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

/// The address of this host that is meant.
///
/// # Errors
/// What is wrong with it, and what to give.
pub(crate) fn own_address(address: &str) -> Result<IpAddr, String> {
    let hint = "give a name or an address of this host, as the other one knows it";
    let mut found =
        (address, 0).to_socket_addrs().map_err(|error| format!("--listen {address}: {error}; {hint}"))?;
    match found.next().map(|address| address.ip()) {
        Some(ip) if ip.is_unspecified() => {
            Err(format!("--listen {address} is no address that others can connect to; {hint}"))
        }
        Some(ip) => Ok(ip),
        None => Err(format!("--listen {address} is not known; {hint}")),
    }
}

/// Where a run is reached: at the address that the user gives, at any with the word `all` or if Slurm has given the run more
/// than one node, else from this host only.
///
/// # Errors
/// As [`own_address`].
pub(crate) fn reach(asked: Option<&str>) -> Result<Option<IpAddr>, String> {
    let everywhere = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    match asked {
        Some("all") => Ok(everywhere),
        Some(address) => own_address(address).map(Some),
        None => {
            let nodes = std::env::var("SLURM_JOB_NUM_NODES").ok().and_then(|nodes| nodes.parse::<u32>().ok());
            Ok(everywhere.filter(|_| nodes.is_some_and(|nodes| nodes > 1)))
        }
    }
}
