//! The placement of instances on the cores of this host.
//!
//! A waiting instance needs no cores, so a macro model shares cores with the micro model it calls.
//! Nothing is pinned: the operating system balances better than a guess. The placement sets the
//! number of threads of each instance, says which instances share cores, and goes into the profile.

use std::collections::HashSet;
use std::ops::Range;

use titin_model::{Bundle, ComponentId, Network, Operator};

use crate::cores::cores;
use crate::plan::{InstanceId, PerInstance, Plan, StartMode};

/// The cores of each instance.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The cores.
    pub cores: PerInstance<Vec<u32>>,
    /// Whether another instance computes on a core of the instance at the same time.
    pub crowded: PerInstance<bool>,
}

/// The placement on the cores of this host that this process may use.
pub fn place_on_this_host(plan: &Plan) -> Placement {
    place(plan, &cores())
}

/// Gives cores to every instance, first cores that no other instance uses at the same time. `cores`
/// must not be empty.
pub fn place(plan: &Plan, cores: &[u32]) -> Placement {
    place_on_nodes(plan, cores, cores.len())
}

/// As [`place`], on nodes of the same size: each has the next `node` of the cores. All threads of a
/// process are on one node. `node` must not be 0.
pub fn place_on_nodes(plan: &Plan, cores: &[u32], node: usize) -> Placement {
    let count = plan.instances.len();
    let mut placer = Placer {
        plan,
        cores,
        node,
        users: vec![Vec::new(); cores.len()],
        placement: Placement {
            cores: PerInstance::make(count, |_| Vec::new()),
            crowded: PerInstance::make(count, |_| false),
        },
    };
    for id in plan.instances.ids() {
        match plan.instances[id].start {
            // Instances of one process share the cores of the process.
            StartMode::WithLeader(leader) => {
                placer.placement.cores[id] = placer.placement.cores[leader].clone();
            }
            _ => placer.place(id),
        }
    }
    placer.placement
}

/// A placement in progress.
struct Placer<'a> {
    plan: &'a Plan,
    cores: &'a [u32],
    /// The number of cores of a node.
    node: usize,
    /// The instances on each core.
    users: Vec<Vec<InstanceId>>,
    placement: Placement,
}

impl Placer<'_> {
    fn place(&mut self, id: InstanceId) {
        let (processes, threads) = self.plan.instances[id].processes_and_threads();
        for _ in 0..processes {
            let best = self.best_cores(id, threads as usize);
            let mut crowded = best.len() < threads as usize;
            for core in best {
                for user in self.users[core].clone() {
                    if !can_share(self.plan, id, user) {
                        crowded = true;
                        self.placement.crowded[user] = true;
                    }
                }
                self.users[core].push(id);
                self.placement.cores[id].push(self.cores[core]);
            }
            self.placement.crowded[id] |= crowded;
        }
        self.placement.cores[id].sort_unstable();
    }

    /// The best cores of a node for the threads of a process, at most `wanted`: on the node where the
    /// process finds the most free cores.
    fn best_cores(&self, id: InstanceId, wanted: usize) -> Vec<usize> {
        let nodes = (0..self.cores.len()).step_by(self.node);
        let best = nodes.map(|first| {
            let last = (first + self.node).min(self.cores.len());
            self.best_of_node(id, first..last, wanted)
        });
        let unfree = |ranked: &Vec<CoreRank>| {
            let free = ranked.iter().filter(|rank| rank.is_free).count();
            wanted - free
        };
        let best = best.min_by_key(unfree).unwrap_or_default();
        best.into_iter().map(|rank| rank.core).collect()
    }

    /// The best cores of a node, at most `wanted`. Free cores come first, and among the free cores the
    /// core that most instances share in turns. Then come the cores with the fewest instances.
    fn best_of_node(&self, id: InstanceId, node: Range<usize>, wanted: usize) -> Vec<CoreRank> {
        let rank = |core: usize| {
            let users = &self.users[core];
            let is_free = users.iter().all(|&user| can_share(self.plan, id, user));
            CoreRank {
                is_free,
                order: if is_free {
                    usize::MAX - users.len()
                } else {
                    users.len()
                },
                core,
            }
        };
        let others = node.filter(|core| !self.users[*core].contains(&id));
        let mut ranked: Vec<_> = others.map(rank).collect();
        ranked.sort_unstable_by_key(|rank| (!rank.is_free, rank.order, rank.core));
        ranked.truncate(wanted);
        ranked
    }
}

/// How well a core suits an instance.
struct CoreRank {
    /// Whether no other instance computes on the core at the same time.
    is_free: bool,
    /// The place among the free or the other cores, the best first.
    order: usize,
    core: usize,
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
        let placement = place(&plan, &(0..cores).collect::<Vec<_>>());
        (plan, placement)
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
        assert_eq!(placement.cores.iter().collect::<Vec<_>>(), [&[0], &[0]]);
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
        assert_eq!(placement.cores.iter().collect::<Vec<_>>(), [&[0], &[1]]);
    }

    #[test]
    fn copies_compute_at_the_same_time_and_the_caller_with_none_of_them() {
        let components = MACRO.to_owned() + &micro("micro", "p", ", multiplicity: 3");
        let (plan, placement) = placed(
            &model(&components, CALL, "resources: {m.macro: {threads: 2}}"),
            2,
        );
        assert_eq!(plan.instances.len(), 4);
        assert_eq!(
            placement.cores.iter().collect::<Vec<_>>(),
            [&[0, 1][..], &[0], &[1], &[0]]
        );
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
        assert_eq!(placement.cores.iter().collect::<Vec<_>>(), [&[0], &[1]]);
    }

    #[test]
    fn a_chain_answers_for_the_first_of_it() {
        let components = MACRO.to_owned() + &micro("micro", "p", "") + &micro("mapper", "p", "");
        let conduits =
            "      macro.out: micro.in\n      micro.out: mapper.in\n      mapper.out: macro.back\n";
        let (_, placement) = placed(&model(&components, conduits, ""), 4);
        assert_eq!(
            placement.cores.iter().collect::<Vec<_>>(),
            [&[0], &[0], &[0]]
        );
    }
}
