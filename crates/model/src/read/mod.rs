//! Makes a [`Document`] of the YAML tree, with all problems collected, for both versions of yMMSL.

mod components;
mod conduits;
mod fields;
mod implementations;
mod pattern;
mod sections;
mod titin_section;
mod v01;
mod v02;
mod values;

use std::path::{Path, PathBuf};

use crate::document::{Document, FormatVersion};
use crate::problem::{Code, Problems, TextPosition, listing};
use crate::settings::Settings;
use crate::source::file_text;
use crate::yaml::{self, MapEntry, Node, NodeKind};

pub(crate) use fields::Fields;
pub(crate) use values::{LARGEST_INDEX, choice, count, interval, text, wrong_type};
use values::{any_text, number, odd_number, text_list, truth, word_list};

/// The sections of a file that describe the run. With wrong indentation such a key looks like a
/// model or a component.
const SECTIONS: [&str; 8] = [
    "imports",
    "programs",
    "custom_implementations",
    "settings",
    "resources",
    "checkpoints",
    "resume",
    "titin",
];

/// Reads one file. Without a version nothing can be read; any other problem leaves out only the
/// faulty part.
pub(crate) fn document(
    text: &str,
    file: TextPosition,
    problems: &mut Problems,
) -> Option<Document> {
    let before = problems.errors();
    let root = yaml::parse(text, file, problems);
    let is_empty = match &root {
        Some(root) => root.is_null(),
        None => problems.errors() == before,
    };
    if is_empty {
        let why = "a description is a mapping that begins with \"ymmsl_version: v0.2\"";
        problems.error(file, Code::Version, "the file is empty", why);
        return None;
    }
    let root = root?;
    let mut fields = Fields::new(&root, "a description", problems)?;
    match version(&mut fields, &root, problems)? {
        FormatVersion::V01 => Some(v01::document(fields, problems)),
        FormatVersion::V02 => Some(v02::document(fields, problems)),
    }
}

fn version(fields: &mut Fields<'_>, root: &Node, problems: &mut Problems) -> Option<FormatVersion> {
    let hint = "write \"ymmsl_version: v0.2\" at the top".to_string();
    let Some(node) = fields.take("ymmsl_version") else {
        let what = "\"ymmsl_version\" is missing";
        let why = "without it the file cannot be read; the versions are v0.1 and v0.2";
        problems.error_hint(root.at, Code::Version, what, why, hint);
        return None;
    };
    match node.kind() {
        NodeKind::Scalar(scalar) if scalar.text == "v0.1" => Some(FormatVersion::V01),
        NodeKind::Scalar(scalar) if scalar.text == "v0.2" => Some(FormatVersion::V02),
        _ => {
            let what = "this version of yMMSL is not known";
            let known = listing(["v0.1", "v0.2"]);
            let why = format!("titin reads {known}; found {}", node.describe());
            problems.error_hint(node.at, Code::Version, what, why, hint);
            None
        }
    }
}

pub(crate) fn file(path: &Path, name: TextPosition, problems: &mut Problems) -> Option<Document> {
    let text = file_text(path, name, problems)?;
    let mut document = document(&text, name, problems)?;
    let directory = directory(path);
    for program in document.programs.values_mut() {
        program.directory = Some(directory.clone());
        for index in std::mem::take(&mut program.files_in_args) {
            let argument = &mut program.args[index];
            if let Some(found) = beside(argument, &directory) {
                *argument = found;
            }
        }
    }
    Some(document)
}

/// An argument with the absolute path of its file in the directory, if the file is there. A colon
/// ends the name of the file, as in `heat.py:Heat`.
fn beside(argument: &str, directory: &Path) -> Option<String> {
    let name = argument.split(':').next()?;
    let path = std::path::absolute(directory.join(name)).ok()?;
    let is_named = !name.is_empty() && path.is_file();
    is_named.then(|| format!("{}{}", path.display(), &argument[name.len()..]))
}

/// The directory of a file. A bare file name has the empty path as parent, which could not be made
/// absolute; `.` takes its place.
fn directory(path: &Path) -> PathBuf {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_path_buf()
}

/// Reads a setting that the user has given as `NAME=VALUE`. The value is YAML.
pub(crate) fn assignment(text: &str, problems: &mut Problems) -> Settings {
    let file = problems.add_assignment(text);
    let (name, value) = match text.split_once('=') {
        Some((name, value)) if !text.contains(['\n', '\r']) && !value.trim().is_empty() => {
            (name.trim(), value)
        }
        _ => {
            let why = "NAME=VALUE on one line is expected";
            let hint = "write for instance --set macro.dt=0.5".to_owned();
            let what = "this sets no setting";
            problems.error_hint(file, Code::BadValue, what, why, hint);
            return Settings::default();
        }
    };
    let Some(value) = yaml::parse(value, file, problems) else {
        return Settings::default();
    };
    let entry = MapEntry {
        key: name.to_owned(),
        at: value.at,
        value,
    };
    sections::setting(&entry, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_named_alone_is_in_the_current_directory() {
        assert_eq!(directory(Path::new("model.ymmsl")), Path::new("."));
        assert_eq!(directory(Path::new("runs/model.ymmsl")), Path::new("runs"));
        assert_eq!(directory(Path::new("/model.ymmsl")), Path::new("/"));
    }
}
