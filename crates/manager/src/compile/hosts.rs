//! The hosts of a plan.

use std::path::PathBuf;

use titin_model::{Host, HostNetwork, Name, Network, OWN_HOST};

use crate::host::HostId;
use crate::plan::{PlannedHost, PlannedSite};

/// The hosts of the description but for the manager's own, in the order of their ids.
fn further_hosts(network: &Network) -> impl Iterator<Item = (&Name, &Host)> {
    let hosts = network.extras.hosts.iter();
    hosts.filter(|(name, _)| *name != OWN_HOST)
}

pub(super) fn planned_hosts(network: &Network) -> Vec<PlannedHost> {
    let planned = |(name, host): (&Name, &Host)| PlannedHost {
        name: name.to_string(),
        address: host.address.clone().unwrap_or_else(|| name.to_string()),
        start: host.start.clone(),
        titin: host.titin.clone(),
        cores: host.cores,
        folder: host.folder.as_ref().map(PathBuf::from),
        network: host.network.clone(),
        het_group: None,
        site: host
            .site
            .as_ref()
            .and_then(|site| network.extras.sites.get_index_of(site)),
    };
    further_hosts(network).map(planned).collect()
}

/// The sites of the description.
pub(super) fn planned_sites(network: &Network) -> Vec<PlannedSite> {
    let sites = network.extras.sites.iter();
    sites
        .map(|(name, site)| PlannedSite {
            name: name.to_string(),
            relay: site.relay.clone(),
        })
        .collect()
}

/// The most cores of the manager's own host for the run, if the description says so.
pub(super) fn own_cores(network: &Network) -> Option<u32> {
    network.extras.hosts.get(OWN_HOST)?.cores
}

/// The network by which programs of the manager's own host are reached, if the description says so.
pub(super) fn own_network(network: &Network) -> Option<HostNetwork> {
    network.extras.hosts.get(OWN_HOST)?.network.clone()
}

/// Whether the description lists the hosts of the run. It does not if it says of the manager's own host
/// by which network its programs are reached, and no more.
pub(super) fn lists_hosts(network: &Network) -> bool {
    let says_more =
        |host: &Host| host.network.is_none() || host.cores.is_some() || !host.components.is_empty();
    let mut hosts = network.extras.hosts.iter();
    hosts.any(|(name, host)| *name != OWN_HOST || says_more(host))
}

/// The host that the description chooses for the instances of a component.
pub(super) fn pinned_host(network: &Network, component: &str) -> Option<HostId> {
    let has_component = |host: &Host| host.components.iter().any(|name| *name == component);
    if network
        .extras
        .hosts
        .get(OWN_HOST)
        .is_some_and(has_component)
    {
        return Some(HostId::MANAGER);
    }
    let place = further_hosts(network).position(|(_, host)| has_component(host));
    place.map(HostId::further)
}
