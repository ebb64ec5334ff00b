//! How many cores a model needs (`titin resources`).

use std::collections::BTreeMap;

use crate::placement::{Core, LauncherReach, Placement, can_share, place};
use crate::plan::{InstanceId, Plan, PlannedProgram, StartMode};

/// The allocations of cores for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocations {
    /// The fewest cores on which no instance waits for a core, as the placement finds them.
    pub without_waiting: u32,
    /// The most cores that all compute all the time, as far as the description says who waits for
    /// whom; at least 1.
    pub always_busy: u32,
}

/// A process that has more threads than a node has cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{instance} has processes of {threads} threads, and a node has {node} cores: all threads of a process are on one node"
)]
pub struct WideProcess {
    instance: String,
    threads: u32,
    node: u32,
}

impl Allocations {
    /// The allocations for a plan.
    pub fn of(plan: &Plan) -> Self {
        let placement = place(plan, &[all_cores(plan)], LauncherReach::OneHost);
        let users = users(plan, &placement);
        let is_busy = |users: &&Vec<InstanceId>| !may_be_idle(plan, users);
        Allocations {
            without_waiting: users.len() as u32,
            always_busy: (users.values().filter(is_busy).count() as u32).max(1),
        }
    }
}

/// The fewest nodes of `node` cores on which no instance waits for a core, as the placement finds them.
///
/// # Errors
/// [`WideProcess`] if no such node has room for a process.
pub fn nodes_without_waiting(plan: &Plan, node: u32) -> Result<u32, WideProcess> {
    for instance in plan.instances.iter() {
        let (_, threads) = instance.processes_and_threads();
        if threads > node {
            let instance = instance.name.clone();
            return Err(WideProcess {
                instance,
                threads,
                node,
            });
        }
    }
    let plan = &anywhere(plan);
    let cores = Allocations::of(plan).without_waiting;
    let is_enough = |nodes: &u32| {
        let nodes = vec![(0..node).collect(); *nodes as usize];
        let placement = place(plan, &nodes, LauncherReach::AllHosts);
        !placement.crowded.iter().any(|&crowded| crowded)
    };
    // With a node for each process there is room, so the search ends.
    Ok((cores.div_ceil(node)..).find(is_enough).expect("ends"))
}

/// The plan as if every instance could be on any node.
fn anywhere(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for instance in plan.instances.iter_mut() {
        instance.pinned_host = None;
        instance.start = match std::mem::take(&mut instance.start) {
            StartMode::Manual(program) => StartMode::Program(program.unwrap_or_default()),
            StartMode::Hosted => StartMode::Program(PlannedProgram::default()),
            start => start,
        };
    }
    plan
}

/// As many cores as if no instance shared one.
fn all_cores(plan: &Plan) -> Vec<u32> {
    let ids = plan.instances.ids();
    let own = ids.filter(|&id| !matches!(plan.instances[id].start, StartMode::WithLeader(_)));
    let cores = own.map(|id| {
        let (processes, threads) = plan.instances[id].processes_and_threads();
        processes.saturating_mul(threads)
    });
    (0..cores.fold(0, u32::saturating_add)).collect()
}

/// The instances on each used core.
fn users(plan: &Plan, placement: &Placement) -> BTreeMap<Core, Vec<InstanceId>> {
    let mut users = BTreeMap::<Core, Vec<InstanceId>>::new();
    for id in plan.instances.ids() {
        for &core in &placement.cores[id] {
            users.entry(core).or_default().push(id);
        }
    }
    users
}

