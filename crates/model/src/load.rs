//! Makes a [`Description`] of files: reads and merges them from left to right, follows imports, and
//! checks the result.

use std::path::PathBuf;
use std::sync::Arc;

use crate::check;
use crate::description::Description;
use crate::document::Document;
use crate::imports;
use crate::merge;
use crate::options::LoadOptions;
use crate::problem::{Code, ProblemReport, Problems, TextPosition};
use crate::read;

/// Reads, merges and checks files; `-` is standard input. One report has all problems.
pub fn load(paths: &[PathBuf], options: &LoadOptions) -> Result<Description, ProblemReport> {
    let mut problems = Problems::default();
    let mut documents = Vec::new();
    for path in paths {
        let file = problems.add_file(path.display().to_string());
        documents.extend(read::file(path, file, &mut problems));
    }
    finish(documents, options, problems)
}

/// As [`load`], from texts; messages give the names as files.
pub fn load_texts(
    texts: &[(&str, &str)],
    options: &LoadOptions,
) -> Result<Description, ProblemReport> {
    let mut problems = Problems::default();
    let mut documents = Vec::new();
    for (name, text) in texts {
        let file = problems.add_file(name.to_string());
        documents.extend(read::document(text, file, &mut problems));
    }
    finish(documents, options, problems)
}

fn finish(
    documents: Vec<Document>,
    options: &LoadOptions,
    mut problems: Problems,
) -> Result<Description, ProblemReport> {
    if documents.is_empty() {
        if problems.errors() == 0 {
            report_nothing(&mut problems);
        }
        return Err(problems.into_report());
    }
    let mut document = merge::documents(documents, &mut problems);
    for assignment in &options.settings {
        let given = read::assignment(assignment, &mut problems);
        for (path, value, at) in given.entries() {
            document.settings.set_at(path.clone(), value.clone(), at);
        }
    }
    let not_imported = imports::resolve(&mut document, options, &mut problems);
    let programs = document.programs.into_iter();
    let mut description = Description {
        description: document.description,
        models: document.models,
        programs: programs
            .map(|(name, program)| (name, Arc::new(program)))
            .collect(),
        custom_implementations: document.custom_implementations,
        settings: document.settings,
        resources: document.resources,
        checkpoints: document.checkpoints,
        resume: document.resume,
        extras: document.extras,
        warnings: ProblemReport::default(),
        files: problems.files.clone(),
        not_imported,
        named: options.start.named(),
        start: options.start.clone(),
        allow_missing: options.allow_missing,
    };
    check::description(&mut description, options, &mut problems);
    if problems.errors() > 0 {
        return Err(problems.into_report());
    }
    description.warnings = problems.into_report();
    Ok(description)
}

fn report_nothing(problems: &mut Problems) {
    let (what, why) = ("there is nothing to read", "no file was given");
    problems.error(TextPosition::default(), Code::NoModel, what, why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn refused(path: &str) -> crate::Problem {
        let mut report = load(&[path.into()], &LoadOptions::default()).unwrap_err();
        assert_eq!(report.problems.len(), 1, "{report}");
        report.problems.remove(0)
    }

    #[test]
    fn files_that_cannot_be_read_say_why() {
        let missing = refused("/no/such/file.ymmsl");
        assert_eq!(
            (missing.code, missing.severity),
            (Code::File, Severity::Error)
        );
        assert!(missing.why.contains("No such file"), "{missing}");
        assert!(refused("/").why.contains("a directory"));
        assert_eq!(refused("/dev/zero").code, Code::Limit);
        assert_eq!(refused("/dev/null").code, Code::Version);
    }

    #[test]
    fn no_file_is_no_model() {
        assert_eq!(
            load(&[], &LoadOptions::default()).unwrap_err().problems[0].code,
            Code::NoModel
        );
    }

    #[test]
    fn line_ends_and_marks_of_other_systems_are_read() {
        let text = "\u{feff}ymmsl_version: v0.2\r\nmodels:\r\n  m:\r\n    components:\r\n      a: {description: a, ports: {}, \
                    implementation: p}\r\nprograms:\r\n  p: {script: \"a\"}\r\n";
        let description = load_texts(&[("crlf", text)], &LoadOptions::default())
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(description.models["m"].components.len(), 1);
    }

    #[test]
    fn very_many_problems_are_told_quickly_and_not_all() {
        let mut text = String::from("ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n");
        for i in 0..2000 {
            text += &format!(
                "      component{i}: {{description: a, ports: {{}}, implementation: p}}\n"
            );
        }
        text += "    conduits:\n";
        for i in 0..50_000 {
            text += &format!("      componenent{i}.out: compnent{i}.in\n");
        }
        text += "programs: {p: {executable: p}}\n";
        let report = load_texts(&[("many", &text)], &LoadOptions::default()).unwrap_err();
        assert_eq!(report.errors(), crate::MOST_PROBLEMS);
        assert!(report.left_out > 0);
    }
}
