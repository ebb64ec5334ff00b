//! Settings as a program reads them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use titin_model::{InstanceName, Reference};
use titin_wire::settings::{Overlay, Setting};
use titin_wire::structure::Value;

use crate::{Error, Kind, Result};

/// The value and origin of a setting. The program reads the value as the type that the program
/// wants.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingValue {
    pub(crate) name: String,
    pub(crate) value: Setting,
}

impl SettingValue {
    /// The value, as written in the description or overlay.
    pub fn value(&self) -> &Setting {
        &self.value
    }

    /// A real number. A whole number serves too. [`SettingValue::in_unit`] alone reads a quantity
    /// with a unit, since a caller of this function names no unit.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_f64(&self) -> Result<f64> {
        match &self.value {
            Setting::Float(number) => Ok(*number),
            Setting::Int(number) => self.real(*number),
            // A value in quotes is text, be the value all digits.
            Setting::Str(text) if text.trim().parse::<f64>().is_ok() => {
                let SettingValue { name, value } = self;
                let text = format!(
                    "setting '{name}' is {value}, which is text: leave out the quotes in the description"
                );
                Err(Error::new(Kind::Setting, text))
            }
            Setting::Str(text) if titin_model::quantity::parse(text).is_ok() => {
                let SettingValue { name, value } = self;
                let text = format!(
                    "setting '{name}' is {value}, a quantity with a unit: ask for it in the unit that the program computes \
                     in, or give the number alone in the description"
                );
                Err(Error::new(Kind::Setting, text))
            }
            _ => Err(self.mismatch("a number")),
        }
    }

    /// A quantity in the given unit ("s", "km"). A number without a unit is in the given unit
    /// already.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is no number or quantity, or measures something else;
    /// [`Kind::Usage`] if there is no such unit, whatever the setting is.
    pub fn in_unit(&self, unit: &str) -> Result<f64> {
        titin_model::quantity::check_unit(unit).map_err(|error| {
            let text = format!(
                "setting '{}' cannot be asked for in \"{unit}\": {error}; correct the program",
                self.name
            );
            Error::new(Kind::Usage, text)
        })?;
        if let Setting::Int(number) = &self.value {
            return self.real(*number);
        }
        self.value
            .in_unit(unit)
            .map_err(|error| self.wrong(&format!("a quantity in {unit}"), &error.to_string()))
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_i64(&self) -> Result<i64> {
        match &self.value {
            Setting::Int(number) => Ok(*number),
            // A point or an exponent makes a number real: `1e6`.
            Setting::Float(number) if number.fract() == 0.0 && number.abs() < i64::MAX as f64 => {
                let SettingValue { name, value } = self;
                let text = format!(
                    "setting '{name}' is not a whole number: it is of type float ({value}); write {} in the description",
                    *number as i64
                );
                Err(Error::new(Kind::Setting, text))
            }
            _ => Err(self.mismatch("a whole number")),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_bool(&self) -> Result<bool> {
        match &self.value {
            Setting::Bool(flag) => Ok(*flag),
            _ => Err(self.mismatch("true or false")),
        }
    }

    /// Text.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_text(&self) -> Result<&str> {
        match &self.value {
            Setting::Str(text) => Ok(text),
            _ => Err(self.mismatch("text")),
        }
    }

    /// A list of whole numbers.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_ints(&self) -> Result<Vec<i64>> {
        match &self.value {
            Setting::Ints(list) => Ok(list.clone()),
            Setting::Floats(list) if list.is_empty() => Ok(Vec::new()),
            _ => Err(self.mismatch("a list of whole numbers")),
        }
    }

    /// A list of real numbers.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_floats(&self) -> Result<Vec<f64>> {
        match &self.value {
            Setting::Floats(list) => Ok(list.clone()),
            Setting::Ints(list) => list.iter().map(|number| self.real(*number)).collect(),
            _ => Err(self.mismatch("a list of numbers")),
        }
    }

    /// A table of real numbers, row by row.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the value is something else.
    pub fn as_table(&self) -> Result<Vec<Vec<f64>>> {
        match &self.value {
            Setting::Table(rows) => Ok(rows.clone()),
            Setting::Ints(list) if list.is_empty() => Ok(Vec::new()),
            _ => Err(self.mismatch("a table of numbers")),
        }
    }

    /// A whole number as a real number. Some whole numbers beyond 53 bits have no exact real
    /// number.
    fn real(&self, number: i64) -> Result<f64> {
        let real = number as f64;
        if real as i128 == i128::from(number) {
            return Ok(real);
        }
        let text = format!(
            "setting '{}' has {number}, a whole number that a real one of 64 bits does not have: its nearest is {real}; \
             ask for a whole number, or write that one",
            self.name
        );
        Err(Error::new(Kind::Setting, text))
    }

    fn mismatch(&self, wanted: &str) -> Error {
        self.wrong(
            wanted,
            &format!("it is of type {}", self.value.setting_type()),
        )
    }

    fn wrong(&self, wanted: &str, why: &str) -> Error {
        let SettingValue { name, value } = self;
        let text = format!(
            "setting '{name}' is not {wanted}: {why} ({value}); correct it in the description"
        );
        Error::new(Kind::Setting, text)
    }
}

