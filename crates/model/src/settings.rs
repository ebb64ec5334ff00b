//! Settings: values by name; the most specific value wins.

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::names::{InstanceName, Name};
use crate::problem::TextPosition;
use crate::quantity::{self, UnitError};

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true`
    Bool(bool),
    /// `3`
    Int(i64),
    /// `0.5`
    Float(f64),
    /// `fast`, also a quantity such as `10 ms`
    Str(String),
    /// `[1, 2]`
    Ints(Vec<i64>),
    /// `[1.0, 2.5]`
    Floats(Vec<f64>),
    /// `[[1.0, 2.0], [3.0, 4.0]]`
    Table(Vec<Vec<f64>>),
}

/// The type of a setting, as under `supported_settings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingType {
    /// `str`
    Str,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `[int]`
    Ints,
    /// `[float]`
    Floats,
    /// `[[float]]`
    Table,
}

impl SettingType {
    /// All of them.
    pub const ALL: [SettingType; 7] = [
        SettingType::Str,
        SettingType::Int,
        SettingType::Float,
        SettingType::Bool,
        SettingType::Ints,
        SettingType::Floats,
        SettingType::Table,
    ];

    /// The notation in a yMMSL file: `[float]`.
    pub fn key(self) -> &'static str {
        match self {
            SettingType::Str => "str",
            SettingType::Int => "int",
            SettingType::Float => "float",
            SettingType::Bool => "bool",
            SettingType::Ints => "[int]",
            SettingType::Floats => "[float]",
            SettingType::Table => "[[float]]",
        }
    }

    /// The type with this [`key`](SettingType::key).
    pub fn from_key(key: &str) -> Option<SettingType> {
        SettingType::ALL.into_iter().find(|t| t.key() == key)
    }
}

impl fmt::Display for SettingType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

impl Setting {
    /// The type of the value; `[int]` for an empty list.
    pub fn setting_type(&self) -> SettingType {
        match self {
            Setting::Bool(_) => SettingType::Bool,
            Setting::Int(_) => SettingType::Int,
            Setting::Float(_) => SettingType::Float,
            Setting::Str(_) => SettingType::Str,
            Setting::Ints(_) => SettingType::Ints,
            Setting::Floats(_) => SettingType::Floats,
            Setting::Table(_) => SettingType::Table,
        }
    }

    /// Whether the value can be used for a setting of type `wanted`. A whole number and a quantity
    /// with a unit can be used as `float`.
    pub fn fits(&self, wanted: SettingType) -> bool {
        match (self, wanted) {
            (Setting::Int(_), SettingType::Float) => true,
            (Setting::Ints(_), SettingType::Floats) => true,
            (Setting::Ints(list), SettingType::Table) => list.is_empty(),
            (Setting::Floats(list), SettingType::Ints | SettingType::Table) => list.is_empty(),
            (Setting::Str(text), SettingType::Float) => quantity::parse(text).is_ok(),
            _ => self.setting_type() == wanted,
        }
    }

    /// The value as a number in `unit`. A plain number is taken to be in `unit`.
    pub fn in_unit(&self, unit: &str) -> Result<f64, UnitError> {
        match self {
            Setting::Int(number) => Ok(*number as f64),
            Setting::Float(number) => Ok(*number),
            Setting::Str(text) => quantity::parse_in(text, unit),
            other => Err(UnitError::not_a_number(&other.to_string())),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
            f.debug_list().entries(items).finish()
        }
        match self {
            Setting::Bool(b) => b.fmt(f),
            Setting::Int(i) => i.fmt(f),
            Setting::Float(x) => fmt::Debug::fmt(x, f),
            Setting::Str(text) => write!(f, "\"{text}\""),
            Setting::Ints(items) => list(f, items),
            Setting::Floats(items) => list(f, items),
            Setting::Table(rows) => list(f, rows),
        }
    }
}

/// Settings by path: `dt`, `macro.dt`, `micro[3].dt`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: IndexMap<Name, (Setting, TextPosition)>,
}

impl Settings {
    /// The value of `name` for `instance`: the value of `a.b[3].name` if given, else of `a.b.name`,
    /// `a.name`, `name`.
    pub fn find(&self, instance: &InstanceName, name: &str) -> Option<&Setting> {
        self.find_entry(instance, name).map(|(_, value)| value)
    }

