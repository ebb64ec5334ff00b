//! The keys of a mapping, taken one by one; keys left over are unknown.

use crate::names::{Name, is_dotted, is_identifier};
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::yaml::{MapEntry, Node, NodeKind, shorten};

pub(crate) struct Fields<'n> {
    entries: &'n [MapEntry],
    taken: Vec<bool>,
    known: Vec<&'static str>,
    what: String,
}

impl<'n> Fields<'n> {
    /// The keys of `node`; none if the node is empty. `what` names the thing that the mapping
    /// describes.
    pub fn new(node: &'n Node, what: impl Into<String>, problems: &mut Problems) -> Option<Self> {
        let what = what.into();
        let entries = entries(node, &what, problems)?;
        Some(Fields {
            entries,
            taken: vec![false; entries.len()],
            known: Vec::new(),
            what,
        })
    }

    /// The value under `key`. A key without a value counts as missing.
    pub fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.entry(key)
            .map(|entry| &entry.value)
            .filter(|value| !value.is_null())
    }

    /// The text under `description`; `None` if there is no such key.
    pub fn description(&mut self, problems: &mut Problems) -> Option<String> {
        let node = self.take("description")?;
        Some(super::text(node, "the description", problems).unwrap_or_default())
    }

    fn entry(&mut self, key: &'static str) -> Option<&'n MapEntry> {
        self.known.push(key);
        let i = self.entries.iter().position(|entry| entry.key == key)?;
        self.taken[i] = true;
        Some(&self.entries[i])
    }

    /// Keys that begin with `prefix`, and the user's name behind the prefix: `timeline fast`,
    /// `fast`.
    pub fn take_prefixed(&mut self, prefix: &str) -> Vec<(&'n MapEntry, &'n str)> {
        let entries = self.entries;
        let mut found = Vec::new();
        for (entry, taken) in entries.iter().zip(&mut self.taken) {
            if let Some(name) = entry.key.strip_prefix(prefix) {
                *taken = true;
                found.push((entry, name));
            }
        }
        found
    }

    /// Reports keys that belong elsewhere, and skips them; `hint` says where each key should stand.
    /// True if there are such keys.
    pub fn misplaced(
        &mut self,
        keys: &[&str],
        why: &str,
        hint: impl Fn(&str) -> String,
        problems: &mut Problems,
    ) -> bool {
        let mut found = false;
        for (entry, taken) in self.entries.iter().zip(&mut self.taken) {
            if !*taken && keys.contains(&entry.key.as_str()) {
                *taken = true;
                found = true;
                misplaced(entry, &self.what, why, hint(&entry.key), problems);
            }
        }
        found
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    /// Reports the keys that were not taken; true if there are such keys.
    pub fn finish(self, problems: &mut Problems) -> bool {
        let entries = self.entries.iter().zip(&self.taken);
        let unknown: Vec<_> = entries
            .filter(|(_, taken)| !**taken)
            .map(|(entry, _)| entry)
            .collect();
        for entry in &unknown {
            self.report_unknown(entry, problems);
        }
        !unknown.is_empty()
    }

    fn report_unknown(&self, entry: &MapEntry, problems: &mut Problems) {
        let known = || self.known.iter().copied();
        let what = format!("unknown key \"{}\"", shorten(&entry.key));
        let why = format!("there is no such key in {}", self.what);
        let hint = did_you_mean(&entry.key, known())
            .unwrap_or_else(|| format!("known here: {}", listing(known())));
        problems.error_hint(entry.at, Code::UnknownKey, what, why, hint);
    }
}

/// Reports a key whose indentation puts it wrongly inside `inside`.
pub(crate) fn misplaced(
    entry: &MapEntry,
    inside: &str,
    why: &str,
    hint: String,
    problems: &mut Problems,
) {
    let what = format!(
        "\"{}\" stands in the wrong place, inside {inside}",
        entry.key
    );
    problems.error_hint(entry.at, Code::UnknownKey, what, why, hint);
}

/// Whether a mapping has one of these keys.
pub(crate) fn has_any(node: &Node, keys: &[&str]) -> bool {
    matches!(node.kind(), NodeKind::Map(entries) if entries.iter().any(|entry| keys.contains(&entry.key.as_str())))
}

/// The entries of a mapping; none for an empty node.
pub(crate) fn entries<'n>(
    node: &'n Node,
    what: &str,
    problems: &mut Problems,
) -> Option<&'n [MapEntry]> {
    match node.kind() {
        NodeKind::Map(entries) => Some(entries),
        _ if node.is_null() => Some(&[]),
        _ => super::wrong_type(node, what, "a mapping", problems),
    }
}

/// A name with dots; reports a text that is none.
pub(crate) fn dotted(
    written: &str,
    what: &str,
    at: TextPosition,
    problems: &mut Problems,
) -> Option<Name> {
    if is_dotted(written) {
        return Some(problems.name(written));
    }
    bad_name(written, what, at, problems)
}

/// A name without dots; reports a text that is none.
pub(crate) fn identifier(
    written: &str,
    what: &str,
    at: TextPosition,
    problems: &mut Problems,
) -> Option<Name> {
    if is_identifier(written) {
        return Some(problems.name(written));
    }
    bad_name(written, what, at, problems)
}

fn bad_name(written: &str, what: &str, at: TextPosition, problems: &mut Problems) -> Option<Name> {
    let why = "a name is made of letters, digits and _, and does not begin with a digit";
    let what = format!("\"{}\" cannot be {what}", shorten(written));
    problems.error_hint(at, Code::BadName, what, why, hint_for_name(written));
    None
}

/// The hint for a text that is no name.
fn hint_for_name(written: &str) -> Option<String> {
    if written.ends_with("[]") {
        return Some("\"[]\" is written in the program only; leave it out here".to_string());
    }
    if !written.contains(['-', ' ', ',']) {
        return None;
    }
    let fixed: String = written
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    is_identifier(&fixed).then(|| format!("\"{}\" would do", shorten(&fixed)))
}
