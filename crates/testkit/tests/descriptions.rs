//! Odd texts as descriptions: the corpora of the fuzz target and of the checks, whole, cut short,
//! and with broken lines.

use std::path::{Path, PathBuf};

use titin_testkit::fuzz::description;

/// Reads a text. The text may be refused or accepted; only a panic is a failure.
fn check(text: &str) {
    let _ = description(text.as_bytes());
}

fn texts_in(directory: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts_in(&path, texts);
        } else {
            texts.extend(std::fs::read_to_string(&path));
        }
    }
}

fn corpora() -> Vec<String> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    texts_in(&here.join("../../fuzz/corpus/description"), &mut texts);
    texts_in(&here.join("../../tests/model/corpus"), &mut texts);
    assert!(texts.len() > 100);
    texts
}

#[test]
fn the_corpora_are_read_without_a_panic() {
    corpora().iter().for_each(|text| check(text));
}

#[test]
fn texts_cut_short_are_read_without_a_panic() {
    for text in corpora() {
        for end in (0..text.len())
            .step_by(7)
            .filter(|end| text.is_char_boundary(*end))
        {
            check(&text[..end]);
        }
    }
}

/// Each line in turn is left out, repeated, or indented, or has one of its characters exchanged.
#[test]
fn broken_texts_are_read_without_a_panic() {
    for text in corpora() {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let broken = [
                String::new(),
                format!("{line}\n{line}"),
                format!("  {line}"),
                line.replacen(':', "", 1),
                line.replacen(": ", ": *a ", 1),
                line.replacen(": ", ": &a [", 1),
                line.replacen('.', "", 1),
                line.replacen(|c: char| c.is_ascii_digit(), "999999999999999999999", 1),
                line.replacen(|c: char| c.is_ascii_alphabetic(), "\u{0}", 1),
            ];
            for replacement in broken {
                let mut changed = lines.clone();
                changed[i] = &replacement;
                check(&changed.join("\n"));
            }
        }
    }
}
