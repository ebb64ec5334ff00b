//! The placement of instances on the hosts of a run, and on the cores of each host.
//!
//! A waiting instance needs no cores, so a macro model shares cores with the micro model it calls.
//! Nothing is pinned to cores: the operating system balances better than a guess. The placement
//! sets the host and the number of threads of each instance, says which instances share cores, and
//! goes into the profile.

mod reason;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use titin_model::{Bundle, ComponentId, Network, Operator};

use crate::cores::{at_most, cores};
use crate::host::HostId;
use crate::plan::{
    AgentStart, InstanceId, MpiLauncher, MpiProcesses, PerInstance, Plan, PlannedHost, StartMode,
};

pub use reason::{Neighbours, PlacementReason};

/// A core of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Core {
    /// The host.
    pub host: HostId,
    /// The number that the host gives the core.
    pub number: u32,
}

/// The hosts and cores of each instance.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The host on which the program is started. The launcher of a program with MPI may start
    /// processes on other hosts too.
    pub hosts: PerInstance<HostId>,
    /// The cores, in the order of the hosts.
    pub cores: PerInstance<Vec<Core>>,
    /// The host of each process.
    pub process_hosts: PerInstance<Vec<HostId>>,
    /// Whether another instance computes on a core of the instance at the same time.
    pub crowded: PerInstance<bool>,
    /// Why each instance is on its host.
    pub reasons: PerInstance<PlacementReason>,
}

impl Placement {
    /// The numbers of an instance's cores on the host that starts the program.
    pub fn cores_at_start(&self, id: InstanceId) -> Vec<u32> {
        let cores = self.cores[id].iter();
        let cores = cores.filter(|core| core.host == self.hosts[id]);
        cores.map(|core| core.number).collect()
    }

    /// How many instances compete for cores.
    fn crowded_count(&self) -> usize {
        self.crowded.iter().filter(|&&crowded| crowded).count()
    }
}

/// The text about instances for which cores are short, if there are any. Each has a name and the number of cores
/// that it wants. `cores` says how many there are, and where, after a comma.
pub fn too_few_cores(slower: &[(&str, u32)], cores: &str) -> Option<String> {
    let wants = |(name, cores): &(&str, u32)| match cores {
        1 => format!("{name} (wants 1 core)"),
        _ => format!("{name} (wants {cores} cores)"),
    };
    let slower: Vec<String> = slower.iter().map(wants).collect();
    let text = || {
        let names = slower.join(", ");
        format!(
            "too few cores for all that computes at the same time{cores}; slower for it: {names}"
        )
    };
    (!slower.is_empty()).then(text)
}

/// How far the launcher of an MPI program reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherReach {
    /// All processes of a program are on the host of the launcher.
    OneHost,
    /// Processes may be on all hosts, as in a job of Slurm. The manager's host runs the launcher.
    AllHosts,
}

impl LauncherReach {
    /// The reach in the environment of this process: all hosts, if they are the nodes of a Slurm job.
    pub(crate) fn of(plan: &Plan) -> Self {
        let is_node = |host: &PlannedHost| host.start == AgentStart::Srun;
        let in_slurm = std::env::var_os("SLURM_JOB_ID").is_some();
        match in_slurm && plan.hosts.iter().all(is_node) {
            true => LauncherReach::AllHosts,
            false => LauncherReach::OneHost,
        }
    }
}

/// The placement before any agent has reported the cores of its host. A further host without a number
/// of cores in the description counts as this host.
pub fn place_before_start(plan: &Plan) -> Placement {
    let further = plan.hosts.iter().map(|host| match host.cores {
        Some(count) => (0..count).collect(),
        None => cores(),
    });
    let hosts: Vec<Vec<u32>> = std::iter::once(own_cores(plan)).chain(further).collect();
    place(plan, &hosts, LauncherReach::of(plan))
}

/// The cores of the manager's own host for the run.
pub(crate) fn own_cores(plan: &Plan) -> Vec<u32> {
    at_most(cores(), plan.own_cores)
}

/// Gives every instance cores of a host, first cores that no other instance uses at the same time.
/// Among hosts with the same number of free cores, an instance goes to the host to which most of its
/// bytes went in an earlier run, or else most of its conduits lead. All threads of a process are on one host. `hosts` are the cores of each host, by
/// [`HostId`]. An instance that no host with cores can take goes to the manager's host, and counts as
/// crowded.
///
/// The instances are placed in the order of the plan. If some then compete for cores, those that want
/// most cores are tried first, which leaves the small hosts to small instances.
pub fn place(plan: &Plan, hosts: &[Vec<u32>], reach: LauncherReach) -> Placement {
    let in_order: Vec<InstanceId> = plan.instances.ids().collect();
    let placement = place_in(&in_order, plan, hosts, reach);
    if hosts.len() == 1 || placement.crowded_count() == 0 {
        return placement;
    }
    let cores = |id: &InstanceId| {
        let (processes, threads) = plan.instances[plan.leader(*id)].processes_and_threads();
        Reverse(u64::from(processes) * u64::from(threads))
    };
    let mut largest_first = in_order;
    // The sort is stable, so the instances of a process still follow their leader.
    largest_first.sort_by_key(cores);
    let other = place_in(&largest_first, plan, hosts, reach);
    match other.crowded_count() < placement.crowded_count() {
        true => other,
        false => placement,
    }
}

