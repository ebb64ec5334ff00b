//! Reads YAML into a small tree in which every key and value has its position.
//! Scalars follow the rules of the `ymmsl` package: `yes` is a string, `1e3` a float. Depth, size
//! and aliases are limited, so that no text needs more memory than a small multiple of its length,
//! or overflows the stack.

mod hint;
mod scalar;

use std::collections::HashMap;
use std::collections::hash_map::{Entry as HashEntry, RandomState};
use std::hash::BuildHasher;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::problem::{Code, Problems, TextPosition};

pub(crate) use hint::with_colon;
pub(crate) use scalar::plain_type;
use scalar::scalar_type;

/// The longest file, in bytes.
pub(crate) const LONGEST_FILE: usize = 64 << 20;
/// The deepest nesting.
const DEEPEST: usize = 64;
/// The most nodes of one file, aliases written out.
const MOST_NODES: usize = 8_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: TextPosition,
    pub kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<MapEntry>),
    /// An alias. The node is shared, so an alias costs nothing.
    Alias(Rc<Node>),
}

#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub text: String,
    pub of: ScalarType,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScalarType {
    Null,
    Bool(bool),
    Int(i64),
    /// A number that does not fit (`1e400`), or that YAML readers interpret differently (`012`,
    /// `1:30`).
    OddNumber,
    Float(f64),
    Text,
}

#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    pub key: String,
    pub at: TextPosition,
    pub value: Node,
}

impl Node {
    /// The kind of the node, or of the target of an alias.
    pub fn kind(&self) -> &NodeKind {
        match &self.kind {
            NodeKind::Alias(node) => node.kind(),
            kind => kind,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(
            self.kind(),
            NodeKind::Scalar(Scalar {
                of: ScalarType::Null,
                ..
            })
        )
    }

    /// The items of a list; a node of another kind counts as a list with one item.
    pub fn items(&self) -> &[Node] {
        match self.kind() {
            NodeKind::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The node in words, for "expected a list, found ...".
    pub fn describe(&self) -> String {
        match self.kind() {
            NodeKind::List(_) => "a list".into(),
            NodeKind::Map(_) => "a mapping".into(),
            NodeKind::Scalar(Scalar {
                of: ScalarType::Null,
                ..
            }) => "nothing".into(),
            NodeKind::Scalar(Scalar {
                of: ScalarType::Bool(b),
                ..
            }) => format!("the truth value {b}"),
            NodeKind::Scalar(Scalar {
                of: ScalarType::Text,
                text,
            }) => format!("the text \"{}\"", shorten(text)),
            NodeKind::Scalar(Scalar { text, .. }) => format!("the number {}", shorten(text)),
            NodeKind::Alias(_) => "an alias".into(),
        }
    }
}

/// A text shortened to fit in a message.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.len() < text.len() {
        format!("{line}...")
    } else {
        line
    }
}

/// Reads one document. Reports a text that is not YAML and returns nothing.
pub(crate) fn parse(text: &str, file: TextPosition, problems: &mut Problems) -> Option<Node> {
    if text.len() > LONGEST_FILE {
        let length = text.len();
        let why = format!("it has {length} bytes; at most {LONGEST_FILE} are read");
        problems.error(file, Code::Limit, "the file is too long", why);
        return None;
    }
    let mut options =
        granit_parser::options! { flow_nesting_limit: DEEPEST, block_nesting_limit: DEEPEST };
    options.set_emit_comments(false);
    let mut builder = TreeBuilder::new(file, problems);
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                builder.report_error(&error, text);
                return None;
            }
        };
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
            if documents > 1 {
                builder.report_second_document(&span);
                return builder.root;
            }
        }
        builder.event(event, &span)?;
    }
    builder.root
}

/// A collection that is not closed yet.
struct OpenCollection {
    at: TextPosition,
    anchor: usize,
    extent: Extent,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<Node>),
    /// The key that waits for its value; without a text if the node cannot be a key.
    Map {
        entries: Vec<MapEntry>,
        key: Option<(Option<String>, TextPosition)>,
        /// The index of each entry by the hash of the key, or by the next number if another key has
        /// the same hash.
        seen: HashMap<u64, u32>,
    },
}

/// The size of a node with aliases written out.
#[derive(Clone, Copy)]
struct Extent {
    nodes: usize,
    depth: usize,
}

struct TreeBuilder<'a> {
    file: TextPosition,
    problems: &'a mut Problems,
    /// The number of nodes so far.
    nodes: usize,
    hash: RandomState,
    anchors: HashMap<usize, (Rc<Node>, Extent)>,
    stack: Vec<OpenCollection>,
    root: Option<Node>,
}

impl<'a> TreeBuilder<'a> {
    fn new(file: TextPosition, problems: &'a mut Problems) -> Self {
        TreeBuilder {
            file,
            problems,
            nodes: 0,
            hash: RandomState::new(),
            anchors: HashMap::new(),
            stack: Vec::new(),
            root: None,
        }
    }