/// The components of a run with their multiplicity, to check names in overlays.
#[derive(Debug, Default)]
pub(crate) struct OverlayNames {
    components: HashMap<String, Vec<u32>>,
    /// Names that titin has already checked.
    judged: Mutex<HashSet<String>>,
}

impl OverlayNames {
    /// Without components, nothing is known of any name.
    pub(crate) fn new(components: Vec<(String, Vec<u32>)>) -> Self {
        OverlayNames {
            components: components.into_iter().collect(),
            judged: Mutex::default(),
        }
    }

    /// Whether the full name of a setting leads to no instance. False for a name that titin has
    /// already checked.
    pub(crate) fn is_newly_lost(&self, path: &str) -> bool {
        if self.components.is_empty() || !path.contains('.') {
            return false;
        }
        let mut judged = self.judged.lock().expect("never poisoned");
        !judged.contains(path) && judged.insert(path.to_owned()) && !self.leads(path)
    }

    /// Whether some instance looks up names under a part of the path.
    fn leads(&self, path: &str) -> bool {
        path.match_indices('.').any(|(dot, _)| {
            let Ok(owner) = path[..dot].parse::<InstanceName>() else {
                return false;
            };
            let (component, indices) = (owner.component(), owner.indices());
            let exists = |multiplicity: &Vec<u32>| {
                indices.len() <= multiplicity.len()
                    && indices
                        .iter()
                        .zip(multiplicity)
                        .all(|(index, count)| index < count)
            };
            let is_around = |other: &String| {
                let inner = other.strip_prefix(component.as_str());
                indices.is_empty() && inner.is_some_and(|rest| rest.starts_with('.'))
            };
            self.components.get(component.as_str()).is_some_and(exists)
                || self.components.keys().any(is_around)
        })
    }
}

/// Why a value is no settings overlay, as the end of a sentence about the origin of the value.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The value is no map.
    #[error("this is no map")]
    NoMap,
    /// A name in the map cannot be the name of a setting.
    #[error("'{name}' cannot name a setting: {why}")]
    Name {
        /// The name.
        name: String,
        /// The fault of the name.
        why: String,
    },
    /// The value of this name cannot be the value of a setting.
    #[error("the value of '{0}' cannot be a setting")]
    Value(String),
}

/// Reads a map from names to values as settings.
///
/// # Errors
/// The fault of the value.
pub fn overlay_of<B>(value: &Value<B>) -> std::result::Result<Overlay, OverlayError> {
    let (Value::Map(entries) | Value::Settings(entries)) = value else {
        return Err(OverlayError::NoMap);
    };
    let setting = |(name, value): &(String, Value<B>)| {
        let path = name.parse::<Reference>().map_err(|why| {
            let (name, why) = (name.clone(), why.to_string());
            OverlayError::Name { name, why }
        })?;
        let setting = setting_of(value).ok_or_else(|| OverlayError::Value(name.clone()))?;
        // The path takes the form of the description: an instance would never find a name with
        // `[01]`.
        Ok((path.to_string(), setting))
    };
    entries.iter().map(setting).collect()
}

fn setting_of<B>(value: &Value<B>) -> Option<Setting> {
    Some(match value {
        Value::Bool(flag) => Setting::Bool(*flag),
        Value::Int(number) => Setting::Int(*number),
        Value::Float(number) => Setting::Float(*number),
        Value::Float32(number) => Setting::Float((*number).into()),
        Value::Text(text) => Setting::Str(text.clone()),
        Value::List(values) => list_setting(values)?,
        _ => return None,
    })
}

/// A list of whole numbers, a list of numbers, or a table.
fn list_setting<B>(values: &[Value<B>]) -> Option<Setting> {
    let int = |value: &Value<B>| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    if let Some(ints) = values.iter().map(int).collect() {
        return Some(Setting::Ints(ints));
    }
    if let Some(floats) = floats(values) {
        return Some(Setting::Floats(floats));
    }
    let row = |value: &Value<B>| match value {
        Value::List(row) => floats(row),
        _ => None,
    };
    let rows: Option<_> = values.iter().map(row).collect();
    Some(Setting::Table(rows?))
}

