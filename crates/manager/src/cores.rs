//! What this host offers: cores that we may use, and memory.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores that this process may run on, as many as its control group's quota pays for.
pub fn cores() -> Vec<u32> {
    let mut cores: Vec<u32> = match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect(),
        Err(_) => Vec::new(),
    };
    if cores.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        cores = (0..count).collect();
    }
    if let Some(quota) = groups().iter().filter_map(|group| quota(group)).reduce(f64::min) {
        cores.truncate((quota as usize).max(1));
    }
    cores
}

/// Bytes of memory that this process may use, by the host's size and the limits of its control group.
pub fn memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB")?.trim().parse().ok());
    let total = total.map_or(4 << 30, |kilobytes: u64| kilobytes * 1024);
    let limits = groups().into_iter().flat_map(|group| {
        ["memory.max", "memory.limit_in_bytes"].map(|file| {
            fs::read_to_string(group.join(file)).ok().and_then(|text| text.trim().parse::<u64>().ok())
        })
    });
    limits.flatten().fold(total, u64::min)
}

/// The control groups that this process is in, and those around them.
fn groups() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut groups = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => PathBuf::from("/sys/fs/cgroup"),
            controllers if controllers.split(',').any(|name| matches!(name, "cpu" | "memory")) => {
                Path::new("/sys/fs/cgroup").join(controllers)
            }
            _ => continue,
        };
        let inner = root.join(path.trim_start_matches('/'));
        groups
            .extend(inner.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_path_buf));
    }
    groups
}

/// The number of cores that a control group's quota pays for.
fn quota(group: &Path) -> Option<f64> {
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    if let Some(text) = read("cpu.max") {
        return parse_quota(&text);
    }
    parse_quota(&format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim()))
}

/// Reads "quota period"; no quota is "max" or negative.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_as_cores() {
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000"), None);
        assert_eq!(parse_quota("-1 100000"), None);
        assert_eq!(parse_quota(""), None);
    }

    #[test]
    fn this_host_has_cores_and_memory() {
        assert!(!cores().is_empty());
        assert!(memory() > 1 << 20);
    }
}
