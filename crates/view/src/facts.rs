//! What stays: the names, the conduits of the description, and the pictures.

use std::collections::BTreeMap;

use serde::Serialize;
use titin_draw::{draw_coupling_graph, draw_time_bars, draw_timeline};
use titin_manager::profile::{Database, InstanceTotals, RunProfile};
use titin_model::{Description, Network};

use crate::grouping::without_indices;

/// With more components the picture cannot be read.
const MOST_DRAWN: usize = 150;

/// With more instances the picture of the times has a bar for each component.
const MOST_BARS: usize = 48;

/// The facts about a run for its page.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Facts {
    pub(crate) model: String,
    /// The manager's host.
    pub(crate) host: Option<String>,
    pub(crate) directory: String,
    pub(crate) components: Vec<String>,
    /// The instances, each with the number of the component.
    pub(crate) instances: Vec<(String, usize)>,
    pub(crate) conduits: Vec<ConduitGroup>,
    /// The coupling graph, as SVG.
    pub(crate) graph: Option<String>,
    /// Why there is no graph.
    pub(crate) graph_note: Option<String>,
    /// Where the time went, as SVG, once the run is over.
    pub(crate) times: Option<String>,
    pub(crate) times_note: Option<String>,
}

/// The conduits between instances that are one conduit in the description.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ConduitGroup {
    from: String,
    to: String,
    /// The number of conduits between instances.
    pairs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    medium: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_waited: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_waited: Option<f64>,
}

impl Facts {
    /// Names the instances, and finds their components.
    pub(crate) fn name_instances(&mut self, names: impl IntoIterator<Item = String>) {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for name in names {
            let component = without_indices(&name);
            let number = *numbers.entry(component).or_insert_with_key(|component| {
                self.components.push(component.clone());
                self.components.len() - 1
            });
            self.instances.push((name, number));
        }
    }

    /// Adds the picture and the conduits of the description.
    pub(crate) fn describe(&mut self, description: &Description, network: &Network) {
        match network.components.len() {
            0..=MOST_DRAWN => {
                let model = &description.models[&network.model];
                self.graph = Some(draw_coupling_graph(description, model));
            }
            count => {
                self.graph_note = Some(format!(
                    "{count} components are too many for a picture on a page; `titin plot {}/configuration.ymmsl -o model.svg` draws up to 2,000.",
                    self.directory
                ));
            }
        }
        self.conduits = network
            .bundles
            .iter()
            .map(|bundle| {
                let [sender, receiver] =
                    [bundle.sender, bundle.receiver].map(|id| &network.components[id.index()]);
                ConduitGroup {
                    from: format!("{}.{}", sender.path, bundle.sender_port),
                    to: format!("{}.{}", receiver.path, bundle.receiver_port),
                    pairs: u64::from(sender.instances().max(receiver.instances())),
                    medium: bundle.medium.map(|medium| medium.key().to_owned()),
                    ..ConduitGroup::default()
                }
            })
            .collect();
    }

    /// Adds what the profile tells, once the run is over.
    pub(crate) fn measure(&mut self, database: &Database, profile: &RunProfile) {
        if !profile.conduits.is_empty() {
            self.conduits = conduit_groups(profile);
        }
        let count = profile.instances.len();
        let drawn = match profile.traced && count <= MOST_BARS {
            true => draw_timeline(database, profile).ok(),
            false if count > MOST_BARS => {
                self.times_note = Some(format!(
                    "The mean of the instances of each component. `titin profile {} --plot times.svg` has a bar for each instance.",
                    self.directory
                ));
                Some(draw_time_bars(&means(profile)))
            }
            false => Some(draw_time_bars(profile)),
        };
        self.times = drawn.filter(|_| count > 0);
    }
}

fn conduit_groups(profile: &RunProfile) -> Vec<ConduitGroup> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut groups: BTreeMap<(String, String), ConduitGroup> = BTreeMap::new();
    for conduit in &profile.conduits {
        let key = (without_indices(&conduit.from), without_indices(&conduit.to));
        let group = groups.entry(key.clone()).or_insert_with(|| {
            order.push(key.clone());
            ConduitGroup {
                from: key.0.clone(),
                to: key.1.clone(),
                medium: Some(conduit.medium.clone()),
                ..ConduitGroup::default()
            }
        });
        group.pairs += 1;
        if group
            .medium
            .as_ref()
            .is_some_and(|medium| *medium != conduit.medium)
        {
            group.medium = Some("several".to_owned());
        }
        let add =
            |sum: &mut Option<i64>, more: i64| *sum = Some(sum.unwrap_or(0).saturating_add(more));
        let add_time = |sum: &mut Option<f64>, more: f64| *sum = Some(sum.unwrap_or(0.0) + more);
        add(&mut group.messages, conduit.messages);
        add(&mut group.bytes, conduit.bytes);
        add_time(&mut group.receiver_waited, conduit.receiver_waited);
        add_time(&mut group.sender_waited, conduit.sender_waited);
    }
    order.iter().filter_map(|key| groups.remove(key)).collect()
}

/// A profile with an instance for each component, which has the mean times of the component's instances.
fn means(profile: &RunProfile) -> RunProfile {
    let mut order: Vec<String> = Vec::new();
    let mut members: BTreeMap<String, Vec<&InstanceTotals>> = BTreeMap::new();
    for instance in &profile.instances {
        let component = without_indices(&instance.name);
        if !members.contains_key(&component) {
            order.push(component.clone());
        }
        members.entry(component).or_default().push(instance);
    }
    let instances = order.iter().filter_map(|component| {
        let members = members.get(component)?;
        let mean = |of: fn(&InstanceTotals) -> f64| {
            members.iter().map(|one| of(one)).sum::<f64>() / members.len() as f64
        };
        Some(InstanceTotals {
            oid: 0,
            name: match members.len() {
                1 => component.clone(),
                count => format!("{component} [{count}]"),
            },
            cores: Vec::new(),
            site: None,
            process: None,
            start: mean(|one| one.start),
            total: mean(|one| one.total),
            compute: mean(|one| one.compute),
            waiting: mean(|one| one.waiting),
            receiving: mean(|one| one.receiving),
            sending: mean(|one| one.sending),
            blocked: mean(|one| one.blocked),
        })
    });
    RunProfile {
        run: profile
            .run
            .as_ref()
            .map(|run| titin_manager::profile::RunTotals {
                model: run.model.clone(),
                host: run.host.clone(),
                seconds: run.seconds,
                outcome: run.outcome.clone(),
            }),
        instances: instances.collect(),
        ..RunProfile::default()
    }
}
