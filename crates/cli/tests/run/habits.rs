//! Settings of MUSCLE3 that change how an instance behaves. titin obeys these settings too.

use rusqlite::Connection;

use super::Stage;

/// Runs the pair. Returns the log of the run, the instances that have sent event rows, and the
/// instances that have counted their messages.
fn run(settings: &str, words: &[&str]) -> (String, [Vec<String>; 2]) {
    let stage = Stage::pair("macro", "micro", settings);
    let done = stage.run_with(words);
    assert_eq!(done.code(), Some(0), "{}", done.err);
    let profile = Connection::open(stage.run_dir().join("performance.sqlite")).unwrap();
    let names = |query| {
        let mut query = profile.prepare(query).unwrap();
        query
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let traced = "SELECT DISTINCT instance FROM all_events WHERE type IN ('SEND', 'RECEIVE') ORDER BY instance";
    let counted = "SELECT DISTINCT name FROM conduit_ends JOIN instances ON instance_oid = oid WHERE messages > 0 ORDER BY name";
    (
        stage.read("titin_manager.log"),
        [names(traced), names(counted)],
    )
}

#[test]
fn an_instance_logs_and_is_traced_as_settings_say() {
    let (log, [traced, counted]) = run("", &["run"]);
    assert!(log.contains("off we go"), "{log}");
    assert!(traced.is_empty());
    assert_eq!(counted, ["macro", "micro"]);
    let quiet = "settings: {muscle_remote_log_level: WARNING, macro.muscle_profile_level: none}";
    let (log, [traced, counted]) = run(quiet, &["run", "--trace"]);
    assert!(!log.contains("off we go"), "{log}");
    assert_eq!(traced, ["micro"]);
    assert_eq!(counted, ["micro"]);
    let (_, [traced, _]) = run("settings: {macro.muscle_profile_level: all}", &["run"]);
    assert_eq!(traced, ["macro"]);
}

#[test]
fn a_deadlock_is_looked_for_after_the_time_that_is_set() {
    let stage = Stage::pair(
        "deaf",
        "micro",
        "settings: {muscle_deadlock_receive_timeout: 0.3}",
    );
    stage
        .run()
        .assert_failed("deadlock: 2 instances wait for each other in a cycle");
}
