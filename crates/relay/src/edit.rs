//! The text of `relay.toml`, with entries of peers added, replaced or removed. Comments of the user stay,
//! but for those within the entry.

use std::ops::Range;

use serde::Serialize;

use crate::config::PeerConfig;

/// The line at which the entry of a peer begins.
const HEADER: &str = "[[peer]]";

/// The entry of a peer.
pub(crate) fn entry(peer: &PeerConfig) -> String {
    #[derive(Serialize)]
    struct Addition<'a> {
        peer: [&'a PeerConfig; 1],
    }
    toml::to_string(&Addition { peer: [peer] }).expect("plain data")
}

/// The text with another entry in place of the one at `place`; `None` if it has too few entries.
/// The caller has to check the outcome: tables may be written in other ways.
pub(crate) fn with_entry(text: &str, place: usize, peer: &PeerConfig) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let old = entry_lines(&lines, place)?;
    Some(replaced(&lines, old, entry(peer).trim_end()))
}

/// The text without the entry at `place`, and without the blank lines before it; `None` if it has too few
/// entries. The caller has to check the outcome, as of [`with_entry`].
pub(crate) fn without_entry(text: &str, place: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let old = entry_lines(&lines, place)?;
    let is_blank = |line: &&&str| line.trim().is_empty();
    let blank = lines[..old.start].iter().rev().take_while(is_blank).count();
    Some(replaced(&lines, old.start - blank..old.end, ""))
}

/// The text of the lines, with other ones in place of some.
fn replaced(lines: &[&str], old: Range<usize>, new: &str) -> String {
    let new: Vec<&str> = new.lines().collect();
    let all = [&lines[..old.start], &new, &lines[old.end..]].concat();
    all.join("\n") + "\n"
}

/// The lines of an entry, without the blank lines and comments below its last key.
fn entry_lines(lines: &[&str], place: usize) -> Option<Range<usize>> {
    let mut headers = (0..lines.len()).filter(|number| lines[*number].trim() == HEADER);
    let start = headers.nth(place)?;
    let is_table = |number: &usize| lines[*number].trim_start().starts_with('[');
    let next = (start + 1..lines.len()).find(is_table);
    let is_key = |number: &usize| {
        let line = lines[*number].trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    let last = (start..next.unwrap_or(lines.len())).rfind(is_key)?;
    Some(start..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# ours
site = \"north\"

[[peer]]
site = \"south\"
# the key of May
until = \"2026-05-31\"

# the machine in the cellar
[[peer]]
site = \"east\"
";

    #[test]
    fn an_entry_is_replaced_and_the_comments_around_it_stay() {
        let peer = PeerConfig {
            site: "south".into(),
            via: Some("east".into()),
            ..PeerConfig::default()
        };
        let expected = "\
# ours
site = \"north\"

[[peer]]
site = \"south\"
via = \"east\"

# the machine in the cellar
[[peer]]
site = \"east\"
";
        assert_eq!(with_entry(TEXT, 0, &peer).unwrap(), expected);
        let last = with_entry(TEXT, 1, &peer).unwrap();
        assert!(last.starts_with(&TEXT[..TEXT.rfind("site").unwrap()]));
        assert!(last.ends_with("[[peer]]\nsite = \"south\"\nvia = \"east\"\n"));
        assert_eq!(with_entry(TEXT, 2, &peer), None);
    }

    #[test]
    fn an_entry_is_removed_and_the_comments_around_it_stay() {
        let expected = "\
# ours
site = \"north\"

# the machine in the cellar
[[peer]]
site = \"east\"
";
        assert_eq!(without_entry(TEXT, 0).unwrap(), expected);
        let last = without_entry(TEXT, 1).unwrap();
        assert!(last.ends_with("\n\n# the machine in the cellar\n"));
        assert_eq!(without_entry(TEXT, 2), None);
    }
}
