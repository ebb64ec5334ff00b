//! Which instance computes on which cores of this host.
//!
//! An instance that waits does not keep its cores busy: a macro model that calls a micro model shares the cores with
//! it. Nothing is pinned, since the system balances better than a guess; the assignment says how many threads each
//! gets, who shares, and goes into the profile.

use std::collections::HashSet;

use titin_model::{Bundle, ComponentId, Network, Operator};

use crate::plan::{InstanceId, PerInstance, Plan, StartMode};

/// Who computes where.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The cores of each instance.
    pub cores: PerInstance<Vec<u32>>,
    /// Whether each has to share a core with another that computes at the same time.
    pub crowded: PerInstance<bool>,
}

/// Gives every instance cores, first those that nobody uses at the same time; `cores` must not be empty.
pub fn place(plan: &Plan, cores: &[u32]) -> Placement {
    let count = plan.instances.len();
    let mut users: Vec<Vec<InstanceId>> = vec![Vec::new(); cores.len()];
    // Components of titin's own hand messages on, and compute next to nothing.
    let is_light = |id: InstanceId| plan.instances[id].is_built_in();
    let host = |id: InstanceId| match plan.instances[id].start {
        StartMode::WithLeader(leader) => Some(leader),
        _ => None,
    };
    let share = |one, other| is_light(one) || is_light(other) || plan.alternate(one, other);
    let mut placement = Placement {
        cores: PerInstance::make(count, |_| Vec::new()),
        crowded: PerInstance::make(count, |_| false),
    };
    for id in plan.instances.ids() {
        // What shares a process shares its cores.
        if let Some(leader) = host(id) {
            placement.cores[id] = placement.cores[leader].clone();
            continue;
        }
        let wanted = plan.instances[id].cores.max(1) as usize;
        // Free cores first; of those the ones that are shared in turns already; else where the fewest are.
        let mut order: Vec<(bool, usize, usize)> = users
            .iter()
            .enumerate()
            .map(|(at, users)| {
                let free = users.iter().all(|&user| share(id, user));
                (
                    !free,
                    if free {
                        usize::MAX - users.len()
                    } else {
                        users.len()
                    },
                    at,
                )
            })
            .collect();
        order.sort_unstable();
        let chosen = &order[..wanted.min(cores.len())];
        let mut crowded = wanted > cores.len();
        for &(busy, _, at) in chosen {
            if busy {
                crowded = true;
                for &user in users[at].iter().filter(|&&user| !share(id, user)) {
                    placement.crowded[user] = true;
                }
            }
            users[at].push(id);
            placement.cores[id].push(cores[at]);
        }
        placement.cores[id].sort_unstable();
        placement.crowded[id] = crowded;
    }
    placement
}

/// Pairs of components, both ways round, that never compute at the same time: one is called by the other and answers
/// before that goes on, or runs when the other has finished. Programs may opt out with `can_share_resources: false`.
pub fn alternating(network: &Network) -> HashSet<(ComponentId, ComponentId)> {
    let count = network.components.len();
    let mut calls = Vec::new();
    let mut returns: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for bundle in &network.bundles {
        let (from, to) = (bundle.sender.index(), bundle.receiver.index());
        match operators(network, bundle) {
            (Operator::OI, Operator::FInit) => calls.push((from, to)),
            (Operator::OF, Operator::S) => returns[from].push(to),
            (Operator::OF, Operator::FInit) => after[from].push(to),
            _ => {}
        }
    }
    // A call is one only if the answer comes back, from the called component or from one that runs after it.
    let mut next = after.clone();
    for (caller, called) in calls {
        let answered = reach(&after, called)
            .into_iter()
            .chain([called])
            .any(|at| returns[at].contains(&caller));
        if answered {
            next[caller].push(called);
        }
    }
    let shares = |at: usize| {
        network.components[at]
            .program
            .as_ref()
            .is_none_or(|program| program.can_share_resources)
    };
    let mut pairs = HashSet::new();
    for one in (0..count).filter(|&at| shares(at)) {
        for other in reach(&next, one)
            .into_iter()
            .filter(|&at| at != one && shares(at))
        {
            pairs.insert((network.components[one].id, network.components[other].id));
            pairs.insert((network.components[other].id, network.components[one].id));
        }
    }
    pairs
}

fn operators(network: &Network, bundle: &Bundle) -> (Operator, Operator) {
    let (sender, receiver) = network.ends(bundle);
    let from = sender
        .ports
        .get(&bundle.sender_port)
        .map_or(Operator::OF, |port| port.operator);
    let to = receiver
        .ports
        .get(&bundle.receiver_port)
        .map_or(Operator::FInit, |port| port.operator);
    (from, to)
}

/// Everything that can be reached by these edges in one step or more.
fn reach(edges: &[Vec<usize>], from: usize) -> HashSet<usize> {
    let mut reach = HashSet::new();
    let mut rest = vec![from];
    while let Some(at) = rest.pop() {
        for &to in &edges[at] {
            if reach.insert(to) {
                rest.push(to);
            }
        }
    }
    reach
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
