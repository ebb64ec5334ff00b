//! From files to a [`Description`]: read, merged from left to right, imports followed, checked.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check;
use crate::description::Description;
use crate::imports;
use crate::merge;
use crate::names::InstanceName;
use crate::network::NetworkComponent;
use crate::problem::{Code, ProblemReport, Problems, TextPosition};
use crate::read::{self, Document};
use crate::yaml::LONGEST_FILE;

/// Where to look, and what to ask of the description.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Directories with modules to import from: those of `YMMSL_PATH`.
    pub search: Vec<PathBuf>,
    /// Python's `site-packages` directories, whose entry points are modules too.
    pub site_packages: Vec<PathBuf>,
    /// The model to run; needed only where several could be meant.
    pub model: Option<String>,
    /// How the components come to run.
    pub start: StartMode,
    /// Refuse components that exchange messages in each step unless the file says that their timelines match.
    pub strict_timelines: bool,
}

/// How the components come to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// Each has a program, which is started.
    #[default]
    Programs,
    /// The user starts them, or the file is only looked at; a component without a program is no problem.
    ByHand,
    /// As [`Programs`](StartMode::Programs), except for some, named by component, implementation or instance.
    Except {
        /// They run inside the calling program.
        hosted: Vec<String>,
        /// The user starts them.
        by_hand: Vec<String>,
    },
}

impl StartMode {
    /// Whether no instance of a component is started, so that it needs no program.
    pub(crate) fn leaves_out(&self, component: &NetworkComponent) -> bool {
        let StartMode::Except { hosted, by_hand } = self else {
            return *self == StartMode::ByHand;
        };
        let names = || hosted.iter().chain(by_hand);
        let implementation = component.implementation.as_ref();
        if names().any(|name| {
            component.path == name.as_str() || implementation.is_some_and(|i| *i == name.as_str())
        }) {
            return true;
        }
        let own = names().filter_map(|name| name.parse::<InstanceName>().ok());
        let own: HashSet<InstanceName> = own
            .filter(|name| *name.component() == component.path)
            .collect();
        let exists = |name: &&InstanceName| {
            let (indices, sizes) = (name.indices(), &component.multiplicity);
            indices.len() == sizes.len()
                && indices.iter().zip(sizes).all(|(index, size)| index < size)
        };
        own.iter().filter(exists).count() == component.instances() as usize
    }

    /// The components that are named, also by one of their instances.
    fn named(&self) -> Vec<String> {
        let StartMode::Except { hosted, by_hand } = self else {
            return Vec::new();
        };
        let component = |name: &String| name.split('[').next().unwrap_or_default().to_string();
        hosted.iter().chain(by_hand).map(component).collect()
    }
}

/// What stands for the text that comes in on standard input, whose relative paths begin in the current directory.
const STANDARD_INPUT: &str = "-";

/// Reads, merges and checks files; `-` is standard input. All problems are reported at once.
pub fn load(paths: &[PathBuf], options: &LoadOptions) -> Result<Description, ProblemReport> {
    let mut problems = Problems::default();
    let mut documents = Vec::new();
    for path in paths {
        let file = problems.add_file(path.display().to_string());
        documents.extend(read_file(path, file, &mut problems));
    }
    finish(documents, options, problems)
}

pub(crate) fn read_file(
    path: &Path,
    file: TextPosition,
    problems: &mut Problems,
) -> Option<Document> {
    let text = file_text(path, file, problems)?;
    let mut document = read::document(&text, file, problems)?;
    let directory = directory(path);
    document
        .programs
        .values_mut()
        .for_each(|program| program.directory = Some(directory.clone()));
    Some(document)
}

/// The directory of a file; `.` for a name alone, whose parent is the empty path and could not be made absolute.
fn directory(path: &Path) -> PathBuf {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_path_buf()
}

/// As [`load`], from texts with names that messages give as their files.
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
    if documents.is_empty() && problems.errors() == 0 {
        problems.error(
            TextPosition::default(),
            Code::NoModel,
            "there is nothing to read",
            "no file was given",
        );
    }
    if documents.is_empty() {
        return Err(problems.into_report());
    }
    let mut document = merge::documents(documents, &mut problems);
    let not_imported = imports::resolve(&mut document, options, &mut problems);
    let mut description = Description {
        description: document.description,
        models: document.models,
        programs: document
            .programs
            .into_iter()
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
    };
    check::description(&mut description, options, &mut problems);
    let failed = problems.errors() > 0;
    let report = problems.into_report();
    if failed {
        return Err(report);
    }
    description.warnings = report;
    Ok(description)
}

/// The text of a file, or the reason that there is none. No more is read than may be, also of what has no size.
pub(crate) fn file_text(
    path: &Path,
    file: TextPosition,
    problems: &mut Problems,
) -> Option<String> {
    let what = "the file cannot be read";
    let mut bytes = Vec::new();
    let longest = LONGEST_FILE as u64 + 1;
    let read = match path == Path::new(STANDARD_INPUT) {
        true => std::io::stdin().take(longest).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(std::io::Error::other("it is a directory"));
            }
            file.take(longest).read_to_end(&mut bytes)
        }),
    };
    match read {
        Err(error) => problems.error(file, Code::File, what, error.to_string()),
        Ok(length) if length > LONGEST_FILE => {
            let why = format!("it has more than {LONGEST_FILE} bytes");
            problems.error(file, Code::Limit, what, why);
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => return Some(text),
            Err(error) => {
                let place = error.utf8_error().valid_up_to();
                let why = format!("it is not UTF-8 text; byte {place} is the first that is not");
                problems.error(file, Code::File, what, why);
            }
        },
    }
    None
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
    fn a_file_named_alone_is_in_the_current_directory() {
        assert_eq!(directory(Path::new("model.ymmsl")), Path::new("."));
        assert_eq!(directory(Path::new("runs/model.ymmsl")), Path::new("runs"));
        assert_eq!(directory(Path::new("/model.ymmsl")), Path::new("/"));
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