    fn place(&self, span: &Span) -> TextPosition {
        TextPosition {
            line: span.start.line() as u32,
            column: span.start.col() as u32 + 1,
            ..self.file
        }
    }

    fn report_error(&mut self, error: &ScanError, text: &str) {
        let mark = error.marker();
        let at = TextPosition {
            line: mark.line() as u32,
            column: mark.col() as u32 + 1,
            ..self.file
        };
        let lines: Vec<&str> = text.lines().take(mark.line()).collect();
        if let Some((line, hint)) = hint::entry_without_colon(&lines) {
            return self.report_no_entry(line, lines[line as usize - 1], hint);
        }
        let (what, hint) = ("this is not YAML", hint::indentation(&lines));
        let problems = &mut self.problems;
        problems.error_hint(at, Code::Yaml, what, error.info(), hint);
    }

    fn report_no_entry(&mut self, line: u32, text: &str, hint: String) {
        let at = TextPosition {
            line,
            column: hint::indent(text) as u32 + 1,
            ..self.file
        };
        let what = "this line is no entry";
        let why = "it stands among entries, each of which is a key, a colon, a blank and a value";
        self.problems.error_hint(at, Code::Yaml, what, why, hint);
    }

    fn report_second_document(&mut self, span: &Span) {
        let what = "more than one document";
        let why = "a description is one YAML document; a second one begins here with \"---\"";
        self.problems.error(self.place(span), Code::Yaml, what, why);
    }

