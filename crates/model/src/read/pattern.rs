//! Reads `titin: fields`: the coupling patterns of fields.

use super::{Fields, choice, count, interval, wrong_type};
use crate::pattern::{Pattern, PatternSide, Steps, TransferMode, VersionCache, WhenFull};
use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::{Node, NodeKind};

/// The most versions that a sender may keep.
const MOST_VERSIONS: u64 = 1_000_000;

pub(super) fn pattern(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<(Pattern, TextPosition)> {
    let what = format!("the pattern of \"{path}\"");
    let mut fields = Fields::new(node, what.as_str(), problems)?;
    let modes = [("push", false), ("pull", true)];
    let mode = fields
        .take("mode")
        .map(|node| choice(node, "the mode", &modes, problems));
    let pulls = mode == Some(Some(true));
    let (sender, receiver) = sides(&mut fields, pulls, problems);
    let versions = VersionFields {
        versions: fields.take("versions"),
        full: fields.take("full"),
    };
    fields.finish(problems);
    if matches!(mode, None | Some(Some(false))) {
        versions.report_needless(&what, problems);
    }
    let cache = versions.read(problems);
    let pattern = Pattern {
        mode: match pulls {
            true => TransferMode::Pull(cache),
            false => TransferMode::Push,
        },
        sender,
        receiver,
    };
    Some((pattern, at))
}

/// Reads the steps and the regions of the sender and the receiver.
fn sides(
    fields: &mut Fields<'_>,
    pulls: bool,
    problems: &mut Problems,
) -> (PatternSide, PatternSide) {
    let both = share(fields, &PatternSide::default(), problems);
    let mut of_receiver = both.clone();
    // A receiver that pulls takes versions at any of its steps; the given steps are those of the
    // sender.
    if pulls {
        of_receiver.steps = Steps::default();
    }
    let sender = side(fields, "sender", both, problems);
    (sender, side(fields, "receiver", of_receiver, problems))
}

/// Reads the entries for one side; missing entries are as in `usual`.
fn side(
    fields: &mut Fields<'_>,
    key: &'static str,
    usual: PatternSide,
    problems: &mut Problems,
) -> PatternSide {
    let Some(node) = fields.take(key) else {
        return usual;
    };
    let what = format!("{}, \"{key}\"", fields.what());
    let Some(mut own) = Fields::new(node, what, problems) else {
        return usual;
    };
    let side = share(&mut own, &usual, problems);
    own.finish(problems);
    side
}

/// The keys for versions of a field that is pulled.
struct VersionFields<'n> {
    versions: Option<&'n Node>,
    full: Option<&'n Node>,
}

impl VersionFields<'_> {
    /// Reports keys for versions of a field that is pushed.
    fn report_needless(&self, what: &str, problems: &mut Problems) {
        let mut given = [("versions", self.versions), ("full", self.full)].into_iter();
        let Some((key, node)) = given.find_map(|(key, node)| Some((key, node?))) else {
            return;
        };
        let why = "a field that is pushed is received once for each time it is sent: no versions of it are kept";
        let hint = "write mode: pull beside it, or take it out; how far a sender may be ahead is set under \"buffer\"";
        let what = format!("\"{key}\" has no use in {what}");
        problems.error_hint(node.at, Code::BadValue, what, why, hint.to_string());
    }

    fn read(&self, problems: &mut Problems) -> VersionCache {
        let versions = self
            .versions
            .and_then(|node| count(node, "\"versions\"", 1, MOST_VERSIONS, problems));
        let ways = [("evict", WhenFull::Evict), ("wait", WhenFull::Wait)];
        let full = self
            .full
            .and_then(|node| choice(node, "what is done when it is full", &ways, problems));
        VersionCache {
            versions: versions.unwrap_or(1) as u32,
            full: full.unwrap_or_default(),
        }
    }
}