fn floats<B>(values: &[Value<B>]) -> Option<Vec<f64>> {
    let float = |value: &Value<B>| match value {
        Value::Float(number) => Some(*number),
        Value::Float32(number) => Some((*number).into()),
        Value::Int(number) => Some(*number as f64),
        _ => None,
    };
    values.iter().map(float).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(value: Setting) -> SettingValue {
        SettingValue {
            name: "dt".into(),
            value,
        }
    }

    #[test]
    fn quantities_are_read_in_the_unit_asked_for() {
        let hour = setting(Setting::Str("1 hour".into()));
        assert_eq!(hour.in_unit("s").unwrap(), 3600.0);
        assert_eq!(hour.in_unit("min").unwrap(), 60.0);
        assert!(
            hour.as_f64()
                .unwrap_err()
                .text
                .contains("ask for it in the unit")
        );
        assert_eq!(setting(Setting::Float(0.5)).in_unit("s").unwrap(), 0.5);
        assert!(hour.in_unit("km").unwrap_err().text.contains("dt"));
    }

    #[test]
    fn a_unit_that_does_not_exist_is_the_programs_mistake() {
        for value in [
            Setting::Int(1000),
            Setting::Float(0.5),
            Setting::Str("10 m".into()),
            Setting::Bool(true),
        ] {
            let error = setting(value).in_unit("secnds").unwrap_err();
            assert_eq!(error.kind, Kind::Usage);
            assert_eq!(
                error.text,
                "setting 'dt' cannot be asked for in \"secnds\": \"secnds\" is not a unit that titin knows; did you mean \
                 \"seconds\"?; correct the program"
            );
        }
        assert_eq!(setting(Setting::Int(90)).in_unit("m/s2").unwrap(), 90.0);
    }

    #[test]
    fn whole_numbers_are_not_rounded_without_a_word() {
        let large = (1 << 53) + 1;
        assert_eq!(
            setting(Setting::Int(large - 1)).as_f64().unwrap(),
            9_007_199_254_740_992.0
        );
        for error in [
            setting(Setting::Int(large)).as_f64().unwrap_err(),
            setting(Setting::Int(large)).in_unit("s").unwrap_err(),
            setting(Setting::Ints(vec![1, large]))
                .as_floats()
                .map(|_| 0.0)
                .unwrap_err(),
        ] {
            assert!(error.text.contains("'dt' has 9007199254740993,"), "{error}");
        }
    }

    #[test]
    fn a_number_in_quotes_is_told_as_text() {
        let error = setting(Setting::Str("5".into())).as_f64().unwrap_err();
        assert!(
            error
                .text
                .contains("is \"5\", which is text: leave out the quotes"),
            "{error}"
        );
    }

    #[test]
    fn an_overlay_has_names_that_settings_can_have() {
        let named = |name: &str| overlay_of(&Value::<()>::Map(vec![(name.into(), Value::Int(1))]));
        assert_eq!(
            named("member[1].k").unwrap()["member[1].k"],
            Setting::Int(1)
        );
        assert_eq!(
            named("member[01].k").unwrap()["member[1].k"],
            Setting::Int(1)
        );
        for wrong in ["", "a b", "a..b", "1a"] {
            let why = named(wrong).unwrap_err().to_string();
            assert!(
                why.starts_with(&format!("'{wrong}' cannot name a setting: ")),
                "{why}"
            );
        }
    }

    #[test]
    fn names_that_lead_nowhere_are_told_once() {
        let components = [("w", vec![]), ("m", vec![3, 2]), ("outer.inner", vec![])];
        let named = OverlayNames::new(
            components
                .map(|(name, counts)| (name.to_owned(), counts))
                .into(),
        );
        for right in [
            "k",
            "w.k",
            "w.port.k",
            "m.k",
            "m[2].k",
            "m[2][1].k",
            "outer.k",
            "outer.inner.k",
        ] {
            assert!(!named.is_newly_lost(right), "{right}");
        }
        for lost in [
            "ww.k",
            "w[0].k",
            "m[3].k",
            "m[0][2].k",
            "m[0][0][0].k",
            "inner.k",
            "oute.k",
            "outer[0].k",
        ] {
            assert!(
                named.is_newly_lost(lost) && !named.is_newly_lost(lost),
                "{lost}"
            );
        }
        assert!(
            !OverlayNames::default().is_newly_lost("ww.k"),
            "nothing is known of the run"
        );
    }

    #[test]
    fn a_wrong_type_names_the_setting_and_what_it_is() {
        let error = setting(Setting::Bool(true)).as_i64().unwrap_err();
        assert!(
            error.text.contains("'dt'") && error.text.contains("bool"),
            "{error}"
        );
        for (value, hint) in [
            (1e10, "(10000000000.0); write 10000000000 in"),
            (2.5, "(2.5); correct it in"),
            (1e19, "; correct it in"),
        ] {
            let error = setting(Setting::Float(value)).as_i64().unwrap_err();
            assert!(
                error
                    .text
                    .starts_with("setting 'dt' is not a whole number: it is of type float"),
                "{error}"
            );
            assert!(error.text.contains(hint), "{error}");
        }
        assert_eq!(setting(Setting::Int(3)).as_f64().unwrap(), 3.0);
        assert_eq!(setting(Setting::Ints(vec![1])).as_floats().unwrap(), [1.0]);
    }
}
