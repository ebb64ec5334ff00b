//! The operators of the submodel execution loop, and timelines.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::Name;

/// The place in the submodel execution loop at which a port is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// F_INIT receives once, before the loop.
    FInit,
    /// O_I sends in each step.
    OI,
    /// S receives in each step.
    S,
    /// O_F sends once, after the loop.
    OF,
}

impl Operator {
    /// All operators, in the order of the loop.
    pub const ALL: [Operator; 4] = [Operator::FInit, Operator::OI, Operator::S, Operator::OF];

    /// Whether ports of the operator send.
    pub fn sends(self) -> bool {
        matches!(self, Operator::OI | Operator::OF)
    }

    /// Whether ports of the operator receive.
    pub fn receives(self) -> bool {
        !self.sends()
    }

    /// The key in a yMMSL file: `f_init`.
    pub fn key(self) -> &'static str {
        match self {
            Operator::FInit => "f_init",
            Operator::OI => "o_i",
            Operator::S => "s",
            Operator::OF => "o_f",
        }
    }

    /// The operator with this [`key`](Operator::key).
    pub fn from_key(key: &str) -> Option<Operator> {
        Operator::ALL.into_iter().find(|o| o.key() == key)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operator::FInit => "F_INIT",
            Operator::OI => "O_I",
            Operator::S => "S",
            Operator::OF => "O_F",
        })
    }
}

/// A timeline. `macro:micro` is the timeline of a micro that is called in each step of a macro;
/// `macro.fast` is a second timeline of the macro.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timeline(Vec<Name>);

impl Timeline {
    /// The parts, from the outermost in; none for the timeline of the whole run.
    pub fn parts(&self) -> &[Name] {
        &self.0
    }

    /// Whether this is the timeline of the whole run. On a port the root stands for the usual
    /// timeline of the component.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `a:b.c`; an empty text is the root. The parts are not checked.
    pub fn parse(text: &str) -> Timeline {
        Timeline(
            text.split(':')
                .filter(|p| !p.is_empty())
                .map(Name::from)
                .collect(),
        )
    }

    /// This timeline, then one step further in.
    pub fn child(&self, part: impl Into<Name>) -> Timeline {
        let mut parts = self.0.clone();
        parts.push(part.into());
        Timeline(parts)
    }

    /// One step further out; `None` for the root.
    pub fn parent(&self) -> Option<Timeline> {
        self.0
            .split_last()
            .map(|(_, outer)| Timeline(outer.to_vec()))
    }
}

impl From<Vec<Name>> for Timeline {
    fn from(parts: Vec<Name>) -> Self {
        Timeline(parts)
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if i > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}