/// The placement, if the instances choose their hosts and cores in this order.
fn place_in(
    order: &[InstanceId],
    plan: &Plan,
    hosts: &[Vec<u32>],
    reach: LauncherReach,
) -> Placement {
    let count = plan.instances.len();
    let mut placer = Placer {
        plan,
        peers: if hosts.len() > 1 {
            peers(plan)
        } else {
            PerInstance::make(count, |_| Vec::new())
        },
        placed: PerInstance::make(count, |_| false),
        hosts: hosts.iter().map(|cores| HostUse::of(cores)).collect(),
        reach,
        placement: Placement {
            hosts: PerInstance::make(count, |_| HostId::MANAGER),
            cores: PerInstance::make(count, |_| Vec::new()),
            process_hosts: PerInstance::make(count, |_| Vec::new()),
            crowded: PerInstance::make(count, |_| false),
            reasons: PerInstance::make(count, |_| PlacementReason::default()),
        },
    };
    // Instances without a choice come first, so that the others can go near them.
    let has_no_choice = |id: &InstanceId| placer.candidates(plan.leader(*id)).len() == 1;
    let (first, rest): (Vec<_>, Vec<_>) = order.iter().copied().partition(has_no_choice);
    for id in first.into_iter().chain(rest) {
        placer.place(id);
    }
    placer.placement
}

/// For each instance the instances that a conduit connects with it, each with the weight of the conduit:
/// the bytes in an earlier run, and 1 more.
fn peers(plan: &Plan) -> PerInstance<Vec<(InstanceId, u64)>> {
    let mut peers: PerInstance<Vec<(InstanceId, u64)>> =
        PerInstance::make(plan.instances.len(), |_| Vec::new());
    for (id, conduit) in plan.numbered() {
        let (from, to) = (conduit.from.instance, conduit.to.instance);
        let bytes = plan.earlier_bytes.get(id.index()).copied().unwrap_or(0);
        let weight = bytes.saturating_add(1);
        peers[from].push((to, weight));
        peers[to].push((from, weight));
    }
    peers
}

/// The use of a host's cores.
struct HostUse {
    /// The number of each core.
    numbers: Vec<u32>,
    /// The instances on each core.
    users: Vec<Vec<InstanceId>>,
}

impl HostUse {
    fn of(cores: &[u32]) -> Self {
        HostUse {
            numbers: cores.to_vec(),
            users: vec![Vec::new(); cores.len()],
        }
    }
}

/// What speaks against a host for an instance, the most important first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct HostCost {
    is_taken: bool,
    /// How many of the cores that the instance needs are not free.
    missing: usize,
    /// The load of the host, if cores are missing.
    load: usize,
    /// The weight of the conduits to instances on the host. More is better.
    weight: Reverse<u64>,
    host: HostId,
}

/// A placement in progress.
struct Placer<'a> {
    plan: &'a Plan,
    peers: PerInstance<Vec<(InstanceId, u64)>>,
    /// Whether an instance has its host.
    placed: PerInstance<bool>,
    hosts: Vec<HostUse>,
    reach: LauncherReach,
    placement: Placement,
}

