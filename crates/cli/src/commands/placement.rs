//! `titin run --plan`: the host and the cores that each instance would get.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use titin_manager::compile::Choices;
use titin_manager::host::HostId;
use titin_manager::placement::{Placement, can_share, place_before_start, too_few_cores};
use titin_manager::plan::{InstanceId, Plan};
use titin_model::{OWN_HOST, StartPolicy};

use super::planned::{complete, plan, tell};
use crate::sources::Sources;
use crate::table::{Column, table};
use crate::terminal;

/// Where an instance goes, and why.
#[derive(Serialize)]
struct PlacedInstance {
    instance: String,
    host: String,
    /// The site of the host, as the description says.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    processes: u32,
    threads: u32,
    /// Why the instance goes to the host.
    reason: String,
    /// The cores of that host.
    cores: Vec<u32>,
    /// The instances on the same cores that compute only while this instance waits.
    takes_turns_with: Vec<String>,
    /// The instances on the same cores that compute at the same time.
    competes_with: Vec<String>,
    /// Whether the instance wants more cores than it has, or shares one with an instance that computes at the
    /// same time.
    has_too_few_cores: bool,
}

/// Prints the placement of a run, and starts nothing.
pub(crate) fn show(
    sources: &Sources,
    start: StartPolicy,
    choices: &Choices,
    profile: Option<&Path>,
    as_json: bool,
) -> ExitCode {
    let placed = plan(sources, start, choices).and_then(|mut plan| {
        complete(&mut plan, profile)?;
        let placement = place_before_start(&plan);
        let place = |id| placed_instance(&plan, &placement, id);
        Ok(plan.instances.ids().map(place).collect::<Vec<_>>())
    });
    tell(placed, "the placement", as_json, |placed| text(placed))
}

fn placed_instance(plan: &Plan, placement: &Placement, id: InstanceId) -> PlacedInstance {
    let instance = &plan.instances[id];
    let (processes, threads) = instance.processes_and_threads();
    let shares = |other: &InstanceId| {
        let cores = &placement.cores[*other];
        *other != id && cores.iter().any(|core| placement.cores[id].contains(core))
    };
    let sharing = plan.instances.ids().filter(shares);
    let (turns, rivals): (Vec<_>, Vec<_>) = sharing.partition(|&other| can_share(plan, id, other));
    let names = |ids: Vec<InstanceId>| {
        let names = ids.into_iter().map(|id| plan.instances[id].name.clone());
        names.collect()
    };
    PlacedInstance {
        instance: instance.name.clone(),
        host: host_name(plan, placement.hosts[id]),
        site: plan.other_site(placement.hosts[id]).map(str::to_owned),
        reason: placement.reasons[id].text(plan),
        processes,
        threads,
        cores: placement.cores_at_start(id),
        takes_turns_with: names(turns),
        competes_with: names(rivals),
        has_too_few_cores: placement.crowded[id],
    }
}

/// The name of a host in the description.
fn host_name(plan: &Plan, host: HostId) -> String {
    plan.further_host(host)
        .map_or(OWN_HOST.to_owned(), |host| host.name.clone())
}

fn text(placed: &[PlacedInstance]) -> String {
    let columns = [
        Column::name("instance"),
        Column::name("host"),
        Column::figure("processes"),
        Column::figure("threads"),
        Column::figure("on cores"),
        Column::name("takes turns with"),
        Column::name("competes with"),
        Column::name("reason for the host"),
    ];
    let row = |placed: &PlacedInstance| {
        vec![
            placed.instance.clone(),
            match &placed.site {
                Some(site) => format!("{} at {site}", placed.host),
                None => placed.host.clone(),
            },
            placed.processes.to_string(),
            placed.threads.to_string(),
            ranges(&placed.cores),
            placed.takes_turns_with.join(", "),
            placed.competes_with.join(", "),
            placed.reason.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = placed.iter().map(row).collect();
    let slow = placed.iter().filter(|placed| placed.has_too_few_cores);
    let slow = slow.map(|placed| (placed.instance.as_str(), placed.processes * placed.threads));
    let slow: Vec<(&str, u32)> = slow.collect();
    let table = table(&columns, &rows, terminal::width());
    match too_few_cores(&slow, "") {
        Some(text) => format!("{table}\n{text}\n"),
        None => table,
    }
}

/// Sorted numbers as ranges: `0-3,8`.
fn ranges(cores: &[u32]) -> String {
    let runs = cores.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    }
}
