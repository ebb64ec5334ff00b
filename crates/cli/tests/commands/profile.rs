use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::titin;

/// The tables of MUSCLE3's format 1.1, as MUSCLE3 writes them, with two instances that exchange a
/// message.
const MUSCLE3: &str = "
CREATE TABLE muscle3_format (major_version INTEGER NOT NULL, minor_version INTEGER NOT NULL);
INSERT INTO muscle3_format VALUES (1, 1);
CREATE TABLE instances (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO instances VALUES (1, 'macro'), (2, 'micro[0]');
CREATE TABLE assigned_cores (instance_oid INTEGER NOT NULL, node TEXT NOT NULL, core INTEGER NOT NULL);
INSERT INTO assigned_cores VALUES (1, 'node1', 3), (1, 'node1', 2);
CREATE TABLE event_types (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO event_types VALUES (0, 'REGISTER'), (2, 'SEND'), (3, 'RECEIVE'), (5, 'RECEIVE_WAIT'), (6, 'RECEIVE_TRANSFER'),
    (7, 'RECEIVE_DECODE'), (1, 'DEREGISTER');
CREATE TABLE port_operators (oid INTEGER PRIMARY KEY, name TEXT UNIQUE);
INSERT INTO port_operators VALUES (1, 'F_INIT'), (2, 'O_I');
CREATE TABLE events (instance_oid INTEGER, event_type_oid INTEGER, start_time INTEGER, stop_time INTEGER, port_name TEXT,
    port_operator_oid INTEGER, port_length INTEGER, slot INTEGER, message_number INTEGER, message_size INTEGER,
    message_timestamp DOUBLE);
INSERT INTO events VALUES
    (1, 0, 1000000000, 1100000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (1, 2, 2000000000, 2250000000, 'out', 2, 1, 0, 0, 800, 0.0),
    (1, 1, 5000000000, 5000000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (2, 3, 1000000000, 3000000000, 'in', 1, NULL, NULL, 0, 800, 0.0),
    (2, 5, 1000000000, 2500000000, 'in', 1, NULL, NULL, 0, 800, 0.0),
    (2, 6, 2500000000, 2750000000, 'in', 1, NULL, NULL, 0, 800, 0.0),
    (2, 7, 2750000000, 3000000000, 'in', 1, NULL, NULL, 0, 800, 0.0);
";

/// The tables that titin adds: totals, conduits, and regions of a run with two instances. A traced
/// run also has rows that link the two ends of a message.
const TITIN: &str = "
ALTER TABLE events ADD COLUMN conduit_oid INTEGER;
DELETE FROM events;
CREATE TABLE titin_format (major_version INTEGER NOT NULL, minor_version INTEGER NOT NULL);
INSERT INTO titin_format VALUES (1, 0);
CREATE TABLE run (model TEXT, host TEXT, seconds DOUBLE, outcome TEXT);
INSERT INTO run VALUES ('demo', 'here', 4.5, 'done');
CREATE TABLE conduits (oid INTEGER PRIMARY KEY, sender_oid INTEGER, sender_port TEXT, sender_slot INTEGER,
    receiver_oid INTEGER, receiver_port TEXT, receiver_slot INTEGER, buffer_messages INTEGER, buffer_raised INTEGER);
INSERT INTO conduits VALUES (0, 1, 'out', 0, 2, 'in', NULL, 128, 2), (1, 2, 'final', NULL, 1, 'back', 0, 64, 0);
CREATE TABLE conduit_ends (conduit_oid INTEGER, instance_oid INTEGER, port TEXT, sends INTEGER, medium TEXT,
    messages INTEGER, bytes INTEGER, copied INTEGER, waiting DOUBLE, streams INTEGER);
INSERT INTO conduit_ends VALUES (0, 1, 'out[0]', 1, 'tcp', 10, 64000000, 1000, 0.5, 8), (0, 2, 'in', 0, 'tcp', 10, 64000000, 0, 1.25, 8),
    (1, 2, 'final', 1, 'inproc', 10, 80, 80, 0.0, NULL), (1, 1, 'back[0]', 0, 'inproc', 10, 80, 0, 0.25, NULL);
CREATE TABLE totals (instance_oid INTEGER PRIMARY KEY, start DOUBLE, stop DOUBLE, waiting DOUBLE, sending DOUBLE,
    blocked DOUBLE);
INSERT INTO totals VALUES (1, 100.0, 104.0, 0.25, 0.75, 0.5), (2, 100.5, 104.0, 1.25, 900.0, 0.0);
CREATE TABLE regions (instance_oid INTEGER, name TEXT, uses INTEGER, seconds DOUBLE);
INSERT INTO regions VALUES (1, 'solve', 20, 2.0);
";

const TRACE: &str = "
INSERT INTO event_types VALUES (100, 'solve');
INSERT INTO events VALUES
    (1, 100, 100000000000, 101000000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (1, 2, 101000000000, 101500000000, 'out', 2, 1, 0, 0, 800, 0.5, 0),
    (2, 5, 100500000000, 101750000000, 'in', 1, NULL, NULL, 0, 800, 0.5, 0),
    (2, 3, 101750000000, 101750000000, 'in', 1, NULL, NULL, 0, 800, 0.5, 0),
    (2, 2, 103000000000, 103250000000, 'final', 4, NULL, NULL, 7, 8, 0.5, 1);
INSERT INTO port_operators VALUES (4, 'O_F');
";

/// Makes a run directory. These statements make the profile.
fn run_directory(statements: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let database = Connection::open(folder.path().join("performance.sqlite")).unwrap();
    statements
        .iter()
        .for_each(|text| database.execute_batch(text).unwrap());
    folder
}

fn profile(folder: &Path, arguments: &[&str]) -> String {
    let done = titin(folder, &[&["profile", "."], arguments].concat());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    done.out
}

/// Returns the words of the line that begins with this word.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_else(|| panic!("{name} in {text}"))
}

#[test]
fn a_table_says_where_the_time_of_each_instance_went() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    let text = profile(folder.path(), &[]);
    assert!(
        text.starts_with("demo on here, 4.50 s from start to end: done\n"),
        "{text}"
    );
    let words: Vec<&str> = line(&text, "macro ").split_whitespace().collect();
    let expected = "macro 4.00 s 3.00 s 75 % 250 ms 6 % 750 ms 19 % 500 ms";
    assert_eq!(words.join(" "), expected);
    let conduit = line(&text, "macro.out[0]")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(
        conduit,
        "macro.out[0] micro[0].in tcp, 8 streams 10 64.0 MB 1.25 s 500 ms 1.00 kB 128, raised 2×"
    );
    let region = text
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(region, "macro solve 2.00 s 50 % 20 100 ms");
    assert!(!text.contains('\x1b'), "plain in a pipe");
}

#[test]
fn the_same_figures_are_there_for_machines() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    let json: Value = serde_json::from_str(&profile(folder.path(), &["--json"])).unwrap();
    assert_eq!(
        (&json["run"]["model"], &json["traced"]),
        (&"demo".into(), &false.into())
    );
    let own = &json["instances"][0];
    assert_eq!(
        (&own["name"], &own["compute"], &own["blocked"]),
        (&"macro".into(), &3.0.into(), &0.5.into())
    );
    assert_eq!(own["cores"], serde_json::json!([2, 3]));
    // An estimate that exceeds the remaining time is cut to the remaining time.
    assert_eq!(
        (
            &json["instances"][1]["sending"],
            &json["instances"][1]["compute"]
        ),
        (&2.25.into(), &0.0.into())
    );
    assert_eq!(
        (&json["conduits"][1]["from"], &json["conduits"][1]["to"]),
        (&"micro[0].final".into(), &"macro.back[0]".into())
    );
    assert_eq!(json["conduits"][0]["raised"], 2);
    assert_eq!(json["regions"][0]["uses"], 20);
    let folder = run_directory(&[MUSCLE3, TITIN, "UPDATE totals SET waiting = 900.0"]);
    let json: Value = serde_json::from_str(&profile(folder.path(), &["--json"])).unwrap();
    assert_eq!(
        (
            &json["instances"][1]["waiting"],
            &json["instances"][1]["compute"]
        ),
        (&3.5.into(), &0.0.into())
    );
}

#[test]
fn messages_that_had_to_leave_shared_memory_are_told_with_what_to_do() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    assert!(!profile(folder.path(), &[]).contains("by a socket"));
    let database = Connection::open(folder.path().join("performance.sqlite")).unwrap();
    let count = "ALTER TABLE conduit_ends ADD COLUMN by_socket INTEGER NOT NULL DEFAULT 0;
        UPDATE conduit_ends SET by_socket = 3 WHERE instance_oid = 1 AND sends";
    database.execute_batch(count).unwrap();
    let text = profile(folder.path(), &[]);
    let told = line(&text, "macro.out[0] to micro[0].in: ");
    assert!(
        told.contains(": 3 of 10 messages went by a socket, copied, since no shared memory"),
        "{told}"
    );
    assert!(
        told.ends_with("TITIN_SHARED_MEMORY in the environment of macro sets how much that is"),
        "{told}"
    );

    let why = "TITIN_SHARED_MEMORY=0 in the environment of macro switches shared memory off";
    let off = format!(
        "ALTER TABLE conduit_ends ADD COLUMN detour TEXT;
        UPDATE conduit_ends SET detour = '{why}' WHERE instance_oid = 1 AND sends"
    );
    database.execute_batch(&off).unwrap();
    let text = profile(folder.path(), &[]);
    let told = line(&text, "macro.out[0] to micro[0].in: ");
    assert!(
        told.ends_with(&format!(
            ": 3 of 10 messages went by a socket, copied, since {why}"
        )),
        "{told}"
    );
    assert!(
        !text.contains("no shared memory was left") && text.matches(why).count() == 1,
        "{text}"
    );
}

#[test]
fn messages_that_were_compressed_are_told_with_the_ratio() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    assert!(!profile(folder.path(), &[]).contains("compressed"));
    let database = Connection::open(folder.path().join("performance.sqlite")).unwrap();
    let compress = |messages: i64| {
        let bytes = "UPDATE conduit_ends SET uncompressed_bytes = 160000000, compressed =";
        let of = "WHERE instance_oid = 1 AND sends";
        let sql = format!("{bytes} {messages} {of}");
        database.execute_batch(&sql).unwrap();
        let text = profile(folder.path(), &[]);
        let words: Vec<&str> = line(&text, "macro.out[0]").split_whitespace().collect();
        words.join(" ")
    };
    let columns = "ALTER TABLE conduit_ends ADD COLUMN compressed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE conduit_ends ADD COLUMN uncompressed_bytes INTEGER NOT NULL DEFAULT 0";
    database.execute_batch(columns).unwrap();
    assert!(compress(10).contains(" 10 64.0 MB 2.5:1 1.25 s "));
    assert!(compress(8).contains(" 10 64.0 MB 8 of 10, 2.5:1 1.25 s "));
    let json: Value = serde_json::from_str(&profile(folder.path(), &["--json"])).unwrap();
    let conduit = &json["conduits"][0];
    assert_eq!(
        (&conduit["compressed"], &conduit["uncompressed_bytes"]),
        (&8.into(), &160_000_000.into())
    );
}

