//! How a run ends: nothing of it is left but its directory, and that is complete.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Incoming, Session, View};
use crate::event::{Event, Level, Record};
use crate::plan::{InstanceId, Planned};
use crate::profile::Summary;
use crate::report::Story;
use crate::stage::{self, GoOn, Problem};
use crate::state::{Manager, Outcome, Phase, SAME_WISH, Standing};
use crate::tree::{self, Descendant};

/// For the guard to end what is left.
const SWEEP: Duration = Duration::from_secs(30);

/// From SIGTERM to SIGKILL for orphans of a guard that has died.
const ORPHANS: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Debug, Serialize)]
pub struct Ending {
    /// "done", "failed" or "interrupted".
    pub outcome: &'static str,
    /// What there is to say about a failure.
    pub story: Option<Story>,
    /// The model.
    pub model: String,
    /// How long it took, from the beginning of the command.
    pub seconds: f64,
    /// Where its files are.
    pub directory: PathBuf,
    /// How each instance ended.
    pub instances: Vec<InstanceEnd>,
}

/// How an instance ended.
#[derive(Debug, Serialize)]
pub struct InstanceEnd {
    /// Its name.
    pub name: String,
    /// Its phase, in a word.
    pub phase: &'static str,
    /// How its process ended, in words.
    pub process: Option<String>,
    /// Its last simulated time.
    pub simulated: Option<f64>,
    /// Messages that it sent.
    pub messages: u64,
    /// Payload bytes that it sent.
    pub bytes: u64,
}

