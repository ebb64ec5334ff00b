//! The end of a run: only the directory is left, and the directory is complete.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::host_files::HostFiles;
use super::results::StagedResults;
use super::{RunView, Session};
use crate::event::Level;
use crate::guard::SWEEP_TIME;
use crate::host::HostId;
use crate::plan::InstanceId;
use crate::process_tree;
use crate::profile::Summary;
use crate::report::{Report, advice_for_lost_files};
use crate::state::{InstanceStatus, Manager, Phase, RunOutcome};

/// The version of the record of a run's end. Readers refuse other versions.
pub const END_VERSION: u32 = 1;

/// How a run ended. The names of the fields are also the names in `titin run --json`.
#[derive(Debug, Serialize)]
pub struct RunEnd {
    /// The version of the record, [`END_VERSION`].
    pub version: u32,
    /// "done", "failed" or "interrupted".
    pub outcome: &'static str,
    /// The report of a failed run.
    #[serde(rename = "story")]
    pub report: Option<Report>,
    /// The model.
    pub model: String,
    /// The duration from the beginning of the command.
    pub seconds: f64,
    /// The run directory.
    pub directory: PathBuf,
    /// How each instance ended.
    pub instances: Vec<InstanceResult>,
    /// The ensembles with failed members.
    pub ensembles: Vec<EnsembleResult>,
}

/// The failed members of an ensemble.
#[derive(Debug, Serialize)]
pub struct EnsembleResult {
    /// The component.
    pub component: String,
    /// The number of members.
    pub members: usize,
    /// How many members might fail.
    pub allowed: usize,
    /// The failed members, in the order of the failures.
    pub failed: Vec<MemberResult>,
}

/// A failed member of an ensemble.
#[derive(Debug, Serialize)]
pub struct MemberResult {
    /// The instance's name.
    pub name: String,
    /// Why the member has failed, in words.
    pub why: String,
}

/// How an instance ended.
#[derive(Debug, Serialize)]
pub struct InstanceResult {
    /// The instance's name.
    pub name: String,
    /// "done", "failed" or "ended".
    pub phase: &'static str,
    /// How the instance's process ended, in words.
    pub process: Option<String>,
    /// The instance's last simulated time.
    pub simulated: Option<f64>,
    /// The number of sent messages.
    pub messages: u64,
    /// The number of sent payload bytes.
    pub bytes: u64,
}

impl Session {
    /// Ends the programs of a dead guard.
    pub(super) fn end_orphans(&mut self, view: &mut dyn RunView) {
        self.guard_lives = false;
        // The commands that have started agents were programs of the guard.
        self.launchers.clear();
        self.skip_starts(HostId::MANAGER);
        let (left, stuck) = process_tree::end_orphans();
        self.log_leftovers(HostId::MANAGER, &left, &stuck, view);
        self.connection.remove();
    }

    /// Logs leftover processes of a host, and processes that could not be ended.
    pub(super) fn log_leftovers(
        &mut self,
        host: HostId,
        left: &[String],
        stuck: &[String],
        view: &mut dyn RunView,
    ) {
        let further = self.plan.further_host(host);
        let place = further.map_or(String::new(), |host| format!(" on {}", host.name));
        if !left.is_empty() {
            let text = format!(
                "ended what programs had left behind{place}: {}",
                left.join(", ")
            );
            self.say(Level::Info, text, view);
        }
        if !stuck.is_empty() {
            let text = format!(
                "cannot be ended{place}, not even by SIGKILL: {}",
                stuck.join(", ")
            );
            self.say(Level::Error, text, view);
        }
    }

    /// Orders the guard to end the remaining processes, and completes the run directory.
    pub(super) fn end(mut self, manager: &Manager, view: &mut dyn RunView) -> RunEnd {
        for ensemble in manager.failed_members() {
            self.say(Level::Warning, ensemble.summary(), view);
        }
        self.is_interrupted = matches!(manager.outcome(), Some(RunOutcome::Failed(failure)) if failure.is_interrupt());
        let waits_for_hosts = match manager.outcome() {
            Some(RunOutcome::Failed(failure)) if !failure.is_interrupt() => {
                [self.waits_for_agents(failure), self.lines_down()].concat()
            }
            Some(RunOutcome::Failed(failure)) => self.waits_for_agents(failure),
            _ => Vec::new(),
        };
        self.dismiss_agents(view);
        self.dismiss_guard(view);
        self.connection.remove();
        let StagedResults {
            mut troubles,
            interrupted,
        } = self.stage_out(view);
        let is_ended_by_user = self.is_ended_by_user;
        let seconds = self.begun.elapsed().as_secs_f64();
        let report = self.report(manager, waits_for_hosts);
        troubles.extend_from_slice(self.host_files.lost());
        let summary = summary(manager, report.as_ref(), seconds);
        self.reactor.stop();
        let profile = self.recorder.finish(summary);
        troubles.extend(profile.err().map(|error| error.to_string()));
        troubles.extend(self.log_trouble);
        let directory = self.directory.path().to_owned();
        let model = self.plan.model.clone();
        let advice = advice_for_files(&self.host_files, &troubles);
        let ending = match is_ended_by_user {
            true => Some("the user ended the wait for other hosts"),
            false if !self.unreached.is_empty() => Some("not all hosts have answered at the end"),
            false => None,
        };
        let report = report.or_else(|| {
            let report = report_of_troubles(&model, seconds, ending, &troubles, &directory)?;
            Some(Report {
                interrupted: interrupted || is_ended_by_user,
                unreached: self.unreached,
                advice,
                ..report
            })
        });
        if let Some(report) = &report {
            let _ = self.log.write_text(&format!("\n{}", report.page(false)));
        }
        let end = RunEnd {
            version: END_VERSION,
            outcome: outcome(report.as_ref()),
            report,
            model,
            seconds: self.asked.elapsed().as_secs_f64(),
            directory,
            instances: instance_results(manager),
            ensembles: ensemble_results(manager),
        };
        if let Ok(text) = serde_json::to_string(&end) {
            // The log and the report have the same facts for people.
            let _ = self.directory.write_end(&text);
        }
        end
    }

