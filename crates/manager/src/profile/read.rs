//! Reading a profile: titin's own tables if the file has such tables, else MUSCLE3's (format 1.1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use titin_wire::meta::Dtype;

use super::records::{
    ConduitTotals, InstanceTotals, ProcessTotals, RecordedField, RegionTotals, RunProfile,
    RunTotals, SiteTotals, TraceEvent, UnfinishedInstance,
};
use super::{EVENT_TYPES, EventClass, REGION};

/// The totals of instances, from titin's own tables.
const OWN_INSTANCES: &str = "SELECT i.oid, i.name, t.start, t.stop, t.waiting, t.sending, t.blocked \
     FROM instances i JOIN totals t ON t.instance_oid = i.oid ORDER BY i.oid";

const CONDUITS: &str = "SELECT s.name, c.sender_port, c.sender_slot, r.name, c.receiver_port, c.receiver_slot, \
     COALESCE(se.medium, re.medium, ''), COALESCE(se.messages, re.messages, 0), \
     COALESCE(se.bytes, re.bytes, 0), COALESCE(se.copied, 0) + COALESCE(re.copied, 0), \
     COALESCE(se.waiting, 0.0), COALESCE(re.waiting, 0.0), c.buffer_messages, c.buffer_raised, {streams}, {detour}, COALESCE({by_socket}, 0), \
     COALESCE({compressed}, 0), COALESCE({uncompressed_bytes}, 0), {own_address}, {peer_address} \
     FROM conduits c JOIN instances s ON s.oid = c.sender_oid JOIN instances r ON r.oid = c.receiver_oid \
     LEFT JOIN conduit_ends se ON se.conduit_oid = c.oid AND se.sends \
     LEFT JOIN conduit_ends re ON re.conduit_oid = c.oid AND NOT re.sends ORDER BY c.oid";

/// Columns that format 1.0 did not have, each with its expression in SQL.
const NEW_COLUMNS: [(&str, &str); 7] = [
    ("streams", "se.streams"),
    ("detour", "COALESCE(se.detour, re.detour)"),
    ("by_socket", "se.by_socket"),
    ("compressed", "se.compressed"),
    ("uncompressed_bytes", "se.uncompressed_bytes"),
    // The sender's address, and then the receiver's.
    ("own_address", "COALESCE(se.own_address, re.peer_address)"),
    ("peer_address", "COALESCE(se.peer_address, re.own_address)"),
];

const FIELDS: &str = "SELECT s.name, c.sender_port, c.sender_slot, r.name, c.receiver_port, c.receiver_slot, \
     f.sender_side, f.receiver_side, f.element_types, f.pattern FROM fields f JOIN conduits c ON c.oid = f.conduit_oid \
     JOIN instances s ON s.oid = c.sender_oid JOIN instances r ON r.oid = c.receiver_oid ORDER BY c.oid";

const UNFINISHED: &str = "SELECT i.oid, i.name, (SELECT MAX(e.stop_time) FROM events e WHERE e.instance_oid = i.oid) \
     FROM instances i WHERE i.oid NOT IN (SELECT instance_oid FROM totals) ORDER BY i.oid";

const REGIONS: &str = "SELECT i.name, r.name, r.uses, r.seconds FROM regions r \
     JOIN instances i ON i.oid = r.instance_oid ORDER BY i.oid, r.seconds DESC";

/// How long the instances of each site have waited for instances at other sites.
const WAITS_FOR_OTHER_SITES: &str = "SELECT here.name, SUM(e.waiting) FROM conduit_ends e JOIN conduits c ON c.oid = e.conduit_oid \
     JOIN sites here ON here.instance_oid = e.instance_oid \
     JOIN sites there ON there.instance_oid = CASE WHEN e.sends THEN c.receiver_oid ELSE c.sender_oid END \
     WHERE here.name <> there.name GROUP BY here.name";

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The run directory has no profile.
    #[error(
        "there is no profile {}: the run has not ended yet, or this is no run directory", .0.display()
    )]
    NotInDirectory(PathBuf),
    /// There is no such file.
    #[error("there is no profile {}: there is no such file or directory", .0.display())]
    NoFile(PathBuf),
    /// The file is no database, or cannot be read.
    #[error("{} cannot be read as a profile: {source}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The database's answer.
        source: rusqlite::Error,
    },
    /// The file is a database, but no profile.
    #[error("{} is a database, but not a profile of titin or MUSCLE3", .0.display())]
    NoProfile(PathBuf),
    /// A later release has written the profile.
    #[error(
        "{} has format {major} of {table}, and this titin reads format 1; use the release that wrote it",
        .path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The major version of the format.
        major: i64,
        /// The table with the version.
        table: &'static str,
    },
}

