//! The cores of this host that the run may use.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};
use titin_os::host;

/// The cores for this process, at most as many as the quota of the process's control group allows.
pub fn cores() -> Vec<u32> {
    let mut cores = allowed_cores();
    if cores.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        cores = (0..count).collect();
    }
    let groups = host::control_groups();
    let quotas = groups.iter().filter_map(|group| quota(group));
    if let Some(quota) = quotas.reduce(f64::min) {
        cores.truncate((quota as usize).max(1));
    }
    cores
}

/// The first of the cores, if the description says how many.
pub fn at_most(mut cores: Vec<u32>, most: Option<u32>) -> Vec<u32> {
    cores.truncate(most.map_or(usize::MAX, |most| most as usize));
    cores
}

/// The cores on which this process may run; none if the system does not say.
fn allowed_cores() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core));
    cores.map(|core| core as u32).collect()
}

/// The quota of a control group, in cores.
fn quota(group: &Path) -> Option<f64> {
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    if let Some(text) = read("cpu.max") {
        return parse_quota(&text);
    }
    parse_quota(&format!(
        "{} {}",
        read("cpu.cfs_quota_us")?.trim(),
        read("cpu.cfs_period_us")?.trim()
    ))
}

/// Reads "quota period". Without a quota the first word is "max", or negative.
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
    fn this_host_has_cores() {
        assert!(!cores().is_empty());
    }
}
