//! Reading a profile: our own tables where they are, else as far as MUSCLE3's (format 1.1) go.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use serde::Serialize;
use titin_model::Pattern;
use titin_wire::meta::Dtype;

use super::{Class, EVENT_TYPES, REGION};

/// What a run's profile says.
#[derive(Debug, Serialize)]
pub struct Profile {
    /// `None` if another system has written it.
    pub run: Option<Run>,
    /// Where the time of each went.
    pub instances: Vec<Instance>,
    /// What went through each.
    pub conduits: Vec<Conduit>,
    /// The users' own.
    pub regions: Vec<Region>,
    /// Whether there is a row for each message.
    pub traced: bool,
}

/// The run as a whole.
#[derive(Debug, Serialize)]
pub struct Run {
    /// The model.
    pub model: String,
    /// The host of the manager.
    pub host: String,
    /// How long it took.
    pub seconds: f64,
    /// "done", or what it failed by.
    pub outcome: String,
}

/// Where the time of an instance went, in seconds.
#[derive(Debug, Serialize)]
pub struct Instance {
    /// Its number in the file.
    #[serde(skip)]
    pub oid: i64,
    /// As users write it.
    pub name: String,
    /// Those that it was given.
    pub cores: Vec<i64>,
    /// Since the Unix epoch.
    pub start: f64,
    /// From the first to the last.
    pub total: f64,
    /// What is left for its own work.
    pub compute: f64,
    /// Waiting to receive.
    pub waiting: f64,
    /// Taking in messages that have come; only MUSCLE3 tells this apart.
    pub receiving: f64,
    /// Sending; with the time blocked.
    pub sending: f64,
    /// Waiting for room to send.
    pub blocked: f64,
}

/// An instance of which it is not known how it ended.
#[derive(Debug)]
pub struct Lost {
    /// Its number in the file.
    pub oid: i64,
    /// As users write it.
    pub name: String,
    /// When the last row ends that it has told, in nanoseconds since the Unix epoch.
    pub last: Option<i64>,
}

/// What went through a conduit.
#[derive(Debug, Serialize)]
pub struct Conduit {
    /// The sender's port.
    pub from: String,
    /// The receiver's port.
    pub to: String,
    /// The medium.
    pub medium: String,
    /// Streams that large messages went by, if there were several.
    pub streams: Option<i64>,
    /// Why it is not shared memory, if that was tried.
    pub detour: Option<String>,
    /// Messages.
    pub messages: i64,
    /// Those of them that went by a socket, since no shared memory was left.
    pub by_socket: i64,
    /// Payload bytes.
    pub bytes: i64,
    /// Bytes that were copied on the way out and in.
    pub copied: i64,
    /// Seconds in which the sender waited for room.
    pub sender_waited: f64,
    /// Seconds in which the receiver waited for messages.
    pub receiver_waited: f64,
    /// The most messages that the buffer came to hold.
    pub buffer: i64,
    /// How often it was raised.
    pub raised: i64,
}

/// A conduit that carried a field.
#[derive(Debug)]
pub struct Field {
    /// The sender's port.
    pub from: String,
    /// The receiver's port.
    pub to: String,
    /// How the sender's array is spread over its ranks, and what of it is coupled; the bytes of `titin-array`.
    pub sender: Vec<u8>,
    /// The same of the receiver's.
    pub receiver: Vec<u8>,
    /// Bytes of an element of each array that travels along.
    pub sizes: Vec<u64>,
    /// What the description says of it.
    pub pattern: Option<Pattern>,
}

/// A region of the user's own.
#[derive(Debug, Serialize)]
pub struct Region {
    /// Whose it is.
    pub instance: String,
    /// Its name.
    pub name: String,
    /// How often it was entered.
    pub uses: i64,
    /// The time in it.
    pub seconds: f64,
}

/// A row of a trace.
#[derive(Debug)]
pub struct Event {
    /// The instance's `oid`.
    pub instance: i64,
    /// What the instance does.
    pub class: Class,
    /// `SEND` and the like, or the name of a region.
    pub kind: String,
    /// Nanoseconds since the Unix epoch.
    pub start: i64,
    /// The same, at its end.
    pub stop: i64,
    /// With its slot.
    pub port: Option<String>,
    /// The conduit's number.
    pub conduit: Option<i64>,
    /// The message's number on it.
    pub number: Option<i64>,
    /// Payload bytes.
    pub bytes: Option<i64>,
    /// Simulated time.
    pub timestamp: Option<f64>,
}