impl Placer<'_> {
    fn place(&mut self, id: InstanceId) {
        let instance = &self.plan.instances[id];
        // Instances of one process share the cores of the process.
        if let StartMode::WithLeader(leader) = instance.start {
            self.placement.hosts[id] = self.placement.hosts[leader];
            self.placement.cores[id] = self.placement.cores[leader].clone();
            self.placement.process_hosts[id] = self.placement.process_hosts[leader].clone();
            self.placement.reasons[id] = PlacementReason::InProcessOf(leader);
            self.placed[id] = true;
            return;
        }
        let (processes, threads) = instance.processes_and_threads();
        self.placement.reasons[id] = match self.spanning(id) {
            // The launcher starts the processes on the hosts, and the manager's host runs the launcher.
            Some(mpi) => {
                self.place_on_nodes(id, mpi, threads);
                PlacementReason::Spread
            }
            None => {
                let (host, reason) = self.best_host(id, processes * threads, &[]);
                self.placement.hosts[id] = host;
                self.place_processes(id, host, processes, threads);
                self.with_sharing(id, host, reason)
            }
        };
        self.placed[id] = true;
        self.placement.cores[id].sort_unstable();
    }

    /// The processes of the instance, if its launcher reaches all hosts.
    fn spanning(&self, id: InstanceId) -> Option<MpiProcesses> {
        let mpi = self.plan.instances[id].mpi();
        mpi.filter(|_| self.reach == LauncherReach::AllHosts)
    }

    /// Places processes on as many hosts as the description wants nodes, or else each process by itself.
    fn place_on_nodes(&mut self, id: InstanceId, mpi: MpiProcesses, threads: u32) {
        let groups = mpi.nodes.unwrap_or(mpi.processes).max(1);
        let each = mpi.processes / groups;
        let mut taken = Vec::new();
        for _ in 0..groups {
            let (host, _) = self.best_host(id, each * threads, &taken);
            if mpi.nodes.is_some() {
                taken.push(host);
            }
            self.place_processes(id, host, each, threads);
        }
    }

    /// The host where an instance that wants a number of cores finds most of them free. If no host has
    /// enough, the hosts fill evenly; else the instance goes near its peers. Hosts that are `taken` come
    /// last. Also returns the reason.
    fn best_host(
        &self,
        id: InstanceId,
        wanted: u32,
        taken: &[HostId],
    ) -> (HostId, PlacementReason) {
        if self.hosts.len() == 1 {
            return (HostId::MANAGER, PlacementReason::OnlyHost);
        }
        let mut weights = vec![0u64; self.hosts.len()];
        let placed = self.peers[id].iter().filter(|(peer, _)| self.placed[*peer]);
        for &(peer, weight) in placed {
            let sum = &mut weights[self.placement.hosts[peer].index()];
            *sum = sum.saturating_add(weight);
        }
        let cost = |host: HostId| {
            let missing = (wanted as usize).saturating_sub(self.free_cores(id, host));
            HostCost {
                is_taken: taken.contains(&host),
                missing,
                load: if missing > 0 { self.load(host) } else { 0 },
                weight: Reverse(weights[host.index()]),
                host,
            }
        };
        let mut costs: Vec<HostCost> = self.candidates(id).into_iter().map(cost).collect();
        costs.sort_unstable();
        (
            costs.first().map_or(HostId::MANAGER, |best| best.host),
            self.reason(id, &costs),
        )
    }

    /// Why an instance goes to the first of these hosts: what tells it from the next, or else from the last.
    fn reason(&self, id: InstanceId, costs: &[HostCost]) -> PlacementReason {
        let [best, next, ..] = costs else {
            return self.reason_without_choice(id);
        };
        let difference = |other: &HostCost| {
            if best.missing != other.missing {
                return Some(PlacementReason::MostFreeCores);
            }
            if best.load != other.load {
                return Some(PlacementReason::FewestInstances);
            }
            let near = || PlacementReason::Near(self.neighbours(id, best.host));
            (best.weight != other.weight).then(near)
        };
        let reason = difference(next).or_else(|| difference(costs.last()?));
        reason.unwrap_or(match best.missing {
            0 => PlacementReason::First,
            _ => PlacementReason::NoneFree,
        })
    }

    /// Why an instance is on its host, if it may be on no other.
    fn reason_without_choice(&self, id: InstanceId) -> PlacementReason {
        let instance = &self.plan.instances[id];
        match (&instance.start, instance.pinned_host) {
            (StartMode::Program(_), Some(_)) => PlacementReason::Named,
            (StartMode::Program(_), None) => PlacementReason::OnlyHostWithCores,
            _ => PlacementReason::StartedByUser,
        }
    }

    /// The neighbours of an instance that are on a host already.
    fn neighbours(&self, id: InstanceId, host: HostId) -> Neighbours {
        let is_there = |(peer, _): &&(InstanceId, u64)| {
            self.placed[*peer] && self.placement.hosts[*peer] == host
        };
        let near: Vec<_> = self.peers[id].iter().filter(is_there).collect();
        let instances: BTreeSet<InstanceId> = near.iter().map(|(peer, _)| *peer).collect();
        Neighbours {
            instances: instances.into_iter().collect(),
            conduits: near.len(),
            // A conduit has the weight of its bytes, and 1 more.
            bytes: near
                .iter()
                .fold(0, |sum: u64, (_, weight)| sum.saturating_add(weight - 1)),
        }
    }

    /// The reason, which names the instances on the cores if they are free by turns alone.
    fn with_sharing(
        &self,
        id: InstanceId,
        host: HostId,
        reason: PlacementReason,
    ) -> PlacementReason {
        if reason != PlacementReason::MostFreeCores {
            return reason;
        }
        let cores = self.hosts[host.index()].users.iter();
        let own = cores.filter(|users| users.contains(&id));
        let others: BTreeSet<InstanceId> = own.flatten().copied().collect();
        let others = others.into_iter();
        // An instance that computes at the same time competes for the cores.
        let takes_turns = |&other: &InstanceId| other != id && can_share(self.plan, id, other);
        let others: Vec<InstanceId> = others.filter(takes_turns).collect();
        match others.is_empty() {
            true => reason,
            false => PlacementReason::SharedCores(others),
        }
    }

    /// The hosts on which an instance may be.
    fn candidates(&self, id: InstanceId) -> Vec<HostId> {
        let instance = &self.plan.instances[id];
        match (&instance.start, instance.pinned_host) {
            (StartMode::Program(_), Some(host)) => vec![host],
            (StartMode::Program(_), None) => {
                let hosts = (0..self.hosts.len() as u32).map(HostId);
                let has_cores = |host: &HostId| !self.hosts[host.index()].numbers.is_empty();
                let is_reached = |host: &HostId| self.is_reached(id, *host);
                hosts.filter(has_cores).filter(is_reached).collect()
            }
            // The calling process and the user start their programs where they are.
            _ => vec![HostId::MANAGER],
        }
    }

    /// Whether the launcher of the instance reaches a host. Of a heterogeneous job the launchers of the
    /// MPIs know the first part alone.
    fn is_reached(&self, id: InstanceId, host: HostId) -> bool {
        let is_in_later_part = self.plan.het_group(host).is_some_and(|part| part > 0);
        let mpi = self.spanning(id).filter(|_| is_in_later_part);
        mpi.is_none_or(|mpi| mpi.launcher == MpiLauncher::Srun)
    }

    /// How many instances each core of a host has, in thousandths.
    fn load(&self, host: HostId) -> usize {
        let cores = &self.hosts[host.index()].users;
        let users: usize = cores.iter().map(Vec::len).sum();
        1000 * users / cores.len().max(1)
    }

    /// How many cores of a host are free for an instance: used neither by the instance, nor by another
    /// instance that computes at the same time.
    fn free_cores(&self, id: InstanceId, host: HostId) -> usize {
        let cores = self.hosts[host.index()].users.iter();
        let free = cores.filter(|users| !users.contains(&id) && self.is_free(id, users));
        free.count()
    }

    /// Whether an instance computes at no time together with any of the users of a core.
    fn is_free(&self, id: InstanceId, users: &[InstanceId]) -> bool {
        users.iter().all(|&user| can_share(self.plan, id, user))
    }

    fn place_processes(&mut self, id: InstanceId, host: HostId, processes: u32, threads: u32) {
        for _ in 0..processes {
            self.place_process(id, host, threads as usize);
        }
    }

    fn place_process(&mut self, id: InstanceId, host: HostId, threads: usize) {
        self.placement.process_hosts[id].push(host);
        let best = self.best_cores(id, host, threads);
        let mut crowded = best.len() < threads;
        for core in best {
            let on_host = &mut self.hosts[host.index()];
            for &user in &on_host.users[core] {
                if !can_share(self.plan, id, user) {
                    crowded = true;
                    self.placement.crowded[user] = true;
                }
            }
            on_host.users[core].push(id);
            let number = on_host.numbers[core];
            self.placement.cores[id].push(Core { host, number });
        }
        self.placement.crowded[id] |= crowded;
    }

    /// The best cores of a host, at most `wanted`. Free cores come first, and among the free cores the
    /// core that most instances share in turns. Then come the cores with the fewest instances.
    fn best_cores(&self, id: InstanceId, host: HostId, wanted: usize) -> Vec<usize> {
        let users = &self.hosts[host.index()].users;
        let cost = |core: &usize| {
            let users = &users[*core];
            match self.is_free(id, users) {
                true => (false, usize::MAX - users.len(), *core),
                false => (true, users.len(), *core),
            }
        };
        let others = (0..users.len()).filter(|core| !users[*core].contains(&id));
        let mut ranked: Vec<usize> = others.collect();
        ranked.sort_by_cached_key(cost);
        ranked.truncate(wanted);
        ranked
    }
}

