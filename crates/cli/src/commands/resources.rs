//! `titin resources`: how many cores a model needs.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use titin_draw::units::count;
use titin_manager::allocation::{Allocations, nodes_without_waiting};
use titin_manager::compile::Choices;
use titin_manager::plan::{InstanceId, Plan};
use titin_model::StartPolicy;

use super::planned::{NoAnswer, plan, tell};
use crate::sources::Sources;
use crate::table::{Column, table};
use crate::terminal::{self, BOLD};

/// Prints how many cores a model needs: the smallest allocation on which no program waits for a
/// core, and the largest of which every core computes all the time
///
/// Programs that take turns share cores: one that waits for the answer of another, or runs after
/// it. The counts follow from `resources` and the conduits of the description.
#[derive(Args)]
pub(crate) struct Resources {
    #[command(flatten)]
    sources: Sources,
    /// The number of cores of a node of the cluster, to count nodes as well
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    cores_per_node: Option<u32>,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
}

/// The numbers of a model.
#[derive(Serialize)]
struct Needs {
    model: String,
    components: Vec<ComponentNeeds>,
    /// The smallest allocation on which no program waits for a core.
    without_waiting: Allocation,
    /// The largest allocation of which every core computes all the time.
    always_busy: Allocation,
}

/// The numbers of an instance of a component.
#[derive(Serialize)]
struct ComponentNeeds {
    name: String,
    instances: u32,
    processes: u32,
    threads: u32,
    /// The components that compute only while this component waits.
    takes_turns_with: Vec<String>,
}

#[derive(Serialize)]
struct Allocation {
    cores: u32,
    /// The number of nodes, if the user gives the size of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u32>,
}

impl Resources {
    pub(crate) fn run(&self) -> ExitCode {
        tell(self.needs(), "the numbers", self.json, |needs| {
            needs.text(self.cores_per_node)
        })
    }

    fn needs(&self) -> Result<Needs, NoAnswer> {
        let plan = plan(&self.sources, StartPolicy::ByHand, &Choices::default())?;
        let Allocations {
            without_waiting,
            always_busy,
        } = Allocations::of(&plan);
        let node = self.cores_per_node;
        let fewest = node.map(|node| nodes_without_waiting(&plan, node));
        Ok(Needs {
            model: plan.model.clone(),
            components: components(&plan),
            without_waiting: Allocation {
                cores: without_waiting,
                nodes: fewest.transpose()?,
            },
            always_busy: Allocation {
                cores: always_busy,
                nodes: node.map(|node| (always_busy / node).max(1)),
            },
        })
    }
}

/// The numbers of each component, of its first instance.
fn components(plan: &Plan) -> Vec<ComponentNeeds> {
    let mut found: Vec<(InstanceId, ComponentNeeds)> = Vec::new();
    for id in plan.instances.ids() {
        let instance = &plan.instances[id];
        if let Some((_, last)) = found.last_mut()
            && last.name == instance.component
        {
            last.instances += 1;
            continue;
        }
        let (processes, threads) = instance.processes_and_threads();
        let needs = ComponentNeeds {
            name: instance.component.clone(),
            instances: 1,
            processes,
            threads,
            takes_turns_with: Vec::new(),
        };
        found.push((id, needs));
    }
    let names: Vec<(InstanceId, String)> = found
        .iter()
        .map(|(id, needs)| (*id, needs.name.clone()))
        .collect();
    let with_turns = |(id, needs): (InstanceId, ComponentNeeds)| {
        let others = names
            .iter()
            .filter(|(other, _)| *other != id && plan.alternate(id, *other));
        ComponentNeeds {
            takes_turns_with: others.map(|(_, name)| name.clone()).collect(),
            ..needs
        }
    };
    found.into_iter().map(with_turns).collect()
}

impl Needs {
    fn text(&self, node: Option<u32>) -> String {
        let columns = [
            Column::name("component"),
            Column::figure("instances"),
            Column::figure("processes"),
            Column::figure("threads"),
            Column::name("takes turns with"),
        ];
        let row = |needs: &ComponentNeeds| {
            let numbers = [needs.instances, needs.processes, needs.threads];
            let numbers = numbers.iter().map(u32::to_string);
            [needs.name.clone()]
                .into_iter()
                .chain(numbers)
                .chain([needs.takes_turns_with.join(", ")])
                .collect()
        };
        let rows: Vec<Vec<String>> = self.components.iter().map(row).collect();
        let table = table(&columns, &rows, terminal::width());
        let line = |what: &str, allocation: &Allocation| {
            let nodes = allocation
                .nodes
                .zip(node)
                .map(|(nodes, node)| format!(", {} of {node}", count(nodes.into(), "node")));
            let cores = count(allocation.cores.into(), "core");
            format!(
                "{BOLD}{cores}{}{BOLD:#}: {what}\n",
                nodes.unwrap_or_default()
            )
        };
        format!(
            "{table}\n{}{}",
            line(
                "the fewest on which no program waits for a core",
                &self.without_waiting
            ),
            line(
                "the most of which every core computes all the time",
                &self.always_busy
            ),
        )
    }
}