/// Returns the events of the timeline in `out.json`.
fn trace_events(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("out.json")).unwrap();
    let timeline: Value = serde_json::from_str(&text).unwrap();
    timeline["traceEvents"].as_array().unwrap().clone()
}

#[test]
fn long_tables_are_cut_and_say_so() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    let database = Connection::open(folder.path().join("performance.sqlite")).unwrap();
    for n in 0..60 {
        let row = format!(
            "INSERT INTO conduits VALUES ({}, 1, 'many', {n}, 2, 'in{n}', NULL, 64, 0)",
            n + 2
        );
        database.execute_batch(&row).unwrap();
    }
    let text = profile(folder.path(), &[]);
    assert!(
        text.contains("and 22 more conduits; --all shows them"),
        "{text}"
    );
    assert!(text.contains("macro.out[0]"), "the busiest are shown");
    let all = profile(folder.path(), &["--all"]);
    assert!(
        !all.contains("more conduits") && all.contains("in59"),
        "{all}"
    );
}

#[test]
fn a_timeline_links_the_send_and_the_receive_of_a_message() {
    let folder = run_directory(&[MUSCLE3, TITIN, TRACE]);
    assert_eq!(profile(folder.path(), &["--timeline", "out.json"]), "");
    let events = trace_events(folder.path());
    let find = |phase: &str| {
        events
            .iter()
            .filter(|event| event["ph"] == phase)
            .collect::<Vec<_>>()
    };
    let tracks: Vec<&str> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .filter_map(|e| e["args"]["name"].as_str())
        .collect();
    assert_eq!(tracks, ["macro", "micro[0]"]);

    let slices = find("X");
    assert_eq!(slices.len(), 5);
    let send = slices
        .iter()
        .find(|slice| slice["name"] == "send out[0]")
        .unwrap();
    assert_eq!(
        (send["ts"].as_f64(), send["dur"].as_f64()),
        (Some(1e6), Some(5e5)),
        "microseconds since the first event"
    );
    assert_eq!(
        (&send["args"]["bytes"], &send["args"]["timestamp"]),
        (&800.into(), &0.5.into())
    );
    assert!(
        slices
            .iter()
            .any(|slice| slice["name"] == "solve" && slice["cat"] == "region")
    );

    // The received message has an arrow. The message that was not received has no arrow.
    let (starts, ends) = (find("s"), find("f"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["id"], ends[0]["id"]);
    assert_eq!((&starts[0]["tid"], &ends[0]["tid"]), (&1.into(), &2.into()));
    assert_eq!(starts[0]["ts"], send["ts"]);
    let receive = slices
        .iter()
        .find(|slice| slice["name"] == "receive in")
        .unwrap();
    assert_eq!(ends[0]["ts"], receive["ts"]);
    assert!(receive["dur"].as_f64() > Some(0.0), "a slice to point at");
}

#[test]
fn a_timeline_says_from_where_on_nothing_is_known_of_an_instance_that_was_killed() {
    let killed =
        "DELETE FROM totals WHERE instance_oid = 2; INSERT INTO instances VALUES (3, 'late')";
    let folder = run_directory(&[MUSCLE3, TITIN, TRACE, killed]);
    assert_eq!(profile(folder.path(), &["--timeline", "out.json"]), "");
    let events = trace_events(folder.path());
    let tracks: Vec<(i64, &str)> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .map(|e| {
            (
                e["tid"].as_i64().unwrap(),
                e["args"]["name"].as_str().unwrap(),
            )
        })
        .collect();
    let unknown = [
        (2, "micro[0] (its end is not known)"),
        (3, "late (its end is not known)"),
    ];
    assert_eq!(tracks, [&[(1, "macro")][..], &unknown].concat());
    let marks: Vec<_> = events.iter().filter(|event| event["ph"] == "i").collect();
    let ends = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["tid"] == 2);
    let last = ends
        .map(|e| e["ts"].as_f64().unwrap() + e["dur"].as_f64().unwrap())
        .fold(0.0, f64::max);
    assert_eq!(marks.len(), 2, "{marks:?}");
    assert_eq!(marks[0]["tid"], 2);
    // A row without a duration is drawn with a duration of one nanosecond.
    assert!(
        (marks[0]["ts"].as_f64().unwrap() - last).abs() <= 0.0011,
        "{marks:?} {last}"
    );
    assert!(
        marks[1]["name"]
            .as_str()
            .unwrap()
            .starts_with("nothing is known from here on: it was killed")
    );
}