/// An open profile.
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Whether the file has titin's own tables.
    own: bool,
}

impl Database {
    /// Opens the profile in a run directory, or the file of a profile.
    ///
    /// # Errors
    /// [`ReadError`] if there is no profile, or the file cannot be read.
    pub fn open(given: &Path) -> Result<Database, ReadError> {
        let path = profile_file(given)?;
        let unreadable = |source| ReadError::Database {
            path: path.clone(),
            source,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(unreadable)?;
        let Some(table) = format_table(&connection).map_err(unreadable)? else {
            return Err(ReadError::NoProfile(path));
        };
        let sql = format!("SELECT major_version FROM {table}");
        let major = connection.query_row(&sql, [], |row| row.get(0));
        match major.map_err(unreadable)? {
            1 => Ok(Database {
                connection,
                path,
                own: table == OWN_FORMAT,
            }),
            major => Err(ReadError::Format { path, major, table }),
        }
    }

    fn unreadable(&self, source: rusqlite::Error) -> ReadError {
        ReadError::Database {
            path: self.path.clone(),
            source,
        }
    }

    /// Reads all but the rows of a trace.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read.
    pub fn profile(&self) -> Result<RunProfile, ReadError> {
        self.read_profile().map_err(|error| self.unreadable(error))
    }

    fn read_profile(&self) -> rusqlite::Result<RunProfile> {
        let mut profile = RunProfile {
            run: None,
            instances: match self.own {
                true => self.own_instances()?,
                false => self.instances_of_muscle3()?,
            },
            conduits: Vec::new(),
            regions: Vec::new(),
            sites: Vec::new(),
            traced: self.has_trace()?,
        };
        for instance in &mut profile.instances {
            let sql = "SELECT core FROM assigned_cores WHERE instance_oid = ? ORDER BY core";
            instance.cores = self.list(sql, [instance.oid], |row| row.get(0))?;
        }
        if self.own {
            profile.run = self.run()?;
            profile.conduits = self.conduits()?;
            profile.regions = self.regions()?;
            self.add_sites(&mut profile)?;
            self.add_processes(&mut profile)?;
        }
        Ok(profile)
    }

    /// Adds the site of each instance, and the times at each site.
    fn add_sites(&self, profile: &mut RunProfile) -> rusqlite::Result<()> {
        // Profiles of earlier releases have no sites.
        if !has_table(&self.connection, "sites")? {
            return Ok(());
        }
        let sql = "SELECT name FROM sites WHERE instance_oid = ?";
        let mut sites: BTreeMap<String, SiteTotals> = BTreeMap::new();
        for instance in &mut profile.instances {
            let mut names = self.list(sql, [instance.oid], |row| row.get::<_, String>(0))?;
            instance.site = names.pop();
            if let Some(name) = &instance.site {
                let site = sites.entry(name.clone()).or_default();
                site.instances += 1;
                site.total += instance.total;
                site.compute += instance.compute;
                site.waiting += instance.waiting;
                site.sending += instance.sending;
            }
        }
        let waits = self.list(WAITS_FOR_OTHER_SITES, [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?))
        })?;
        for (name, waited) in waits {
            sites.entry(name).or_default().for_other_sites = waited;
        }
        let named = sites
            .into_iter()
            .map(|(site, totals)| SiteTotals { site, ..totals });
        profile.sites = named.collect();
        Ok(())
    }

    /// Adds what the process of each instance has used.
    fn add_processes(&self, profile: &mut RunProfile) -> rusqlite::Result<()> {
        // Profiles of earlier releases have no processes.
        if !has_table(&self.connection, "processes")? {
            return Ok(());
        }
        let sql = "SELECT pid, processor, peak_memory FROM processes WHERE instance_oid = ?";
        for instance in &mut profile.instances {
            let mut found = self.list(sql, [instance.oid], |row| {
                Ok(ProcessTotals {
                    pid: row.get(0)?,
                    processor: row.get(1)?,
                    peak_memory: row.get(2)?,
                })
            })?;
            instance.process = found.pop();
        }
        Ok(())
    }

    /// Whether the profile has rows of a trace. Rows about joining and leaving do not count,
    /// because every profile has such rows.
    fn has_trace(&self) -> rusqlite::Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM events e JOIN event_types t ON t.oid = e.event_type_oid WHERE t.name NOT IN ({}))",
            quoted(&[EventClass::SetUp, EventClass::TakeDown])
        );
        let rows: i64 = self.connection.query_row(&sql, [], |row| row.get(0))?;
        Ok(rows != 0)
    }

    fn run(&self) -> rusqlite::Result<Option<RunTotals>> {
        let sql = "SELECT model, host, seconds, outcome FROM run";
        let run = self.connection.query_row(sql, [], |row| {
            Ok(RunTotals {
                model: row.get(0)?,
                host: row.get(1)?,
                seconds: row.get(2)?,
                outcome: row.get(3)?,
            })
        });
        run.optional()
    }

    /// The rows of a query, each made into a value.
    fn list<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        make: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(values, |row| make(row))?;
        rows.collect()
    }

    fn own_instances(&self) -> rusqlite::Result<Vec<InstanceTotals>> {
        self.list(OWN_INSTANCES, [], |row| {
            let (start, stop): (f64, f64) = (row.get(2)?, row.get(3)?);
            let (waiting, sending): (f64, f64) = (row.get(4)?, row.get(5)?);
            let blocked: f64 = row.get(6)?;
            let total = (stop - start).max(0.0);
            // Without a trace, the times of short waits and of sending are estimated from samples,
            // and may be too long.
            let waiting = waiting.min(total);
            let sending = sending.min((total - waiting).max(blocked));
            Ok(InstanceTotals {
                oid: row.get(0)?,
                name: row.get(1)?,
                cores: Vec::new(),
                site: None,
                process: None,
                start,
                total,
                compute: (total - waiting - sending).max(0.0),
                waiting,
                receiving: 0.0,
                sending,
                blocked,
            })
        })
    }

    /// The totals of instances from MUSCLE3's rows, a row for each event. The time of an instance
    /// is from its connection to its shutdown, as in MUSCLE3's own tool.
    fn instances_of_muscle3(&self) -> rusqlite::Result<Vec<InstanceTotals>> {
        self.list(&query_of_muscle3(), [], |row| {
            let nanoseconds = |column: usize| row.get::<_, i64>(column);
            let seconds =
                |column: usize| -> rusqlite::Result<f64> { Ok(nanoseconds(column)? as f64 * 1e-9) };
            let total = ((nanoseconds(3)? - nanoseconds(2)?) as f64 * 1e-9).max(0.0);
            let (waiting, receiving, sending) = (seconds(4)?, seconds(5)?, seconds(6)?);
            Ok(InstanceTotals {
                oid: row.get(0)?,
                name: row.get(1)?,
                cores: Vec::new(),
                site: None,
                process: None,
                start: seconds(2)?,
                total,
                compute: (total - waiting - receiving - sending).max(0.0),
                waiting,
                receiving,
                sending,
                blocked: 0.0,
            })
        })
    }

    /// The query for conduits. Profiles of earlier releases lack some columns.
    fn query_of_conduits(&self) -> rusqlite::Result<String> {
        let mut sql = CONDUITS.to_owned();
        for (column, expression) in NEW_COLUMNS {
            let known =
                "SELECT EXISTS (SELECT 1 FROM pragma_table_info('conduit_ends') WHERE name = ?)";
            let is_known = self.connection.query_row(known, [column], |row| row.get(0));
            let expression = if is_known? { expression } else { "NULL" };
            sql = sql.replace(&format!("{{{column}}}"), expression);
        }
        Ok(sql)
    }

    fn conduits(&self) -> rusqlite::Result<Vec<ConduitTotals>> {
        self.list(&self.query_of_conduits()?, [], |row| {
            Ok(ConduitTotals {
                from: port(row, 0)?,
                to: port(row, 3)?,
                medium: row.get(6)?,
                detour: row.get(15)?,
                messages: row.get(7)?,
                by_socket: row.get(16)?,
                compressed: row.get(17)?,
                uncompressed_bytes: row.get(18)?,
                bytes: row.get(8)?,
                copied: row.get(9)?,
                sender_waited: row.get(10)?,
                receiver_waited: row.get(11)?,
                buffer: row.get(12)?,
                raised: row.get(13)?,
                streams: row.get(14)?,
                addresses: addresses(row.get(19)?, row.get(20)?),
            })
        })
    }

    /// Conduits with fields that both ends had declared.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read.
    pub fn fields(&self) -> Result<Vec<RecordedField>, ReadError> {
        self.read_fields().map_err(|error| self.unreadable(error))
    }

    fn read_fields(&self) -> rusqlite::Result<Vec<RecordedField>> {
        // Profiles of MUSCLE3 and of earlier releases have no fields.
        if !has_table(&self.connection, "fields")? {
            return Ok(Vec::new());
        }
        self.list(FIELDS, [], |row| {
            let (types, pattern): (Vec<u8>, Option<String>) = (row.get(8)?, row.get(9)?);
            Ok(RecordedField {
                from: port(row, 0)?,
                to: port(row, 3)?,
                sender: row.get(6)?,
                receiver: row.get(7)?,
                sizes: types.iter().filter_map(element_size).collect(),
                pattern: pattern.and_then(|pattern| serde_json::from_str(&pattern).ok()),
            })
        })
    }

    /// Hands the rows of a trace to `each`, in the order of the rows' beginnings.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read.
    pub fn events(&self, each: impl FnMut(TraceEvent)) -> Result<(), ReadError> {
        self.read_events(each)
            .map_err(|error| self.unreadable(error))
    }

    fn read_events(&self, mut each: impl FnMut(TraceEvent)) -> rusqlite::Result<()> {
        let conduit = if self.own { "e.conduit_oid" } else { "NULL" };
        let sql = format!(
            "SELECT e.instance_oid, t.name, e.start_time, e.stop_time, e.port_name, e.slot, {conduit}, \
             e.message_number, e.message_size, e.message_timestamp FROM events e \
             JOIN event_types t ON t.oid = e.event_type_oid ORDER BY e.start_time, e.stop_time DESC, e.rowid"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(trace_event(row)?);
        }
        Ok(())
    }

    /// Instances that were killed, or that titin ended, before they reported their totals. Such an
    /// instance may have reported rows before its end.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read.
    pub fn unfinished(&self) -> Result<Vec<UnfinishedInstance>, ReadError> {
        if !self.own {
            return Ok(Vec::new());
        }
        let unfinished = self.list(UNFINISHED, [], |row| {
            Ok(UnfinishedInstance {
                oid: row.get(0)?,
                name: row.get(1)?,
                last: row.get(2)?,
            })
        });
        unfinished.map_err(|error| self.unreadable(error))
    }

    fn regions(&self) -> rusqlite::Result<Vec<RegionTotals>> {
        self.list(REGIONS, [], |row| {
            Ok(RegionTotals {
                instance: row.get(0)?,
                name: row.get(1)?,
                uses: row.get(2)?,
                seconds: row.get(3)?,
            })
        })
    }
}