impl Session {
    /// Ends the programs that a dead guard has left to this process.
    pub(super) fn end_orphans(&mut self, view: &mut dyn View) {
        self.guard_lives = false;
        let (left, stuck) = tree::end_descendants(ORPHANS, std::thread::park_timeout, |_, _| ());
        let names = |processes: &[Descendant]| {
            processes
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        self.tell_of_rest(&names(&left), &names(&stuck), view);
        self.connection.forget();
    }

    fn tell_of_rest(&mut self, left: &[String], stuck: &[String], view: &mut dyn View) {
        if !left.is_empty() {
            self.say(
                Level::Info,
                format!("ended what programs had left behind: {}", left.join(", ")),
                view,
            );
        }
        if !stuck.is_empty() {
            self.say(
                Level::Error,
                format!("cannot be ended, not even by SIGKILL: {}", stuck.join(", ")),
                view,
            );
        }
    }

    /// Has the guard end what is left, and writes what is to be kept.
    pub(super) fn end(mut self, manager: &Manager, view: &mut dyn View) -> Ending {
        self.dismiss_guard(view);
        self.connection.forget();
        let Kept {
            mut troubles,
            ended,
        } = self.stage_out(manager, view);
        let seconds = self.begun.elapsed().as_secs_f64();
        let (mut outcome, mut story) = match manager.outcome() {
            Some(Outcome::Failed(failure)) => {
                let directory = self.directory.path();
                let folder = |name: &str| self.directory.instance(name);
                let story = Story::tell(manager, failure, directory, folder, &self.titin);
                (
                    if story.interrupted {
                        "interrupted"
                    } else {
                        "failed"
                    },
                    Some(story),
                )
            }
            _ => ("done", None),
        };
        let raised = manager
            .raised()
            .map(|(conduit, times, messages)| (conduit, (times, messages)));
        let told = story
            .as_ref()
            .map_or(outcome.to_owned(), |story| story.cause.clone());
        let summary = Summary {
            seconds,
            outcome: told,
            raised: raised.collect(),
            fields: manager.coupled().collect(),
        };
        if let Some(story) = &story {
            let _ = self.log.write_text(&format!("\n{}", story.page(false)));
        }
        let instances = self.plan.instances.ids().zip(manager.standings());
        let instances = instances
            .map(|(id, standing)| instance_end(manager, id, standing))
            .collect();
        let (model, directory) = (self.plan.model.clone(), self.directory.path().to_owned());
        self.reactor.stop();
        troubles.extend(
            self.recorder
                .finish(summary)
                .map_err(|error| error.to_string())
                .err(),
        );
        troubles.extend(self.log_trouble);
        if story.is_none() && !troubles.is_empty() {
            outcome = if ended { "interrupted" } else { "failed" };
            let text = format!(
                "all instances are done, but not all could be kept: {}",
                troubles.join("\n")
            );
            story = Some(Story {
                interrupted: ended,
                ..Story::of_manager(&model, seconds, text, &directory)
            });
        }
        let seconds = self.asked.elapsed().as_secs_f64();
        Ending {
            outcome,
            story,
            model,
            seconds,
            directory,
            instances,
        }
    }

    /// Has the guard end what is left, and waits until it has gone.
    fn dismiss_guard(&mut self, view: &mut dyn View) {
        self.guard.finish();
        let mut until = Instant::now() + SWEEP;
        let mut killed = false;
        while self.guard_lives {
            match self
                .receiver
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Incoming::Swept { left, stuck }) => self.tell_of_rest(&left, &stuck, view),
                Ok(Incoming::GuardLeft) => self.guard_lives = false,
                Err(_) if killed => self.guard_lives = false,
                Err(_) => {
                    // It does not answer; without it, this process ends what is left.
                    self.guard.kill();
                    (killed, until) = (true, Instant::now() + SWEEP);
                }
                Ok(Incoming::Event(Event::GuardLost(_))) => self.end_orphans(view),
                Ok(_) => {}
            }
        }
    }

    /// Keeps the results. They may be huge, so the user can end that too.
    fn stage_out(&mut self, manager: &Manager, view: &mut dyn View) -> Kept {
        let begun = Instant::now();
        let wished =
            matches!(manager.outcome(), Some(Outcome::Failed(failure)) if failure.is_wished());
        let signal = RefCell::new(None);
        let go_on = || {
            while let Ok(incoming) = self.receiver.try_recv() {
                if let Incoming::Event(Event::Interrupted(how)) = incoming
                    && (!wished || begun.elapsed() > SAME_WISH)
                {
                    signal.replace(Some(how));
                }
            }
            signal.borrow().is_none()
        };
        let problems = self.copy_results(&go_on);
        let mut kept = Kept {
            troubles: Vec::new(),
            ended: false,
        };
        let mut left_out = Vec::new();
        let signal = signal.into_inner();
        for (id, problem) in problems {
            let (level, text) = match problem {
                Problem::Missing(text) => (Level::Warning, text),
                Problem::Lost(text) => {
                    kept.troubles.push(text.clone());
                    (Level::Error, text)
                }
                Problem::LeftOut(name) => {
                    left_out.push(format!("{name} of {}", self.plan.instances[id].name));
                    continue;
                }
            };
            let record = Record {
                level,
                instance: Some(id),
                time: None,
                simulated: None,
                text,
            };
            self.record(&record, view);
        }
        if let Some(signal) = signal.filter(|_| !left_out.is_empty()) {
            kept.ended = true;
            let names = titin_model::listing(left_out.iter().map(String::as_str));
            let text =
                format!("the user ended the copying of results ({signal}); left out: {names}");
            self.say(Level::Error, text.clone(), view);
            kept.troubles.push(text);
        }
        kept
    }

    fn copy_results(&self, go_on: GoOn<'_>) -> Vec<(InstanceId, Problem)> {
        let mut problems = Vec::new();
        for id in self.plan.instances.ids() {
            let planned = &self.plan.instances[id];
            let Planned {
                name, stage_out, ..
            } = planned;
            if !stage_out.is_empty() {
                let workdir = self.directory.instance(planned.folder()).join("workdir");
                let found =
                    stage::stage_out(stage_out, &workdir, &self.directory.results(name), go_on);
                problems.extend(found.into_iter().map(|problem| (id, problem)));
            }
        }
        problems
    }
}

/// What came of keeping the results.
struct Kept {
    /// Why some are lost.
    troubles: Vec<String>,
    /// Whether the user has ended it.
    ended: bool,
}

fn instance_end(manager: &Manager, id: InstanceId, standing: Standing) -> InstanceEnd {
    // What was cut short by another's failure is not done, and has not failed by itself.
    let phase = match standing.phase {
        Phase::Done => "done",
        Phase::Failed => "failed",
        _ => "ended",
    };
    let position = standing.position;
    InstanceEnd {
        name: standing.name,
        phase,
        process: manager.exit(id).map(|exit| exit.to_string()),
        simulated: position.as_ref().and_then(|position| position.simulated),
        messages: position.as_ref().map_or(0, |position| position.messages),
        bytes: position.as_ref().map_or(0, |position| position.bytes),
    }
}