/// Whether two instances can share a core without computing at the same time. Built-in components
/// pass messages on, and compute next to nothing.
pub fn can_share(plan: &Plan, one: InstanceId, other: InstanceId) -> bool {
    let is_light = |id: InstanceId| plan.instances[id].is_built_in();
    is_light(one) || is_light(other) || plan.alternate(one, other)
}

/// Pairs of components, in both orders, that never compute at the same time: one calls the other
/// and waits for the answer, or runs when the other has finished. A program with
/// `can_share_resources: false` is in no pair.
pub fn alternating(network: &Network) -> HashSet<(ComponentId, ComponentId)> {
    let next = CallGraph::of(network).steps();
    let shares = |component: usize| {
        let program = network.components[component].program.as_ref();
        program.is_none_or(|program| program.can_share_resources)
    };
    let mut pairs = HashSet::new();
    for one in (0..network.components.len()).filter(|&one| shares(one)) {
        let others = reachable(&next, one).into_iter();
        for other in others.filter(|&other| other != one && shares(other)) {
            let (one, other) = (network.components[one].id, network.components[other].id);
            pairs.insert((one, other));
            pairs.insert((other, one));
        }
    }
    pairs
}

/// The order of components: calls, answers, and successors.
struct CallGraph {
    /// Pairs of a caller and a called component: O_I to F_INIT.
    calls: Vec<(usize, usize)>,
    /// The components to which each component sends answers: O_F to S.
    answers: Vec<Vec<usize>>,
    /// The successors of each component: O_F to F_INIT.
    after: Vec<Vec<usize>>,
}

