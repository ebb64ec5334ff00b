//! Results at the end of a run: copied out of the work directories. Results may be huge, so the
//! user can end the copying.

use std::cell::RefCell;
use std::time::Instant;

use super::{RunView, Session, SessionEvent};
use crate::event::{Level, LogRecord, RunEvent};
use crate::plan::{InstanceId, PlannedInstance};
use crate::stage::{self, MayContinue, StagingProblem};

/// The outcome of copying the results.
pub(super) struct StagedResults {
    /// Why some results are lost, in words.
    pub(super) troubles: Vec<String>,
    /// Whether the user has ended the copying.
    pub(super) interrupted: bool,
}

impl Session {
    /// Copies the results of all instances, until the user interrupts.
    pub(super) fn stage_out(&mut self, view: &mut dyn RunView) -> StagedResults {
        let begun = Instant::now();
        let signal = RefCell::new(None);
        let may_continue = || {
            while let Ok(event) = self.receiver.try_recv() {
                if let SessionEvent::Run(RunEvent::Interrupted(name)) = event
                    && self.is_new_interrupt(begun)
                {
                    signal.replace(Some(name));
                }
            }
            signal.borrow().is_none()
        };
        let problems = self.copy_results(&may_continue);
        let signal = signal.into_inner();
        self.log_staging(problems, signal.as_deref(), view)
    }

    /// Logs problems with results.
    fn log_staging(
        &mut self,
        problems: Vec<(InstanceId, StagingProblem)>,
        signal: Option<&str>,
        view: &mut dyn RunView,
    ) -> StagedResults {
        let mut troubles = Vec::new();
        let mut left_out = Vec::new();
        for (id, problem) in problems {
            let (level, text) = match problem {
                StagingProblem::Missing(text) => (Level::Warning, text),
                StagingProblem::CopyFailed(text) => {
                    troubles.push(text.clone());
                    (Level::Error, text)
                }
                StagingProblem::Interrupted(name) => {
                    left_out.push(format!("{name} of {}", self.plan.instances[id].name));
                    continue;
                }
            };
            let record = LogRecord::of_manager(level, text);
            self.record(
                &LogRecord {
                    instance: Some(id),
                    ..record
                },
                view,
            );
        }
        let signal = signal.filter(|_| !left_out.is_empty());
        if let Some(signal) = signal {
            let names = titin_model::listing(left_out.iter().map(String::as_str));
            let text =
                format!("the user ended the copying of results ({signal}); left out: {names}");
            self.say(Level::Error, text.clone(), view);
            troubles.push(text);
        }
        StagedResults {
            troubles,
            interrupted: signal.is_some(),
        }
    }

    fn copy_results(&self, may_continue: MayContinue<'_>) -> Vec<(InstanceId, StagingProblem)> {
        let mut problems = Vec::new();
        for id in self.plan.instances.ids() {
            let planned = &self.plan.instances[id];
            let PlannedInstance {
                name, stage_out, ..
            } = planned;
            if stage_out.is_empty() {
                continue;
            }
            let workdir = self.directory.instance(planned.folder()).join("workdir");
            let results = self.directory.results(name);
            let found = stage::stage_out(stage_out, &workdir, &results, may_continue);
            problems.extend(found.into_iter().map(|problem| (id, problem)));
        }
        problems
    }
}