#[test]
fn a_run_that_was_not_traced_has_no_timeline_and_says_how_to_get_one() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    let done = titin(folder.path(), &["profile", ".", "--timeline", "out.json"]);
    assert_eq!(done.code, Some(2));
    done.assert_err("titin run --trace");
    assert!(!folder.path().join("out.json").exists());
}

fn picture(folder: &Path) -> String {
    profile(folder, &["--plot", "out.svg"]);
    std::fs::read_to_string(folder.join("out.svg")).unwrap()
}

/// Returns the class and the width of each bar of an instance.
fn stretches(svg: &str, instance: &str) -> Vec<(String, i32)> {
    let from = svg
        .find(&format!("data-name=\"{instance}\""))
        .expect("the instance is drawn");
    let row = svg[from..].split("<g class=\"instance\"").next().unwrap();
    let value = |line: &str, name: &str| {
        line.split(&format!(" {name}=\""))
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .map(str::to_owned)
    };
    row.lines()
        .filter(|line| line.contains("<rect"))
        .map(|line| {
            (
                value(line, "class").unwrap(),
                value(line, "width").unwrap().parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn bars_are_as_long_as_their_times() {
    let folder = run_directory(&[MUSCLE3, TITIN]);
    let svg = picture(folder.path());
    let bars = stretches(&svg, "macro");
    let kinds: Vec<&str> = bars.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["compute", "wait", "send"]);
    let whole: i32 = bars.iter().map(|(_, width)| width).sum();
    assert!((bars[0].1 * 4 - whole * 3).abs() <= 4, "3 of 4 s: {bars:?}");
    assert!(svg.contains("<title>compute 3.00 s</title>"), "{svg}");
}

#[test]
fn a_traced_run_is_drawn_as_a_timeline() {
    let folder = run_directory(&[MUSCLE3, TITIN, TRACE]);
    let svg = picture(folder.path());
    let stretches = |instance: &str| {
        stretches(&svg, instance)
            .into_iter()
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(stretches("macro"), ["compute", "send", "compute"]);
    assert_eq!(
        stretches("micro[0]"),
        ["wait", "compute", "send", "compute"]
    );
}

#[test]
fn a_profile_of_muscle3_is_read_too() {
    let folder = run_directory(&[MUSCLE3]);
    let json: Value = serde_json::from_str(&profile(folder.path(), &["--json"])).unwrap();
    let times = |i: usize| {
        ["total", "waiting", "receiving", "sending", "compute"]
            .map(|key| json["instances"][i][key].as_f64().unwrap())
    };
    // The total time of an instance lasts from its connection to its shutdown.
    for (i, expected) in [[3.9, 0.0, 0.0, 0.25, 3.65], [2.0, 1.5, 0.5, 0.0, 0.0]]
        .into_iter()
        .enumerate()
    {
        let near = times(i)
            .iter()
            .zip(expected)
            .all(|(time, expected)| (time - expected).abs() < 1e-9);
        assert!(near, "{:?} and {expected:?}", times(i));
    }
    assert!(json["run"].is_null() && json["traced"] == true);
    let text = profile(folder.path(), &[]);
    assert!(text.lines().next().unwrap().ends_with("receive"), "{text}");
    profile(folder.path(), &["--timeline", "out.json"]);
    // The tables of MUSCLE3 do not say where a message goes, so there are tracks and no arrows.
    let events = trace_events(folder.path());
    let phases: Vec<&str> = events.iter().filter_map(|e| e["ph"].as_str()).collect();
    assert_eq!(phases.iter().filter(|phase| **phase == "X").count(), 7);
    assert!(!phases.contains(&"s"));
    assert!(picture(folder.path()).contains("data-name=\"micro[0]\""));
}

#[test]
fn what_is_no_profile_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |what: &str| {
        let done = titin(folder.path(), &["profile", what]);
        assert_eq!(done.code, Some(2), "{}", done.out);
        done.err
    };
    assert!(refused(".").contains("not ended yet, or this is no run directory"));
    assert!(refused("nowhere").contains("no such file"));
    std::fs::write(
        folder.path().join("text"),
        "This is no database, and long enough to be none for certain.",
    )
    .unwrap();
    assert!(refused("text").contains("cannot be read as a profile"));
    Connection::open(folder.path().join("other"))
        .unwrap()
        .execute_batch("CREATE TABLE x (y)")
        .unwrap();
    assert!(refused("other").contains("not a profile of titin or MUSCLE3"));
    let future = run_directory(&[MUSCLE3, TITIN, "UPDATE titin_format SET major_version = 9"]);
    let done = titin(future.path(), &["profile", "."]);
    done.assert_err("format 9");
}

/// Draws the picture of a run, and returns the path of the picture.
fn plotted(folder: &Path, run: &str) -> PathBuf {
    let done = titin(folder, &["profile", run, "--plot", "traced.svg"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    folder.join("traced.svg")
}

/// The program of the tests of `titin run`.
fn actor() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_titin"))
        .with_file_name("examples")
        .join("actor")
}

/// Makes a folder with a model of two components that call each other.
fn folder_of_pair() -> tempfile::TempDir {
    let program = |role: &str| format!("{{executable: {}, args: [{role}]}}", actor().display());
    crate::folder(&format!(
        "ymmsl_version: v0.2\nmodels:\n  pair:\n    components:\n      \
         macro: {{description: calls, ports: {{o_i: out, s: back}}, implementation: macro}}\n      \
         micro: {{description: is called, ports: {{f_init: in, o_f: final}}, implementation: micro}}\n    \
         conduits:\n      macro.out: micro.in\n      micro.final: macro.back\n\
         programs:\n  macro: {}\n  micro: {}\n",
        program("macro"),
        program("micro")
    ))
}

fn assert_times_add_up(instance: &Value) {
    let [total, compute, waiting, sending, blocked] =
        ["total", "compute", "waiting", "sending", "blocked"]
            .map(|key| instance[key].as_f64().unwrap());
    let gap = compute + waiting + sending - total;
    assert!(gap.abs() < 1e-6, "{instance}");
    assert!(total > 0.0 && blocked <= sending, "{instance}");
}

#[test]
fn a_real_run_has_a_profile_that_adds_up() {
    let folder = folder_of_pair();
    for (directory, words) in [("plain", &["run"][..]), ("traced", &["run", "--trace"])] {
        let done = titin(
            folder.path(),
            &[words, &["model.ymmsl", "--run-dir", directory]].concat(),
        );
        assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
        let done = titin(folder.path(), &["profile", directory, "--json"]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        let json: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(json["traced"], directory == "traced");
        let instances = json["instances"].as_array().unwrap();
        instances.iter().for_each(assert_times_add_up);
        for conduit in json["conduits"].as_array().unwrap() {
            assert_eq!(
                (&conduit["messages"], &conduit["medium"]),
                (&6.into(), &"shm".into()),
                "{conduit}"
            );
        }
    }
    let done = titin(
        folder.path(),
        &["profile", "traced", "--timeline", "out.json"],
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    let events = trace_events(folder.path());
    let ends = |phase: &str| -> BTreeMap<String, f64> {
        let events = events.iter().filter(|event| event["ph"] == phase);
        events
            .map(|end| (end["id"].to_string(), end["ts"].as_f64().unwrap()))
            .collect()
    };
    let (sent, received) = (ends("s"), ends("f"));
    assert_eq!(
        (sent.len(), received.len()),
        (12, 12),
        "an arrow for each message"
    );
    assert!(
        sent.iter().all(|(message, at)| *at <= received[message]),
        "no message arrives before it is sent"
    );
    let svg = std::fs::read_to_string(plotted(folder.path(), "traced")).unwrap();
    assert!(
        svg.contains(">join and leave<") == svg.contains("class=\"set\""),
        "the legend has what is seen"
    );
}
