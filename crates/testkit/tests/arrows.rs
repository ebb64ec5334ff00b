//! The crates of titin depend on each other as `ARCHITECTURE.md` draws it, and never in a circle.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// The crates of titin that each crate may use.
const ARROWS: [(&str, &[&str]); 19] = [
    ("titin-element", &[]),
    ("titin-model", &["titin-element"]),
    ("titin-array", &[]),
    ("titin-wire", &["titin-element", "titin-model"]),
    ("titin-os", &[]),
    ("titin-transport", &["titin-os", "titin-wire"]),
    (
        "titin-runtime",
        &[
            "titin-transport",
            "titin-array",
            "titin-os",
            "titin-wire",
            "titin-model",
        ],
    ),
    ("titin-path", &["titin-transport", "titin-os", "titin-wire"]),
    ("titin-components", &["titin-runtime"]),
    (
        "titin-manager",
        &["titin-transport", "titin-os", "titin-wire", "titin-model"],
    ),
    ("titin-relay", &["titin-model", "titin-os", "titin-wire"]),
    ("titin-relayd", &["titin-os", "titin-relay", "titin-wire"]),
    ("titin-capi", &["titin-runtime", "titin-path"]),
    (
        "titin-draw",
        &["titin-model", "titin-array", "titin-manager"],
    ),
    (
        "titin-view",
        &[
            "titin-model",
            "titin-draw",
            "titin-manager",
            "titin-transport",
            "titin-os",
            "titin-wire",
        ],
    ),
    (
        "titin-cli",
        &[
            "titin-model",
            "titin-draw",
            "titin-runtime",
            "titin-components",
            "titin-manager",
            "titin-view",
            "titin-relay",
            "titin-path",
            "titin-copy",
        ],
    ),
    ("titin-copy", &["titin-path", "titin-os"]),
    ("titin-host", &[]),
    ("titin-python", &[]),
];

/// Dependencies of tests only. The tests of the runtime run whole models with the real manager. The
/// tests of the command declare fields.
const IN_TESTS: [(&str, &str); 2] = [
    ("titin-runtime", "titin-manager"),
    ("titin-cli", "titin-array"),
];

const TESTKIT: &str = "titin-testkit";

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata();
    let ours: BTreeSet<&str> = packages(&metadata).map(name).collect();
    assert!(
        ours.contains("titin-wire") && ours.contains(TESTKIT),
        "{ours:?}"
    );
    for package in packages(&metadata) {
        let from = name(package);
        for dependency in package["dependencies"].as_array().expect("a list") {
            let to = name(dependency);
            if !ours.contains(to) || from == TESTKIT {
                continue;
            }
            let only_for_tests = dependency["kind"] == "dev";
            if only_for_tests && IN_TESTS.contains(&(from, to)) {
                continue;
            }
            if to == TESTKIT {
                assert!(
                    only_for_tests,
                    "{from} may use {TESTKIT} as a development dependency only"
                );
                continue;
            }
            let arrows = ARROWS.iter().find(|(crate_name, _)| *crate_name == from);
            let (_, allowed) =
                arrows.unwrap_or_else(|| panic!("{from} is new: say in this test what it may use"));
            assert!(
                allowed.contains(&to),
                "{from} must not use {to}; it may use {allowed:?}"
            );
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_where_it_has_no_business() {
    for crate_name in [
        "element",
        "model",
        "array",
        "os",
        "wire",
        "runtime",
        "components",
        "copy",
        "manager",
        "draw",
        "view",
        "cli",
        "testkit",
    ] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(crate_name)
            .join("src");
        let files = ["lib.rs", "main.rs"].map(|file| root.join(file));
        for file in files.into_iter().filter(|file| file.exists()) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(
                text.contains("#![forbid(unsafe_code)]"),
                "{} does not forbid unsafe code",
                file.display()
            );
        }
    }
}

#[test]
fn unsafe_code_of_the_transport_stands_in_two_files() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../transport/src");
    let allowed = [root.join("copy.rs"), root.join("shared_memory.rs")];
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.is_dir() {
                folders.push(entry);
            } else if !allowed.contains(&entry) {
                let text = std::fs::read_to_string(&entry).unwrap();
                assert!(
                    !text.contains("allow(unsafe_code)"),
                    "{} allows unsafe code",
                    entry.display()
                );
            }
        }
    }
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().expect("a list").iter()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("a name")
}