/// Reads the steps and the region of one side; missing entries are as in `usual`.
fn share(fields: &mut Fields<'_>, usual: &PatternSide, problems: &mut Problems) -> PatternSide {
    let steps = steps(fields, &usual.steps, problems);
    let region = fields.take("region");
    PatternSide {
        steps,
        region: region
            .and_then(|node| bounds(node, problems))
            .or_else(|| usual.region.clone()),
    }
}

fn steps(fields: &mut Fields<'_>, usual: &Steps, problems: &mut Problems) -> Steps {
    let [from, until, every] = ["from", "until", "every"].map(|key| (key, fields.take(key)));
    let mut step = |(key, node): (&str, Option<&Node>)| {
        count(node?, &format!("\"{key}\""), 1, i64::MAX as u64, problems)
    };
    let steps = Steps {
        from: step(from).unwrap_or(usual.from),
        until: step(until).or(usual.until),
        every: step(every).unwrap_or(usual.every),
    };
    if let Some(last) = steps.until.filter(|until| *until < steps.from)
        && let Some(node) = until.1.or(from.1)
    {
        let what = format!("{} has no step", fields.what());
        let first = steps.from;
        let why = format!("\"until\" is {last}, and \"from\" is {first}; steps are counted from 1");
        problems.error(node.at, Code::BadValue, what, why);
    }
    steps
}

/// Reads a region, as `[[0, 0], [512, 1024]]`, lower bounds and upper bounds, or as `[0:512,
/// 0:1024]`. The upper bounds are not part of the region. `titin plot --schedule` reads both forms
/// too.
fn bounds(node: &Node, problems: &mut Problems) -> Option<(Vec<u64>, Vec<u64>)> {
    let slices = slices(node);
    let bounds = if slices.is_empty() {
        corners(node, problems)?
    } else {
        let bounds = slices
            .iter()
            .map(|item| interval(item, "the region", problems));
        bounds.collect::<Option<Vec<_>>>()?.into_iter().unzip()
    };
    box_of(node, bounds, problems)
}

/// The nodes of a region in the form of slices; none for another form.
fn slices(node: &Node) -> &[Node] {
    let is_slice =
        |node: &Node| matches!(node.kind(), NodeKind::Scalar(scalar) if scalar.text.contains(':'));
    let items = node.items();
    if items.iter().any(is_slice) {
        items
    } else {
        &[]
    }
}

/// The lower and the upper bounds of a region, each as a list.
fn corners(node: &Node, problems: &mut Problems) -> Option<(Vec<u64>, Vec<u64>)> {
    let NodeKind::List(pair) = node.kind() else {
        return no_region(node, problems);
    };
    let [lower, upper] = pair.as_slice() else {
        return no_region(node, problems);
    };
    let mut line = |node: &Node| {
        let NodeKind::List(bounds) = node.kind() else {
            return no_region(node, problems);
        };
        bounds
            .iter()
            .map(|bound| count(bound, "a bound", 0, i64::MAX as u64, problems))
            .collect::<Option<Vec<_>>>()
    };
    Some((line(lower)?, line(upper)?))
}

fn no_region<T>(node: &Node, problems: &mut Problems) -> Option<T> {
    let wanted = "a list of lower bounds and one of upper bounds, such as [[0, 0], [512, 1024]], or slices, as [0:512, 0:1024],";
    wrong_type(node, "the region", wanted, problems)
}

/// The bounds of a region that is not empty.
fn box_of(
    node: &Node,
    (lower, upper): (Vec<u64>, Vec<u64>),
    problems: &mut Problems,
) -> Option<(Vec<u64>, Vec<u64>)> {
    let empty = lower
        .iter()
        .zip(&upper)
        .any(|(lower, upper)| lower >= upper);
    if lower.len() != upper.len() || lower.is_empty() || lower.len() > 7 || empty {
        let why = format!(
            "it needs a lower and an upper bound for each of 1 to 7 dimensions, the upper one larger, as that does not \
             belong; found {lower:?} and {upper:?}"
        );
        problems.error(node.at, Code::BadValue, "the region is none", why);
        return None;
    }
    Some((lower, upper))
}

