//! Where other processes reach this one.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use titin_os::folder_lock;
use titin_os::host::addresses;
use titin_transport::Medium;
use titin_wire::Address;
use titin_wire::connection::{MEETING_PLACES, meeting_place, meeting_place_of};

use super::Process;

impl Process {
    /// Listens where processes of this host meet, if there is such a place. Whoever manages the run makes it on that host; on others
    /// the first one does that comes. Only the user who made it can write there: another one makes a folder beside it.
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
        // Whoever knows the secret may come, as whatever user.
        let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777));
        Some(address)
    }

    /// Makes a folder that goes with the processes that use it, or joins those.
    fn claim(&self, place: PathBuf) -> Option<PathBuf> {
        let file = folder_lock::enter(&place, MEETING_PLACES).ok()?;
        self.claims
            .lock()
            .expect("never poisoned")
            .push((place.clone(), file));
        Some(place)
    }

    /// Lets go of the places where processes of this host meet: nobody comes any more.
    pub(super) fn leave(&self) {
        let claims = std::mem::take(&mut *self.claims.lock().expect("never poisoned"));
        claims
            .into_iter()
            .for_each(|(place, file)| folder_lock::leave(&place, file));
    }
}

/// Whether one of these is where processes of one host meet.
pub(super) fn meets(addresses: &[Address]) -> bool {
    addresses
        .iter()
        .any(|address| matches!(address, Address::Shm(_)))
}

/// Addresses under which other hosts may reach this one. First come those that the ways to the run's manager begin at.
pub(super) fn interfaces(manager: &[Address]) -> Vec<String> {
    let mut found: Vec<Ipv4Addr> = Vec::new();
    for address in manager
        .iter()
        .filter_map(near_end)
        .filter(|end| !end.is_loopback())
        .chain(addresses())
    {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found.iter().map(ToString::to_string).collect()
}

/// The address of this host from which that one is reached. Nothing is sent: the system looks for the way when a socket
/// for datagrams is connected.
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

/// The host's name.
pub(crate) fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_get_the_address_that_the_way_to_the_manager_begins_at() {
        let outer = addresses()[0];
        let manager = [
            Address::Tcp(outer.to_string(), 9),
            Address::Other("ucx:1".into()),
        ];
        let found = interfaces(&manager);
        assert_eq!(found[0], outer.to_string(), "{found:?}");
        assert_eq!(
            found.iter().collect::<std::collections::HashSet<_>>().len(),
            found.len(),
            "{found:?}"
        );
    }
}
