//! The corpus under `tests/model/corpus`: every file lists its problems and their lines.
//! A comment `# titin: CODE, CODE` at the end of a line promises that these errors are reported in
//! the line; `warning CODE` promises a warning; `# titin-file: CODE` promises a problem without a
//! line. Nothing else may be reported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use titin_model::{LoadOptions, ProblemReport, Severity, load};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/model/corpus")
}

/// The cases in a folder: a file, or a directory of files that belong together.
fn cases(folder: &str) -> Vec<Vec<PathBuf>> {
    let files_in = |directory: &Path| {
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        files
    };
    let cases = files_in(&corpus().join(folder));
    cases
        .into_iter()
        .map(|path| {
            if path.is_dir() {
                files_in(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn check(files: &[PathBuf]) -> (ProblemReport, bool) {
    let options = LoadOptions {
        search: vec![corpus().join("path")],
        site_packages: vec![corpus().join("site")],
        ..LoadOptions::default()
    };
    match load(files, &options) {
        Ok(description) => {
            // An accepted description can be run, and written and read again.
            let network = description
                .network(None)
                .unwrap_or_else(|e| panic!("{files:?}: {e}"));
            for instance in network.instances() {
                assert!(network.instance_id(&instance).is_some(), "{instance}");
            }
            let written = description.to_ymmsl();
            let again = titin_model::load_texts(&[("written", &written)], &LoadOptions::default());
            again.unwrap_or_else(|e| panic!("{files:?} is written as\n{written}\n{e}"));
            (description.warnings, true)
        }
        Err(report) => (report, false),
    }
}

type Promise = (String, u32, String);

/// The problems that a file promises.
fn promises(path: &str) -> Vec<Promise> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut promises = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for (mark, number) in [("# titin: ", i as u32 + 1), ("# titin-file: ", 0)] {
            let Some((_, codes)) = line.split_once(mark) else {
                continue;
            };
            let path = if number == 0 {
                String::new()
            } else {
                path.to_string()
            };
            promises.extend(
                codes
                    .split(',')
                    .map(|code| (path.clone(), number, code.trim().to_string())),
            );
        }
    }
    promises
}

fn kept(report: &ProblemReport) -> Vec<Promise> {
    let code = |p: &titin_model::Problem| {
        let code = serde_json::to_value(p.code)
            .unwrap()
            .as_str()
            .unwrap()
            .to_string();
        if p.severity == Severity::Warning {
            format!("warning {code}")
        } else {
            code
        }
    };
    let place = |p: &titin_model::Problem| match (&p.file, p.line) {
        (Some(file), Some(line)) => (file.clone(), line),
        _ => (String::new(), 0),
    };
    report
        .problems
        .iter()
        .map(|p| (place(p).0, place(p).1, code(p)))
        .collect()
}

fn run(folder: &str, accepted: Option<bool>) {
    let mut wrong = Vec::new();
    let cases = cases(folder);
    for files in &cases {
        let (report, ok) = check(files);
        let mut read: BTreeSet<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        read.extend(report.problems.iter().filter_map(|p| p.file.clone()));
        let mut promised: Vec<_> = read.iter().flat_map(|path| promises(path)).collect();
        let mut kept = kept(&report);
        promised.sort();
        kept.sort();
        if promised != kept || accepted.is_some_and(|accepted| accepted != ok) {
            wrong.push(format!(
                "{files:?}\npromised {promised:#?}\nreported\n{report}"
            ));
        }
    }
    assert!(!cases.is_empty());
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn good_files_are_accepted() {
    run("good", Some(true));
}

#[test]
fn bad_files_are_refused_with_every_problem_in_its_place() {
    run("bad", Some(false));
}

#[test]
fn files_that_the_ymmsl_package_takes_otherwise_get_the_verdict_intended() {
    run("differ", None);
}

/// Not tested against the `ymmsl` package, which takes minutes for some of these files.
#[test]
fn hostile_files_are_refused_at_a_limit() {
    run("hostile", Some(false));
}
