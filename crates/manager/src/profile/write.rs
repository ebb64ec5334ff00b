//! Writing a profile: event rows as they come, by a thread of its own; everything else at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::{Connection, Transaction, params};
use titin_model::Name;
use titin_wire::control::{ConduitProfile, Event, FieldEnd, Profile};

use super::{EVENT_TYPES, FIRST_REGION, OPERATORS, REGION, TABLES};
use crate::placement::Placement;
use crate::plan::{ConduitId, InstanceId, Plan};

/// How many instances' counts are written at once.
const BATCH: usize = 64;

/// Why the profile could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file could not be written.
    #[error("cannot write the profile {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The thread that writes has panicked.
    #[error("cannot write the profile {}: internal error in the thread for it: {text}", .path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// What it panicked with.
        text: String,
    },
}

/// What is known at the end of a run, beside what the instances counted.
#[derive(Debug, Clone)]
pub struct Summary {
    /// How long the run took.
    pub seconds: f64,
    /// "done", or what it failed by.
    pub outcome: String,
    /// Buffers that were raised: how often, and to how many messages.
    pub raised: BTreeMap<ConduitId, (u64, u64)>,
    /// Conduits that carried fields: what the sender and the receiver said of their arrays.
    pub fields: BTreeMap<ConduitId, [FieldEnd; 2]>,
}

/// Keeps what instances report, and writes the profile.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    sender: Sender<RecorderMessage>,
    thread: JoinHandle<Result<(), ProfileError>>,
}

#[derive(Debug)]
enum RecorderMessage {
    Keep(Box<Profile>, Vec<ConduitCounts>),
    Finish(Box<Summary>),
}

impl Recorder {
    /// Begins a profile, which will be written to `path`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        path: PathBuf,
        plan: Arc<Plan>,
        host: String,
        placement: Placement,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let writer = ProfileWriter {
            path: path.clone(),
            plan,
            host,
            placement,
            database: None,
            totals: BTreeMap::new(),
            ends: Vec::new(),
            written: BTreeSet::new(),
            regions: 0,
        };
        let thread = std::thread::Builder::new()
            .name("profile".into())
            .spawn(move || writer.run(&receiver))?;
        Ok(Recorder {
            path,
            sender,
            thread,
        })
    }

    /// Keeps a report.
    pub fn keep(&self, mut profile: Box<Profile>) {
        let mut media: Vec<Name> = Vec::new();
        let mut counted = |of: ConduitProfile| ConduitCounts {
            conduit: ConduitId(of.conduit),
            sends: of.sends,
            streams: of.streams,
            medium: media
                .iter()
                .find(|known| ***known == *of.medium)
                .cloned()
                .unwrap_or_else(|| {
                    media.push(of.medium.into());
                    media[media.len() - 1].clone()
                }),
            detour: of.detour.map(String::into_boxed_str),
            messages: of.messages,
            bytes: of.bytes,
            copied: of.copied,
            by_socket: of.by_socket,
            waiting: of.waiting,
        };
        let ends = std::mem::take(&mut profile.conduits)
            .into_iter()
            .map(&mut counted)
            .collect();
        // A writer that has failed says why at the end.
        let _ = self.sender.send(RecorderMessage::Keep(profile, ends));
    }

    /// Writes everything.
    ///
    /// # Errors
    /// The first thing that went wrong, a full disk for instance.
    pub fn finish(self, summary: Summary) -> Result<(), ProfileError> {
        let _ = self.sender.send(RecorderMessage::Finish(Box::new(summary)));
        let path = self.path;
        self.thread.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(ProfileError::Internal {
                path,
                text: text.unwrap_or_else(|| "a panic".into()),
            })
        })
    }
}

/// What an instance has counted at its end of a conduit: a hundred thousand of these may wait to be written. The port is in
/// the plan.
#[derive(Debug)]
struct ConduitCounts {
    conduit: ConduitId,
    sends: bool,
    streams: Option<u32>,
    medium: Name,
    detour: Option<Box<str>>,
    messages: u64,
    bytes: u64,
    copied: u64,
    by_socket: u64,
    waiting: f64,
}

