//! Writing a profile, in a separate thread: event rows at once, and the rest at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rusqlite::{Connection, Transaction, params};
use titin_model::Name;
use titin_wire::control::{ConduitProfile, Event, FieldEnd, Profile};

use super::{EVENT_TYPES, FIRST_REGION, OPERATORS, REGION, TABLES};
use crate::placement::{Core, Placement};
use crate::plan::{ConduitId, InstanceId, Plan, PlannedConduit};

/// The number of instances in one transaction.
const BATCH: usize = 64;

/// Why the profile could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The file could not be written.
    #[error("cannot write the profile {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The database's answer.
        source: rusqlite::Error,
    },
    /// The writing thread has panicked.
    #[error("cannot write the profile {}: internal error in the thread for it: {text}", .path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// The message of the panic.
        text: String,
    },
}

/// The facts at the end of a run, beside the counts of the instances.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The duration of the run.
    pub seconds: f64,
    /// "done", or why the run failed.
    pub outcome: String,
    /// Raised buffers: the number of raises, and the limit in messages.
    pub raised: BTreeMap<ConduitId, (u64, u64)>,
    /// Conduits that carried fields, with the declarations of the sender and the receiver.
    pub fields: BTreeMap<ConduitId, [FieldEnd; 2]>,
}

/// Takes in the counts of instances, and writes the profile.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    sender: Sender<RecorderMessage>,
    thread: JoinHandle<Result<(), RecorderError>>,
}

#[derive(Debug)]
enum RecorderMessage {
    /// The counts of an instance, and of the conduit ends.
    Keep(Box<Profile>, Vec<ConduitCounts>),
    /// The run has ended.
    Finish(Box<Summary>),
}

impl Recorder {
    /// Begins a profile in the file `path`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        path: PathBuf,
        plan: Arc<Plan>,
        host: String,
        placement: Arc<OnceLock<Placement>>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let writer = ProfileWriter {
            path: path.clone(),
            plan,
            host,
            placement,
            database: None,
            totals: BTreeMap::new(),
            gathered: Vec::new(),
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

    /// Takes in the counts of an instance.
    pub fn keep(&self, mut profile: Box<Profile>) {
        let mut names = SharedNames::default();
        let conduits = std::mem::take(&mut profile.conduits).into_iter();
        let counts = conduits
            .map(|conduit| ConduitCounts::new(conduit, &mut names))
            .collect();
        // A failed writer reports its error at the end.
        let _ = self.sender.send(RecorderMessage::Keep(profile, counts));
    }

    /// Writes the profile to its end.
    ///
    /// # Errors
    /// [`RecorderError`] for the first failure, for instance a full disk.
    pub fn finish(self, summary: Summary) -> Result<(), RecorderError> {
        let _ = self.sender.send(RecorderMessage::Finish(Box::new(summary)));
        let path = self.path;
        self.thread.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(RecorderError::Internal {
                path,
                text: text.unwrap_or_else(|| "a panic".into()),
            })
        })
    }
}

/// The names of media, and the addresses, which conduits share.
#[derive(Default)]
struct SharedNames(Vec<Name>);

impl SharedNames {
    fn name(&mut self, text: String) -> Name {
        let known = self.0.iter().find(|known| ***known == *text);
        known.cloned().unwrap_or_else(|| {
            let name = Name::from(text);
            self.0.push(name.clone());
            name
        })
    }
}

/// The counts of an instance for its end of a conduit. A hundred thousand values may wait for the
/// writer, so the type is small. The port is in the plan.
#[derive(Debug)]
struct ConduitCounts {
    conduit: ConduitId,
    sends: bool,
    streams: Option<u32>,
    medium: Name,
    /// The addresses of the two ends, with that of the instance first.
    addresses: Option<[Name; 2]>,
    detour: Option<Box<str>>,
    messages: u64,
    bytes: u64,
    copied: u64,
    by_socket: u64,
    compressed: u64,
    uncompressed_bytes: u64,
    waiting: f64,
}

impl ConduitCounts {
    fn new(of: ConduitProfile, names: &mut SharedNames) -> Self {
        ConduitCounts {
            conduit: ConduitId(of.conduit),
            sends: of.sends,
            streams: of.streams,
            medium: names.name(of.medium),
            addresses: of
                .addresses
                .map(|ends| ends.map(|address| names.name(address))),
            detour: of.detour.map(String::into_boxed_str),
            messages: of.messages,
            bytes: of.bytes,
            copied: of.copied,
            by_socket: of.by_socket,
            compressed: of.compressed,
            uncompressed_bytes: of.uncompressed_bytes,
            waiting: of.waiting,
        }
    }
}

