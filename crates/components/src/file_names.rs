//! Names of files with places to fill in: `{instance}`, `{index}`, `{port}`, `{slot}` and `{step}`.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The values for the places in a file's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameFields<'a> {
    /// The instance in the notation of users: `source[3]`.
    pub(crate) instance: &'a str,
    pub(crate) port: &'a str,
    pub(crate) slot: Option<u32>,
}

/// Whether each message, or each file of a series, has a name of its own.
pub(crate) fn has_step(pattern: &str) -> bool {
    pattern.contains("{step}")
}

/// Whether each slot has a name of its own.
pub(crate) fn has_slot(pattern: &str) -> bool {
    pattern.contains("{slot}")
}

/// The file of a step in a series of files.
pub(crate) fn step_file(pattern: &str, step: u64) -> PathBuf {
    PathBuf::from(pattern.replace("{step}", &format!("{step:06}")))
}

/// The name of a series without the step: the times of `state_{step}.npy` are in `state.times.csv`.
pub(crate) fn series_name(pattern: &str) -> PathBuf {
    PathBuf::from(
        pattern
            .replace("_{step}", "")
            .replace("-{step}", "")
            .replace("{step}", ""),
    )
}

/// The name with all places filled in; `{step}` stays, for [`crate::format`] to fill in.
///
/// # Errors
/// The name has an unknown place, or a place without a value.
pub(crate) fn fill(pattern: &str, fields: NameFields<'_>) -> Result<PathBuf> {
    let wrong = |why: &str| {
        let port = fields.port;
        Error::Setting(format!("file '{pattern}' of port '{port}' {why}"))
    };
    let mut name = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after
            .split_once('}')
            .ok_or_else(|| wrong("has a '{' without its '}'"))?;
        name.push_str(before);
        let value = fields.value(place);
        name.push_str(&value.map_err(|why| wrong(&why.to_string()))?);
        rest = after;
    }
    name.push_str(rest);
    Ok(PathBuf::from(name))
}

impl NameFields<'_> {
    /// The value for a place.
    fn value(&self, place: &str) -> Result<String, PlaceError> {
        let instance = self.instance;
        let (component, indices) = instance.split_once('[').unwrap_or((instance, ""));
        let index = indices.trim_end_matches(']').replace("][", "_");
        match (place, self.slot) {
            ("instance", _) if index.is_empty() => Ok(component.to_owned()),
            ("instance", _) => Ok(format!("{component}_{index}")),
            ("index", _) if index.is_empty() => Err(PlaceError::Single(instance.to_owned())),
            ("index", _) => Ok(index),
            ("port", _) => Ok(self.port.to_owned()),
            ("slot", Some(slot)) => Ok(slot.to_string()),
            ("slot", None) => Err(PlaceError::NoSlots),
            ("step", _) => Ok("{step}".to_owned()),
            _ => Err(PlaceError::Unknown(place.to_owned())),
        }
    }
}

/// Why a place in the name of a file has no value, in words that follow the name.
#[derive(Debug, thiserror::Error)]
enum PlaceError {
    #[error("has an {{index}}, but {0} is a single instance")]
    Single(String),
    #[error("has a {{slot}}, but the port has no slots")]
    NoSlots,
    #[error(
        "has an unknown place {{{0}}}; places are {{instance}}, {{index}}, {{port}}, {{slot}} and {{step}}"
    )]
    Unknown(String),
}

/// Where a file to read is: in the work directory, or else in one of the folders. `titin: stage`
/// copies files to the work directory.
///
/// # Errors
/// The error lists the folders that were searched.
pub(crate) fn locate(file: &Path, folders: &[PathBuf]) -> Result<PathBuf> {
    let beside = folders.iter().map(|folder| folder.join(file));
    let mut places = std::iter::once(file.to_owned()).chain(beside);
    if let Some(found) = places.find(|path| exists(path)) {
        return Ok(found);
    }
    if file.is_absolute() {
        return Err(Error::file(file, "it is not there"));
    }
    let others = folders.iter();
    let others: String = others
        .map(|folder| format!(", nor in {}", folder.display()))
        .collect();
    let why = format!(
        "it is not in the work directory (`titin: stage` copies files there){others}; relative names begin in these"
    );
    Err(Error::file(file, why))
}

/// Whether there is a file of this name, or the first of several files with a step in their names.
fn exists(path: &Path) -> bool {
    let name = path.to_string_lossy();
    match has_step(&name) {
        true => step_file(&name, 0).exists(),
        false => path.exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in() {
        let purpose = NameFields {
            instance: "basin.gauge[3][1]",
            port: "out",
            slot: Some(7),
        };
        let name = |pattern: &str| fill(pattern, purpose).unwrap().display().to_string();
        assert_eq!(
            name("in/{instance}_{port}_{slot}_{step}.npy"),
            "in/basin.gauge_3_1_out_7_{step}.npy"
        );
        assert_eq!(name("{index}.csv"), "3_1.csv");
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        let purpose = NameFields {
            instance: "gauge",
            port: "out",
            slot: None,
        };
        let why = |pattern: &str| fill(pattern, purpose).unwrap_err().to_string();
        assert!(why("{slot}.npy").contains("port 'out' has a {slot}, but the port has no slots"));
        assert!(why("{index}.npy").contains("gauge is a single instance"));
        assert!(why("{prot}.npy").contains("unknown place {prot}"));
        assert!(why("{port.npy").contains("without its '}'"));
    }

    #[test]
    fn files_are_found_beside_the_description() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("none"), folder.path().to_owned()];
        for name in ["rain.csv", "state_000000.npy"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(
            locate(Path::new("rain.csv"), &folders).unwrap(),
            folder.path().join("rain.csv")
        );
        assert!(locate(Path::new("state_{step}.npy"), &folders).is_ok());
        let error = locate(Path::new("snow.csv"), &folders)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("snow.csv: ") && error.contains("none, nor in"),
            "{error}"
        );
        assert!(
            locate(&folder.path().join("x"), &[])
                .unwrap_err()
                .to_string()
                .contains("it is not there")
        );
    }
}
