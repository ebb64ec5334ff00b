//! `performance.sqlite`: the profile of a run.
//!
//! The file has MUSCLE3's tables (format 1.1) as MUSCLE3's tools expect them. Beside MUSCLE3's
//! tables are titin's own: the counts of every instance and of every end of a conduit (`totals`,
//! `conduits`, `conduit_ends`), the fields, the regions of the programs, and the run as a whole.
//! `write` writes a profile. `read` reads profiles of titin, and also profiles of MUSCLE3.

mod read;
mod records;
mod write;

pub use read::{Database, ReadError};
pub use records::{
    ConduitTotals, InstanceTotals, ProcessTotals, RecordedField, RegionTotals, RunProfile,
    RunTotals, SiteTotals, TraceEvent, UnfinishedInstance,
};
pub use write::{Recorder, RecorderError, Summary};

/// The activity of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// Joining the run.
    SetUp,
    /// Leaving the run.
    TakeDown,
    /// Sending.
    Send,
    /// Receiving, as a whole.
    Receive,
    /// Waiting to receive.
    Wait,
    /// Taking in a message after its arrival.
    TakeIn,
    /// In a region of the program.
    Region,
}

/// The names and numbers of MUSCLE3's event types, each with the activity of the instance.
const EVENT_TYPES: [(&str, i64, EventClass); 11] = [
    ("REGISTER", 0, EventClass::SetUp),
    ("DEREGISTER", 1, EventClass::TakeDown),
    ("SEND", 2, EventClass::Send),
    ("RECEIVE", 3, EventClass::Receive),
    ("CONNECT", 4, EventClass::SetUp),
    ("RECEIVE_WAIT", 5, EventClass::Wait),
    ("RECEIVE_TRANSFER", 6, EventClass::TakeIn),
    ("RECEIVE_DECODE", 7, EventClass::TakeIn),
    ("DISCONNECT_WAIT", 8, EventClass::TakeDown),
    ("SHUTDOWN_WAIT", 9, EventClass::TakeDown),
    ("SHUTDOWN", 10, EventClass::TakeDown),
];

/// The names and numbers of MUSCLE3's operators.
const OPERATORS: [(&str, i64); 5] = [("NONE", 0), ("F_INIT", 1), ("O_I", 2), ("S", 3), ("O_F", 4)];

/// The number of the first event type for a region of a program.
const FIRST_REGION: i64 = 100;

/// The first word of the name of a region's event type, so that a region may have any name.
const REGION: &str = "region ";

const TABLES: &str = "
CREATE TABLE muscle3_format (major_version INTEGER NOT NULL, minor_version INTEGER NOT NULL);
CREATE TABLE instances (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE assigned_cores (
    instance_oid INTEGER NOT NULL REFERENCES instances(oid), node TEXT NOT NULL, core INTEGER NOT NULL);
CREATE TABLE event_types (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE port_operators (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE events (
    instance_oid INTEGER NOT NULL REFERENCES instances(oid),
    event_type_oid INTEGER NOT NULL REFERENCES event_types(oid),
    start_time INTEGER NOT NULL, stop_time INTEGER NOT NULL,
    port_name TEXT, port_operator_oid INTEGER REFERENCES port_operators(oid), port_length INTEGER, slot INTEGER,
    message_number INTEGER, message_size INTEGER, message_timestamp DOUBLE,
    conduit_oid INTEGER);
CREATE VIEW all_events AS
    SELECT i.name AS instance, t.name AS type, e.start_time AS start_time, e.stop_time AS stop_time,
        e.port_name AS port, o.name AS operator, e.port_length AS port_length, e.slot AS slot,
        e.message_number AS message_number, e.message_size AS message_size,
        e.message_timestamp AS message_timestamp
    FROM events e JOIN instances i ON e.instance_oid = i.oid
        LEFT JOIN event_types t ON e.event_type_oid = t.oid
        LEFT JOIN port_operators o ON e.port_operator_oid = o.oid;
CREATE TABLE titin_format (major_version INTEGER NOT NULL, minor_version INTEGER NOT NULL);
CREATE TABLE run (model TEXT NOT NULL, host TEXT NOT NULL, seconds DOUBLE NOT NULL, outcome TEXT NOT NULL);
CREATE TABLE conduits (
    oid INTEGER PRIMARY KEY,
    sender_oid INTEGER NOT NULL REFERENCES instances(oid), sender_port TEXT NOT NULL, sender_slot INTEGER,
    receiver_oid INTEGER NOT NULL REFERENCES instances(oid), receiver_port TEXT NOT NULL, receiver_slot INTEGER,
    buffer_messages INTEGER NOT NULL, buffer_raised INTEGER NOT NULL);
CREATE TABLE conduit_ends (
    conduit_oid INTEGER NOT NULL REFERENCES conduits(oid),
    instance_oid INTEGER NOT NULL REFERENCES instances(oid),
    port TEXT NOT NULL, sends INTEGER NOT NULL, medium TEXT NOT NULL,
    messages INTEGER NOT NULL, bytes INTEGER NOT NULL, copied INTEGER NOT NULL, waiting DOUBLE NOT NULL,
    streams INTEGER, detour TEXT, by_socket INTEGER NOT NULL,
    compressed INTEGER NOT NULL, uncompressed_bytes INTEGER NOT NULL,
    own_address TEXT, peer_address TEXT);
CREATE TABLE fields (
    conduit_oid INTEGER PRIMARY KEY REFERENCES conduits(oid),
    sender_side BLOB NOT NULL, receiver_side BLOB NOT NULL, element_types BLOB NOT NULL, pattern TEXT);
CREATE TABLE totals (
    instance_oid INTEGER PRIMARY KEY REFERENCES instances(oid),
    start DOUBLE NOT NULL, stop DOUBLE NOT NULL,
    waiting DOUBLE NOT NULL, sending DOUBLE NOT NULL, blocked DOUBLE NOT NULL);
CREATE TABLE processes (
    instance_oid INTEGER PRIMARY KEY REFERENCES instances(oid),
    pid INTEGER NOT NULL, processor DOUBLE NOT NULL, peak_memory INTEGER NOT NULL);
CREATE TABLE sites (instance_oid INTEGER PRIMARY KEY REFERENCES instances(oid), name TEXT NOT NULL);
CREATE TABLE regions (
    instance_oid INTEGER NOT NULL REFERENCES instances(oid),
    name TEXT NOT NULL, uses INTEGER NOT NULL, seconds DOUBLE NOT NULL);
";
