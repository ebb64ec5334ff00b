//! The settings of a component, for the whole component or for a single port: `file`, or
//! `rain.file` for the port `rain`.

use titin_runtime::{BuiltIn, Dtype, Instance, SettingValue};

use crate::data::MessageMeta;
use crate::file_names::has_step;
use crate::format::{CsvForm, Format, ReadOptions};
use crate::{Error, Result};

const FORMS: [(&str, CsvForm); 3] = [
    ("array", CsvForm::Array),
    ("map", CsvForm::Map),
    ("table", CsvForm::Table),
];
pub(crate) const DELIMITERS: [(&str, u8); 5] = [
    (",", b','),
    (";", b';'),
    ("tab", b'\t'),
    ("\t", b'\t'),
    ("|", b'|'),
];

/// The settings of a component, by port.
#[derive(Clone, Copy)]
pub(crate) struct ComponentSettings<'a> {
    instance: &'a Instance,
}

impl<'a> ComponentSettings<'a> {
    /// The settings of an instance.
    ///
    /// # Errors
    /// The description has a setting for the component that the component does not know.
    pub(crate) fn new(instance: &'a Instance, component: BuiltIn) -> Result<Self> {
        let known: Vec<&str> = component.settings().iter().map(|(name, _)| *name).collect();
        let name = instance.name();
        for path in instance.settings().keys() {
            let Some(own) = own_part(path, name) else {
                continue;
            };
            let own_name = without_port(instance, own);
            if !known.contains(&own_name) {
                let near = titin_runtime::nearest(own_name, known.iter().copied());
                let hint = near.map(|near| format!("did you mean '{near}'?"));
                let hint = hint.unwrap_or_else(|| format!("it has {}", known.join(", ")));
                return Err(Error::Setting(format!(
                    "{name}: there is no setting '{own}' ({path}); {hint}"
                )));
            }
        }
        Ok(ComponentSettings { instance })
    }

    /// The setting of a port, or else the setting of the whole component.
    pub(crate) fn find(&self, port: &str, name: &str) -> Result<Option<SettingValue>> {
        let own = format!("{port}.{name}");
        for name in [own.as_str(), name] {
            if self.instance.find_setting(name).is_some() {
                return Ok(Some(self.instance.setting(name)?));
            }
        }
        Ok(None)
    }

    pub(crate) fn text(&self, port: &str, name: &str) -> Result<Option<String>> {
        Ok(self
            .find(port, name)?
            .map(|value| value.as_text().map(str::to_owned))
            .transpose()?)
    }

    pub(crate) fn flag(&self, port: &str, name: &str) -> Result<Option<bool>> {
        Ok(self
            .find(port, name)?
            .map(|value| value.as_bool())
            .transpose()?)
    }

    /// A whole number from 0 on.
    pub(crate) fn count(&self, port: &str, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.find(port, name)? else {
            return Ok(None);
        };
        let number = value.as_i64()?;
        let count = u64::try_from(number);
        count.map(Some).map_err(|_| {
            Error::Setting(format!(
                "setting '{name}' is {number}, it cannot be negative"
            ))
        })
    }

    /// A time in the unit of timestamps.
    pub(crate) fn time(&self, port: &str, name: &str) -> Result<Option<f64>> {
        Ok(self
            .find(port, name)?
            .map(|value| value.in_unit(self.instance.time_unit()))
            .transpose()?)
    }

    /// A word from the list `words`.
    pub(crate) fn word<T: Copy>(
        &self,
        port: &str,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(port, name)? else {
            return Ok(None);
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let near = titin_runtime::nearest(&text, known.iter().copied());
        let hint = near
            .map(|near| format!(" (did you mean '{near}'?)"))
            .unwrap_or_default();
        let text = format!(
            "setting '{name}' is '{text}'{hint}; it can be {}",
            known.join(", ")
        );
        Err(Error::Setting(text))
    }

    /// A list of words with commas between the words.
    fn list(&self, port: &str, name: &str) -> Result<Vec<String>> {
        Ok(words(&self.text(port, name)?.unwrap_or_default()))
    }

    /// The options for reading the file of a port.
    pub(crate) fn reading(&self, port: &str, file: &str) -> Result<ReadOptions> {
        let dtypes = Dtype::ALL.map(|dtype| (dtype.name(), dtype));
        let default = ReadOptions::default();
        Ok(ReadOptions {
            format: self.format(port, file)?,
            // A series of files has a single message in each file.
            time_axis: self
                .flag(port, "time_axis")?
                .or(has_step(file).then_some(false)),
            time_column: self.text(port, "time_column")?,
            takes_times: true,
            columns: self.list(port, "columns")?,
            form: self.word(port, "form", &FORMS)?.unwrap_or_default(),
            dtype: self.word(port, "dtype", &dtypes)?.unwrap_or(default.dtype),
            delimiter: self
                .word(port, "delimiter", &DELIMITERS)?
                .unwrap_or(default.delimiter),
        })
    }

    /// The format of a port's file: the setting, or else the ending of the name.
    pub(crate) fn format(&self, port: &str, file: &str) -> Result<Format> {
        self.word(port, "format", &Format::ENDINGS)?
            .map_or_else(|| Format::of(file.as_ref()), Ok)
    }
}

/// The words of a list with commas between the words.
pub(crate) fn words(text: &str) -> Vec<String> {
    let words = text.split(',').map(str::trim);
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The part of a setting's path after the name of an instance or of the instance's component.
fn own_part<'p>(path: &'p str, instance: &str) -> Option<&'p str> {
    let (component, _) = instance.split_once('[').unwrap_or((instance, ""));
    let own = path
        .strip_prefix(instance)
        .or_else(|| path.strip_prefix(component));
    own?.strip_prefix('.')
}

/// The name of a setting without the port in front.
fn without_port<'n>(instance: &Instance, name: &'n str) -> &'n str {
    let ports = instance.ports();
    match name.split_once('.') {
        Some((port, base)) if ports.iter().any(|known| known.name == port) => base,
        _ => name,
    }
}

/// The times and settings of a received message.
pub(crate) fn meta_of(message: &titin_runtime::Message) -> MessageMeta {
    MessageMeta {
        timestamp: message.timestamp,
        next: message.next_timestamp,
        settings: message.settings.as_deref().cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{merger, splitter};
    use titin_runtime::AcceptedValue;

    /// This module reads the same words that `titin check` accepts.
    #[test]
    fn words_are_those_that_descriptions_are_checked_against() {
        let checked = |component: BuiltIn, name: &str| {
            let found = component
                .settings()
                .iter()
                .find(|(known, _)| *known == name);
            let Some((_, AcceptedValue::Word(words))) = found else {
                panic!("{name} takes no words")
            };
            words.to_vec()
        };
        fn names<'a, T>(words: &[(&'a str, T)]) -> Vec<&'a str> {
            words.iter().map(|(word, _)| *word).collect()
        }
        assert_eq!(checked(BuiltIn::Source, "form"), names(&FORMS));
        assert_eq!(checked(BuiltIn::Source, "delimiter"), names(&DELIMITERS));
        assert_eq!(
            checked(BuiltIn::Source, "dtype"),
            Dtype::ALL.map(Dtype::name)
        );
        assert_eq!(checked(BuiltIn::Source, "format"), names(&Format::ENDINGS));
        assert_eq!(checked(BuiltIn::Sink, "format"), names(&Format::ENDINGS));
        assert_eq!(checked(BuiltIn::Merger, "how"), names(&merger::WORDS));
        assert_eq!(checked(BuiltIn::Splitter, "how"), names(&splitter::WORDS));
    }
}