/// The writer of a profile, in its own thread.
struct ProfileWriter {
    path: PathBuf,
    plan: Arc<Plan>,
    /// The name of the manager's own host.
    host: String,
    /// The placement, once all hosts are known.
    placement: Arc<OnceLock<Placement>>,
    /// The file; `None` before the first write.
    database: Option<Connection>,
    totals: BTreeMap<InstanceId, Profile>,
    /// The counts of conduit ends still to be written.
    gathered: Vec<(InstanceId, Vec<ConduitCounts>)>,
    /// The instances with written counts.
    written: BTreeSet<InstanceId>,
    /// The number of event types for regions.
    regions: i64,
}

impl ProfileWriter {
    fn run(mut self, receiver: &Receiver<RecorderMessage>) -> Result<(), RecorderError> {
        let result = self.work(receiver);
        result.map_err(|source| RecorderError::Write {
            path: self.path,
            source,
        })
    }

    fn work(&mut self, receiver: &Receiver<RecorderMessage>) -> rusqlite::Result<()> {
        let instances = &self.plan.instances;
        let ids = instances.ids();
        let ids: BTreeMap<String, InstanceId> =
            ids.map(|id| (instances[id].name.clone(), id)).collect();
        while let Ok(message) = receiver.recv() {
            match message {
                RecorderMessage::Keep(profile, counts) => {
                    if let Some(&id) = ids.get(&profile.instance) {
                        self.take_in(id, *profile, counts)?;
                    }
                }
                RecorderMessage::Finish(summary) => return self.write_all(&summary),
            }
        }
        Ok(())
    }

    /// Takes in the counts of an instance. Events are written at once. Counts of conduit ends are
    /// written in batches, because the counts of thousands of instances would fill the memory.
    fn take_in(
        &mut self,
        id: InstanceId,
        mut profile: Profile,
        counts: Vec<ConduitCounts>,
    ) -> rusqlite::Result<()> {
        let events = std::mem::take(&mut profile.events);
        if !counts.is_empty() {
            self.gathered.push((id, counts));
        }
        if self.gathered.len() == BATCH {
            self.write_counts()?;
        }
        self.totals.insert(id, profile);
        match events.is_empty() {
            true => Ok(()),
            false => self.write_events(id, &events),
        }
    }

    fn open(&mut self) -> rusqlite::Result<&mut Connection> {
        if self.database.is_none() {
            let mut database = create(&self.path)?;
            write_plan(&mut database, &self.plan)?;
            self.database = Some(database);
        }
        Ok(self.database.as_mut().expect("it was just made"))
    }

    fn write_events(&mut self, id: InstanceId, events: &[Event]) -> rusqlite::Result<()> {
        let mut regions = self.regions;
        let transaction = self.open()?.transaction()?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
        for event in events {
            insert.execute(params![
                oid(id),
                event_type(&transaction, event, &mut regions)?,
                event.start,
                event.stop,
                event.port,
                event.operator.as_deref().and_then(operator_number),
                event.slots,
                event.slot,
                event.number.map(signed),
                event.size.map(signed),
                event.timestamp,
                event.conduit,
            ])?;
        }
        drop(insert);
        transaction.commit()?;
        self.regions = regions;
        Ok(())
    }

    /// Writes the gathered counts of conduit ends.
    fn write_counts(&mut self) -> rusqlite::Result<()> {
        let plan = self.plan.clone();
        let gathered = std::mem::take(&mut self.gathered);
        let mut written = std::mem::take(&mut self.written);
        let transaction = self.open()?.transaction()?;
        for (id, counts) in gathered {
            // An instance that fails at its close may send counts again.
            if !written.insert(id) {
                let sql = "DELETE FROM conduit_ends WHERE instance_oid = ?";
                transaction.execute(sql, [oid(id)])?;
            }
            for end in &counts {
                // A conduit without a place in the plan would break the database.
                if let Some(planned) = plan.conduit(end.conduit) {
                    end.write(&transaction, id, planned)?;
                }
            }
        }
        transaction.commit()?;
        self.written = written;
        Ok(())
    }