/// The table with the format of a profile that titin has written.
const OWN_FORMAT: &str = "titin_format";

/// The file of the profile in a run directory, or the given file.
fn profile_file(given: &Path) -> Result<PathBuf, ReadError> {
    if given.is_dir() {
        let path = given.join("performance.sqlite");
        return match path.is_file() {
            true => Ok(path),
            false => Err(ReadError::NotInDirectory(path)),
        };
    }
    match given.exists() {
        true => Ok(given.to_path_buf()),
        false => Err(ReadError::NoFile(given.to_path_buf())),
    }
}

/// The table with the format of the profile; `None` if the database is no profile.
fn format_table(connection: &Connection) -> rusqlite::Result<Option<&'static str>> {
    for table in [OWN_FORMAT, "muscle3_format"] {
        if has_table(connection, table)? {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

fn trace_event(row: &Row<'_>) -> rusqlite::Result<TraceEvent> {
    let (port, slot): (Option<String>, Option<i64>) = (row.get(4)?, row.get(5)?);
    let (class, kind) = classify(row.get(1)?);
    Ok(TraceEvent {
        instance: row.get(0)?,
        class,
        kind,
        start: row.get(2)?,
        stop: row.get(3)?,
        port: port.map(|port| with_slot(port, slot)),
        conduit: row.get(6)?,
        number: row.get(7)?,
        bytes: row.get(8)?,
        timestamp: row.get(9)?,
    })
}

fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?";
    let row = connection.query_row(sql, [table], |_| Ok(()));
    Ok(row.optional()?.is_some())
}

/// A query of MUSCLE3's tables for the times of each instance, in nanoseconds: start, stop,
/// waiting, taking in messages, sending.
fn query_of_muscle3() -> String {
    let of = |function: &str, activity: EventClass| {
        format!(
            "{function}(CASE WHEN t.name IN ({}) THEN",
            quoted(&[activity])
        )
    };
    let sum = |activity| {
        let sum = of("SUM", activity);
        format!("COALESCE({sum} e.stop_time - e.start_time END), 0)")
    };
    format!(
        "SELECT i.oid, i.name, COALESCE({} e.stop_time END), MIN(e.start_time), 0), \
         COALESCE({} e.start_time END), MAX(e.stop_time), 0), {}, {}, {} \
         FROM instances i LEFT JOIN events e ON e.instance_oid = i.oid \
         LEFT JOIN event_types t ON t.oid = e.event_type_oid GROUP BY i.oid ORDER BY i.oid",
        of("MAX", EventClass::SetUp),
        of("MIN", EventClass::TakeDown),
        sum(EventClass::Wait),
        sum(EventClass::TakeIn),
        sum(EventClass::Send)
    )
}

/// The addresses of a conduit's sender and receiver, if both are known.
fn addresses(sender: Option<String>, receiver: Option<String>) -> Option<[String; 2]> {
    Some([sender?, receiver?])
}

/// The port of a conduit end, from three columns: the instance, the port and the slot.
fn port(row: &Row<'_>, first: usize) -> rusqlite::Result<String> {
    let (instance, port): (String, String) = (row.get(first)?, row.get(first + 1)?);
    Ok(with_slot(format!("{instance}.{port}"), row.get(first + 2)?))
}

fn with_slot(port: String, slot: Option<i64>) -> String {
    match slot {
        Some(slot) => format!("{port}[{slot}]"),
        None => port,
    }
}

/// Bytes of an element of a type, by the type's number.
fn element_size(number: &u8) -> Option<u64> {
    let mut types = Dtype::ALL.into_iter();
    let dtype = types.find(|dtype| *dtype as u8 == *number)?;
    Some(dtype.size() as u64)
}

/// The names of MUSCLE3's event types for some activities, for a query.
fn quoted(activities: &[EventClass]) -> String {
    let types = EVENT_TYPES.iter();
    let types = types.filter(|(.., activity)| activities.contains(activity));
    let names: Vec<String> = types.map(|(name, ..)| format!("'{name}'")).collect();
    names.join(", ")
}

/// The meaning of an event type: the activity, and the name of the type or of the region.
fn classify(name: String) -> (EventClass, String) {
    if let Some(region) = name.strip_prefix(REGION) {
        return (EventClass::Region, region.to_owned());
    }
    let known = EVENT_TYPES.iter().find(|(known, ..)| *known == name);
    let activity = known.map_or(EventClass::Region, |(.., activity)| *activity);
    (activity, name)
}
