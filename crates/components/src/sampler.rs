//! `titin.sampler`: hands the rows of a table of settings to the members of an ensemble, and writes a
//! table of results.
//!
//! Each row goes to a member that is free, as the settings overlay of a message, and as the message's
//! data too. So the member may take the message on `muscle_settings_in` or on an F_INIT port. The
//! member answers each message with one. A result is written as soon as it is there. Started again
//! with the same file of results, the sampler leaves out the rows that the file has.
//!
//! A member that fails is started again or left out, as far as `titin: ensemble` allows it. Its row is
//! handed out again, `retry` times, and is then written as failed.
//!
//! Settings: `table`, `results`, `columns`, `delimiter`, `retry`.

mod results;
mod table;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use titin_runtime::{BuiltIn, Instance, Kind, Message, Operator, Overlay, Patience, Setting};

use crate::data::{MessageMeta, Value, send, view};
use crate::format::cells;
use crate::mapper::{InstancePort, connected, ends};
use crate::settings::ComponentSettings;
use crate::{Error, Result};
use results::{Outcome, ResultsFile};
pub(crate) use table::columns as table_columns;
use table::{Row, Table};

pub(crate) fn run(instance: &Instance, folders: &[PathBuf]) -> Result<()> {
    while instance.reuse()? {
        Sampler::new(instance, folders)?.run()?;
    }
    Ok(())
}

/// A row that is with a member, or waits for one.
struct Job {
    row: Row,
    /// How often the row was handed out.
    attempts: u64,
}

struct Sampler<'a> {
    instance: &'a Instance,
    out: InstancePort,
    back: InstancePort,
    table: Table,
    results: ResultsFile,
    /// How often a row is handed out again if its member fails.
    retry: u64,
    /// The slots of members without a row.
    free: VecDeque<u32>,
    /// The rows that are with members, by the slots of the members.
    at_work: BTreeMap<u32, Job>,
    /// The settings of the row that the member at a slot has answered last.
    answered: BTreeMap<u32, Vec<(String, Setting)>>,
    /// The slots of failed members.
    lost: BTreeSet<u32>,
    /// The rows that are handed out again.
    again: VecDeque<Job>,
}

impl<'a> Sampler<'a> {
    fn new(instance: &'a Instance, folders: &[PathBuf]) -> Result<Self> {
        let settings = ComponentSettings::new(instance, BuiltIn::Sampler)?;
        let out = only_port(instance, Operator::OI)?;
        let back = only_port(instance, Operator::S)?;
        let members = ends(instance, &out).len();
        if ends(instance, &back).len() != members {
            return Err(Error::Setting(format!(
                "{}: ports '{}' and '{}' do not lead to the same members",
                instance.name(),
                out.info.name,
                back.info.name
            )));
        }
        let text = |name: &str, usual: &str| -> Result<String> {
            let given = settings.text("", name)?;
            Ok(given.unwrap_or_else(|| usual.to_owned()))
        };
        let table = Table::open(&settings, &text("table", "table.csv")?, folders)?;
        let results = beside(&text("results", "results.csv")?, folders);
        Ok(Sampler {
            results: ResultsFile::open(&results, table.columns())?,
            retry: settings.count("", "retry")?.unwrap_or(0),
            free: (0..members as u32).collect(),
            at_work: BTreeMap::new(),
            answered: BTreeMap::new(),
            lost: BTreeSet::new(),
            again: VecDeque::new(),
            instance,
            out,
            back,
            table,
        })
    }

    fn run(mut self) -> Result<()> {
        loop {
            self.hand_out()?;
            if self.at_work.is_empty() {
                return self.end();
            }
            self.take_result()?;
        }
    }

    /// Gives a row to each free member.
    fn hand_out(&mut self) -> Result<()> {
        while let Some(&slot) = self.free.front() {
            let Some(job) = self.next_job()? else {
                return Ok(());
            };
            self.free.pop_front();
            let is_lost = |sent: &Result<()>| matches!(sent, Err(Error::Run(error)) if error.kind == Kind::MemberFailed);
            let mut sent = self.send(slot, &job.row);
            if is_lost(&sent) {
                // The member has not had the row. If the member is started again, this goes to it.
                sent = self.send(slot, &job.row);
            }
            if is_lost(&sent) {
                self.lost.insert(slot);
                self.again.push_front(job);
                continue;
            }
            sent?;
            self.at_work.insert(slot, job);
        }
        Ok(())
    }