    /// Writes the rest, at the end of the run.
    fn write_all(&mut self, summary: &Summary) -> rusqlite::Result<()> {
        self.write_counts()?;
        let (plan, host) = (self.plan.clone(), self.host.clone());
        let placement = self.placement.clone();
        let further = plan.hosts.iter().map(|host| host.name.as_str());
        let names: Vec<&str> = std::iter::once(host.as_str()).chain(further).collect();
        let totals = std::mem::take(&mut self.totals);
        let transaction = self.open()?.transaction()?;
        transaction.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?)",
            params![plan.model, host, summary.seconds, summary.outcome],
        )?;
        write_summary(&transaction, &plan, summary)?;
        for (&id, profile) in &totals {
            // MUSCLE3's tools assume that an instance with cores has joined and left.
            if profile.stop > 0.0 {
                if let Some(placement) = placement.get() {
                    let cores = &placement.cores[id];
                    write_cores(&transaction, id, &names, cores)?;
                    write_site(&transaction, id, &plan, cores)?;
                }
                write_totals(&transaction, id, profile)?;
            }
        }
        transaction.commit()?;
        self.open()?
            .execute_batch("CREATE INDEX events_start_time_idx ON events(start_time);")
    }
}

impl ConduitCounts {
    fn write(
        &self,
        transaction: &Transaction<'_>,
        id: InstanceId,
        planned: &PlannedConduit,
    ) -> rusqlite::Result<()> {
        let port = match self.sends {
            true => &planned.from,
            false => &planned.to,
        };
        let mut insert = transaction.prepare_cached(
            "INSERT INTO conduit_ends VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        let address = |end: usize| self.addresses.as_ref().map(|ends| ends[end].as_str());
        insert.execute(params![
            self.conduit.0,
            oid(id),
            port.to_string(),
            self.sends,
            self.medium.as_str(),
            signed(self.messages),
            signed(self.bytes),
            signed(self.copied),
            self.waiting,
            self.streams,
            self.detour,
            signed(self.by_socket),
            signed(self.compressed),
            signed(self.uncompressed_bytes),
            address(0),
            address(1),
        ])?;
        Ok(())
    }
}

/// Writes the raised buffers, and the conduits that carried fields.
fn write_summary(
    transaction: &Transaction<'_>,
    plan: &Plan,
    summary: &Summary,
) -> rusqlite::Result<()> {
    let mut raise = transaction
        .prepare("UPDATE conduits SET buffer_messages = ?, buffer_raised = ? WHERE oid = ?")?;
    for (conduit, (times, messages)) in &summary.raised {
        raise.execute(params![signed(*messages), signed(*times), conduit.0])?;
    }
    write_fields(transaction, plan, summary)
}

fn write_fields(
    transaction: &Transaction<'_>,
    plan: &Plan,
    summary: &Summary,
) -> rusqlite::Result<()> {
    let mut field = transaction.prepare("INSERT INTO fields VALUES (?, ?, ?, ?, ?)")?;
    for (conduit, [sender, receiver]) in &summary.fields {
        let Some(planned) = plan.conduit(*conduit) else {
            continue;
        };
        let pattern = planned.pattern.as_ref();
        let pattern = pattern.and_then(|pattern| serde_json::to_string(pattern).ok());
        let (from, to, types) = (&sender.side, &receiver.side, &sender.dtypes);
        field.execute(params![conduit.0, from, to, types, pattern])?;
    }
    Ok(())
}

fn write_cores(
    transaction: &Transaction<'_>,
    id: InstanceId,
    hosts: &[&str],
    cores: &[Core],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO assigned_cores VALUES (?, ?, ?)")?;
    for core in cores {
        insert.execute(params![oid(id), hosts[core.host.index()], core.number])?;
    }
    Ok(())
}

/// Writes the site of an instance, in a run with several sites. All cores of an instance are at one.
fn write_site(
    transaction: &Transaction<'_>,
    id: InstanceId,
    plan: &Plan,
    cores: &[Core],
) -> rusqlite::Result<()> {
    let site = cores.first().and_then(|core| plan.site_of(core.host));
    if let Some(site) = site {
        let mut insert = transaction.prepare_cached("INSERT INTO sites VALUES (?, ?)")?;
        insert.execute(params![oid(id), site])?;
    }
    Ok(())
}

/// Writes the totals of an instance, and of its regions.
fn write_totals(
    transaction: &Transaction<'_>,
    id: InstanceId,
    profile: &Profile,
) -> rusqlite::Result<()> {
    let Profile {
        start,
        stop,
        waiting,
        sending,
        blocked,
        ..
    } = profile;
    let mut total = transaction.prepare_cached("INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?)")?;
    total.execute(params![oid(id), start, stop, waiting, sending, blocked])?;
    if let Some(process) = &profile.process {
        let mut insert = transaction.prepare_cached("INSERT INTO processes VALUES (?, ?, ?, ?)")?;
        let peak = signed(process.peak_memory);
        insert.execute(params![oid(id), process.pid, process.processor, peak])?;
    }
    let mut region = transaction.prepare_cached("INSERT INTO regions VALUES (?, ?, ?, ?)")?;
    for (name, uses, seconds) in &profile.regions {
        region.execute(params![oid(id), name, signed(*uses), seconds])?;
    }
    Ok(())
}

/// The number of an operator, by its key in descriptions.
fn operator_number(key: &str) -> Option<i64> {
    let name = key.to_uppercase();
    let mut operators = OPERATORS.iter();
    operators
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number)
}

