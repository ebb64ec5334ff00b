//! A traced run in the trace event format of Chrome, also read by Perfetto: a track for each
//! instance, and an arrow from each send to the receive of the same message.
//!
//! The format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};
use titin_manager::profile::{
    Database, EventClass, InstanceTotals, RunProfile, TraceEvent, UnfinishedInstance,
};

use crate::{DrawError, Result};

/// Writes the trace events of a run to a file.
///
/// # Errors
/// The profile cannot be read, or the file cannot be written.
pub fn write_trace_events(database: &Database, profile: &RunProfile, path: &Path) -> Result<()> {
    let file = File::create(path).map_err(|error| DrawError::write(path, error))?;
    let mut out = BufWriter::new(file);
    write_events(database, profile, &mut out)?
        .and_then(|()| out.flush())
        .map_err(|error| DrawError::write(path, error))
}

/// The outer error comes from reading the profile, the inner error from writing.
fn write_events(
    database: &Database,
    profile: &RunProfile,
    out: &mut dyn Write,
) -> Result<io::Result<()>> {
    let overview = Overview::of(database)?;
    let lost = database.unfinished()?;
    let mut writer = TraceWriter {
        out,
        first: true,
        error: None,
    };
    writer.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let model = profile.run.as_ref().map_or("run", |run| run.model.as_str());
    writer.event(&json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": model}}));
    write_tracks(&mut writer, profile, &lost);
    for lost in &lost {
        writer.event(&lost_mark(lost, overview.start));
    }
    let write_event = |event: TraceEvent| {
        writer.event(&slice(&event, overview.start));
        if let Some(message) = overview.arrow(&event) {
            writer.event(&arrow_end(&event, overview.start, message));
        }
    };
    database.events(write_event)?;
    writer.write("\n]}\n");
    Ok(writer.error.map_or(Ok(()), Err))
}

/// A message: the conduit, and the message's number on the conduit.
type MessageKey = (i64, i64);

fn message_key(event: &TraceEvent) -> Option<MessageKey> {
    event.conduit.zip(event.number)
}

/// Facts about all events, needed before the first event is written.
struct Overview {
    /// The time of the first event, in nanoseconds.
    start: i64,
    sent: HashSet<MessageKey>,
    received: HashSet<MessageKey>,
}

impl Overview {
    fn of(database: &Database) -> Result<Overview> {
        let mut overview = Overview {
            start: i64::MAX,
            sent: HashSet::new(),
            received: HashSet::new(),
        };
        let look_at = |event: TraceEvent| {
            overview.start = overview.start.min(event.start);
            match (message_key(&event), event.class) {
                (Some(message), EventClass::Send) => drop(overview.sent.insert(message)),
                (Some(message), EventClass::Receive) => drop(overview.received.insert(message)),
                _ => {}
            }
        };
        database.events(look_at)?;
        Ok(overview)
    }

    /// The message of an event, if an arrow begins or ends at the event: the profile has both the
    /// send and the receive of the message.
    fn arrow(&self, event: &TraceEvent) -> Option<MessageKey> {
        if !matches!(event.class, EventClass::Send | EventClass::Receive) {
            return None;
        }
        message_key(event)
            .filter(|message| self.sent.contains(message) && self.received.contains(message))
    }
}

/// Names a track for each instance, and sorts the tracks in the order of registration.
fn write_tracks(writer: &mut TraceWriter<'_>, profile: &RunProfile, lost: &[UnfinishedInstance]) {
    let known = profile
        .instances
        .iter()
        .map(|InstanceTotals { oid, name, .. }| (*oid, name.clone()));
    let unknown = lost
        .iter()
        .map(|lost| (lost.oid, format!("{} (its end is not known)", lost.name)));
    let mut tracks: Vec<(i64, String)> = known.chain(unknown).collect();
    tracks.sort_by_key(|(oid, _)| *oid);
    for (index, (oid, name)) in tracks.iter().enumerate() {
        writer.event(
            &json!({"ph": "M", "pid": 1, "tid": oid, "name": "thread_name", "args": {"name": name}}),
        );
        writer.event(
            &json!({"ph": "M", "pid": 1, "tid": oid, "name": "thread_sort_index", "args": {"sort_index": index}}),
        );
    }
}

/// A mark at the last event of an instance that the manager lost.
fn lost_mark(lost: &UnfinishedInstance, start: i64) -> Value {
    let time = lost.last.map_or(0.0, |last| microseconds(start, last));
    let text = "nothing is known from here on: it was killed, or made to end";
    json!({"ph": "i", "s": "t", "pid": 1, "tid": lost.oid, "name": text, "cat": "run", "ts": time})
}

/// Microseconds since the first event.
fn microseconds(start: i64, time: i64) -> f64 {
    (time - start) as f64 / 1000.0
}

/// An event as a coloured stretch of the instance's track.
fn slice(event: &TraceEvent, start: i64) -> Value {
    let (verb, category) = match event.class {
        EventClass::Send => ("send", "send"),
        EventClass::Wait => ("wait", "wait"),
        EventClass::Receive => ("receive", "receive"),
        EventClass::TakeIn if event.kind == "RECEIVE_TRANSFER" => ("transfer", "receive"),
        EventClass::TakeIn => ("decode", "receive"),
        EventClass::SetUp | EventClass::TakeDown => (event.kind.as_str(), "run"),
        EventClass::Region => (event.kind.as_str(), "region"),
    };
    let name = event
        .port
        .as_ref()
        .map_or(verb.to_owned(), |port| format!("{verb} {port}"));
    // A slice of no length could not have an arrow.
    let duration = ((event.stop - event.start).max(1)) as f64 / 1000.0;
    let mut slice = json!({
        "ph": "X", "pid": 1, "tid": event.instance, "name": name, "cat": category,
        "ts": microseconds(start, event.start), "dur": duration,
    });
    let arguments = arguments(event);
    if !arguments.is_empty() {
        slice["args"] = Value::Object(arguments);
    }
    slice
}

/// The details that a viewer shows when the user selects an event.
fn arguments(event: &TraceEvent) -> serde_json::Map<String, Value> {
    let arguments = [
        ("message", event.number.map(Value::from)),
        ("bytes", event.bytes.map(Value::from)),
        ("timestamp", event.timestamp.map(Value::from)),
    ];
    arguments
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// An end of an arrow. A viewer attaches the end to the track's slice at the end's time.
fn arrow_end(event: &TraceEvent, start: i64, (conduit, number): MessageKey) -> Value {
    let sends = event.class == EventClass::Send;
    // A receive starts with the wait for the message, so the arrow points at the end of the
    // receive.
    let time = if sends {
        event.start
    } else {
        event.start.max(event.stop - 1)
    };
    let mut end = json!({
        "ph": "s", "pid": 1, "tid": event.instance, "name": "message", "cat": "message",
        "id": format!("{conduit}.{number}"), "ts": microseconds(start, time),
    });
    if !sends {
        end["ph"] = "f".into();
        end["bp"] = "e".into();
    }
    end
}

/// Writes a JSON array event by event. After the first failure nothing more is written.
struct TraceWriter<'a> {
    out: &'a mut dyn Write,
    first: bool,
    error: Option<io::Error>,
}

impl TraceWriter<'_> {
    fn write(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn event(&mut self, event: &Value) {
        let comma = if std::mem::take(&mut self.first) {
            "\n"
        } else {
            ",\n"
        };
        self.write(&format!("{comma}{event}"));
    }
}