    /// As [`find`](Settings::find), with the path of the value.
    pub fn find_entry(&self, instance: &InstanceName, name: &str) -> Option<(&Name, &Setting)> {
        if self.values.is_empty() {
            return None;
        }
        let found = paths(instance, name).find_map(|path| self.values.get_key_value(path.as_str()));
        found.map(|(path, (value, _))| (path, value))
    }

    /// The value of `name` for `instance` where `overlay` has values too. As in MUSCLE3, each path
    /// is looked up in the overlay and then in these settings, before the next less specific path:
    /// `macro.x` in these settings goes before `x` in the overlay.
    pub fn find_overlaid<'a>(
        &'a self,
        overlay: &'a BTreeMap<String, Setting>,
        instance: &InstanceName,
        name: &str,
    ) -> Option<&'a Setting> {
        paths(instance, name).find_map(|path| overlay.get(&path).or_else(|| self.value(&path)))
    }

    /// All settings that [`find`](Settings::find) can find for `instance`, under a name of the
    /// instance or of one of its ports.
    pub fn of(&self, instance: &InstanceName) -> impl Iterator<Item = (&Name, &Setting)> {
        let whole = instance.to_string();
        let cuts: Vec<usize> = whole
            .match_indices('[')
            .map(|(at, _)| at)
            .chain([whole.len()])
            .collect();
        self.iter().filter(move |(path, _)| {
            let Some((owner, _)) = path.as_str().rsplit_once('.') else {
                return true;
            };
            // The owner contains the instance, or is a port of the instance.
            let leads = whole.strip_prefix(owner);
            leads.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                || cuts.iter().any(|&cut| {
                    owner
                        .strip_prefix(&whole[..cut])
                        .is_some_and(|rest| rest.starts_with('.'))
                })
        })
    }

    /// Sets the value of a path; the last value counts.
    pub fn set(&mut self, path: impl Into<Name>, value: Setting) {
        self.set_at(path.into(), value, TextPosition::default());
    }

    pub(crate) fn set_at(&mut self, path: Name, value: Setting, at: TextPosition) {
        self.values.insert(path, (value, at));
    }

    /// The value with exactly this path.
    pub fn value(&self, path: &str) -> Option<&Setting> {
        self.values.get(path).map(|(value, _)| value)
    }

    /// All paths and values, in the order of the description.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &Setting)> {
        self.values.iter().map(|(path, (value, _))| (path, value))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Name, &Setting, TextPosition)> {
        self.values
            .iter()
            .map(|(path, (value, at))| (path, value, *at))
    }

    /// The number of settings.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no settings.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The paths at which `instance` finds a value for `name`, the most specific path first.
fn paths(instance: &InstanceName, name: &str) -> impl Iterator<Item = String> {
    let whole = instance.to_string();
    let shorter = |end: &usize| (*end > 0).then(|| whole[..*end].rfind(['.', '[']).unwrap_or(0));
    let ends: Vec<usize> = std::iter::successors(Some(whole.len()), shorter).collect();
    let path = move |end| {
        if end == 0 {
            name.to_string()
        } else {
            format!("{}.{name}", &whole[..end])
        }
    };
    ends.into_iter().map(path)
}

