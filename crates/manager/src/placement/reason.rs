//! Why an instance is on its host, in words for `titin run --plan`.

use crate::plan::{InstanceId, Plan};

/// Why an instance is on its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PlacementReason {
    /// The run has no other host.
    #[default]
    OnlyHost,
    /// No other host that the instance may use has cores.
    OnlyHostWithCores,
    /// The description has the component under `components` of the host.
    Named,
    /// The user or the calling process starts the program, on the manager's host.
    StartedByUser,
    /// The process of this instance runs the instance, too.
    InProcessOf(InstanceId),
    /// The launcher of the program spreads the processes over the nodes of the job.
    Spread,
    /// The instance finds most of its cores free there.
    MostFreeCores,
    /// As `MostFreeCores`, since the instance takes turns with these on its cores.
    SharedCores(Vec<InstanceId>),
    /// No host has enough free cores, and there the cores have the fewest instances.
    FewestInstances,
    /// Among equal hosts, the host has most of what the instance is connected with.
    Near(Neighbours),
    /// Other hosts would be as good.
    First,
    /// The instance competes for cores there, as it would on the other hosts.
    NoneFree,
}

/// The neighbours of an instance on its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The neighbours, each once.
    pub instances: Vec<InstanceId>,
    /// The number of conduits with them.
    pub conduits: usize,
    /// The bytes of these conduits in an earlier run; 0 without such a run.
    pub bytes: u64,
}

impl PlacementReason {
    /// The reason in words.
    pub fn text(&self, plan: &Plan) -> String {
        let name = |id: &InstanceId| plan.instances[*id].name.as_str();
        let names = |ids: &[InstanceId]| match ids {
            [] => String::new(),
            [one] => name(one).to_owned(),
            [one, other] => format!("{} and {}", name(one), name(other)),
            [one, rest @ ..] => format!("{} and {} more", name(one), rest.len()),
        };
        match self {
            PlacementReason::OnlyHost => "only host".to_owned(),
            PlacementReason::OnlyHostWithCores => "only host with cores".to_owned(),
            PlacementReason::Named => "named by components".to_owned(),
            PlacementReason::StartedByUser => "started by you".to_owned(),
            PlacementReason::InProcessOf(leader) => {
                format!("in the process of {}", names(&[*leader]))
            }
            PlacementReason::Spread => "spread by its launcher".to_owned(),
            PlacementReason::MostFreeCores => "most free cores".to_owned(),
            PlacementReason::SharedCores(others) => format!("shares cores with {}", names(others)),
            PlacementReason::FewestInstances => "fewest instances per core".to_owned(),
            PlacementReason::Near(near) => {
                let amount = match (near.bytes, near.conduits) {
                    (0, 1) => "1 conduit".to_owned(),
                    (0, conduits) => format!("{conduits} conduits"),
                    (bytes, _) => format!("{bytes} bytes"),
                };
                format!("near {} ({amount})", names(&near.instances))
            }
            PlacementReason::First => "first of equal hosts".to_owned(),
            PlacementReason::NoneFree => "no host has enough free cores".to_owned(),
        }
    }
}