/// An open profile.
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Whether our own tables are there.
    own: bool,
}

impl Database {
    /// Opens the profile of a run directory, or a profile itself.
    ///
    /// # Errors
    /// If there is none, or it cannot be read; in words.
    pub fn open(given: &Path) -> Result<Database, String> {
        let path = if given.is_dir() {
            given.join("performance.sqlite")
        } else {
            given.to_path_buf()
        };
        if !path.exists() {
            let why = if given.is_dir() {
                "the run has not ended yet, or this is no run directory"
            } else {
                "there is no such file or directory"
            };
            return Err(format!("there is no profile {}: {why}", path.display()));
        }
        let unreadable = |error: rusqlite::Error| {
            format!("{} cannot be read as a profile: {error}", path.display())
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(unreadable)?;
        let has = |table: &str| {
            connection
                .query_row(
                    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
                    [table],
                    |_| Ok(()),
                )
                .optional()
                .map(|found| found.is_some())
        };
        let (own, theirs) = (
            has("titin_format").map_err(unreadable)?,
            has("muscle3_format").map_err(unreadable)?,
        );
        if !own && !theirs {
            return Err(format!(
                "{} is a database, but not a profile of titin or MUSCLE3",
                path.display()
            ));
        }
        let table = if own {
            "titin_format"
        } else {
            "muscle3_format"
        };
        let major: i64 = connection
            .query_row(&format!("SELECT major_version FROM {table}"), [], |row| {
                row.get(0)
            })
            .map_err(unreadable)?;
        if major != 1 {
            return Err(format!(
                "{} has format {major} of {table}, and this titin reads format 1; use the release that wrote it",
                path.display()
            ));
        }
        Ok(Database {
            connection,
            path,
            own,
        })
    }

    /// Everything but the rows of a trace.
    ///
    /// # Errors
    /// If it cannot be read; in words.
    pub fn profile(&self) -> Result<Profile, String> {
        let read = || -> rusqlite::Result<Profile> {
            // How instances joined and left is there always.
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM events e JOIN event_types t ON t.oid = e.event_type_oid WHERE t.name NOT IN ({}))",
                quoted(&[Class::SetUp, Class::TakeDown])
            );
            let rows: i64 = self.connection.query_row(&sql, [], |row| row.get(0))?;
            let mut profile = Profile {
                run: None,
                instances: if self.own {
                    self.own_instances()?
                } else {
                    self.other_instances()?
                },
                conduits: Vec::new(),
                regions: Vec::new(),
                traced: rows != 0,
            };
            for instance in &mut profile.instances {
                let sql = "SELECT core FROM assigned_cores WHERE instance_oid = ? ORDER BY core";
                instance.cores = self.list(sql, [instance.oid], |row| row.get(0))?;
            }
            if self.own {
                let run = |row: &Row<'_>| {
                    Ok(Run {
                        model: row.get(0)?,
                        host: row.get(1)?,
                        seconds: row.get(2)?,
                        outcome: row.get(3)?,
                    })
                };
                let sql = "SELECT model, host, seconds, outcome FROM run";
                profile.run = self.connection.query_row(sql, [], run).optional()?;
                profile.conduits = self.conduits()?;
                profile.regions = self.regions()?;
            }
            Ok(profile)
        };
        read().map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, error: &rusqlite::Error) -> String {
        format!(
            "{} cannot be read as a profile: {error}",
            self.path.display()
        )
    }

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

    fn own_instances(&self) -> rusqlite::Result<Vec<Instance>> {
        let sql = "SELECT i.oid, i.name, t.start, t.stop, t.waiting, t.sending, t.blocked \
                   FROM instances i JOIN totals t ON t.instance_oid = i.oid ORDER BY i.oid";
        self.list(sql, [], |row| {
            let (start, stop): (f64, f64) = (row.get(2)?, row.get(3)?);
            let (waiting, sending, blocked): (f64, f64, f64) =
                (row.get(4)?, row.get(5)?, row.get(6)?);
            let total = (stop - start).max(0.0);
            // Without a trace the times of short waits and of sending are estimated from samples, and may come out too long.
            let waiting = waiting.min(total);
            let sending = sending.min((total - waiting).max(blocked));
            Ok(Instance {
                oid: row.get(0)?,
                name: row.get(1)?,
                cores: Vec::new(),
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

    /// MUSCLE3 writes a row for each event. As for its own tool, an instance's time is from being connected to shutting down.
    fn other_instances(&self) -> rusqlite::Result<Vec<Instance>> {
        let of = |what: &str, class: Class| {
            format!("{what}(CASE WHEN t.name IN ({}) THEN", quoted(&[class]))
        };
        let sum = |class| {
            format!(
                "COALESCE({} e.stop_time - e.start_time END), 0)",
                of("SUM", class)
            )
        };
        let sql = format!(
            "SELECT i.oid, i.name, COALESCE({} e.stop_time END), MIN(e.start_time), 0), \
             COALESCE({} e.start_time END), MAX(e.stop_time), 0), {}, {}, {} \
             FROM instances i LEFT JOIN events e ON e.instance_oid = i.oid \
             LEFT JOIN event_types t ON t.oid = e.event_type_oid GROUP BY i.oid ORDER BY i.oid",
            of("MAX", Class::SetUp),
            of("MIN", Class::TakeDown),
            sum(Class::Wait),
            sum(Class::TakeIn),
            sum(Class::Send)
        );
        self.list(&sql, [], |row| {
            let nanoseconds = |column: usize| row.get::<_, i64>(column);
            let seconds =
                |column: usize| -> rusqlite::Result<f64> { Ok(nanoseconds(column)? as f64 * 1e-9) };
            let total = ((nanoseconds(3)? - nanoseconds(2)?) as f64 * 1e-9).max(0.0);
            let (waiting, receiving, sending) = (seconds(4)?, seconds(5)?, seconds(6)?);
            Ok(Instance {
                oid: row.get(0)?,
                name: row.get(1)?,
                cores: Vec::new(),
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

    fn conduits(&self) -> rusqlite::Result<Vec<Conduit>> {
        // Format 1.0 did not have these.
        let newer = |column: &str, is: &'static str| -> rusqlite::Result<&str> {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM pragma_table_info('conduit_ends') WHERE name = ?)";
            Ok(
                if self.connection.query_row(sql, [column], |row| row.get(0))? {
                    is
                } else {
                    "NULL"
                },
            )
        };
        let streams = newer("streams", "se.streams")?;
        let detour = newer("detour", "COALESCE(se.detour, re.detour)")?;
        let by_socket = newer("by_socket", "se.by_socket")?;
        let sql = format!(
            "SELECT s.name, c.sender_port, c.sender_slot, r.name, c.receiver_port, c.receiver_slot, \
                   COALESCE(se.medium, re.medium, ''), COALESCE(se.messages, re.messages, 0), \
                   COALESCE(se.bytes, re.bytes, 0), COALESCE(se.copied, 0) + COALESCE(re.copied, 0), \
                   COALESCE(se.waiting, 0.0), COALESCE(re.waiting, 0.0), c.buffer_messages, c.buffer_raised, {streams}, {detour}, COALESCE({by_socket}, 0) \
                   FROM conduits c JOIN instances s ON s.oid = c.sender_oid JOIN instances r ON r.oid = c.receiver_oid \
                   LEFT JOIN conduit_ends se ON se.conduit_oid = c.oid AND se.sends \
                   LEFT JOIN conduit_ends re ON re.conduit_oid = c.oid AND NOT re.sends ORDER BY c.oid"
        );
        self.list(&sql, [], |row| {
            Ok(Conduit {
                from: end(row, 0)?,
                to: end(row, 3)?,
                medium: row.get(6)?,
                detour: row.get(15)?,
                messages: row.get(7)?,
                by_socket: row.get(16)?,
                bytes: row.get(8)?,
                copied: row.get(9)?,
                sender_waited: row.get(10)?,
                receiver_waited: row.get(11)?,
                buffer: row.get(12)?,
                raised: row.get(13)?,
                streams: row.get(14)?,
            })
        })
    }

    /// Conduits that carried fields, as far as both ends had declared them.
    ///
    /// # Errors
    /// If they cannot be read; in words.
    pub fn fields(&self) -> Result<Vec<Field>, String> {
        let sql = "SELECT s.name, c.sender_port, c.sender_slot, r.name, c.receiver_port, c.receiver_slot, \
                   f.sender_side, f.receiver_side, f.element_types, f.pattern FROM fields f JOIN conduits c ON c.oid = f.conduit_oid \
                   JOIN instances s ON s.oid = c.sender_oid JOIN instances r ON r.oid = c.receiver_oid ORDER BY c.oid";
        let size = |number: &u8| {
            Dtype::ALL
                .into_iter()
                .find(|dtype| *dtype as u8 == *number)
                .map(Dtype::size)
        };
        let read = || -> rusqlite::Result<Vec<Field>> {
            // Profiles of MUSCLE3 and of earlier releases do not have them.
            let known = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'fields')";
            if !self.connection.query_row(known, [], |row| row.get(0))? {
                return Ok(Vec::new());
            }
            self.list(sql, [], |row| {
                let (types, pattern): (Vec<u8>, Option<String>) = (row.get(8)?, row.get(9)?);
                Ok(Field {
                    from: end(row, 0)?,
                    to: end(row, 3)?,
                    sender: row.get(6)?,
                    receiver: row.get(7)?,
                    sizes: types
                        .iter()
                        .filter_map(size)
                        .map(|size| size as u64)
                        .collect(),
                    pattern: pattern.and_then(|pattern| serde_json::from_str(&pattern).ok()),
                })
            })
        };
        read().map_err(|error| self.wrong(&error))
    }

    /// The rows of a trace, in the order in which they began.
    ///
    /// # Errors
    /// If they cannot be read; in words.
    pub fn events(&self, mut each: impl FnMut(Event)) -> Result<(), String> {
        let conduit = if self.own { "e.conduit_oid" } else { "NULL" };
        let sql = format!(
            "SELECT e.instance_oid, t.name, e.start_time, e.stop_time, e.port_name, e.slot, {conduit}, \
             e.message_number, e.message_size, e.message_timestamp FROM events e \
             JOIN event_types t ON t.oid = e.event_type_oid ORDER BY e.start_time, e.stop_time DESC, e.rowid"
        );
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let port: Option<String> = row.get(4)?;
                let slot: Option<i64> = row.get(5)?;
                let (class, kind) = classify(row.get(1)?);
                each(Event {
                    instance: row.get(0)?,
                    class,
                    kind,
                    start: row.get(2)?,
                    stop: row.get(3)?,
                    port: port
                        .map(|port| slot.map_or(port.clone(), |slot| format!("{port}[{slot}]"))),
                    conduit: row.get(6)?,
                    number: row.get(7)?,
                    bytes: row.get(8)?,
                    timestamp: row.get(9)?,
                });
            }
            Ok(())
        };
        read().map_err(|error| self.wrong(&error))
    }

    /// Instances that were killed, or were made to end, before they could tell what they had counted. Their last rows are those
    /// that they had told until then.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn lost(&self) -> Result<Vec<Lost>, String> {
        if !self.own {
            return Ok(Vec::new());
        }
        let sql = "SELECT i.oid, i.name, (SELECT MAX(e.stop_time) FROM events e WHERE e.instance_oid = i.oid) \
                   FROM instances i WHERE i.oid NOT IN (SELECT instance_oid FROM totals) ORDER BY i.oid";
        let lost = self.list(sql, [], |row| {
            Ok(Lost {
                oid: row.get(0)?,
                name: row.get(1)?,
                last: row.get(2)?,
            })
        });
        lost.map_err(|error| self.wrong(&error))
    }

    fn regions(&self) -> rusqlite::Result<Vec<Region>> {
        let sql = "SELECT i.name, r.name, r.uses, r.seconds FROM regions r \
                   JOIN instances i ON i.oid = r.instance_oid ORDER BY i.oid, r.seconds DESC";
        self.list(sql, [], |row| {
            Ok(Region {
                instance: row.get(0)?,
                name: row.get(1)?,
                uses: row.get(2)?,
                seconds: row.get(3)?,
            })
        })
    }
}

/// An end of a conduit, from the columns with the instance, the port and the slot.
fn end(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    let (name, port, slot): (String, String, Option<i64>) =
        (row.get(at)?, row.get(at + 1)?, row.get(at + 2)?);
    Ok(match slot {
        Some(slot) => format!("{name}.{port}[{slot}]"),
        None => format!("{name}.{port}"),
    })
}

/// The names of MUSCLE3's event types of these classes, for a query.
fn quoted(classes: &[Class]) -> String {
    let kinds = EVENT_TYPES
        .iter()
        .filter(|(.., class)| classes.contains(class));
    kinds
        .map(|(name, ..)| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What an event type of this name stands for.
fn classify(name: String) -> (Class, String) {
    if let Some(region) = name.strip_prefix(REGION) {
        return (Class::Region, region.to_owned());
    }
    let known = EVENT_TYPES.iter().find(|(known, ..)| *known == name);
    (known.map_or(Class::Region, |(.., class)| *class), name)
}