#[cfg(test)]
mod tests {
    use crate::pattern::{Steps, TransferMode, VersionCache, WhenFull};
    use crate::{Description, LoadOptions, load_texts};

    fn described(fields: &str) -> Result<Description, String> {
        joined("a.out: b.in", fields)
    }

    fn joined(conduit: &str, fields: &str) -> Result<Description, String> {
        let text = format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {{ports: {{o_i: out}}, implementation: p}}\n      \
             b: {{ports: {{s: in, f_init: first}}, implementation: p}}\n    conduits: {{{conduit}}}\n\
             programs: {{p: {{executable: p}}}}\ntitin:\n  fields: {fields}\n"
        );
        load_texts(&[("m.ymmsl", &text)], &LoadOptions::default())
            .map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_pattern_is_read_and_written_back() {
        let text = "{b.in: {from: 2, until: 1000, every: 4, region: [[0, 1], [8, 9]], receiver: {every: 1, from: 1}}}";
        let described = described(text).unwrap();
        let pattern = &described.extras.fields["b.in"].0;
        assert_eq!(pattern.mode, TransferMode::Push);
        assert_eq!(
            pattern.sender.steps,
            Steps {
                from: 2,
                until: Some(1000),
                every: 4
            }
        );
        assert_eq!(
            pattern.receiver.steps,
            Steps {
                from: 1,
                until: Some(1000),
                every: 1
            }
        );
        assert_eq!(pattern.receiver.region, Some((vec![0, 1], vec![8, 9])));
        let again = load_texts(
            &[("n.ymmsl", &described.to_ymmsl())],
            &LoadOptions::default(),
        )
        .unwrap();
        assert_eq!(again.extras.fields["b.in"].0, *pattern);
    }