    /// The report of the failure, if the run has failed.
    fn report(&self, manager: &Manager, waits_for_hosts: Vec<String>) -> Option<Report> {
        let Some(RunOutcome::Failed(failure)) = manager.outcome() else {
            return None;
        };
        let directory = self.directory.path();
        let folder = |name: &str| self.directory.instance(name);
        let report = Report::new(manager, failure, directory, folder, &self.titin);
        let files_advice = advice_for_files(&self.host_files, self.host_files.lost());
        Some(Report {
            missing: self.host_files.lost().to_vec(),
            unreached: self.unreached.clone(),
            waits: [waits_for_hosts, self.refusals.clone(), report.waits].concat(),
            advice: report.advice.into_iter().chain(files_advice).collect(),
            ..report
        })
    }

    /// Orders the guard to end the remaining processes, and waits until the guard has ended.
    fn dismiss_guard(&mut self, view: &mut dyn RunView) {
        self.guard.finish();
        let is_left = |session: &Session| session.guard_lives;
        if !self.await_end(SWEEP_TIME, is_left, view) {
            // The guard does not answer. After the guard's end by SIGKILL, this process ends the rest.
            self.guard.kill();
            self.await_end(SWEEP_TIME, is_left, view);
        }
    }
}

/// Advice about files that are not in the run directory, for the given reasons.
fn advice_for_files(files: &HostFiles, reasons: &[String]) -> Vec<String> {
    let about_room = advice_for_lost_files(reasons);
    let about_folders = files.advice().map(str::to_owned);
    about_room.into_iter().chain(about_folders).collect()
}

/// The profile's facts about the run as a whole.
fn summary(manager: &Manager, report: Option<&Report>, seconds: f64) -> Summary {
    let raised = manager.raised();
    Summary {
        seconds,
        outcome: report.map_or("done".to_owned(), |report| report.cause.clone()),
        raised: raised
            .map(|(conduit, times, messages)| (conduit, (times, messages)))
            .collect(),
        fields: manager.field_couplings().collect(),
    }
}

fn outcome(report: Option<&Report>) -> &'static str {
    match report {
        None => "done",
        Some(report) if report.interrupted => "interrupted",
        Some(_) => "failed",
    }
}

/// The report of a run that went well, if some results or records of the run could not be kept, or if the
/// end was another than usual.
fn report_of_troubles(
    model: &str,
    seconds: f64,
    ending: Option<&str>,
    troubles: &[String],
    directory: &Path,
) -> Option<Report> {
    let lost =
        (!troubles.is_empty()).then(|| format!("not all could be kept: {}", troubles.join("\n")));
    let what = match (ending, lost) {
        (Some(ending), Some(lost)) => format!("{ending}, and {lost}"),
        (Some(ending), None) => ending.to_owned(),
        (None, lost) => lost?,
    };
    let text = format!("all instances are done, but {what}");
    Some(Report::of_manager(model, seconds, text, directory))
}

fn ensemble_results(manager: &Manager) -> Vec<EnsembleResult> {
    let name = |id: InstanceId| manager.plan().instances[id].name.clone();
    let ensembles = manager.failed_members().into_iter();
    ensembles
        .map(|ensemble| EnsembleResult {
            component: ensemble.ensemble.component.clone(),
            members: ensemble.members,
            allowed: ensemble.ensemble.allow_failures,
            failed: ensemble
                .failed
                .into_iter()
                .map(|(id, why)| MemberResult {
                    name: name(id),
                    why,
                })
                .collect(),
        })
        .collect()
}

fn instance_results(manager: &Manager) -> Vec<InstanceResult> {
    let statuses = manager.plan().instances.ids();
    let statuses = statuses.zip(manager.instance_statuses());
    statuses
        .map(|(id, status)| instance_result(manager, id, status))
        .collect()
}

fn instance_result(manager: &Manager, id: InstanceId, status: InstanceStatus) -> InstanceResult {
    // An instance cut short by another failure is not done, and has not failed by itself.
    let phase = match status.phase {
        Phase::Done => "done",
        Phase::Failed => "failed",
        _ => "ended",
    };
    let progress = status.position.as_ref();
    let (messages, bytes) = manager.traffic(id);
    InstanceResult {
        name: status.name,
        phase,
        process: manager.exit(id).map(|exit| exit.to_string()),
        simulated: progress.and_then(|progress| progress.simulated),
        messages,
        bytes,
    }
}