impl CallGraph {
    fn of(network: &Network) -> Self {
        let count = network.components.len();
        let mut graph = CallGraph {
            calls: Vec::new(),
            answers: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
        };
        for bundle in &network.bundles {
            let (from, to) = (bundle.sender.index(), bundle.receiver.index());
            match operators(network, bundle) {
                (Operator::OI, Operator::FInit) => graph.calls.push((from, to)),
                (Operator::OF, Operator::S) => graph.answers[from].push(to),
                (Operator::OF, Operator::FInit) => graph.after[from].push(to),
                _ => {}
            }
        }
        graph
    }

    /// The components that each component waits for next: its successors, and the components it
    /// calls. A message counts as a call if the called component, or a successor of the called
    /// component, answers.
    fn steps(&self) -> Vec<Vec<usize>> {
        let mut next = self.after.clone();
        for &(caller, called) in &self.calls {
            let mut answering = reachable(&self.after, called);
            answering.insert(called);
            let answers = |component: &usize| self.answers[*component].contains(&caller);
            if answering.iter().any(answers) {
                next[caller].push(called);
            }
        }
        next
    }
}

/// The operators of the two ports of a bundle.
fn operators(network: &Network, bundle: &Bundle) -> (Operator, Operator) {
    let (sender, receiver) = network.ends(bundle);
    let from = sender.ports.get(&bundle.sender_port);
    let to = receiver.ports.get(&bundle.receiver_port);
    (
        from.map_or(Operator::OF, |port| port.operator),
        to.map_or(Operator::FInit, |port| port.operator),
    )
}

