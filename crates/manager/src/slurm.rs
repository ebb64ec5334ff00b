//! The nodes of a Slurm job as hosts of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;

use titin_os::host;

use crate::host::HostId;
use crate::plan::{AgentStart, Plan, PlannedHost};

/// Why the nodes of a job cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// The command cannot be run.
    #[error("cannot run `scontrol show hostnames`, which lists the nodes of this Slurm job: {0}")]
    NoCommand(io::Error),
    /// The command has failed.
    #[error("`scontrol show hostnames {list}` has failed: {text}")]
    Failed {
        /// The list of nodes, as Slurm writes it.
        list: String,
        /// The printed text.
        text: String,
    },
}

/// Adds the other nodes of a Slurm job to a plan, unless the description lists hosts. The nodes have the
/// network that the description chooses for the manager's own host. `env` is the
/// environment of the manager. Outside of a job of several nodes nothing is added.
///
/// # Errors
/// [`SlurmError`] if the nodes cannot be listed.
pub fn add_nodes_of_job(plan: &mut Plan, env: &BTreeMap<String, String>) -> Result<(), SlurmError> {
    if plan.lists_hosts {
        return Ok(());
    }
    // `salloc` sets no name of a node. It runs the manager on any host.
    let own = match env.get("SLURMD_NODENAME") {
        Some(node) => node.clone(),
        None => short_name(&host::name()).to_owned(),
    };
    let mut is_on_node = false;
    for (het_group, list) in lists_of_nodes(env) {
        let nodes = host_names(&list)?;
        if nodes.contains(&own) {
            is_on_node = true;
            plan.own_het_group = het_group;
        }
        let further = further_nodes(&nodes, &own, het_group);
        let network = plan.own_network.clone();
        plan.hosts.extend(further.map(|node| PlannedHost {
            network: network.clone(),
            ..node
        }));
    }
    // The cores of a host outside of the job are not for the programs.
    if !is_on_node && !plan.hosts.is_empty() {
        plan.own_cores = Some(0);
    }
    Ok(())
}

/// The share of a program with MPI in a part of a heterogeneous job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobPart {
    /// The number of the part.
    pub het_group: u32,
    /// The number of nodes with processes.
    pub nodes: u32,
    /// The number of processes.
    pub processes: u32,
}

/// The parts of a heterogeneous job with processes of a program, in the order of the parts. `hosts` are
/// the hosts of the processes. Outside of such a job there are none.
pub(crate) fn job_parts(plan: &Plan, hosts: &[HostId]) -> Vec<JobPart> {
    let mut by_part: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for &host in hosts {
        if let Some(het_group) = plan.het_group(host) {
            by_part.entry(het_group).or_default().push(host);
        }
    }
    let part = |(het_group, hosts): (u32, Vec<HostId>)| JobPart {
        het_group,
        nodes: hosts.iter().collect::<BTreeSet<_>>().len() as u32,
        processes: hosts.len() as u32,
    };
    by_part.into_iter().map(part).collect()
}

/// Whether an environment is that of a Slurm job of several nodes. The parts of a heterogeneous job
/// share no node.
pub fn has_several_nodes(env: &BTreeMap<String, String>) -> bool {
    let counts = ["SLURM_JOB_NUM_NODES", "SLURM_HET_SIZE"];
    counts
        .iter()
        .any(|name| count(env, name).is_some_and(|count| count > 1))
}

/// A number of the environment.
fn count(env: &BTreeMap<String, String>, name: &str) -> Option<u32> {
    env.get(name).and_then(|count| count.parse().ok())
}

/// The lists of nodes of a job of several nodes, as Slurm writes them: one list, or one for each part of
/// a heterogeneous job with the number of the part.
fn lists_of_nodes(env: &BTreeMap<String, String>) -> Vec<(Option<u32>, String)> {
    if let Some(parts) = count(env, "SLURM_HET_SIZE") {
        let list = |part: u32| {
            let list = env.get(&format!("SLURM_JOB_NODELIST_HET_GROUP_{part}"))?;
            Some((Some(part), list.clone()))
        };
        return (0..parts).filter_map(list).collect();
    }
    let list = env.get("SLURM_JOB_NODELIST");
    let list = list.filter(|_| has_several_nodes(env));
    list.map(|list| (None, list.clone())).into_iter().collect()
}

/// The names of nodes in a list such as `n[1-3]`.
fn host_names(list: &str) -> Result<Vec<String>, SlurmError> {
    let output = Command::new("scontrol")
        .args(["show", "hostnames", list])
        .output()
        .map_err(SlurmError::NoCommand)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        return Err(SlurmError::Failed {
            list: list.to_owned(),
            text: text(&output.stderr),
        });
    }
    let names = text(&output.stdout);
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// The name of a host without the domain.
fn short_name(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn further_nodes(
    nodes: &[String],
    own: &str,
    het_group: Option<u32>,
) -> impl Iterator<Item = PlannedHost> {
    let further = nodes.iter().filter(move |node| own != node.as_str());
    further.map(move |node| PlannedHost {
        name: node.clone(),
        address: node.clone(),
        start: AgentStart::Srun,
        het_group,
        ..PlannedHost::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_job_of_one_node_has_no_further_hosts() {
        assert_eq!(lists_of_nodes(&env(&[])), []);
        let one = env(&[("SLURM_JOB_NUM_NODES", "1"), ("SLURM_JOB_NODELIST", "n1")]);
        assert_eq!(lists_of_nodes(&one), []);
        let mut plan = Plan::default();
        add_nodes_of_job(&mut plan, &one).unwrap();
        assert_eq!((plan.hosts.len(), plan.own_cores), (0, None));
    }

    #[test]
    fn a_program_has_a_share_of_each_part_with_its_processes() {
        let part_of_host = |het_group| PlannedHost {
            het_group: Some(het_group),
            ..PlannedHost::default()
        };
        let mut plan = Plan {
            hosts: [0, 1, 1].map(part_of_host).into(),
            own_het_group: Some(1),
            ..Plan::default()
        };
        let part = |het_group, nodes, processes| JobPart {
            het_group,
            nodes,
            processes,
        };
        let hosts = [0, 0, 1, 3, 3, 3].map(HostId);
        assert_eq!(job_parts(&plan, &hosts), [part(0, 1, 1), part(1, 2, 5)]);
        assert_eq!(job_parts(&plan, &hosts[..2]), [part(1, 1, 2)]);
        plan = Plan::default();
        assert_eq!(job_parts(&plan, &hosts[..2]), []);
    }

    #[test]
    fn each_part_of_a_heterogeneous_job_has_its_nodes() {
        let job = env(&[
            ("SLURM_HET_SIZE", "2"),
            ("SLURM_JOB_NUM_NODES", "1"),
            ("SLURM_JOB_NODELIST_HET_GROUP_0", "n1"),
            ("SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"),
        ]);
        assert!(has_several_nodes(&job));
        let lists = lists_of_nodes(&job);
        assert_eq!(lists, [(Some(0), "n1".into()), (Some(1), "n[2-3]".into())]);
        let nodes = ["n2", "n3"].map(str::to_owned);
        let hosts: Vec<_> = further_nodes(&nodes, "n2", Some(1)).collect();
        let [host] = &hosts[..] else {
            panic!("{hosts:?}")
        };
        assert_eq!((host.name.as_str(), host.het_group), ("n3", Some(1)));
    }
}
