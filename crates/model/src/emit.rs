//! A small tree of YAML, and the writer of its text.

use std::fmt::Write;

use crate::yaml::{ScalarType, plain_type};

/// A node of the tree.
pub(crate) enum Yaml {
    /// A text, in quotes if necessary.
    Text(String),
    /// Written without change: a number, a truth value, a list on one line.
    Raw(String),
    List(Vec<Yaml>),
    Map(YamlMap),
}

impl From<YamlMap> for Yaml {
    fn from(map: YamlMap) -> Yaml {
        Yaml::Map(map)
    }
}

/// Keys in the order of writing. Empty values are left out.
#[derive(Default)]
pub(crate) struct YamlMap(Vec<(String, Yaml)>);

impl YamlMap {
    pub fn put(&mut self, key: impl Into<String>, value: impl Into<Yaml>) {
        self.0.push((key.into(), value.into()));
    }

    pub fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.put(key, Yaml::Text(text.into()));
        }
    }

    pub fn raw(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.put(key, Yaml::Raw(value.to_string()));
        }
    }

    pub fn map(&mut self, key: &str, map: YamlMap) {
        if !map.0.is_empty() {
            self.put(key, Yaml::Map(map));
        }
    }

    pub fn list(&mut self, key: &str, items: impl IntoIterator<Item = impl Into<String>>) {
        let items: Vec<_> = items
            .into_iter()
            .map(|item| Yaml::Text(item.into()))
            .collect();
        if !items.is_empty() {
            self.put(key, Yaml::List(items));
        }
    }

    pub fn extend(&mut self, more: YamlMap) {
        self.0.extend(more.0);
    }

    /// The text of a document.
    pub fn document(&self) -> String {
        let mut out = String::new();
        write_map(&mut out, self, 0);
        out
    }
}

/// A number in a form that every reader of YAML takes for a float.
pub(crate) fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            format!("{mantissa}{point}e{sign}{exponent}")
        }
    }
}

fn write_map(out: &mut String, map: &YamlMap, indent: usize) {
    for (key, value) in &map.0 {
        let _ = write!(out, "{:indent$}{}:", "", inline(key));
        write_value(out, value, indent);
    }
}

fn write_value(out: &mut String, value: &Yaml, indent: usize) {
    match value {
        Yaml::Text(text) => write_text(out, text, indent),
        Yaml::Raw(text) => {
            let _ = writeln!(out, " {text}");
        }
        Yaml::List(items) if items.is_empty() => out.push_str(" []\n"),
        Yaml::Map(map) if map.0.is_empty() => out.push_str(" {}\n"),
        Yaml::List(items) => {
            out.push('\n');
            for item in items {
                let _ = write!(out, "{:indent$}-", "");
                write_item(out, item, indent);
            }
        }
        Yaml::Map(map) => {
            out.push('\n');
            write_map(out, map, indent + 2);
        }
    }
}

fn write_item(out: &mut String, item: &Yaml, indent: usize) {
    match item {
        // The first key stands on the line of the dash.
        Yaml::Map(map) => {
            let mut inner = String::new();
            write_map(&mut inner, map, indent + 2);
            let _ = write!(out, " {}", inner.trim_start());
        }
        item => write_value(out, item, indent + 2),
    }
}

fn write_text(out: &mut String, text: &str, indent: usize) {
    let lines: Vec<&str> = text.split('\n').collect();
    let block = lines.len() > 1
        && lines[0].chars().next().is_some_and(|c| !c.is_whitespace())
        && lines
            .iter()
            .all(|line| !line.ends_with(' ') && line.chars().all(|c| !c.is_control()))
        && !text.ends_with("\n\n");
    if !block {
        let _ = writeln!(out, " {}", inline(text));
        return;
    }
    let (body, chomp) = match text.strip_suffix('\n') {
        Some(body) => (body, ""),
        None => (text, "-"),
    };
    let _ = writeln!(out, " |{chomp}");
    for line in body.split('\n') {
        let indent = if line.is_empty() { 0 } else { indent + 2 };
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

/// A text on one line, in quotes if a reader could mistake the bare text.
pub(crate) fn inline(text: &str) -> String {
    match is_plain(text) {
        true => text.to_string(),
        false => quoted(text),
    }
}

/// Whether YAML reads a text without quotes as the same text.
fn is_plain(text: &str) -> bool {
    let may_begin = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.');
    let may_stand = |c: char| c.is_alphanumeric() || " _./-+(),@=~%:$*<>'".contains(c);
    let like_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    text.starts_with(may_begin)
        && !text.ends_with([' ', ':'])
        && text.chars().all(may_stand)
        && !text.contains(": ")
        && plain_type(text) == ScalarType::Text
        && (text.contains(' ') || !like_number(text))
        && !["yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problems;
    use crate::yaml::{NodeKind, parse};

    fn back(text: &str) -> String {
        let mut map = YamlMap::default();
        map.put(
            "key",
            Yaml::Map(YamlMap(vec![(text.into(), Yaml::Text(text.into()))])),
        );
        let document = map.document();
        let mut problems = Problems::default();
        let file = problems.add_file("t".into());
        let node = parse(&document, file, &mut problems)
            .unwrap_or_else(|| panic!("{text:?}\n{document}\n{}", problems.into_report()));
        let NodeKind::Map(outer) = node.kind() else {
            panic!()
        };
        let NodeKind::Map(inner) = outer[0].value.kind() else {
            panic!("{document}")
        };
        assert_eq!(inner[0].key, text, "{document}");
        let NodeKind::Scalar(scalar) = inner[0].value.kind() else {
            panic!("{document}")
        };
        assert_eq!(scalar.of, ScalarType::Text, "{document}");
        scalar.text.clone()
    }

    #[test]
    fn floats_stay_floats() {
        assert_eq!(float(1e-5), "1.0e-5");
        assert_eq!(float(1.5e300), "1.5e+300");
        assert_eq!(float(3.0), "3.0");
        assert_eq!(float(f64::NEG_INFINITY), "-.inf");
    }

    #[test]
    fn texts_come_back_as_they_were() {
        for text in [
            "a",
            "10 ms",
            "yes",
            "1:30",
            "a: b",
            "a #b",
            "- a",
            "#!/bin/bash\necho hi\n",
            "a\n\n b\n",
            " a",
            "a\u{7}b",
            "é",
            "[x",
            "0x1f",
            "@a",
            "a'b\"c\\",
        ] {
            assert_eq!(back(text), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_comes_back(text in "[ -~\\n\\t\u{e9}\u{2028}]{1,12}") {
            proptest::prop_assert_eq!(back(&text), text);
        }
    }
}
