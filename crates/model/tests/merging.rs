//! Merging of several files, and imports.

use std::path::Path;

use titin_model::{Description, LoadOptions, ProblemReport, load_texts};

/// Files are called a, b, and so on.
fn read(texts: &[&str], options: &LoadOptions) -> Result<Description, ProblemReport> {
    let names = ["a", "b", "c"];
    let files: Vec<_> = names.into_iter().zip(texts.iter().copied()).collect();
    load_texts(&files, options)
}

/// An imported model with a custom program for one component.
const CHANGED: &str = "ymmsl_version: v0.2
imports:
- from shared.models import implementation pair
programs:
  own: {ports: {f_init: in, o_f: out}, executable: own}
custom_implementations:
  pair.left: own
";

fn changed(more: &str) -> Description {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/model/corpus");
    let model = Some("pair".to_string());
    let options = LoadOptions {
        search: vec![corpus.join("path")],
        model,
        ..LoadOptions::default()
    };
    read(&[&format!("{CHANGED}{more}")], &options).unwrap_or_else(|report| panic!("{report}"))
}

fn left(description: &Description, model: &str, path: &str) -> String {
    let network = description
        .network(Some(model))
        .unwrap_or_else(|report| panic!("{report}"));
    network
        .component(path)
        .unwrap()
        .implementation
        .as_ref()
        .unwrap()
        .to_string()
}

#[test]
fn a_changed_copy_of_an_imported_model_takes_its_place() {
    let description = changed("");
    assert_eq!(
        description
            .models
            .keys()
            .map(|name| name.as_str())
            .collect::<Vec<_>>(),
        ["pair"]
    );
    assert_eq!(left(&description, "pair", "left"), "own");
}

#[test]
fn an_imported_model_that_others_use_stays_as_it_was_beside_its_changed_copy() {
    let user = "models: {user: {components: {a: {description: a, ports: {f_init: start}, implementation: pair}}}}\n";
    let description = changed(user);
    assert_eq!(left(&description, "pair", "left"), "own");
    assert_eq!(
        left(&description, "user", "a.left"),
        "shared.programs.solver"
    );
}

#[test]
fn descriptions_of_several_files_are_apart_by_a_line() {
    let text = |description: &str| format!("ymmsl_version: v0.2\ndescription: {description}\n");
    let model = "models: {m: {components: {a: {description: a, ports: {}, implementation: p}}}}
programs: {p: {executable: p}}
";
    let merged = |all: [&str; 3]| {
        let [a, b, c] = all.map(text);
        let c = c + model;
        read(&[&a, &b, &c], &LoadOptions::default())
            .unwrap_or_else(|report| panic!("{report}"))
            .description
    };
    assert_eq!(merged(["one", "two", "three"]), "one\n\ntwo\n\nthree");
    assert_eq!(merged(["one", "''", "two"]), "one\n\ntwo");
    assert_eq!(merged(["''", "one", "''"]), "one");
}

/// Two components that call each other at rates that may differ.
const UNEQUAL: &str = "ymmsl_version: v0.1
model:
  name: m
  components:
    a: {implementation: p, ports: {o_i: x, s: y}}
    b: {implementation: p, ports: {o_i: y, s: x}}
  conduits: {a.x: b.x, b.y: a.y}
implementations: {p: {executable: p}}
";

const FAULTY: &str = "ymmsl_version: v0.1
model:
  name: m
  conduits: {a.x b.x}
";

#[test]
fn rates_are_told_only_where_all_files_of_a_model_could_be_read() {
    let told = |texts: &[&str]| {
        let options = LoadOptions {
            strict_timelines: true,
            ..LoadOptions::default()
        };
        read(texts, &options)
            .unwrap_err()
            .to_string()
            .contains("rates")
    };
    let faulty = UNEQUAL.replace("b.y: a.y}", "b.y: a.y, a.z b.z: c}");
    assert!(told(&[UNEQUAL]));
    assert!(!told(&[UNEQUAL, FAULTY]));
    assert!(!told(&[&faulty, UNEQUAL]));
    assert!(!told(&[&faulty, FAULTY]));
}

#[test]
fn a_later_file_says_how_sites_are_reached() {
    let first = "ymmsl_version: v0.2
models: {m: {components: {a: {description: x, ports: {}, implementation: p}}}}
programs: {p: {executable: p}}
titin: {sites: {south: {relay: \"old:1\"}, north: {relay: \"n:1\"}}, patience: 1 min, encrypt: true}
";
    let second = "ymmsl_version: v0.2
titin: {sites: {south: {relay: \"new:2\"}}, patience: 2 min, encrypt: false}
";
    let extras = |texts: &[&str]| {
        let read = read(texts, &LoadOptions::default());
        read.unwrap_or_else(|report| panic!("{report}")).extras
    };
    let merged = extras(&[first, second]);
    let minutes = merged.patience.map(|time| time.in_unit("min").unwrap());
    assert_eq!((minutes, merged.encrypt), (Some(2.0), Some(false)));
    assert_eq!(merged.sites["south"].relay, "new:2");
    assert_eq!(merged.sites["north"].relay, "n:1");
    let unchanged = extras(&[first, "ymmsl_version: v0.2\n"]);
    assert_eq!(unchanged.encrypt, Some(true));
}
