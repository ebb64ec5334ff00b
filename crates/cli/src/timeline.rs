//! A traced run in the trace event format that Perfetto and Chrome read: a track for each instance, and an arrow from each send
//! to the receive of the same message.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use titin_manager::profile::{
    Activity, Database, InstanceTotals, ReadError, RunProfile, TraceEvent, UnfinishedInstance,
};

/// Writes the timeline. The outer error is the profile's, the inner one that of writing.
pub(crate) fn write(
    database: &Database,
    profile: &RunProfile,
    out: &mut dyn Write,
) -> Result<io::Result<()>, ReadError> {
    let mut received = HashSet::new();
    let mut sent = HashSet::new();
    let mut origin = i64::MAX;
    database.events(|event| {
        origin = origin.min(event.start);
        match (message(&event), event.class) {
            (Some(message), Activity::Send) => drop(sent.insert(message)),
            (Some(message), Activity::Receive) => drop(received.insert(message)),
            _ => {}
        }
    })?;
    let mut stream = Stream {
        out,
        first: true,
        error: None,
    };
    stream.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let model = profile.run.as_ref().map_or("run", |run| run.model.as_str());
    stream.event(&json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": model}}));
    let lost = database.unfinished()?;
    let known = profile
        .instances
        .iter()
        .map(|InstanceTotals { oid, name, .. }| (*oid, name.clone()));
    let unknown = lost
        .iter()
        .map(|lost| (lost.oid, format!("{} (its end is not known)", lost.name)));
    let mut tracks: Vec<(i64, String)> = known.chain(unknown).collect();
    tracks.sort_by_key(|(oid, _)| *oid);
    for (place, (oid, name)) in tracks.iter().enumerate() {
        stream
            .event(&json!({"ph": "M", "pid": 1, "tid": oid, "name": "thread_name", "args": {"name": name}}));
        let order = json!({"ph": "M", "pid": 1, "tid": oid, "name": "thread_sort_index", "args": {"sort_index": place}});
        stream.event(&order);
    }
    for UnfinishedInstance { oid, last, .. } in lost {
        let at = last.map_or(0.0, |last| since(origin, last));
        let text = "nothing is known from here on: it was killed, or made to end";
        stream
            .event(&json!({"ph": "i", "s": "t", "pid": 1, "tid": oid, "name": text, "cat": "run", "ts": at}));
    }
    database.events(|event| {
        stream.event(&slice(&event, origin));
        let linked =
            message(&event).filter(|message| sent.contains(message) && received.contains(message));
        if let (Some((conduit, number)), class @ (Activity::Send | Activity::Receive)) =
            (linked, event.class)
        {
            stream.event(&link(&event, origin, class, conduit, number));
        }
    })?;
    stream.raw("\n]}\n");
    Ok(stream.error.map_or(Ok(()), Err))
}

/// Which message an event is about: a conduit, and a number on it.
fn message(event: &TraceEvent) -> Option<(i64, i64)> {
    event.conduit.zip(event.number)
}

/// Microseconds since the first event.
fn since(origin: i64, time: i64) -> f64 {
    (time - origin) as f64 / 1000.0
}

fn slice(event: &TraceEvent, origin: i64) -> Value {
    let (word, category) = match event.class {
        Activity::Send => ("send", "send"),
        Activity::Wait => ("wait", "wait"),
        Activity::Receive => ("receive", "receive"),
        Activity::TakeIn if event.kind == "RECEIVE_TRANSFER" => ("transfer", "receive"),
        Activity::TakeIn => ("decode", "receive"),
        Activity::SetUp | Activity::TakeDown => (event.kind.as_str(), "run"),
        Activity::Region => (event.kind.as_str(), "region"),
    };
    let name = event
        .port
        .as_ref()
        .map_or(word.to_owned(), |port| format!("{word} {port}"));
    // What takes no time would be nowhere to point an arrow at.
    let duration = ((event.stop - event.start).max(1)) as f64 / 1000.0;
    let mut slice = json!({
        "ph": "X", "pid": 1, "tid": event.instance, "name": name, "cat": category, "ts": since(origin, event.start), "dur": duration,
    });
    let arguments = [
        ("message", event.number.map(Value::from)),
        ("bytes", event.bytes.map(Value::from)),
        ("timestamp", event.timestamp.map(Value::from)),
    ];
    let arguments: serde_json::Map<String, Value> = arguments
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    if !arguments.is_empty() {
        slice["args"] = Value::Object(arguments);
    }
    slice
}

/// The end of an arrow. It belongs to the slice that is there at this time on the same track.
fn link(event: &TraceEvent, origin: i64, class: Activity, conduit: i64, number: i64) -> Value {
    let id = format!("{conduit}.{number}");
    // A receive begins with the wait for what is not sent yet.
    let at = since(
        origin,
        if class == Activity::Send {
            event.start
        } else {
            event.start.max(event.stop - 1)
        },
    );
    let mut end = json!({"ph": "s", "pid": 1, "tid": event.instance, "name": "message", "cat": "message", "id": id, "ts": at});
    if class == Activity::Receive {
        end["ph"] = "f".into();
        end["bp"] = "e".into();
    }
    end
}

/// A list in the making; after the first failure nothing more is written.
struct Stream<'a> {
    out: &'a mut dyn Write,
    first: bool,
    error: Option<io::Error>,
}

impl Stream<'_> {
    fn raw(&mut self, text: &str) {
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
        self.raw(&format!("{comma}{event}"));
    }
}
