//! The addresses of this process for other processes.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use titin_os::folder_lock;
use titin_os::host::MissingNetwork;
use titin_transport::{Medium, own_addresses};
use titin_wire::connection::{Connection, MEETING_PLACES, meeting_place, meeting_place_of};
use titin_wire::{Address, HostNetwork};

use super::Process;
use crate::{Error, Kind, Result};

impl Process {
    /// Listens at the meeting place of this host, if there is a meeting place. The manager makes
    /// the meeting place on its host, and on another host the first process does. Only the
    /// folder's owner can write there, so a process of another user makes a second folder.
    pub(super) fn meet(&self, spans_hosts: bool) -> Option<Address> {
        let place = meeting_place(&self.secret);
        if spans_hosts {
            self.claim(place.clone());
        }
        if !place.is_dir() {
            return None;
        }
        self.listen_in(&place).or_else(|| {
            let own = meeting_place_of(&self.secret, rustix::process::geteuid().as_raw());
            self.listen_in(self.claim(own)?)
        })
    }

    fn listen_in(&self, place: impl AsRef<Path>) -> Option<Address> {
        let path = place.as_ref().join(format!("{:032x}", self.id.0));
        let address = self.reactor().listen(Medium::Shm, path.to_str()?).ok()?;
        // A process of any user may come, if the process knows the secret.
        let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777));
        Some(address)
    }

    /// Listens in the folders of the run, by the media whose processes meet in a folder.
    pub(super) fn listen_in_folders(&self, connection: &Connection) -> Result<Vec<Address>> {
        let mut addresses = Vec::new();
        for (key, folder) in &connection.folders {
            let Some(medium) = Medium::of_key(key) else {
                continue;
            };
            let address = self.reactor().listen(medium, &folder.to_string_lossy());
            addresses.push(address.map_err(|error| {
                let text = format!(
                    "this program cannot take part in messages by {key}: {error}; all programs of the run need the folder, \
                     at the same path and to write to (titin: folder)"
                );
                Error::new(Kind::Connection, text)
            })?);
        }
        Ok(addresses)
    }

    /// Makes or joins a folder. The last process to leave removes the folder.
    fn claim(&self, place: PathBuf) -> Option<PathBuf> {
        let file = folder_lock::enter(&place, MEETING_PLACES).ok()?;
        self.claims
            .lock()
            .expect("never poisoned")
            .push((place.clone(), file));
        Some(place)
    }

    /// Lets go of the meeting places: no process comes any more.
    pub(super) fn leave(&self) {
        let claims = std::mem::take(&mut *self.claims.lock().expect("never poisoned"));
        claims
            .into_iter()
            .for_each(|(place, file)| folder_lock::leave(&place, file));
    }
}

/// Whether any of the addresses is at a meeting place.
pub(super) fn meets(addresses: &[Address]) -> bool {
    addresses
        .iter()
        .any(|address| matches!(address, Address::Shm(_)))
}

/// Addresses of this host for other hosts, in the given network if there is one. The addresses on the
/// way to the manager come first.
pub(super) fn interfaces(
    manager: &[Address],
    network: Option<&HostNetwork>,
) -> Result<Vec<String>> {
    let own = own_addresses(network).map_err(no_network)?;
    let on_the_way = manager.iter().filter_map(near_end);
    let on_the_way = on_the_way.filter(|end| match network {
        None => !end.is_loopback(),
        Some(_) => own.contains(end),
    });
    let mut found: Vec<Ipv4Addr> = Vec::new();
    for address in on_the_way.chain(own.iter().copied()) {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    Ok(found.iter().map(ToString::to_string).collect())
}

fn no_network(why: MissingNetwork) -> Error {
    let text = format!(
        "the host of this program {why}; `network` of its host under `titin: hosts`, or that of localhost, says by which \
         network programs are reached: a prefix such as 10.70.0.0/24 may fit several hosts"
    );
    Error::new(Kind::Connection, text)
}

/// The address of this host on the way to another address. Nothing is sent: the system looks up the
/// route when a datagram socket is connected.
fn near_end(address: &Address) -> Option<Ipv4Addr> {
    let Address::Tcp(host, port) = address else {
        return None;
    };
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((host.as_str(), *port)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use titin_os::host;

    use super::*;

    #[test]
    fn peers_get_the_address_that_the_way_to_the_manager_begins_at() {
        let outer = host::addresses()[0];
        let manager = [
            Address::Tcp(outer.to_string(), 9),
            Address::Other("ucx:1".into()),
        ];
        let found = interfaces(&manager, None).unwrap();
        assert_eq!(found[0], outer.to_string(), "{found:?}");
        assert_eq!(
            found.iter().collect::<std::collections::HashSet<_>>().len(),
            found.len(),
            "{found:?}"
        );
    }

    #[test]
    fn peers_get_addresses_of_the_chosen_network_alone() {
        // The way to the manager begins in another network.
        let manager = [Address::Tcp(host::addresses()[0].to_string(), 9)];
        let loopback = "127.0.0.1".parse().unwrap();
        let found = interfaces(&manager, Some(&loopback)).unwrap();
        assert_eq!(found, ["127.0.0.1"]);
        let missing = "no-such-net".parse().unwrap();
        let error = interfaces(&manager, Some(&missing)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("this program has no network no-such-net that is up"),
            "{text}"
        );
        assert!(text.contains("lo (127.0.0.1/8)"), "{text}");
    }
}
