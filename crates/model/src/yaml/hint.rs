//! Hints for a text that is not YAML.

/// The number of blanks before the text of a line.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The number, from 1, of a line among entries that is no entry, and the hint. YAML joins such a
/// line with the next line, and complains about the colon there; `lines` ends with the line of the
/// complaint.
pub(super) fn entry_without_colon(lines: &[&str]) -> Option<(u32, String)> {
    let (last, before) = lines.split_last()?;
    let is_entry = |line: &str| {
        let text = line.split(" #").next().unwrap_or_default().trim_end();
        text.ends_with(':') || text.contains(": ")
    };
    let beside = |line: &&&str| {
        let text = line.trim_start();
        indent(line) == indent(last)
            && !is_entry(line)
            && !text.starts_with(['#', '-', '"', '\'', '{', '['])
    };
    let broken = before.iter().rev().take_while(beside).count();
    let at = before.len() - broken;
    let written = lines.get(at).filter(|_| broken > 0 && is_entry(last))?;
    Some((at as u32 + 1, with_colon(written.trim())?))
}

/// The hint for `a.out:b.in` or `a.out b.in`.
pub(crate) fn with_colon(text: &str) -> Option<String> {
    if let Some((key, value)) = text.split_once("->") {
        let (key, value) = (key.trim().trim_end_matches(':').trim_end(), value.trim());
        let whole = !key.is_empty() && !value.is_empty() && !key.contains(char::is_whitespace);
        return whole
            .then(|| format!("a conduit has a colon and no arrow: write \"{key}: {value}\""));
    }
    let (key, value) = text
        .split_once(':')
        .or_else(|| text.split_once(char::is_whitespace))?;
    let (key, value) = (key.trim(), value.trim());
    let whole = !key.is_empty() && !value.is_empty() && !key.contains(char::is_whitespace);
    let missing = if text.contains(':') {
        "a blank"
    } else {
        "a colon"
    };
    whole.then(|| format!("{missing} is missing: write \"{key}: {value}\""))
}

/// The hint for the last line, if its indentation lies between two levels.
pub(super) fn indentation(lines: &[&str]) -> Option<String> {
    let (last, before) = lines.split_last()?;
    let blank = &last[..last.len() - last.trim_start().len()];
    if blank.contains('\t') {
        return Some("indent with spaces; YAML allows no tabs".to_string());
    }
    let own = indent(last);
    let (mut deeper, mut around) = (None, None);
    for (index, line) in before.iter().enumerate().rev() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match indent(line) {
            blanks if blanks == own => return None,
            blanks if blanks > own => {
                // Of the deeper lines, only the level nearest to this line matters.
                if deeper.is_none_or(|(_, least)| blanks < least) {
                    deeper = Some((index + 1, blanks));
                }
            }
            blanks => {
                around = Some((index + 1, blanks));
                break;
            }
        }
    }
    let level = |(line, blanks)| format!("{blanks} as line {line}");
    let levels: Vec<String> = [around, deeper].into_iter().flatten().map(level).collect();
    deeper.map(|_| {
        format!(
            "it is indented by {own}; indent it by {}",
            levels.join(", or by ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_as_far_in_as_one_before_is_between_no_levels() {
        assert_eq!(indentation(&["a:", "  b:", "    c: 1", "  d: 2"]), None);
    }

    #[test]
    fn a_line_without_its_colon_is_told_and_not_the_one_after_it() {
        let found = |text: &str| entry_without_colon(&text.lines().collect::<Vec<_>>());
        let missing =
            |what: &str, line| Some((line, format!("{what} is missing: write \"a.out: b.in\"")));
        assert_eq!(
            found("c:\n  a.out:b.in\n  b.out: a.in"),
            missing("a blank", 2)
        );
        assert_eq!(
            found("c:\n  a.out b.in\n  b.out:c.in\n  c.out: a.in"),
            missing("a colon", 2)
        );
        let arrow = "a conduit has a colon and no arrow: write \"a.out: b.in\"";
        for text in ["a.out -> b.in", "a.out->b.in", "a.out: -> b.in"] {
            assert_eq!(with_colon(text).as_deref(), Some(arrow), "{text}");
        }
        for text in [
            "c:\n  a.out: b.in\n  b.out: a.in: c",
            "c:\n  - x y\n  b: 1",
            "c:\n  # x y\n  b: 1",
            "b: 1",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_between_two_levels_is_told_both() {
        let told = |text: &str| indentation(&text.lines().collect::<Vec<_>>());
        let text = "models:\n  m:\n    components:\n      a: 1\n\n# x\n programs:";
        assert_eq!(
            told(text).unwrap(),
            "it is indented by 1; indent it by 0 as line 1, or by 2 as line 2"
        );
        assert_eq!(
            told("p:\n   a: 1\n  b: 2").unwrap(),
            "it is indented by 2; indent it by 0 as line 1, or by 3 as line 2"
        );
        assert_eq!(
            told("a:\n\tb: 1").unwrap(),
            "indent with spaces; YAML allows no tabs"
        );
        assert_eq!(told("a: 1\nb: ]"), None);
        assert_eq!(told("a:\n  b: ]"), None);
    }
}