/// The nodes that one or more edges connect to a node.
fn reachable(edges: &[Vec<usize>], start: usize) -> HashSet<usize> {
    let mut reached = HashSet::new();
    let mut rest = vec![start];
    while let Some(node) = rest.pop() {
        for &to in &edges[node] {
            if reached.insert(to) {
                rest.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Choices, compile};
    use titin_model::{LoadOptions, load_texts};

    fn placed(text: &str, cores: u32) -> (Plan, Placement) {
        let description = load_texts(&[("m.ymmsl", text)], &LoadOptions::default()).unwrap();
        let plan = compile(
            &description.network(None).unwrap(),
            &[],
            &Choices::default(),
        )
        .unwrap();
        let placement = place(&plan, &[(0..cores).collect()], LauncherReach::OneHost);
        (plan, placement)
    }

    /// The numbers of the cores of each instance.
    fn numbers(placement: &Placement) -> Vec<Vec<u32>> {
        let numbers = |cores: &Vec<Core>| cores.iter().map(|core| core.number).collect();
        placement.cores.iter().map(numbers).collect()
    }

    fn model(components: &str, conduits: &str, rest: &str) -> String {
        format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n{components}    conduits:\n{conduits}\nprograms: \
             {{p: {{executable: p}}, q: {{executable: q, can_share_resources: false}}}}\n{rest}"
        )
    }

    const MACRO: &str =
        "      macro: {description: x, ports: {o_i: out, s: back}, implementation: p}\n";

    fn micro(name: &str, program: &str, more: &str) -> String {
        format!(
            "      {name}: {{description: x, ports: {{f_init: in, o_f: out}}, implementation: {program}{more}}}\n"
        )
    }

    const CALL: &str = "      macro.out: micro.in\n      micro.out: macro.back\n";

    #[test]
    fn caller_and_called_share_a_core() {
        let (_, placement) = placed(
            &model(&(MACRO.to_owned() + &micro("micro", "p", "")), CALL, ""),
            4,
        );
        assert_eq!(numbers(&placement), [[0], [0]]);
        assert!(!placement.crowded.iter().any(|&crowded| crowded));
    }

    #[test]
    fn components_of_titins_own_keep_nobody_from_a_core() {
        let components = "      macro: {description: x, ports: {o_i: out}, implementation: p}\n"
            .to_owned()
            + "      kept: {description: x, ports: {s: in}, implementation: titin.sink}\n";
        let (_, placement) = placed(&model(&components, "      macro.out: kept.in\n", ""), 1);
        assert_eq!(
            placement.crowded.iter().copied().collect::<Vec<_>>(),
            [false, false]
        );
    }

    #[test]
    fn a_program_may_refuse_to_share() {
        let (_, placement) = placed(
            &model(&(MACRO.to_owned() + &micro("micro", "q", "")), CALL, ""),
            4,
        );
        assert_eq!(numbers(&placement), [[0], [1]]);
    }

    #[test]
    fn copies_compute_at_the_same_time_and_the_caller_with_none_of_them() {
        let components = MACRO.to_owned() + &micro("micro", "p", ", multiplicity: 3");
        let (plan, placement) = placed(
            &model(&components, CALL, "resources: {m.macro: {threads: 2}}"),
            2,
        );
        assert_eq!(plan.instances.len(), 4);
        assert_eq!(numbers(&placement), [vec![0, 1], vec![0], vec![1], vec![0]]);
        assert_eq!(
            placement.crowded.iter().copied().collect::<Vec<_>>(),
            [false, true, false, true]
        );
    }

    #[test]
    fn a_component_that_does_not_answer_is_not_waited_for() {
        let components = "      macro: {description: x, ports: {o_i: out}, implementation: p}\n"
            .to_owned()
            + "      viewer: {description: x, ports: {f_init: in}, implementation: p}\n";
        let (_, placement) = placed(&model(&components, "      macro.out: viewer.in\n", ""), 4);
        assert_eq!(numbers(&placement), [[0], [1]]);
    }

    #[test]
    fn a_chain_answers_for_the_first_of_it() {
        let components = MACRO.to_owned() + &micro("micro", "p", "") + &micro("mapper", "p", "");
        let conduits =
            "      macro.out: micro.in\n      micro.out: mapper.in\n      mapper.out: macro.back\n";
        let (_, placement) = placed(&model(&components, conduits, ""), 4);
        assert_eq!(numbers(&placement), [[0], [0], [0]]);
    }

    /// The hosts of the instances, on hosts of the given numbers of cores.
    fn hosts_of(text: &str, cores: &[u32], reach: LauncherReach) -> Vec<u32> {
        let (plan, _) = placed(text, 1);
        let hosts: Vec<Vec<u32>> = cores.iter().map(|count| (0..*count).collect()).collect();
        let placement = place(&plan, &hosts, reach);
        placement.hosts.iter().map(|host| host.0).collect()
    }

    #[test]
    fn copies_fill_one_host_after_the_other_and_the_caller_shares() {
        let components = MACRO.to_owned() + &micro("micro", "p", ", multiplicity: 5");
        let text = model(&components, CALL, "");
        let one_host = LauncherReach::OneHost;
        assert_eq!(hosts_of(&text, &[2, 2, 1], one_host), [0, 0, 0, 1, 1, 2]);
        // A host without cores gets nothing.
        assert_eq!(hosts_of(&text, &[0, 5], one_host), [1; 6]);
    }

    #[test]
    fn hosts_without_enough_cores_fill_evenly() {
        let components = MACRO.to_owned() + &micro("micro", "p", ", multiplicity: 13");
        let text = model(&components, CALL, "");
        let hosts = hosts_of(&text, &[1, 1, 2], LauncherReach::OneHost);
        let count = |host: u32| hosts.iter().filter(|found| **found == host).count();
        // The macro model takes turns with its micro models, but counts as well.
        assert_eq!([count(0), count(1), count(2)], [4, 4, 6]);
    }

    #[test]
    fn an_instance_goes_near_its_peers() {
        let components = MACRO.to_owned() + &micro("micro", "q", "") + &micro("other", "q", "");
        let conduits = "      macro.out: [micro.in, other.in]\n      micro.out: macro.back\n";
        let text = model(&components, conduits, "resources: {m.macro: {threads: 4}}");
        // The macro model is on the only host with four cores. The other host has more free cores
        // than the micro models need, but no peer.
        assert_eq!(hosts_of(&text, &[3, 6], LauncherReach::OneHost), [1, 1, 1]);
        assert_eq!(hosts_of(&text, &[3, 5], LauncherReach::OneHost), [1, 1, 0]);
    }

    #[test]
    fn an_instance_goes_where_most_of_its_bytes_went() {
        // Two sources on two hosts, and a receiver that is connected with both.
        let components = "      one: {description: x, ports: {o_f: out}, implementation: q}\n      \
                          two: {description: x, ports: {o_f: out}, implementation: q}\n      \
                          end: {description: x, ports: {f_init: [a, b]}, implementation: q}\n";
        let conduits = "      one.out: end.a\n      two.out: end.b\n";
        let pins = "titin: {hosts: {localhost: {components: [one]}, n1: {components: [two]}}}";
        let (mut plan, _) = placed(&model(components, conduits, pins), 1);
        let host = |plan: &Plan| {
            let hosts = vec![vec![0, 1]; 2];
            place(plan, &hosts, LauncherReach::OneHost).hosts[InstanceId(2)]
        };
        assert_eq!(host(&plan), HostId(0));
        plan.earlier_bytes = vec![10, 1000];
        assert_eq!(host(&plan), HostId(1));
    }

    /// The reasons for the hosts of instances that each want a core of their own, or take turns.
    fn reasons(text: &str, cores: &[u32], bytes: &[u64]) -> Vec<String> {
        let (mut plan, _) = placed(text, 1);
        plan.earlier_bytes = bytes.to_vec();
        let hosts: Vec<Vec<u32>> = cores.iter().map(|count| (0..*count).collect()).collect();
        let placement = place(&plan, &hosts, LauncherReach::OneHost);
        let ids = plan.instances.ids();
        ids.map(|id| placement.reasons[id].text(&plan)).collect()
    }

    #[test]
    fn each_host_has_a_reason() {
        let sources = "      one: {description: x, ports: {o_f: out}, implementation: q}\n      \
                       two: {description: x, ports: {o_f: out}, implementation: q}\n      \
                       end: {description: x, ports: {f_init: [a, b]}, implementation: q}\n";
        let conduits = "      one.out: end.a\n      two.out: end.b\n";
        let text = model(sources, conduits, "");
        assert_eq!(reasons(&text, &[4], &[]), ["only host"; 3]);
        assert_eq!(reasons(&text, &[4, 0], &[]), ["only host with cores"; 3]);
        assert_eq!(
            reasons(&text, &[1, 1], &[]),
            [
                "first of equal hosts",
                "most free cores",
                "no host has enough free cores"
            ]
        );
        assert_eq!(
            reasons(&text, &[1, 2], &[]),
            ["first of equal hosts", "most free cores", "most free cores"]
        );
        assert_eq!(
            reasons(&text, &[3, 3], &[]),
            [
                "first of equal hosts",
                "first of equal hosts",
                "near one and two (2 conduits)"
            ]
        );
        let pins = "titin: {hosts: {localhost: {components: [one]}, n1: {components: [two]}}}";
        let pinned = model(sources, conduits, pins);
        assert_eq!(
            reasons(&pinned, &[2, 2], &[10, 1000]),
            [
                "named by components",
                "named by components",
                "near two (1000 bytes)"
            ]
        );
        // An instance that computes at the same time competes for a core, and does not share it.
        let two_threads = format!("{pins}\nresources: {{m.end: {{threads: 2}}}}");
        assert_eq!(
            reasons(&model(sources, conduits, &two_threads), &[2, 1], &[]),
            [
                "named by components",
                "named by components",
                "most free cores"
            ]
        );
        let one_pin = model(
            sources,
            conduits,
            "titin: {hosts: {n1: {components: [one]}}}",
        );
        // Each host has one of the two that the last instance is connected with.
        assert_eq!(
            reasons(&one_pin, &[2, 3], &[]),
            [
                "named by components",
                "first of equal hosts",
                "first of equal hosts"
            ]
        );
    }

    #[test]
    fn an_instance_that_takes_turns_shares_cores_for_a_reason() {
        let components = MACRO.to_owned() + &micro("micro", "p", "") + &micro("other", "q", "");
        let text = model(&components, CALL, "");
        assert_eq!(
            reasons(&text, &[1, 0, 1], &[]),
            [
                "first of equal hosts",
                "near macro (2 conduits)",
                "most free cores"
            ]
        );
        let three = MACRO.to_owned() + &micro("other", "q", "") + &micro("micro", "p", "");
        assert_eq!(
            reasons(&model(&three, CALL, ""), &[1, 1], &[])[2],
            "shares cores with macro"
        );
        // Too few cores: the hosts fill evenly.
        let crowd = model(&micro("micro", "q", ", multiplicity: 5"), "      []", "");
        let crowd = crowd.replace("    conduits:\n      []\n", "");
        assert_eq!(
            reasons(&crowd, &[1, 2], &[]),
            [
                "first of equal hosts",
                "most free cores",
                "most free cores",
                "no host has enough free cores",
                "fewest instances per core"
            ]
        );
    }

    #[test]
    fn the_largest_choose_first_if_others_would_compete() {
        let called = |name: &str| micro(name, "p", "");
        let caller = |name: &str| {
            format!(
                "      {name}: {{description: x, ports: {{o_i: out, s: back}}, implementation: p}}\n"
            )
        };
        let components = caller("ocean") + &called("ice") + &caller("air") + &called("chem");
        let conduits = "      ocean.out: ice.in\n      ice.out: ocean.back\n      air.out: chem.in\n      \
                        chem.out: air.back\n";
        let threads =
            "resources: {m.ocean: {threads: 2}, m.ice: {threads: 4}, m.air: {threads: 2}}";
        let text = model(&components, conduits, threads);
        let (plan, _) = placed(&text, 1);
        let hosts = [(0..2).collect(), (0..4).collect()];
        let placement = place(&plan, &hosts, LauncherReach::OneHost);
        // In the order of the plan, the first instance takes the small host, and the third finds no room.
        assert_eq!(
            hosts_of(&text, &[2, 4], LauncherReach::OneHost),
            [1, 1, 0, 0]
        );
        assert_eq!(placement.crowded_count(), 0);
    }

    #[test]
    fn ranks_are_on_one_host_unless_the_launcher_reaches_all() {
        let components = MACRO.to_owned() + &micro("micro", "mpi", "") + &micro("other", "mpi", "");
        let conduits = "      macro.out: [micro.in, other.in]\n      micro.out: macro.back\n";
        let text = model(
            &components,
            conduits,
            "resources: {m.micro: {mpi_processes: 3}, m.other: {mpi_processes: 3}}",
        );
        let text = text.replace(
            "programs: {",
            "programs: {mpi: {executable: p, execution_model: openmpi}, ",
        );
        assert_eq!(hosts_of(&text, &[4, 4], LauncherReach::OneHost), [0, 0, 1]);
        let (plan, _) = placed(&text, 1);
        let hosts = vec![(0..4).collect(), (0..4).collect()];
        let placement = place(&plan, &hosts, LauncherReach::AllHosts);
        let of_other = &placement.cores[InstanceId(2)];
        let on: Vec<u32> = of_other.iter().map(|core| core.host.0).collect();
        assert_eq!(on, [0, 1, 1]);
        assert_eq!(placement.hosts[InstanceId(2)], HostId::MANAGER);
        assert_eq!(placement.cores_at_start(InstanceId(2)), [3]);
    }

    /// The hosts of the processes of a program with MPI on three hosts of four cores. Each host but the
    /// manager's is in another part of a job than the host before.
    fn hosts_of_ranks(launcher: &str, resources: &str) -> Vec<u32> {
        let components = MACRO.to_owned() + &micro("micro", "mpi", "");
        let rest = format!("resources: {{m.micro: {{{resources}}}}}");
        let text = model(&components, CALL, &rest).replace(
            "programs: {",
            &format!("programs: {{mpi: {{executable: p, execution_model: {launcher}}}, "),
        );
        let (mut plan, _) = placed(&text, 1);
        plan.own_het_group = Some(0);
        plan.hosts = [0, 1]
            .map(|het_group| PlannedHost {
                het_group: Some(het_group),
                ..PlannedHost::default()
            })
            .into();
        let hosts = vec![(0..4).collect(); 3];
        let placement = place(&plan, &hosts, LauncherReach::AllHosts);
        let hosts = placement.process_hosts[InstanceId(1)].iter();
        hosts.map(|host| host.0).collect()
    }

    #[test]
    fn ranks_are_on_as_many_nodes_as_the_description_says() {
        let spread = "nodes: 2, mpi_processes_per_node: 2";
        assert_eq!(hosts_of_ranks("srunmpi", spread), [0, 0, 1, 1]);
        let spread = "nodes: 3, mpi_processes_per_node: 1";
        assert_eq!(hosts_of_ranks("srunmpi", spread), [0, 1, 2]);
        assert_eq!(hosts_of_ranks("srunmpi", "mpi_processes: 3"), [0; 3]);
        assert_eq!(
            hosts_of_ranks("srunmpi", "mpi_processes: 9"),
            [0, 0, 0, 0, 1, 1, 1, 1, 2]
        );
    }

    #[test]
    fn the_launcher_of_an_mpi_reaches_the_first_part_of_a_job_alone() {
        let spread = "nodes: 3, mpi_processes_per_node: 1";
        assert_eq!(hosts_of_ranks("openmpi", spread), [0, 1, 0]);
    }

    #[test]
    fn a_pinned_component_is_where_the_description_says() {
        let components = MACRO.to_owned() + &micro("micro", "p", "");
        let text = model(
            &components,
            CALL,
            "titin: {hosts: {n1: {}, n2: {components: [micro]}}}",
        );
        // The macro model goes near the micro model.
        assert_eq!(hosts_of(&text, &[4, 4, 4], LauncherReach::OneHost), [2, 2]);
    }
}
