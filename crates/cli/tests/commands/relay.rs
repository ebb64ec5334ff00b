//! `titin relay`: what it makes, and what it refuses.

use std::fs;
use std::path::Path;

use crate::titin;

/// Makes the relay of a site in the folder of its name. Returns its fingerprint.
fn init(directory: &Path, site: &str) -> String {
    let options = ["--local", "127.0.0.1:4710", "--folder", site];
    let done = titin(
        directory,
        &[&["relay", "init", site][..], &options].concat(),
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    let done = titin(directory, &["relay", "fingerprint", "--folder", site]);
    done.out.trim().to_owned()
}

/// Has the relay north trust another, with further options.
fn trust(directory: &Path, words: &[&str]) -> crate::Done {
    let folder = ["--folder", "north"];
    titin(
        directory,
        &[&["relay", "trust"][..], words, &folder].concat(),
    )
}

#[test]
fn the_key_of_a_trusted_site_is_renewed_by_replace() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    init(here, "north");
    let (old, new) = (init(here, "south"), init(here, "south_again"));
    assert_eq!(trust(here, &["south", &old]).code, Some(0));
    let refused = trust(here, &["south", &new, "--until", "2027-12-31"]);
    assert_eq!(refused.code, Some(2));
    refused.assert_err("the site south is trusted already");
    refused.assert_err("--replace");

    let options = ["south", &new, "--until", "2027-12-31", "--replace"];
    assert_eq!(trust(here, &options).code, Some(0));
    let config = fs::read_to_string(here.join("north/relay.toml")).unwrap();
    assert!(config.contains(&new) && !config.contains(&old), "{config}");
    assert!(config.contains("2027-12-31"), "{config}");
    let other = trust(here, &["east", &new]);
    assert_eq!(other.code, Some(2));
    other.assert_err("that of the site south and of east");
}

#[test]
fn names_and_addresses_without_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let done = titin(here, &["relay", "init", "bad name!", "--folder", "bad"]);
    assert_eq!(done.code, Some(2));
    done.assert_err("no name of a site");
    assert!(!here.join("bad").exists());
    init(here, "north");
    let south = init(here, "south");
    let done = trust(here, &["south", &south, "--address", "south.example"]);
    assert_eq!(done.code, Some(2));
    done.assert_err("HOST:PORT is expected");
}

#[test]
fn each_action_says_what_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let done = titin(directory.path(), &["relay", "--help"]);
    for action in ["init", "trust", "fingerprint", "run", "status"] {
        let begins = |line: &&str| line.trim_start().starts_with(action);
        let line = done.out.lines().find(begins).unwrap_or_default();
        assert!(line.split_whitespace().count() > 2, "{}", done.out);
    }
}

/// A model with a host at another site.
const MODEL: &str = r#"
ymmsl_version: v0.2
models:
  one:
    components:
      a: {description: asks, implementation: a}
programs:
  a: {executable: "true"}
titin:
  sites: {south: {relay: "127.0.0.1:4711"}}
  hosts:
    far: {site: south, start: [env], components: [a]}
"#;

#[test]
fn a_run_needs_two_files_of_the_folder_and_no_private_key() {
    let folder = crate::folder(MODEL);
    let here = folder.path();
    init(here, "north");
    let copy = here.join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(here.join("north/access"), copy.join("access")).unwrap();
    let run = ["run", "model.ymmsl", "--relay", "copy", "--run-dir", "out"];
    let done = titin(here, &run);
    assert_eq!(done.code, Some(2), "{}", done.err);
    done.assert_err("the files relay.toml and access");

    // Nothing listens at port 0.
    let config = fs::read_to_string(here.join("north/relay.toml")).unwrap();
    fs::write(copy.join("relay.toml"), config.replace(":4710", ":0")).unwrap();
    let done = titin(here, &run);
    done.assert_err("the relay of this site at 127.0.0.1:0 does not admit the run");
}
