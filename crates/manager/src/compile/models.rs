//! What models with the Basic Model Interface are told beside their own arguments: that they run on several ranks, and
//! which of their ports carry fields.

use std::collections::HashSet;

use titin_model::{
    BMI_WORDS, Bundle, ComponentId, ExecutionModel, Network, NetworkComponent, Operator,
};

use crate::plan::{PerInstance, PlannedCommand, PlannedInstance, StartMode};

/// A port of a component.
type ComponentPort<'a> = (ComponentId, &'a str);

/// Adds `--mpi` to the arguments of each model that runs on the ranks of an MPI, and `--field` for each port that carries
/// a field.
pub(super) fn tell_models(network: &Network, instances: &mut PerInstance<PlannedInstance>) {
    if !network.components.iter().any(runs_bmi) {
        return;
    }
    let fields = field_ports(network);
    for id in instances.ids() {
        let component = &network.components[instances[id].component_id.index()];
        if !runs_bmi(component) {
            continue;
        }
        let (StartMode::Program(program) | StartMode::Manual(Some(program))) =
            &mut instances[id].start
        else {
            continue;
        };
        let PlannedCommand::Executable { args, .. } = &mut program.command else {
            continue;
        };
        let mpi = program.mpi.is_some().then(|| "--mpi".to_owned());
        let ports = component.ports.keys();
        let carry = ports.filter(|port| fields.contains(&(component.id, port.as_str())));
        let told = mpi
            .into_iter()
            .chain(carry.map(|port| format!("--field={port}")));
        args.splice(BMI_WORDS.len()..BMI_WORDS.len(), told);
    }
}

/// The ports that carry fields: those that the description couples as fields, and those between models of which at least
/// one runs on several ranks.
///
/// Both ends of a conduit carry a field, or neither does. So a port with several conduits carries a field only if all
/// its conduits can.
fn field_ports(network: &Network) -> HashSet<ComponentPort<'_>> {
    let mut whole: HashSet<ComponentPort> = HashSet::new();
    spread(network, &mut whole, |bundle, whole| {
        !can_carry(network, bundle) || ends(bundle).iter().any(|end| whole.contains(end))
    });
    let mut fields: HashSet<ComponentPort> = HashSet::new();
    spread(network, &mut fields, |bundle, fields| {
        let couples = bundle.pattern.is_some();
        let is_parallel = ends(bundle).iter().any(|&(id, _)| {
            let program = network.components[id.index()].program.as_ref();
            program.is_some_and(|program| is_mpi(program.execution_model))
        });
        let joined = ends(bundle).iter().any(|end| fields.contains(end));
        couples || (ends(bundle).iter().all(|end| !whole.contains(end)) && (is_parallel || joined))
    });
    fields
}

/// Adds both ends of each conduit for which `joins` holds, until no conduit adds an end.
fn spread<'a>(
    network: &'a Network,
    ports: &mut HashSet<ComponentPort<'a>>,
    joins: impl Fn(&Bundle, &HashSet<ComponentPort<'a>>) -> bool,
) {
    loop {
        let before = ports.len();
        for bundle in &network.bundles {
            if joins(bundle, ports) {
                ports.extend(ends(bundle));
            }
        }
        if ports.len() == before {
            return;
        }
    }
}

/// Whether a conduit can carry a field between two models.
///
/// A model tells the parts of its ranks once it is initialized, which is after it has got what comes on F_INIT: its
/// F_INIT ports carry whole arrays. Fields have no slots, and no filters.
fn can_carry(network: &Network, bundle: &Bundle) -> bool {
    let (sender, receiver) = network.ends(bundle);
    let operator = receiver
        .ports
        .get(&bundle.receiver_port)
        .map(|port| port.operator);
    runs_bmi(sender)
        && runs_bmi(receiver)
        && sender.multiplicity.len() == receiver.multiplicity.len()
        && operator == Some(Operator::S)
        && bundle.filters.is_empty()
}

fn ends(bundle: &Bundle) -> [ComponentPort<'_>; 2] {
    [
        (bundle.sender, bundle.sender_port.as_str()),
        (bundle.receiver, bundle.receiver_port.as_str()),
    ]
}

fn runs_bmi(component: &NetworkComponent) -> bool {
    component
        .program
        .as_ref()
        .is_some_and(|program| program.runs_bmi())
}

fn is_mpi(model: ExecutionModel) -> bool {
    !matches!(model, ExecutionModel::Direct | ExecutionModel::Manual)
}
