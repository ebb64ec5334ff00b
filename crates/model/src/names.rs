//! Names as users write them: identifiers, references such as `a.b[1].c`, instances such as
//! `macro[3]`.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest reference that is accepted, in bytes.
pub const LONGEST_REFERENCE: usize = 4096;

/// The name of a component, port, program, model or setting; clones share the memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(text.into())
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Name::from(String::deserialize(deserializer)?))
    }
}

/// Whether `text` may name a port, a component or a setting: a letter or `_`, then letters, digits
/// and `_`.
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether `text` is one or more identifiers with dots between them.
pub fn is_dotted(text: &str) -> bool {
    text.len() <= LONGEST_REFERENCE && text.split('.').all(is_identifier)
}

/// A part of a [`Reference`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReferencePart {
    /// `a` or `.a`
    Name(Name),
    /// `[3]`
    Index(u32),
}

/// A reference of yMMSL, `a.b[1].c`; the first part is a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference(Vec<ReferencePart>);

impl Reference {
    /// The parts, from left to right; at least one.
    pub fn parts(&self) -> &[ReferencePart] {
        &self.0
    }
}

/// Why a text is not a reference or an instance's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NameError {}

impl FromStr for Reference {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.len() > LONGEST_REFERENCE {
            return Err(NameError(format!(
                "a name may have {LONGEST_REFERENCE} characters at most"
            )));
        }
        let mut parts = Vec::new();
        for (place, piece) in text.split('.').enumerate() {
            let (name, mut rest) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
            if !is_identifier(name) {
                return Err(NameError(identifier_fault(name, place)));
            }
            parts.push(ReferencePart::Name(name.into()));
            while !rest.is_empty() {
                let inside = rest
                    .strip_prefix('[')
                    .and_then(|r| r.split_once(']'))
                    .ok_or_else(|| NameError(format!("\"{rest}\" is not an index such as [3]")))?;
                parts.push(ReferencePart::Index(index(inside.0)?));
                rest = inside.1;
            }
        }
        Ok(Reference(parts))
    }
}

fn index(text: &str) -> Result<u32, NameError> {
    let text = text.trim();
    if text.starts_with('+') {
        return Err(NameError(format!(
            "\"{text}\" is not an index; write a number from 0"
        )));
    }
    text.parse().map_err(|_| {
        NameError(format!(
            "\"{text}\" is not an index; write a whole number from 0 to {}",
            u32::MAX
        ))
    })
}

fn identifier_fault(name: &str, place: usize) -> String {
    if name.is_empty() {
        let which = if place == 0 {
            "before the first dot"
        } else {
            "after a dot"
        };
        return format!("a name is missing {which}");
    }
    format!("\"{name}\" is not a name: use letters, digits and _, and do not begin with a digit")
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            match part {
                ReferencePart::Name(name) if i == 0 => write!(f, "{name}")?,
                ReferencePart::Name(name) => write!(f, ".{name}")?,
                ReferencePart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// One running copy of a component: `macro`, `macro[3]`, `grid.cell[2][0]`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceName {
    component: Name,
    indices: Vec<u32>,
}

impl InstanceName {
    /// The instance of `component` (its dotted path) with these indices.
    pub fn new(component: impl Into<Name>, indices: impl Into<Vec<u32>>) -> Self {
        InstanceName {
            component: component.into(),
            indices: indices.into(),
        }
    }

    /// The dotted path of its component.
    pub fn component(&self) -> &Name {
        &self.component
    }

    /// The indices of the instance in each dimension; empty if there is only one instance.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

impl FromStr for InstanceName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (component, indices) = text.split_at(text.find('[').unwrap_or(text.len()));
        if indices.contains('.') {
            return Err(NameError(format!(
                "in \"{text}\" a name follows an index; write all indices at the end"
            )));
        }
        let reference: Reference = text.parse()?;
        let indices = reference
            .parts()
            .iter()
            .filter_map(|part| {
                if let ReferencePart::Index(i) = part {
                    Some(*i)
                } else {
                    None
                }
            })
            .collect::<Vec<_>>();
        Ok(InstanceName::new(component, indices))
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.component)?;
        self.indices
            .iter()
            .try_for_each(|index| write!(f, "[{index}]"))
    }
}

impl fmt::Debug for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for InstanceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InstanceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A component of a [`Network`](crate::Network), in the order of the description.
    ComponentId
}
id! {
    /// An instance of a [`Network`](crate::Network): numbers go through all instances of the first
    /// component, then of the next.
    InstanceId
}
id! {
    /// A conduit between two instances; unique in the run.
    ConduitId
}
id! {
    /// A conduit of the description between two components, for as many [`ConduitId`]s as there are
    /// pairs of instances.
    BundleId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_names_print_as_they_are_written() {
        for text in ["macro", "macro[3]", "grid.cell[2][0]", "_a1"] {
            assert_eq!(text.parse::<InstanceName>().unwrap().to_string(), text);
        }
        let name: InstanceName = "a.b[1][20]".parse().unwrap();
        assert_eq!(
            (name.component().as_str(), name.indices()),
            ("a.b", &[1, 20][..])
        );
    }

    #[test]
    fn bad_instance_names_say_what_is_wrong() {
        for (text, why) in [
            ("", "missing"),
            ("a..b", "missing after a dot"),
            ("1a", "not a name"),
            ("a[1].b", "indices at the end"),
            ("a[", "not an index"),
            ("a[-1]", "not an index"),
            ("a[99999999999]", "not an index"),
            ("a[1]x", "not an index"),
        ] {
            let error = text.parse::<InstanceName>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn references_keep_indices_in_their_place() {
        let reference: Reference = "a[1].b.c[02]".parse().unwrap();
        assert_eq!(reference.to_string(), "a[1].b.c[2]");
    }
}
