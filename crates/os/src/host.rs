//! This host: name, control groups, memory, addresses.

use std::fmt;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// The name of this host, as the system knows the host.
pub fn name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Bytes of memory that this process may use, by the size of the host and the limits of the control
/// groups.
pub fn memory() -> u64 {
    let system = rustix::system::sysinfo();
    let total = system.totalram.saturating_mul(system.mem_unit.into());
    control_groups()
        .iter()
        .filter_map(|group| limit(group))
        .fold(total, u64::min)
}

/// The control groups of this process, and the groups around them: of version 2, and of version 1
/// for processors and memory.
pub fn control_groups() -> Vec<PathBuf> {
    groups_of(
        &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        Path::new("/sys/fs/cgroup"),
    )
}

fn groups_of(own: &str, mounted: &Path) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => mounted.to_owned(),
            controllers
                if controllers
                    .split(',')
                    .any(|name| matches!(name, "cpu" | "memory")) =>
            {
                mounted.join(controllers)
            }
            _ => continue,
        };
        let inner = root.join(path.trim_start_matches('/'));
        groups.extend(
            inner
                .ancestors()
                .take_while(|folder| folder.starts_with(&root))
                .map(Path::to_path_buf),
        );
    }
    groups
}

/// The bytes of memory that a control group may use, if the group has a limit.
fn limit(group: &Path) -> Option<u64> {
    // A group without a limit has the word max in version 2, and a number beyond the memory of any
    // host in version 1.
    let read = |file: &str| {
        fs::read_to_string(group.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    read("memory.max").or_else(|| read("memory.limit_in_bytes"))
}

/// Bytes of memory free for this process now, by the accounts of the host and of the control
/// groups.
pub fn free_memory() -> u64 {
    let host = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| available(&text))
        .unwrap_or(0);
    control_groups()
        .iter()
        .filter_map(|group| room(group))
        .fold(host, u64::min)
}

/// The available bytes, as the host reports.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// The bytes of memory that a control group may still take, if the group has a limit. File pages
/// not used lately count as free: the system drops such pages first.
fn room(group: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    let used = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let used = used("memory.current").or_else(|| used("memory.usage_in_bytes"))?;
    let unused = read("memory.stat")
        .and_then(|stat| unused_files(&stat))
        .unwrap_or(0);
    Some(limit(group)?.saturating_sub(used.saturating_sub(unused)))
}

/// The bytes of file pages not used lately by a control group and the groups below.
fn unused_files(stat: &str) -> Option<u64> {
    let entry = |name: &str| {
        stat.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    // In version 1 the second name leaves out the groups below.
    entry("total_inactive_file ").or_else(|| entry("inactive_file "))
}

/// An address of this host in a connected network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkAddress {
    /// The name of the interface, perhaps with a label: `eth0`, `eth0:1`.
    pub interface: String,
    /// The address.
    pub address: Ipv4Addr,
    /// How many bits of the address are those of the network.
    pub bits: u32,
}

impl fmt::Display for NetworkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}/{})", self.interface, self.address, self.bits)
    }
}

/// The addresses of this host in all connected networks, with that of the loopback.
pub fn network_addresses() -> Vec<NetworkAddress> {
    let connected = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let networks = getifaddrs()
        .into_iter()
        .flatten()
        .filter(|network| network.flags.contains(connected));
    let addresses = networks.filter_map(|network| {
        let mask = network
            .netmask
            .as_ref()
            .and_then(|mask| mask.as_sockaddr_in());
        Some(NetworkAddress {
            address: network.address?.as_sockaddr_in()?.ip(),
            bits: mask.map_or(32, |mask| mask.ip().to_bits().count_ones()),
            interface: network.interface_name,
        })
    });
    addresses.collect()
}

/// The addresses of this host in all connected networks, or the loopback address if there is no
/// other address. Other hosts may not reach all addresses.
pub fn addresses() -> Vec<Ipv4Addr> {
    let addresses = network_addresses().into_iter();
    let addresses = addresses.map(|network| network.address);
    let found: Vec<Ipv4Addr> = addresses.filter(|address| !address.is_loopback()).collect();
    if found.is_empty() {
        vec![Ipv4Addr::LOCALHOST]
    } else {
        found
    }
}

/// No connected network of this host is as expected. Displayed as words behind the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNetwork {
    expected: String,
    present: Vec<NetworkAddress>,
}

impl std::error::Error for MissingNetwork {}

impl fmt::Display for MissingNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present: Vec<String> = self.present.iter().map(ToString::to_string).collect();
        let present = match present.is_empty() {
            true => "none".to_owned(),
            false => present.join(", "),
        };
        let expected = &self.expected;
        write!(
            f,
            "has no network {expected} that is up and has an IPv4 address; it has {present}"
        )
    }
}