    /// Adds an event of the parser to the tree; `None` ends the reading.
    fn event(&mut self, event: Event<'_>, span: &Span) -> Option<()> {
        let at = self.place(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_ref().and_then(|t| t.core_suffix());
                let of = scalar_type(&text, style == ScalarStyle::Plain, tag);
                let node = Node {
                    at,
                    kind: NodeKind::Scalar(Scalar {
                        text: text.into_owned(),
                        of,
                    }),
                };
                self.add(node, anchor, Extent { nodes: 1, depth: 0 })
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(at, anchor, OpenContent::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => self.open(
                at,
                anchor,
                OpenContent::Map {
                    entries: Vec::new(),
                    key: None,
                    seen: HashMap::new(),
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.add_alias(at, id),
            _ => Some(()),
        }
    }

    /// Adds the list or map that ends here.
    fn close(&mut self) -> Option<()> {
        let open = self.stack.pop()?;
        let kind = match open.content {
            OpenContent::List(items) => NodeKind::List(items),
            OpenContent::Map { entries, .. } => NodeKind::Map(entries),
        };
        self.add(Node { at: open.at, kind }, open.anchor, open.extent)
    }

    fn add_alias(&mut self, at: TextPosition, id: usize) -> Option<()> {
        let Some((node, extent)) = self.anchors.get(&id).cloned() else {
            let what = "this alias cannot be followed";
            let why = "the value that it stands for contains it, or is not there";
            self.problems.error(at, Code::Yaml, what, why);
            return None;
        };
        self.nodes = self.nodes.saturating_add(extent.nodes);
        let kind = NodeKind::Alias(node);
        self.add(Node { at, kind }, 0, extent)
    }

    fn open(&mut self, at: TextPosition, anchor: usize, content: OpenContent) -> Option<()> {
        self.stack.push(OpenCollection {
            at,
            anchor,
            extent: Extent { nodes: 1, depth: 1 },
            content,
        });
        Some(())
    }

    fn add(&mut self, mut node: Node, anchor: usize, extent: Extent) -> Option<()> {
        self.check_limits(node.at, extent)?;
        if anchor > 0 {
            let (at, shared) = (node.at, Rc::new(node));
            self.anchors.insert(anchor, (shared.clone(), extent));
            node = Node {
                at,
                kind: NodeKind::Alias(shared),
            };
        }
        let Some(parent) = self.stack.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        parent.extent.nodes = parent.extent.nodes.saturating_add(extent.nodes);
        parent.extent.depth = parent.extent.depth.max(extent.depth + 1);
        match &mut parent.content {
            OpenContent::List(items) => items.push(node),
            OpenContent::Map { entries, key, seen } => match key.take() {
                None => *key = Some((key_text(&node, self.problems), node.at)),
                Some((None, _)) => {}
                Some((Some(key), at)) => {
                    match find(seen, entries, self.hash.hash_one(&key), &key) {
                        Some(first) => given_twice(&key, at, first, self.problems),
                        None => entries.push(MapEntry {
                            key,
                            at,
                            value: node,
                        }),
                    }
                }
            },
        }
        Some(())
    }

    /// Counts a node. `None`, with an error, if the document is too large.
    fn check_limits(&mut self, at: TextPosition, extent: Extent) -> Option<()> {
        self.nodes = self.nodes.saturating_add(1);
        let why = if self.nodes > MOST_NODES {
            format!("with its aliases written out it has more than {MOST_NODES} values")
        } else if self.stack.len() + extent.depth > DEEPEST {
            format!("it is nested more than {DEEPEST} deep")
        } else {
            return Some(());
        };
        let what = "this is too large to be a description";
        self.problems.error(at, Code::Limit, what, why);
        None
    }
}

/// The text of a key; `None`, with an error, if the node cannot be a key.
fn key_text(node: &Node, problems: &mut Problems) -> Option<String> {
    if let NodeKind::Scalar(scalar) = node.kind() {
        return Some(scalar.text.clone());
    }
    let why = format!("a key is a name; found {}", node.describe());
    problems.error(node.at, Code::WrongType, "this cannot be a key", why);
    None
}

fn given_twice(key: &str, at: TextPosition, first: TextPosition, problems: &mut Problems) {
    let why = format!(
        "it was given before, in line {}; only one can count",
        first.line
    );
    let what = format!("\"{}\" is given twice", shorten(key));
    problems.error(at, Code::Duplicate, what, why);
}

/// The position at which a key was given before. A new key is noted as the key of the next entry.
fn find(
    seen: &mut HashMap<u64, u32>,
    entries: &[MapEntry],
    mut hash: u64,
    key: &str,
) -> Option<TextPosition> {
    loop {
        match seen.entry(hash) {
            HashEntry::Vacant(place) => {
                place.insert(entries.len() as u32);
                return None;
            }
            HashEntry::Occupied(place) => {
                let entry = &entries[*place.get() as usize];
                if entry.key == key {
                    return Some(entry.at);
                }
                hash = hash.wrapping_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Node>, crate::ProblemReport) {
        let mut problems = Problems::default();
        let file = problems.add_file("t".into());
        let node = parse(text, file, &mut problems);
        (node, problems.into_report())
    }

    #[test]
    fn scalars_mean_what_they_mean_to_the_ymmsl_package() {
        for (text, of) in [
            ("yes", ScalarType::Text),
            ("on", ScalarType::Text),
            ("TRUE", ScalarType::Bool(true)),
            ("1e3", ScalarType::Float(1000.0)),
            ("1.e3", ScalarType::Float(1000.0)),
            (".5", ScalarType::Float(0.5)),
            ("5.", ScalarType::Float(5.0)),
            ("0o17", ScalarType::Text),
            ("0x1F", ScalarType::Int(31)),
            ("1_000", ScalarType::Int(1000)),
            ("-7", ScalarType::Int(-7)),
            ("+1", ScalarType::Int(1)),
            ("012", ScalarType::OddNumber),
            ("1:30", ScalarType::OddNumber),
            ("99999999999999999999", ScalarType::OddNumber),
            ("1e400", ScalarType::OddNumber),
            ("-1e400", ScalarType::OddNumber),
            ("-.inf", ScalarType::Float(f64::NEG_INFINITY)),
            ("10 ms", ScalarType::Text),
            ("1.2.3", ScalarType::Text),
            ("2026-01-01", ScalarType::Text),
            (".", ScalarType::Text),
            ("~", ScalarType::Null),
        ] {
            assert_eq!(scalar_type(text, true, None), of, "{text}");
        }
        assert_eq!(scalar_type("5", false, None), ScalarType::Text);
        assert_eq!(scalar_type("5", true, Some("str")), ScalarType::Text);
        assert_eq!(scalar_type("5", false, Some("int")), ScalarType::Int(5));
    }

    #[test]
    fn places_count_from_one() {
        let (node, _) = read("a:\n  bb: 1\n");
        let node = node.unwrap();
        let NodeKind::Map(entries) = node.kind() else {
            panic!()
        };
        let NodeKind::Map(inner) = entries[0].value.kind() else {
            panic!()
        };
        assert_eq!((inner[0].at.line, inner[0].at.column), (2, 3));
        assert_eq!((inner[0].value.at.line, inner[0].value.at.column), (2, 7));
    }

    #[test]
    fn duplicate_keys_tabs_and_second_documents_are_told_with_their_line() {
        assert!(
            read("a: 1\nb: 2\na: 3\n")
                .1
                .to_string()
                .contains("t:3:1: error: \"a\" is given twice")
        );
        assert!(
            read("a:\n\tb: 1\n")
                .1
                .to_string()
                .contains("indent with spaces")
        );
        assert!(
            read("a: 1\n---\nb: 1\n")
                .1
                .to_string()
                .contains("t:2:1: error: more than one document")
        );
    }

    #[test]
    fn alias_bombs_and_deep_nesting_end_at_a_limit() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for i in 1..12 {
            let inner = vec![format!("*a{}", i - 1); 9].join(",");
            bomb += &format!("a{i}: &a{i} [{inner}]\n");
        }
        let report = read(&bomb).1.to_string();
        assert!(report.contains("too large"), "{report}");
        let mut chain = String::from("a0: &a0 [x]\n");
        for i in 1..200 {
            chain += &format!("a{i}: &a{i} [*a{}]\n", i - 1);
        }
        assert!(read(&chain).1.to_string().contains("nested more than"));
        assert!(!read(&"[".repeat(100_000)).1.is_ok());
        assert!(!read(&"- ".repeat(100_000)).1.is_ok());
        assert!(!read("a: &a [*a]\n").1.is_ok());
    }
}
