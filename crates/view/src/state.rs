//! What changes while a run goes on: the states of the instances, waits, and the use of processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use titin_manager::profile::{InstanceTotals, RunProfile};
use titin_manager::report::Report;
use titin_manager::session::END_VERSION;
use titin_wire::observation::{ObservedInstance, ObservedRun};

use crate::grouping::without_indices;
use crate::processes::Processes;

/// How a run goes, or how it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunPhase {
    #[default]
    Running,
    /// The run has failed, and its programs end.
    Failing,
    /// The programs have ended, and results are copied.
    Ending,
    /// The manager does not answer.
    Silent,
    Done,
    Failed,
    Interrupted,
    /// Nothing tells how the run has ended.
    Lost,
}

/// The state of a run at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct State {
    pub(crate) phase: RunPhase,
    /// Seconds since the run has begun, or its duration.
    pub(crate) seconds: Option<f64>,
    /// In the order of [`crate::facts::Facts::instances`].
    pub(crate) instances: Vec<ShownInstance>,
    /// The waits of instances, for each conduit of the description.
    pub(crate) waits: Vec<Waits>,
    /// The report, if the run has failed, or its cause in a line while the run ends.
    pub(crate) report: Option<String>,
}

/// The state of an instance.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ShownInstance {
    /// The phase in a word.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) simulated: Option<f64>,
    /// The end of simulated time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<f64>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// What the instance waits for, or how its process has ended, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<ShownProcess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<Times>,
}

/// The process of an instance. Several instances may share one.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ShownProcess {
    pub(crate) pid: u32,
    /// The host, if it is another than the manager's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// The share of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<f64>,
    /// The processor time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// The resident memory in bytes; after the run the most of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<u64>,
}

/// Where the time of an instance went, in seconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Times {
    total: f64,
    compute: f64,
    waiting: f64,
    sending: f64,
}

/// The instances of a component that wait on a conduit of the description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Waits {
    pub(crate) component: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether they wait for room to send; else for a message.
    pub(crate) sends: bool,
    pub(crate) count: u64,
}

impl State {
    /// The state of a run that goes on. `processes` has those of the manager's host, if this is the host.
    pub(crate) fn of_manager(told: &ObservedRun, processes: Option<&Processes>) -> State {
        State {
            phase: match told.failure {
                None => RunPhase::Running,
                Some(_) => RunPhase::Failing,
            },
            seconds: Some(told.seconds),
            instances: told
                .instances
                .iter()
                .map(|one| shown(one, processes))
                .collect(),
            waits: waits(&told.instances),
            report: told.failure.clone(),
        }
    }

    /// The state of a run that is over, by what its manager has left. The names are those of the facts. `recorded`
    /// is the record of the end, or why it cannot be read.
    pub(crate) fn of_end(
        names: &[(String, usize)],
        recorded: Result<Option<&RecordedEnd>, &str>,
        profile: Option<&RunProfile>,
    ) -> State {
        let end = recorded.unwrap_or_default();
        let ends: BTreeMap<&str, &RecordedInstance> = match end {
            Some(end) => end
                .instances
                .iter()
                .map(|one| (one.name.as_str(), one))
                .collect(),
            None => BTreeMap::new(),
        };
        let totals = profile.iter().flat_map(|profile| &profile.instances);
        let totals: BTreeMap<&str, &InstanceTotals> =
            totals.map(|one| (one.name.as_str(), one)).collect();
        let run = profile.and_then(|profile| profile.run.as_ref());
        let instances = names.iter().map(|(name, _)| {
            let end = ends.get(name.as_str()).copied();
            ended(end, totals.get(name.as_str()).copied())
        });
        State {
            phase: match (end, run) {
                (Some(end), _) => end.phase(),
                (None, Some(run)) if run.outcome == "done" => RunPhase::Done,
                (None, Some(_)) => RunPhase::Failed,
                (None, None) => RunPhase::Lost,
            },
            seconds: end.map(|end| end.seconds).or(run.map(|run| run.seconds)),
            instances: instances.collect(),
            waits: Vec::new(),
            report: match (recorded, run) {
                (Ok(Some(end)), _) => end.story.as_ref().map(|report| report.page(false)),
                (Err(why), Some(run)) if run.outcome != "done" => Some(format!("{}\n{why}", run.outcome)),
                (Err(why), _) => Some(why.to_owned()),
                (Ok(None), Some(run)) if run.outcome != "done" => Some(run.outcome.clone()),
                (Ok(None), Some(_)) => None,
                (Ok(None), None) => Some("The run directory does not say how the run has ended: its manager was killed, or the directory was copied before the end.".to_owned()),
            },
        }
    }
}