    #[test]
    fn regions_are_written_by_bounds_or_as_slices() {
        let region = |text: &str| {
            described(&format!("{{b.in: {{region: {text}}}}}"))
                .unwrap()
                .extras
                .fields["b.in"]
                .0
                .sender
                .region
                .clone()
        };
        assert_eq!(region("[0:5, 1:30]"), region("[[0, 1], [5, 30]]"));
        assert_eq!(region("['0:5', 2]"), Some((vec![0, 2], vec![5, 3])));
        assert_eq!(region("3:5"), Some((vec![3], vec![5])));
        for (text, words) in [
            ("[0:5, 3:3]", "the upper one larger"),
            ("[0:5, b]", "indices are written as 2:8"),
            ("[0:5, :3]", "indices are written as 2:8"),
            ("[5:0]", "indices are written as 2:8"),
            ("[[], []]", "for each of 1 to 7 dimensions"),
            (
                "[0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1]",
                "for each of 1 to 7 dimensions",
            ),
        ] {
            let said = described(&format!("{{b.in: {{region: {text}}}}}")).expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn a_pulled_field_has_versions() {
        let pulled = described("{b.in: {mode: pull, versions: 4, full: wait}}").unwrap();
        let cache = VersionCache {
            versions: 4,
            full: WhenFull::Wait,
        };
        assert_eq!(
            pulled.extras.fields["b.in"].0.mode,
            TransferMode::Pull(cache)
        );
        let again =
            load_texts(&[("n.ymmsl", &pulled.to_ymmsl())], &LoadOptions::default()).unwrap();
        assert_eq!(
            again.extras.fields["b.in"].0.mode,
            TransferMode::Pull(cache)
        );
        let until = described("{b.in: {mode: pull, until: 5, region: [[0], [4]]}}").unwrap();
        let pattern = &until.extras.fields["b.in"].0;
        assert_eq!(pattern.sender.steps.until, Some(5));
        assert_eq!(
            (pattern.receiver.steps, &pattern.receiver.region),
            (Steps::default(), &pattern.sender.region)
        );
        let again = load_texts(&[("n.ymmsl", &until.to_ymmsl())], &LoadOptions::default()).unwrap();
        assert_eq!(again.extras.fields["b.in"].0, *pattern);
        let plain = described("{b.in: {mode: pull}}").unwrap();
        assert_eq!(
            plain.extras.fields["b.in"].0.mode,
            TransferMode::Pull(VersionCache::default())
        );
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (fields, words) in [
            ("{b.in: {from: 9, until: 3}}", "\"until\" is 3"),
            ("{b.in: {every: 0}}", "from 1 to"),
            ("{b.in: {versions: 2}}", "mode: pull"),
            ("{b.in: {mode: poll}}", "did you mean \"pull\"?"),
            ("{b.in: {region: [[0], [0]]}}", "the upper one larger"),
            ("{b.in: {region: [4]}}", "such as [[0, 0], [512, 1024]]"),
            ("{b.in: {evry: 2}}", "did you mean \"every\"?"),
            ("{b.inn: {every: 2}}", "did you mean \"b.in\"?"),
        ] {
            let said = described(fields).expect_err(fields);
            assert!(said.contains(words), "{fields}: {said}");
        }
    }

    #[test]
    fn what_cannot_be_coupled_so_is_told() {
        let other = "{b.in: {region: [[0], [4]], receiver: {region: [[2], [9]]}}}";
        for (conduit, fields, words) in [
            (
                "a.out: b.in",
                other,
                "the extents [4], that of the receiver [7]",
            ),
            (
                "a.out: zstd b.in",
                "{b.in: {every: 2}}",
                "which see no field",
            ),
            (
                "a.out: b.first",
                "{b.first: {mode: pull}}",
                "reuse() counts what has come",
            ),
            (
                "a.out: b.first",
                "{b.first: {every: 2}}",
                "give the steps under \"sender\"",
            ),
        ] {
            let said = joined(conduit, fields).expect_err(fields);
            assert!(said.contains(words), "{fields}: {said}");
        }
        assert!(joined("a.out: b.first", "{b.first: {sender: {every: 2}}}").is_ok());
    }

    #[test]
    fn who_is_used_at_some_steps_answers_at_those() {
        let model = |fields: &str| {
            let text = format!(
                "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {{ports: {{o_i: out, s: back}}, implementation: p}}\n      \
                 b: {{ports: {{f_init: in, o_f: back}}, implementation: p}}\n    conduits: {{a.out: b.in, b.back: a.back}}\n\
                 programs: {{p: {{executable: p}}}}\ntitin:\n  fields: {fields}\n"
            );
            load_texts(&[("m.ymmsl", &text)], &LoadOptions::default())
                .map_err(|problems| problems.to_string())
        };
        let said = model("{b.in: {sender: {every: 2}}}").unwrap_err();
        assert!(
            said.contains("\"b\" is used at some steps of \"a\" alone, as \"b.in\" has it"),
            "{said}"
        );
        assert!(
            said.contains("`a.back: {receiver: {...}}`") && !said.contains("once per run"),
            "{said}"
        );
        model("{b.in: {sender: {every: 2}}, a.back: {receiver: {every: 2}}}").unwrap();

        // As one of two callers.
        let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {ports: {o_i: out, s: back}, implementation: p}\n      \
                    c: {ports: {o_i: out, s: back}, implementation: p}\n      \
                    b: {ports: {f_init: [in, other], o_f: [back, again]}, implementation: p}\n    \
                    conduits: {a.out: b.in, b.back: a.back, c.out: b.other, b.again: c.back}\n    matching_timelines: {a: [c]}\n\
                    programs: {p: {executable: p}}\ntitin:\n  fields: {b.in: {sender: {every: 2}}, b.other: {sender: {every: 2}}}\n";
        let said = load_texts(&[("m.ymmsl", text)], &LoadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("some steps of \"a\" alone")
                && said.contains("some steps of \"c\" alone"),
            "{said}"
        );
    }
}