struct ProfileWriter {
    path: PathBuf,
    plan: Arc<Plan>,
    host: String,
    placement: Placement,
    database: Option<Connection>,
    totals: BTreeMap<InstanceId, Profile>,
    /// What instances count at their conduits, which is not written yet.
    ends: Vec<(InstanceId, Vec<ConduitCounts>)>,
    /// Those of whom it is.
    written: BTreeSet<InstanceId>,
    regions: i64,
}

impl ProfileWriter {
    fn run(mut self, receiver: &Receiver<RecorderMessage>) -> Result<(), ProfileError> {
        let result = self.work(receiver);
        result.map_err(|source| ProfileError::Write {
            path: self.path,
            source,
        })
    }

    fn work(&mut self, receiver: &Receiver<RecorderMessage>) -> rusqlite::Result<()> {
        let ids: BTreeMap<String, InstanceId> = self
            .plan
            .instances
            .ids()
            .map(|id| (self.plan.instances[id].name.clone(), id))
            .collect();
        while let Ok(message) = receiver.recv() {
            match message {
                RecorderMessage::Keep(mut profile, ends) => {
                    let Some(&id) = ids.get(&profile.instance) else {
                        continue;
                    };
                    let events = std::mem::take(&mut profile.events);
                    // Thousands of instances would fill the memory with it.
                    if !ends.is_empty() {
                        self.ends.push((id, ends));
                    }
                    if self.ends.len() == BATCH {
                        self.write_ends()?;
                    }
                    self.totals.insert(id, *profile);
                    if !events.is_empty() {
                        self.write_events(id, &events)?;
                    }
                }
                RecorderMessage::Finish(summary) => return self.write_all(&summary),
            }
        }
        Ok(())
    }

    fn open(&mut self) -> rusqlite::Result<&mut Connection> {
        if self.database.is_none() {
            let mut database = create(&self.path)?;
            let transaction = database.transaction()?;
            let mut insert = transaction.prepare("INSERT INTO instances VALUES (?, ?)")?;
            for id in self.plan.instances.ids() {
                insert.execute(params![oid(id), self.plan.instances[id].name])?;
            }
            drop(insert);
            let mut insert =
                transaction.prepare("INSERT INTO conduits VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)")?;
            for (conduit, planned) in self.plan.numbered() {
                let (from, to) = (&planned.from, &planned.to);
                insert.execute(params![
                    conduit.0,
                    oid(from.instance),
                    from.port.as_str(),
                    from.slot,
                    oid(to.instance),
                    to.port.as_str(),
                    to.slot,
                    signed(planned.buffer_messages),
                ])?;
            }
            drop(insert);
            transaction.commit()?;
            self.database = Some(database);
        }
        Ok(self.database.as_mut().expect("it was just made"))
    }