impl FromIterator<(Name, Setting)> for Settings {
    fn from_iter<T: IntoIterator<Item = (Name, Setting)>>(items: T) -> Self {
        let mut settings = Settings::default();
        for (path, value) in items {
            settings.set(path, value);
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(items: &[(&str, i64)]) -> Settings {
        items
            .iter()
            .map(|(path, value)| (Name::from(*path), Setting::Int(*value)))
            .collect()
    }

    #[test]
    fn the_most_specific_setting_wins() {
        let all = settings(&[
            ("x", 0),
            ("a.x", 1),
            ("a.b.x", 2),
            ("a.b[3].x", 3),
            ("a.b[3][1].x", 4),
            ("y", 5),
        ]);
        let find = |instance: &str, name| match all.find(&instance.parse().unwrap(), name) {
            Some(Setting::Int(i)) => *i,
            _ => -1,
        };
        assert_eq!(find("a.b[3][1]", "x"), 4);
        assert_eq!(find("a.b[3][2]", "x"), 3);
        assert_eq!(find("a.b[4]", "x"), 2);
        assert_eq!(find("a.c", "x"), 1);
        assert_eq!(find("b", "x"), 0);
        assert_eq!(find("ab", "x"), 0);
        assert_eq!(find("a", "b.x"), 2);
        assert_eq!(find("b", "z"), -1);
        assert_eq!(find("a", "y"), 5);
    }

    #[test]
    fn an_overlay_goes_before_the_description_path_by_path() {
        let all = settings(&[("a.b.x", 2), ("x", 0), ("y", 5)]);
        let find = |overlay: &[(&str, i64)], name| {
            let overlay = overlay
                .iter()
                .map(|(path, value)| (path.to_string(), Setting::Int(*value)))
                .collect();
            match all.find_overlaid(&overlay, &"a.b[3]".parse().unwrap(), name) {
                Some(Setting::Int(i)) => *i,
                _ => -1,
            }
        };
        assert_eq!(find(&[], "x"), 2);
        assert_eq!(find(&[("x", 9), ("a.x", 8)], "x"), 2);
        assert_eq!(find(&[("a.b.x", 7), ("x", 9)], "x"), 7);
        assert_eq!(find(&[("a.b[3].x", 6)], "x"), 6);
        assert_eq!(find(&[("y", 9)], "y"), 9);
        assert_eq!(find(&[("a.y", 9), ("b.y", 1)], "y"), 9);
        assert_eq!(find(&[("z", 9)], "z"), 9);
        assert_eq!(find(&[("b.z", 9)], "z"), -1);
    }

    #[test]
    fn what_is_an_instances_is_all_that_it_can_find() {
        let paths = [
            "x",
            "port.x",
            "a.x",
            "a.port.x",
            "a.b.x",
            "a.b.port.x",
            "a.b[3].x",
            "a.b[3].port.x",
            "a.b[3][1].x",
            "a.b[3][1].port.x",
            "a.b[3][2].x",
            "a.b[4].port.x",
            "a.bc.x",
            "a.c.x",
            "b.x",
        ];
        let all: Settings = paths
            .iter()
            .map(|path| (Name::from(*path), Setting::Bool(true)))
            .collect();
        let instance: InstanceName = "a.b[3][1]".parse().unwrap();
        let of: Settings = all
            .of(&instance)
            .map(|(path, value)| (path.clone(), value.clone()))
            .collect();
        let kept: Vec<&str> = of.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            kept,
            [
                "x",
                "a.x",
                "a.b.x",
                "a.b.port.x",
                "a.b[3].x",
                "a.b[3].port.x",
                "a.b[3][1].x",
                "a.b[3][1].port.x"
            ]
        );
        // Remove the nearest setting each time; both then find the next.
        let (mut all, mut of) = (all, of);
        while let Some((found, _)) = of.find_entry(&instance, "x") {
            let found = found.clone();
            assert_eq!(
                all.find_entry(&instance, "x").map(|(path, _)| path),
                Some(&found)
            );
            all.values.shift_remove(&found);
            of.values.shift_remove(&found);
        }
        assert_eq!(all.find(&instance, "x"), None);
    }

    #[test]
    fn values_fit_their_types() {
        assert!(Setting::Int(3).fits(SettingType::Float));
        assert!(!Setting::Float(3.0).fits(SettingType::Int));
        assert!(Setting::Str("10 ms".into()).fits(SettingType::Float));
        assert!(!Setting::Str("fast".into()).fits(SettingType::Float));
        assert!(Setting::Ints(vec![]).fits(SettingType::Table));
        assert!(!Setting::Bool(true).fits(SettingType::Int));
    }

    #[test]
    fn a_number_is_read_in_the_unit_asked_for() {
        assert_eq!(Setting::Str("10 ms".into()).in_unit("s"), Ok(0.01));
        assert_eq!(Setting::Float(0.01).in_unit("s"), Ok(0.01));
        assert_eq!(Setting::Str("12".into()).in_unit("km"), Ok(12.0));
        assert!(Setting::Str("10 m".into()).in_unit("s").is_err());
        assert!(Setting::Bool(true).in_unit("s").is_err());
    }
}
