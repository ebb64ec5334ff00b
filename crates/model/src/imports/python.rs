//! Modules in installed Python packages, read without starting Python.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::names::is_identifier;
use crate::yaml::LONGEST_FILE;

/// A line of a package's entry points: `module = package.file:ATTRIBUTE`.
pub(super) struct EntryPoint {
    pub module: String,
    value: String,
    site: PathBuf,
}

/// All modules of the packages in these directories.
pub(super) fn entry_points(sites: &[PathBuf]) -> Vec<EntryPoint> {
    let mut found = Vec::new();
    for site in sites {
        let Ok(entries) = std::fs::read_dir(site) else {
            continue;
        };
        let mut packages: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        packages.sort();
        for package in packages
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == "dist-info"))
        {
            let Ok(text) = std::fs::read_to_string(package.join("entry_points.txt")) else {
                continue;
            };
            found.extend(modules(&text).map(|(module, value)| EntryPoint {
                module,
                value,
                site: site.clone(),
            }));
        }
    }
    found
}

/// The lines of section `[ymmsl.module]`.
fn modules(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']').trim() == "ymmsl.module";
            return None;
        }
        let (module, value) = line
            .split_once('=')
            .filter(|_| inside && !line.starts_with(['#', ';']))?;
        Some((module.trim().to_string(), value.trim().to_string()))
    })
}

/// Why the text of a module cannot be read.
pub(super) enum ModuleError {
    /// The entry point is not `PACKAGE:ATTRIBUTE`.
    EntryPoint(String),
    /// There is no such file.
    NoFile(PathBuf),
    /// The file cannot be read, or is too long.
    Unreadable(PathBuf),
    /// The file assigns no plain text to the attribute.
    Computed(PathBuf, String),
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleError::EntryPoint(value) => {
                write!(f, "the entry point \"{value}\" does not name a text")
            }
            ModuleError::NoFile(path) => {
                let path = path.display();
                write!(f, "its package has no file {path} to read it from")
            }
            ModuleError::Unreadable(path) => write!(f, "{} cannot be read", path.display()),
            ModuleError::Computed(path, attribute) => {
                let path = path.display();
                write!(
                    f,
                    "{path} computes \"{attribute}\" in a way that only Python can follow"
                )
            }
        }
    }
}

/// The text of a module, and the file with the text. Lines keep the numbers that they have in the
/// file.
pub(super) fn text(entry: &EntryPoint) -> Result<(PathBuf, String), ModuleError> {
    let wrong = || ModuleError::EntryPoint(entry.value.clone());
    let (package, attribute) = entry.value.split_once(':').ok_or_else(wrong)?;
    if !package.split('.').all(is_identifier) || !is_identifier(attribute) {
        return Err(wrong());
    }
    let stem: PathBuf = package.split('.').collect();
    let files = [
        entry.site.join(&stem).with_extension("py"),
        entry.site.join(&stem).join("__init__.py"),
    ];
    let path = files.iter().find(|path| path.is_file());
    let path = path.ok_or_else(|| ModuleError::NoFile(files[0].clone()))?;
    let small = std::fs::metadata(path).is_ok_and(|m| m.len() <= LONGEST_FILE as u64);
    let source = std::fs::read_to_string(path).ok().filter(|_| small);
    let source = source.ok_or_else(|| ModuleError::Unreadable(path.clone()))?;
    let text = assigned_text(&source, attribute, &interpreter(&entry.site));
    match text {
        Some(text) => Ok((path.clone(), text)),
        None => Err(ModuleError::Computed(path.clone(), attribute.to_string())),
    }
}

/// The Python interpreter of the environment around a `site-packages` directory.
fn interpreter(site: &Path) -> String {
    let prefix = site.ancestors().nth(3).unwrap_or(site);
    prefix.join("bin").join("python3").display().to_string()
}

/// The text that `ATTRIBUTE = """..."""` assigns, after as many empty lines as stand before the
/// assignment.
fn assigned_text(source: &str, attribute: &str, interpreter: &str) -> Option<String> {
    let mut offset = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        if let Some(after) = line.strip_prefix(attribute)
            && let Some(value) = after
                .trim_start()
                .strip_prefix('=')
                .filter(|v| !v.starts_with('='))
        {
            let start = offset + line.len() - value.len();
            let text = literal(source[start..].trim_start_matches(' '), interpreter)?;
            return Some("\n".repeat(number) + &text);
        }
        offset += line.len();
    }
    None
}

/// The string literal at the beginning of some source.
fn literal(source: &str, interpreter: &str) -> Option<String> {
    let quoted = source.find(['"', '\''])?;
    let prefix = source[..quoted].to_lowercase();
    let (formatted, raw) = match prefix.as_str() {
        "" | "u" => (false, false),
        "r" => (false, true),
        "f" => (true, false),
        "rf" | "fr" => (true, true),
        _ => return None,
    };
    let rest = &source[quoted..];
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes.into_iter().find(|quote| rest.starts_with(quote))?;
    let mut text = String::new();
    let mut rest = &rest[quote.len()..];
    loop {
        if let Some(after) = rest.strip_prefix(quote) {
            return ends_statement(after).then_some(text);
        }
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' if quote.len() == 1 => return None,
            '\\' if !raw => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                text.extend(unescaped(escaped)?);
            }
            '{' | '}' if formatted => {
                if let Some(after) = rest.strip_prefix(c) {
                    text.push(c);
                    rest = after;
                } else {
                    rest = rest.strip_prefix("sys.executable}").filter(|_| c == '{')?;
                    text += interpreter;
                }
            }
            c => text.push(c),
        }
    }
}

/// Whether nothing follows on the line. Code behind a literal, such as `.format(...)`, would change
/// the text.
fn ends_statement(after: &str) -> bool {
    let line = after.lines().next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with('#')
}

/// The character that a backslash and a character stand for: `Some(None)` if they stand for no
/// character, `None` for an escape that titin does not know.
fn unescaped(escaped: char) -> Option<Option<char>> {
    match escaped {
        '\n' => Some(None),
        'n' => Some(Some('\n')),
        't' => Some(Some('\t')),
        '\\' | '\'' | '"' => Some(Some(escaped)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_are_those_of_the_section() {
        let text = "[console_scripts]\na = b:c\n\n[ymmsl.module]\nx.y = p.q:TEXT\n# z = p:T\n[other]\nu = v:w\n";
        let found: Vec<_> = modules(text).collect();
        assert_eq!(found, [("x.y".to_string(), "p.q:TEXT".to_string())]);
    }

    #[test]
    fn a_text_is_read_from_the_source_with_its_line_numbers() {
        let source = "import sys\n\nTEXT = f\"\"\"\na: {sys.executable}\nb: {{1}}\n\"\"\"\n";
        assert_eq!(
            assigned_text(source, "TEXT", "/py").unwrap(),
            "\n\n\na: /py\nb: {1}\n"
        );
        assert_eq!(
            assigned_text("TEXT = 'a: 1'\n", "TEXT", "").unwrap(),
            "a: 1"
        );
        assert_eq!(
            assigned_text("TEXT = 'a: \\\\ \\n'\n", "TEXT", "").unwrap(),
            "a: \\ \n"
        );
    }

    #[test]
    fn a_text_that_is_computed_is_refused() {
        for source in [
            "TEXT = f'{name}'\n",
            "TEXT = 'a'.upper()\n",
            "TEXT = make()\n",
            "TEXT = 'a\n",
            "OTHER = 'a'\n",
            "TEXT == 'a'\n",
        ] {
            assert_eq!(assigned_text(source, "TEXT", ""), None, "{source}");
        }
    }
}