    /// The next row that has no result.
    fn next_job(&mut self) -> Result<Option<Job>> {
        if let Some(job) = self.again.pop_front() {
            return Ok(Some(job));
        }
        while let Some(row) = self.table.next()? {
            if !self.results.has(&row)? {
                return Ok(Some(Job { row, attempts: 0 }));
            }
        }
        Ok(None)
    }

    fn send(&self, slot: u32, row: &Row) -> Result<()> {
        let entries = row.settings.iter();
        let data = entries.map(|(name, value)| (name.clone(), table::data_of(value)));
        let meta = MessageMeta {
            settings: Some(row.settings.iter().cloned().collect::<Overlay>()),
            ..MessageMeta::default()
        };
        let data = Value::Map(data.collect());
        let slot = self.out.info.vector.then_some(slot);
        send(self.instance, self.out.id, slot, &data, &meta)
    }

    /// Waits for the result of any member.
    fn take_result(&mut self) -> Result<()> {
        match self
            .instance
            .receive_any(&[self.back.id], Patience::Forever)
        {
            Ok((_, slot, message)) => {
                let job = self.at_work.remove(&slot);
                let Some(job) = job.filter(|job| !self.is_second(slot, &message, job)) else {
                    return Err(Error::Data(format!(
                        "{}: the member at slot {slot} has sent a second result for a row: a member answers each message of a \
                         sampler with one",
                        self.instance.name()
                    )));
                };
                let row = job.row.number;
                let results = cells(&view(&message)).map_err(|why| {
                    Error::Data(format!(
                        "the result of row {row}: {why}; have the members send one of these"
                    ))
                })?;
                self.results.write(&job.row, Outcome::Done(results))?;
                self.answered.insert(slot, job.row.settings);
                self.free.push_back(slot);
                Ok(())
            }
            Err(error) if error.kind == Kind::MemberFailed => self.lose_member(&error),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a message is one more result of the row before. The message of a member has the overlay of
    /// the use in which it was sent.
    fn is_second(&self, slot: u32, message: &Message, job: &Job) -> bool {
        let (Some(overlay), Some(before)) = (&message.settings, self.answered.get(&slot)) else {
            return false;
        };
        let is_of = |row: &[(String, Setting)]| {
            let mut settings = row.iter();
            settings.all(|(name, value)| overlay.get(name) == Some(value))
        };
        is_of(before) && !is_of(&job.row.settings)
    }

    /// A member has failed: its row goes to another member, or has failed too.
    fn lose_member(&mut self, error: &titin_runtime::Error) -> Result<()> {
        let slot = error.member.as_ref().and_then(|member| member.slot);
        let slot = slot.unwrap_or(0);
        // The next send tells whether the member is started again.
        if !self.free.contains(&slot) {
            self.free.push_back(slot);
        }
        self.answered.remove(&slot);
        let Some(mut job) = self.at_work.remove(&slot) else {
            return Ok(());
        };
        job.attempts += 1;
        if job.attempts <= self.retry {
            self.again.push_back(job);
            return Ok(());
        }
        self.results
            .write(&job.row, Outcome::Failed(error.text.clone()))
    }

    /// The end: no member has a row. Fails if rows are left, since all members have failed then.
    fn end(mut self) -> Result<()> {
        if self.next_job()?.is_none() {
            return self.results.finish();
        }
        self.results.finish()?;
        Err(Error::Data(format!(
            "{}: all {} members have failed, and rows are left: the results so far are in {}, and a new run with the same file \
             goes on there",
            self.instance.name(),
            self.lost.len(),
            self.results.path().display()
        )))
    }
}

/// The one connected port of an operator.
fn only_port(instance: &Instance, operator: Operator) -> Result<InstancePort> {
    let mut ports = connected(instance, operator);
    match (ports.pop(), ports.is_empty()) {
        (Some(port), true) => Ok(port),
        _ => Err(Error::Setting(format!(
            "{}: a sampler has one {operator} port with a conduit: settings go out by O_I, and results come back by S",
            instance.name()
        ))),
    }
}

/// The path of the file of results. A relative path begins beside the description, so that the next
/// run finds the file.
fn beside(name: &str, folders: &[PathBuf]) -> PathBuf {
    let folder = folders.first().map_or(Path::new(""), PathBuf::as_path);
    folder.join(name)
}
