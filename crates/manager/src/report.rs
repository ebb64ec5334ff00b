//! The report of a failed run: the first failure, the culprit's last words, the affected instances,
//! the places of the files, and advice.
//!
//! `output` reads the culprit's output, `advice` advises the user, and `page` puts the report into
//! the form that the user reads.

mod advice;
mod output;
mod page;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::{InstanceId, Plan, StartMode};
use crate::state::{Failure, Manager};
pub(crate) use advice::advice_for_lost_files;
pub(crate) use output::last_line;

/// The most instances in a list.
const MOST_LISTED: usize = 12;

/// The facts about a failed run. The names of the fields are also the names in `titin run --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The model.
    pub model: String,
    /// Seconds from the start to the failure.
    pub seconds: f64,
    /// Whether the user ended the run.
    pub interrupted: bool,
    /// Whether the run ended in a deadlock. If so, the cause names the waiting instances.
    pub deadlock: bool,
    /// The first failure, in full.
    pub cause: String,
    /// The instance or the host process that failed first.
    pub culprit: Option<String>,
    /// The culprit's program, in words.
    pub program: Option<String>,
    /// The culprit's last log lines.
    pub records: Vec<String>,
    /// The last lines of the culprit's standard error and standard output, each with its file.
    pub output: Vec<(PathBuf, Vec<String>)>,
    /// The ensembles with failed members, a line for each ensemble and each member.
    pub members: Vec<String>,
    /// The affected instances, each with the effect.
    pub affected: Vec<(String, String)>,
    /// The waits of instances at the failure, a line for each.
    pub waits: Vec<String>,
    /// If the user ended the run: the instances that were in their own code.
    pub computing: Vec<String>,
    /// The run directory.
    pub directory: PathBuf,
    /// Where in the run directory the logs and the outputs are, as a list of patterns.
    pub logs: String,
    /// Files of other hosts that are not in the run directory, each in words.
    pub missing: Vec<String>,
    /// The hosts that do not answer at the end, where programs may go on, in words.
    pub unreached: Vec<String>,
    /// The advice.
    pub advice: Vec<String>,
}

impl Report {
    /// The report of a failure. `folder` gives the folder of an instance, and `titin` is the path
    /// of the command.
    pub fn new(
        manager: &Manager,
        failure: &Failure,
        directory: &Path,
        folder: impl Fn(&str) -> PathBuf,
        titin: &Path,
    ) -> Self {
        let culprits = manager.culprits(&failure.cause);
        let mut report = Report {
            interrupted: failure.is_interrupt(),
            deadlock: failure.deadlock().is_some(),
            program: program_of(manager.plan(), &culprits),
            records: last_records(manager, &culprits),
            members: members(manager),
            affected: affected(manager, &culprits),
            waits: waits(manager, failure, &culprits),
            computing: computing(manager, failure),
            ..Report::of_manager(
                &manager.plan().model,
                failure.at.as_secs_f64(),
                manager.failure_line(failure),
                directory,
            )
        };
        // The first instance of a process stands for the others.
        match culprits.first() {
            Some(first) => report.add_culprit(manager, failure, *first, folder, titin),
            None => {
                report.output = outputs_of_late_agents(manager, failure, directory);
                report.advice = advice::advice(manager, failure, None, titin);
            }
        }
        report
    }

    /// Adds the name of the culprit, the last output of the culprit, and advice.
    fn add_culprit(
        &mut self,
        manager: &Manager,
        failure: &Failure,
        id: InstanceId,
        folder: impl Fn(&str) -> PathBuf,
        titin: &Path,
    ) {
        let planned = &manager.plan().instances[id];
        let folder = folder(planned.folder());
        self.culprit = Some(manager.culprit_and_text(&failure.cause).0);
        self.output = output::last_outputs(&folder);
        let printed = self.output.iter().flat_map(|(_, lines)| lines);
        let culprit = advice::Culprit {
            name: &planned.name,
            workdir: &folder.join("workdir"),
            is_elsewhere: !manager.place_text(id).is_empty(),
            printed: &printed.map(String::as_str).collect::<Vec<_>>(),
        };
        self.advice = advice::advice(manager, failure, Some(&culprit), titin);
    }

    /// A report without instances, because the manager failed.
    pub fn of_manager(model: &str, seconds: f64, cause: String, directory: &Path) -> Self {
        Report {
            model: model.to_owned(),
            seconds,
            interrupted: false,
            deadlock: false,
            cause,
            culprit: None,
            program: None,
            records: Vec::new(),
            output: Vec::new(),
            members: Vec::new(),
            affected: Vec::new(),
            waits: Vec::new(),
            computing: Vec::new(),
            directory: directory.to_owned(),
            logs: logs(directory),
            missing: Vec::new(),
            unreached: Vec::new(),
            advice: Vec::new(),
        }
    }
}