/// The addresses of this host for which `includes` is true of the interface and the address. `expected`
/// describes them for the error.
///
/// # Errors
/// [`MissingNetwork`] if there is no such address.
pub fn addresses_in(
    expected: impl fmt::Display,
    includes: impl Fn(&str, Ipv4Addr) -> bool,
) -> Result<Vec<Ipv4Addr>, MissingNetwork> {
    choose(network_addresses(), expected, includes)
}

fn choose(
    present: Vec<NetworkAddress>,
    expected: impl fmt::Display,
    includes: impl Fn(&str, Ipv4Addr) -> bool,
) -> Result<Vec<Ipv4Addr>, MissingNetwork> {
    let chosen = present.iter();
    let chosen = chosen.filter(|network| includes(&network.interface, network.address));
    let chosen = chosen.map(|network| network.address);
    // A large prefix includes the loopback, where other hosts find themselves.
    let (loopback, outer): (Vec<_>, Vec<_>) = chosen.partition(Ipv4Addr::is_loopback);
    let found = [outer, loopback]
        .into_iter()
        .find(|found| !found.is_empty());
    found.ok_or_else(|| MissingNetwork {
        expected: expected.to_string(),
        present,
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A folder for a test, removed at the end of the test.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_lowest_limit_of_the_groups_around_a_process_counts() {
        let folder = std::env::temp_dir().join(format!("titin-groups-{}", std::process::id()));
        let folder = Folder(folder);
        let write = |file: &str, text: &str| {
            let file = folder.0.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("memory.max", "max\n");
        write("job/memory.max", "1000000\n");
        write("job/step/memory.max", "max\n");
        write("job/memory.current", "999000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/batch/memory.limit_in_bytes", "2000000\n");
        let limits = |own: &str| -> Vec<u64> {
            groups_of(own, &folder.0)
                .iter()
                .filter_map(|group| limit(group))
                .collect()
        };
        assert_eq!(limits("0::/job/step\n"), [1_000_000]);
        assert_eq!(room(&folder.0.join("job")), Some(1000));
        write(
            "job/memory.stat",
            "anon 5\nfile 90000\ninactive_file 80000\nactive_file 10000\n",
        );
        assert_eq!(room(&folder.0.join("job")), Some(81_000));
        write("memory/batch/memory.usage_in_bytes", "1500000\n");
        write(
            "memory/batch/memory.stat",
            "inactive_file 1\ntotal_inactive_file 100000\n",
        );
        assert_eq!(room(&folder.0.join("memory/batch")), Some(600_000));
        assert!(limits("0::/\n").is_empty());
        assert_eq!(
            limits("5:memory:/batch\n3:devices:/job\n"),
            [2_000_000, 9_223_372_036_854_771_712]
        );
        assert!(limits("nonsense").is_empty());
    }

    #[test]
    fn this_host_is_reached_by_its_loopback_if_by_nothing_else() {
        let found = addresses();
        assert!(!found.is_empty());
        assert!(
            found.len() == 1 || found.iter().all(|address| !address.is_loopback()),
            "{found:?}"
        );
    }

    #[test]
    fn a_network_that_is_missing_is_told_with_those_that_are_there() {
        let network = |interface: &str, address: [u8; 4], bits| NetworkAddress {
            interface: interface.to_owned(),
            address: address.into(),
            bits,
        };
        let present = [
            network("lo", [127, 0, 0, 1], 8),
            network("eth0", [10, 70, 0, 2], 24),
            network("eth1", [10, 71, 0, 2], 16),
        ];
        let of = |name: &str| choose(present.to_vec(), name, |interface, _| interface == name);
        assert_eq!(of("eth1"), Ok(vec![Ipv4Addr::new(10, 71, 0, 2)]));
        assert_eq!(
            of("eth2").unwrap_err().to_string(),
            "has no network eth2 that is up and has an IPv4 address; it has lo (127.0.0.1/8), eth0 (10.70.0.2/24), \
             eth1 (10.71.0.2/16)"
        );
        let all = choose(present.to_vec(), "0.0.0.0/0", |_, _| true);
        let outer = vec![Ipv4Addr::new(10, 70, 0, 2), Ipv4Addr::new(10, 71, 0, 2)];
        assert_eq!(all, Ok(outer));
        assert_eq!(of("lo"), Ok(vec![Ipv4Addr::LOCALHOST]));
        let none = choose(Vec::new(), "eth0", |_, _| true).unwrap_err();
        assert!(none.to_string().ends_with("; it has none"), "{none}");
    }

    #[test]
    fn each_address_of_this_host_has_an_interface_and_a_prefix() {
        let all = network_addresses();
        for address in addresses() {
            let found = all.iter().find(|network| network.address == address);
            let found = found.expect("an interface has the address");
            assert!(!found.interface.is_empty());
            assert!((1..=32).contains(&found.bits), "{found}");
        }
    }

    #[test]
    fn this_host_has_memory_and_some_of_it_is_free() {
        assert!(memory() > 1 << 20);
        assert!((1..memory()).contains(&free_memory()));
        assert_eq!(
            available("MemTotal: 9 kB\nMemAvailable:   24 kB\n"),
            Some(24 << 10)
        );
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