/// Writes the instances and the conduits of a run.
fn write_plan(database: &mut Connection, plan: &Plan) -> rusqlite::Result<()> {
    let transaction = database.transaction()?;
    write_instances(&transaction, plan)?;
    let mut insert =
        transaction.prepare("INSERT INTO conduits VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)")?;
    for (conduit, planned) in plan.numbered() {
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
    transaction.commit()
}

fn write_instances(transaction: &Transaction<'_>, plan: &Plan) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare("INSERT INTO instances VALUES (?, ?)")?;
    for id in plan.instances.ids() {
        insert.execute(params![oid(id), plan.instances[id].name])?;
    }
    Ok(())
}

fn create(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    // There is a single writer. After an early end of the run, half a profile would be of no use.
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

/// The number of an event's type. A region gets a number at its first event.
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

/// The number of an instance in the file. In the file, numbers begin with 1.
fn oid(id: InstanceId) -> i64 {
    i64::from(id.0) + 1
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{LauncherReach, place};
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
        let placement = place(&plan, &[vec![4]], LauncherReach::OneHost);
        let placement = Arc::new(OnceLock::from(placement));
        Recorder::start(path.to_owned(), plan, "here".into(), placement).unwrap()
    }

    fn summary() -> Summary {
        let end = |side: &[u8]| FieldEnd {
            side: side.to_vec(),
            dtypes: vec![Dtype::Float64 as u8],
            takes_joined: false,
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

    /// Records two reports of an instance, and a report of an instance that the plan does not have.
    fn record_reports(path: &Path) {
        let recorder = recorder(path);
        let profile = |stop, events| Profile {
            instance: "a".into(),
            start: 1.0,
            stop,
            sending: 0.25,
            conduits: vec![ConduitProfile {
                port: "out".into(),
                sends: true,
                addresses: Some(["10.70.0.1", "10.70.0.2"].map(str::to_owned)),
                messages: 3,
                by_socket: 2,
                bytes: 100,
                compressed: 2,
                uncompressed_bytes: 300,
                ..Default::default()
            }],
            regions: vec![("solve".into(), 7, 0.5)],
            events,
            ..Profile::default()
        };
        // A region may have the name of an event type.
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
    }

    #[test]
    fn the_tables_have_what_instances_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.sqlite");
        record_reports(&path);
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
    }

    #[test]
    fn the_reader_returns_what_instances_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.sqlite");
        record_reports(&path);
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
        assert_eq!((conduit.compressed, conduit.uncompressed_bytes), (2, 300));
        let addresses = conduit.addresses.as_ref().unwrap();
        assert_eq!(addresses, &["10.70.0.1", "10.70.0.2"]);
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
    fn the_senders_address_comes_first_also_by_the_receivers_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("performance.sqlite");
        let recorder = recorder(&path);
        recorder.keep(Box::new(Profile {
            instance: "b".into(),
            conduits: vec![ConduitProfile {
                port: "in".into(),
                addresses: Some(["10.70.0.2", "10.70.0.1"].map(str::to_owned)),
                ..Default::default()
            }],
            ..Profile::default()
        }));
        recorder.finish(summary()).unwrap();
        let mut profile = Database::open(&path).unwrap().profile().unwrap();
        let addresses = profile.conduits.remove(0).addresses.unwrap();
        assert_eq!(addresses, ["10.70.0.1", "10.70.0.2"]);
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
        for column in [
            "by_socket",
            "detour",
            "streams",
            "compressed",
            "uncompressed_bytes",
            "own_address",
            "peer_address",
        ] {
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