/// Where in a run directory the logs and the outputs are.
fn logs(directory: &Path) -> String {
    let agents = match directory.join("agents").is_dir() {
        true => "agents/*.txt, ",
        false => "",
    };
    format!("titin_manager.log, {agents}instances/*/stderr.txt and stdout.txt")
}

/// The last output of the commands that were to start the agents of hosts that are late.
fn outputs_of_late_agents(
    manager: &Manager,
    failure: &Failure,
    directory: &Path,
) -> Vec<(PathBuf, Vec<String>)> {
    let late = failure.awaited_hosts().iter();
    let hosts = late.filter_map(|id| manager.plan().further_host(*id));
    let names = hosts.map(|host| host.name.as_str());
    output::last_outputs_of_agents(&directory.join("agents"), names)
}

/// The affected instances, each with the effect.
fn affected(manager: &Manager, culprits: &[InstanceId]) -> Vec<(String, String)> {
    let affected = manager.affected_instances(culprits).into_iter();
    affected
        .map(|(id, how)| (manager.plan().instances[id].name.clone(), how))
        .collect()
}

/// The ensembles with failed members, and the failed members. A long list leaves out the last.
fn members(manager: &Manager) -> Vec<String> {
    let mut lines = Vec::new();
    for ensemble in manager.failed_members() {
        lines.push(format!("{}:", ensemble.summary()));
        let failed = ensemble.failed.iter();
        lines.extend(failed.take(MOST_LISTED).map(|(id, why)| {
            let why = why.lines().next().unwrap_or_default();
            format!("{} {why}", manager.plan().instances[*id].name)
        }));
        let more = ensemble.failed.len().saturating_sub(MOST_LISTED);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
    }
    lines
}

/// The waits of instances at the failure. A culprit waits no more.
fn waits(manager: &Manager, failure: &Failure, culprits: &[InstanceId]) -> Vec<String> {
    let waits = failure.waits.iter();
    waits
        .filter(|(id, _)| !culprits.contains(id))
        .map(|(id, wait)| format!("{} {wait}", manager.plan().instances[*id].name))
        .collect()
}

/// The instances that were in their own code when the user ended the run.
fn computing(manager: &Manager, failure: &Failure) -> Vec<String> {
    let instances = &manager.plan().instances;
    let computing = failure.computing.iter();
    computing
        .filter(|_| failure.is_interrupt())
        .map(|id| instances[*id].name.clone())
        .collect()
}

/// The program of the culprits, in words.
fn program_of(plan: &Plan, culprits: &[InstanceId]) -> Option<String> {
    let first = *culprits.first()?;
    let planned = &plan.instances[first];
    Some(match (plan.hosting(first), culprits) {
        (Some(host), [_]) => format!("run by host {}", host.name),
        (Some(_), all) => {
            let names = all.iter().map(|id| plan.instances[*id].name.clone());
            format!("it ran {}", names_in_short(names))
        }
        (None, _) => match &planned.start {
            StartMode::Program(program) => format!("program {}", program.name),
            StartMode::Manual(_) => "started by hand".to_owned(),
            StartMode::Hosted => "run by the calling process".to_owned(),
            StartMode::WithLeader(_) => format!("run by host {}", planned.folder()),
        },
    })
}

/// The last log lines of the culprits. A peer that has closed a port too early may have logged a
/// warning about the close, so the last line of such a peer is shown too.
fn last_records(manager: &Manager, culprits: &[InstanceId]) -> Vec<String> {
    let [one] = *culprits else {
        return last_line_of_each(manager, culprits);
    };
    let ended_peers = manager.ended_peers(one);
    match ended_peers.is_empty() {
        true => manager.recent_log(one),
        false => last_line_of_each(manager, &[&[one][..], &ended_peers].concat()),
    }
}

/// The last log line of each instance, behind the name.
fn last_line_of_each(manager: &Manager, ids: &[InstanceId]) -> Vec<String> {
    let last = |id: &InstanceId| {
        let line = manager.recent_log(*id).pop()?;
        Some(format!("{}: {line}", manager.plan().instances[*id].name))
    };
    ids.iter().filter_map(last).take(MOST_LISTED).collect()
}

/// Names in a list. A long list leaves out the last names.
fn names_in_short(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MOST_LISTED);
    let shown: Vec<String> = names.take(MOST_LISTED).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}