/// Whether a core with these instances is idle while some other instance computes: all of them wait
/// for that instance.
fn may_be_idle(plan: &Plan, users: &[InstanceId]) -> bool {
    let computes = |id: InstanceId| !plan.instances[id].is_built_in();
    if !users.iter().any(|&user| computes(user)) {
        return true;
    }
    let mut others = plan
        .instances
        .ids()
        .filter(|&other| computes(other) && !users.contains(&other));
    others.any(|other| users.iter().all(|&user| can_share(plan, user, other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Choices, compile};
    use titin_model::{LoadOptions, load_texts};

    /// The plan of a macro model that calls the other components of the model in turn. Each has a name
    /// and more of its description.
    fn plan(others: &[(&str, &str)], resources: &str) -> Plan {
        let ports = |prefix: &str| {
            let names = others.iter().map(|(name, _)| format!("{prefix}_{name}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      macro: {{description: x, ports: {{o_i: [{}], s: [{}]}}, \
             implementation: p}}\n",
            ports("to"),
            ports("from")
        );
        for (name, more) in others {
            text += &format!(
                "      {name}: {{description: x, ports: {{f_init: in, o_f: out}}, {more}}}\n"
            );
        }
        text += "    conduits:\n";
        for (name, _) in others {
            text +=
                &format!("      macro.to_{name}: {name}.in\n      {name}.out: macro.from_{name}\n");
        }
        text += &format!(
            "programs:\n  p: {{executable: p}}\n  mpi: {{executable: p, execution_model: openmpi}}\nresources: {{{resources}}}\n"
        );
        let description = load_texts(&[("m.ymmsl", &text)], &LoadOptions::default()).unwrap();
        let network = description.network(None).unwrap();
        compile(&network, &[], &Choices::default()).unwrap()
    }

    fn both(plan: &Plan) -> (u32, u32) {
        let Allocations {
            without_waiting,
            always_busy,
        } = Allocations::of(plan);
        (without_waiting, always_busy)
    }

    #[test]
    fn components_that_take_turns_need_the_cores_of_the_largest() {
        let resources = "m.macro: {threads: 4}, m.micro: {threads: 16}";
        assert_eq!(
            both(&plan(&[("micro", "implementation: p")], resources)),
            (16, 4)
        );
        let resources = "m.macro: {threads: 16}, m.micro: {threads: 4}";
        assert_eq!(
            both(&plan(&[("micro", "implementation: p")], resources)),
            (16, 4)
        );
        assert_eq!(both(&plan(&[("micro", "implementation: p")], "")), (1, 1));
    }

    #[test]
    fn copies_compute_at_the_same_time() {
        let copies = [("micro", "implementation: p, multiplicity: 10")];
        // The caller is on the core of one copy. The other cores are idle while the caller computes.
        assert_eq!(both(&plan(&copies, "")), (10, 1));
        let resources = "m.macro: {threads: 3}, m.micro: {threads: 2}";
        assert_eq!(both(&plan(&copies, resources)), (20, 3));
    }

    #[test]
    fn threads_of_a_process_are_on_one_node() {
        let three = [("micro", "implementation: p, multiplicity: 3")];
        let plan = plan(&three, "m.macro: {threads: 2}, m.micro: {threads: 10}");
        assert_eq!(both(&plan), (30, 2));
        assert_eq!(nodes_without_waiting(&plan, 16), Ok(3));
        assert_eq!(nodes_without_waiting(&plan, 20), Ok(2));
        assert_eq!(nodes_without_waiting(&plan, 64), Ok(1));
        let error = nodes_without_waiting(&plan, 8).unwrap_err().to_string();
        assert!(
            error.starts_with("micro[0] has processes of 10 threads, and a node has 8 cores"),
            "{error}"
        );
    }

    #[test]
    fn processes_go_on_several_nodes() {
        let micro = [("micro", "implementation: mpi")];
        let plan = plan(
            &micro,
            "m.micro: {mpi_processes: 8, threads_per_mpi_process: 3}",
        );
        assert_eq!(both(&plan), (24, 1));
        // A node of 7 or 8 cores has room for two processes of 3 threads.
        assert_eq!(nodes_without_waiting(&plan, 7), Ok(4));
        assert_eq!(nodes_without_waiting(&plan, 8), Ok(4));
        assert_eq!(nodes_without_waiting(&plan, 12), Ok(2));
    }

    #[test]
    fn hosts_of_the_description_do_not_count() {
        let three = [("micro", "implementation: p, multiplicity: 3")];
        let mut plan = plan(&three, "m.macro: {threads: 2}, m.micro: {threads: 10}");
        for (at, instance) in plan.instances.iter_mut().enumerate() {
            instance.pinned_host = Some(crate::host::HostId(at as u32 + 7));
        }
        assert_eq!(nodes_without_waiting(&plan, 16), Ok(3));
        for instance in plan.instances.iter_mut() {
            instance.start = StartMode::Manual(None);
        }
        assert_eq!(nodes_without_waiting(&plan, 16), Ok(3));
    }
}