    fn write_events(&mut self, id: InstanceId, events: &[Event]) -> rusqlite::Result<()> {
        let mut regions = self.regions;
        let transaction = self.open()?.transaction()?;
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
            for event in events {
                let operator = event.operator.as_ref().and_then(|operator| {
                    let name = operator.to_uppercase();
                    OPERATORS
                        .iter()
                        .find(|(known, _)| *known == name)
                        .map(|(_, number)| *number)
                });
                insert.execute(params![
                    oid(id),
                    event_type(&transaction, event, &mut regions)?,
                    event.start,
                    event.stop,
                    event.port,
                    operator,
                    event.slots,
                    event.slot,
                    event.number.map(signed),
                    event.size.map(signed),
                    event.timestamp,
                    event.conduit,
                ])?;
            }
        }
        transaction.commit()?;
        self.regions = regions;
        Ok(())
    }

    fn write_ends(&mut self) -> rusqlite::Result<()> {
        let plan = self.plan.clone();
        let (all, mut written) = (
            std::mem::take(&mut self.ends),
            std::mem::take(&mut self.written),
        );
        let transaction = self.open()?.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO conduit_ends VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            for (id, ends) in all {
                // An instance that fails while it closes may count once more.
                if !written.insert(id) {
                    transaction
                        .execute("DELETE FROM conduit_ends WHERE instance_oid = ?", [oid(id)])?;
                }
                // A conduit that the plan does not have would break the database.
                for (of, planned) in ends
                    .iter()
                    .filter_map(|of| Some((of, plan.conduit(of.conduit)?)))
                {
                    let port = if of.sends { &planned.from } else { &planned.to };
                    let (messages, bytes, copied) =
                        (signed(of.messages), signed(of.bytes), signed(of.copied));
                    insert.execute(params![
                        of.conduit.0,
                        oid(id),
                        port.to_string(),
                        of.sends,
                        of.medium.as_str(),
                        messages,
                        bytes,
                        copied,
                        of.waiting,
                        of.streams,
                        of.detour,
                        signed(of.by_socket)
                    ])?;
                }
            }
        }
        transaction.commit()?;
        self.written = written;
        Ok(())
    }

    fn write_all(&mut self, summary: &Summary) -> rusqlite::Result<()> {
        self.write_ends()?;
        let (plan, host, placement) =
            (self.plan.clone(), self.host.clone(), self.placement.clone());
        let totals = std::mem::take(&mut self.totals);
        let transaction = self.open()?.transaction()?;
        transaction.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?)",
            params![plan.model, host, summary.seconds, summary.outcome],
        )?;
        {
            let mut raise = transaction.prepare(
                "UPDATE conduits SET buffer_messages = ?, buffer_raised = ? WHERE oid = ?",
            )?;
            for (conduit, (times, messages)) in &summary.raised {
                raise.execute(params![signed(*messages), signed(*times), conduit.0])?;
            }
            let mut field = transaction.prepare("INSERT INTO fields VALUES (?, ?, ?, ?, ?)")?;
            for (conduit, [sender, receiver]) in &summary.fields {
                let Some(planned) = plan.conduit(*conduit) else {
                    continue;
                };
                let pattern = planned
                    .pattern
                    .as_ref()
                    .and_then(|pattern| serde_json::to_string(pattern).ok());
                field.execute(params![
                    conduit.0,
                    sender.side,
                    receiver.side,
                    sender.dtypes,
                    pattern
                ])?;
            }
            let mut total = transaction.prepare("INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?)")?;
            let mut region = transaction.prepare("INSERT INTO regions VALUES (?, ?, ?, ?)")?;
            let mut core = transaction.prepare("INSERT INTO assigned_cores VALUES (?, ?, ?)")?;
            // MUSCLE3's tools take it that an instance that has cores has joined and left.
            for (&id, profile) in totals.iter().filter(|(_, profile)| profile.stop > 0.0) {
                for number in &placement.cores[id] {
                    core.execute(params![oid(id), host, number])?;
                }
                let Profile {
                    start,
                    stop,
                    waiting,
                    sending,
                    blocked,
                    regions,
                    ..
                } = profile;
                total.execute(params![oid(id), start, stop, waiting, sending, blocked])?;
                for (name, uses, seconds) in regions {
                    region.execute(params![oid(id), name, signed(*uses), seconds])?;
                }
            }
        }
        transaction.commit()?;
        self.open()?
            .execute_batch("CREATE INDEX events_start_time_idx ON events(start_time);")
    }
}

fn create(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    // One writer, and a run that is cut short has no use for half a profile.
    database.execute_batch(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;",
    )?;
    database.execute_batch(TABLES)?;
    database.execute("INSERT INTO muscle3_format VALUES (1, 1)", [])?;
    database.execute("INSERT INTO titin_format VALUES (1, 1)", [])?;
    for (name, number, _) in EVENT_TYPES {
        database.execute(
            "INSERT INTO event_types VALUES (?, ?)",
            params![number, name],
        )?;
    }
    for (name, number) in OPERATORS {
        database.execute(
            "INSERT INTO port_operators VALUES (?, ?)",
            params![number, name],
        )?;
    }
    database.execute_batch("COMMIT;")?;
    Ok(database)
}