/// The end of a run, as its manager has recorded it.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedEnd {
    outcome: String,
    story: Option<Report>,
    pub(crate) model: String,
    seconds: f64,
    pub(crate) instances: Vec<RecordedInstance>,
}

/// The version alone, which says whether the rest can be read.
#[derive(Deserialize)]
struct RecordVersion {
    version: Option<u64>,
}

impl RecordedEnd {
    /// Reads a record of this version.
    ///
    /// # Errors
    /// In words, if the record is of another version, or is broken.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let broken = |why: serde_json::Error| {
            format!("end.json, which says how the run has ended, cannot be read: {why}")
        };
        let found: RecordVersion = serde_json::from_str(text).map_err(broken)?;
        match found.version {
            Some(version) if version == u64::from(END_VERSION) => {
                serde_json::from_str(text).map_err(broken)
            }
            found => {
                let found = found.map_or("no version".to_owned(), |version| {
                    format!("version {version}")
                });
                Err(format!(
                    "end.json, which says how the run has ended, has {found}, and this release of titin reads version \
                     {END_VERSION}: look at the run with the release of titin that ran it"
                ))
            }
        }
    }

    fn phase(&self) -> RunPhase {
        match self.outcome.as_str() {
            "done" => RunPhase::Done,
            "interrupted" => RunPhase::Interrupted,
            _ => RunPhase::Failed,
        }
    }
}

/// The end of an instance.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedInstance {
    pub(crate) name: String,
    phase: String,
    process: Option<String>,
    simulated: Option<f64>,
    messages: u64,
    bytes: u64,
}

fn shown(told: &ObservedInstance, processes: Option<&Processes>) -> ShownInstance {
    let process = told.process.as_ref().map(|process| {
        let own = processes.filter(|_| process.host.is_none());
        let found = own.and_then(|processes| processes.of(process.pid));
        ShownProcess {
            pid: process.pid,
            host: process.host.clone(),
            load: found.and_then(|found| found.load),
            seconds: found.map(|found| found.seconds),
            memory: found.map(|found| found.memory),
        }
    });
    ShownInstance {
        state: told.state.clone(),
        simulated: told.simulated,
        end: told.end,
        messages: told.messages,
        bytes: told.bytes,
        text: told.text.clone(),
        process,
        times: None,
    }
}

fn ended(end: Option<&RecordedInstance>, totals: Option<&InstanceTotals>) -> ShownInstance {
    let measured = ShownInstance {
        times: totals.map(times),
        process: totals
            .and_then(|totals| totals.process)
            .map(|process| ShownProcess {
                pid: process.pid,
                seconds: Some(process.processor),
                memory: u64::try_from(process.peak_memory).ok(),
                ..ShownProcess::default()
            }),
        ..ShownInstance::default()
    };
    let Some(end) = end else {
        let state = if totals.is_some() { "done" } else { "ended" };
        return ShownInstance {
            state: state.to_owned(),
            ..measured
        };
    };
    ShownInstance {
        state: end.phase.clone(),
        simulated: end.simulated,
        messages: end.messages,
        bytes: end.bytes,
        // That a program ended well needs no words.
        text: end.process.clone().filter(|_| end.phase != "done"),
        ..measured
    }
}

fn times(totals: &InstanceTotals) -> Times {
    Times {
        total: totals.total,
        compute: totals.compute,
        waiting: totals.waiting + totals.receiving,
        sending: totals.sending,
    }
}

/// How many instances wait on each conduit of the description. An instance that waits for any of several
/// messages counts once for each conduit.
fn waits(instances: &[ObservedInstance]) -> Vec<Waits> {
    let mut counts: BTreeMap<(String, String, String, bool), u64> = BTreeMap::new();
    for instance in instances {
        let component = without_indices(&instance.name);
        let mut ends: Vec<_> = instance
            .waits
            .iter()
            .map(|wait| {
                let own = format!("{component}.{}", without_indices(&wait.port));
                let other = without_indices(&format!("{}.{}", wait.peer, wait.peer_port));
                match wait.sends {
                    true => (own, other, true),
                    false => (other, own, false),
                }
            })
            .collect();
        ends.sort();
        ends.dedup();
        for (from, to, sends) in ends {
            *counts
                .entry((component.clone(), from, to, sends))
                .or_default() += 1;
        }
    }
    let list = counts.into_iter();
    list.map(|((component, from, to, sends), count)| Waits {
        component,
        from,
        to,
        sends,
        count,
    })
    .collect()
}