/// The number of an event's type; that of a region gets one when it is first seen.
fn event_type(
    transaction: &Transaction<'_>,
    event: &Event,
    regions: &mut i64,
) -> rusqlite::Result<i64> {
    if let Some((_, number, _)) = EVENT_TYPES
        .iter()
        .find(|(name, ..)| !event.region && *name == event.kind)
    {
        return Ok(*number);
    }
    let name = if event.region {
        format!("{REGION}{}", event.kind)
    } else {
        event.kind.clone()
    };
    let known = transaction
        .prepare_cached("SELECT oid FROM event_types WHERE name = ?")?
        .query_row([&name], |row| row.get(0));
    match known {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            let number = FIRST_REGION + *regions;
            *regions += 1;
            transaction.execute(
                "INSERT INTO event_types VALUES (?, ?)",
                params![number, name],
            )?;
            Ok(number)
        }
        known => known,
    }
}

/// Instances are counted from one, as rows of a database are.
fn oid(id: InstanceId) -> i64 {
    i64::from(id.0) + 1
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::place;
    use crate::profile::{Database, EventClass};
    use titin_wire::control::ConduitProfile;
    use titin_wire::meta::Dtype;

    fn recorder(path: &Path) -> Recorder {
        let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {description: x, ports: {o_f: out}, \
                    implementation: p}\n      b: {description: x, ports: {f_init: in}, implementation: p}\n    \
                    conduits:\n      a.out: b.in\nprograms: {p: {executable: p}}";
        let description = titin_model::load_texts(&[("m", text)], &Default::default()).unwrap();
        let plan = Arc::new(
            crate::compile::compile(
                &description.network(None).unwrap(),
                &[],
                &Default::default(),
            )
            .unwrap(),
        );
        let placement = place(&plan, &[4]);
        Recorder::start(path.to_owned(), plan, "here".into(), placement).unwrap()
    }

    fn summary() -> Summary {
        let end = |side: &[u8]| FieldEnd {
            side: side.to_vec(),
            dtypes: vec![Dtype::Float64 as u8],
        };
        Summary {
            seconds: 2.5,
            outcome: "done".into(),
            raised: [(ConduitId(0), (1, 256))].into(),
            fields: [(ConduitId(0), [end(b"rows"), end(b"columns")])].into(),
        }
    }

    fn event(kind: &str, start: i64) -> Event {
        Event {
            kind: kind.into(),
            region: !kind.starts_with(char::is_uppercase),
            start,
            stop: start + 5,
            port: Some("out".into()),
            operator: Some("o_f".into()),
            slots: None,
            slot: None,
            conduit: Some(0),
            number: Some(1),
            size: Some(80),
            timestamp: Some(0.5),
        }
    }

    #[test]
    fn what_instances_report_is_found_in_both_formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.sqlite");
        let recorder = recorder(&path);
        let profile = |stop, events| Profile {
            instance: "a".into(),
            start: 1.0,
            stop,
            sending: 0.25,
            conduits: vec![ConduitProfile {
                port: "out".into(),
                sends: true,
                messages: 3,
                by_socket: 2,
                ..Default::default()
            }],
            regions: vec![("solve".into(), 7, 0.5)],
            events,
            ..Profile::default()
        };
        // A region may have the name of anything.
        let like_a_send = Event {
            region: true,
            ..event("SEND", 30)
        };
        recorder.keep(Box::new(profile(
            2.0,
            vec![event("SEND", 10), event("solve", 20)],
        )));
        recorder.keep(Box::new(profile(
            3.0,
            vec![event("solve", 25), like_a_send],
        )));
        recorder.keep(Box::new(Profile {
            instance: "nobody".into(),
            ..Profile::default()
        }));
        recorder.finish(summary()).unwrap();

        let database = Connection::open(&path).unwrap();
        let text = |query: &str| -> String {
            database
                .query_row(query, [], |row| {
                    row.get::<_, rusqlite::types::Value>(0)
                        .map(|v| format!("{v:?}"))
                })
                .unwrap()
        };
        assert_eq!(
            text("SELECT group_concat(type) FROM all_events"),
            "Text(\"SEND,region solve,region solve,region SEND\")"
        );
        assert_eq!(
            text("SELECT group_concat(DISTINCT operator) FROM all_events"),
            "Text(\"O_F\")"
        );
        assert_eq!(text("SELECT core FROM assigned_cores"), "Integer(4)");
        assert_eq!(
            text("SELECT major_version FROM muscle3_format"),
            "Integer(1)"
        );
        assert_eq!(text("SELECT stop FROM totals"), "Real(3.0)");
        assert_eq!(text("SELECT messages FROM conduit_ends"), "Integer(3)");
        assert_eq!(text("SELECT uses FROM regions"), "Integer(7)");
        assert_eq!(text("SELECT buffer_messages FROM conduits"), "Integer(256)");
        assert_eq!(text("SELECT outcome FROM run"), "Text(\"done\")");

        // What is written is read.
        let database = Database::open(&path).unwrap();
        let profile = database.profile().unwrap();
        assert_eq!(
            (profile.run.unwrap().outcome.as_str(), profile.traced),
            ("done", true)
        );
        let conduit = &profile.conduits[0];
        assert_eq!(
            (conduit.messages, conduit.by_socket, conduit.raised),
            (3, 2, 1)
        );
        assert_eq!(
            (profile.regions[0].name.as_str(), profile.regions[0].uses),
            ("solve", 7)
        );
        let fields = database.fields().unwrap();
        assert_eq!(
            (fields[0].from.as_str(), fields[0].to.as_str()),
            ("a.out", "b.in")
        );
        assert_eq!(
            (&fields[0].sender[..], &fields[0].receiver[..]),
            (&b"rows"[..], &b"columns"[..])
        );
        assert_eq!(
            (&fields[0].sizes[..], fields[0].pattern.as_ref()),
            (&[8][..], None)
        );
        let mut events = Vec::new();
        database
            .events(|event| events.push((event.class, event.kind)))
            .unwrap();
        let expected = [
            (EventClass::Send, "SEND"),
            (EventClass::Region, "solve"),
            (EventClass::Region, "solve"),
            (EventClass::Region, "SEND"),
        ];
        assert_eq!(
            events,
            expected.map(|(class, kind)| (class, kind.to_owned()))
        );
    }

    #[test]
    fn profiles_of_format_1_0_are_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.sqlite");
        let recorder = recorder(&path);
        let detour = Some("they do not share memory".to_owned());
        let conduits = vec![ConduitProfile {
            sends: true,
            detour: detour.clone(),
            ..Default::default()
        }];
        recorder.keep(Box::new(Profile {
            instance: "a".into(),
            conduits,
            ..Profile::default()
        }));
        recorder.finish(summary()).unwrap();
        let read = || {
            Database::open(&path)
                .unwrap()
                .profile()
                .unwrap()
                .conduits
                .remove(0)
                .detour
        };
        assert_eq!(read(), detour);
        for column in ["by_socket", "detour", "streams"] {
            let less = format!("ALTER TABLE conduit_ends DROP COLUMN {column}");
            Connection::open(&path).unwrap().execute(&less, []).unwrap();
        }
        assert_eq!(read(), None);
        assert_eq!(Database::open(&path).unwrap().fields().unwrap().len(), 1);
        Connection::open(&path)
            .unwrap()
            .execute("DROP TABLE fields", [])
            .unwrap();
        assert!(Database::open(&path).unwrap().fields().unwrap().is_empty());
    }

    #[test]
    fn a_profile_that_cannot_be_written_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = recorder(&folder.path().join("missing/performance.sqlite"));
        let mut profile = Profile {
            instance: "a".into(),
            ..Profile::default()
        };
        profile.events.push(event("SEND", 10));
        recorder.keep(Box::new(profile.clone()));
        recorder.keep(Box::new(profile));
        let error = recorder.finish(summary()).unwrap_err().to_string();
        assert!(error.contains("missing/performance.sqlite"), "{error}");
    }

    #[test]
    fn a_writer_that_panics_has_not_written() {
        let (sender, _receiver) = channel();
        let thread = std::thread::spawn(|| panic!("no such row"));
        let recorder = Recorder {
            path: "performance.sqlite".into(),
            sender,
            thread,
        };
        let error = recorder.finish(summary()).unwrap_err().to_string();
        assert!(
            error.contains("internal error in the thread for it: no such row"),
            "{error}"
        );
    }
}
