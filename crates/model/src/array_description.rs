//! The two arrays of a coupling in YAML: their spread over ranks, before a program declares them.
//!
//! ```yaml
//! from: {shape: [8, 12], grid: [4, 1], halo: 1}
//! to: {grid: [2, 2], spread: [even, cyclic(2)]}
//! dtype: float64
//! ```
//!
//! The keys are the words of the calls that declare fields. Whether the numbers make a valid
//! decomposition is checked where the decomposition is made.

use std::path::{Path, PathBuf};

use titin_element::Dtype;

use crate::problem::{Code, ProblemReport, Problems, TextPosition};
use crate::read::{Fields, LARGEST_INDEX, choice, count, interval, text, wrong_type};
use crate::source::file_text;
use crate::yaml::{self, Node, NodeKind};

/// Indices from the first to the one after the last.
pub type Bounds = (u64, u64);

const MOST_PROCESSES: u64 = u32::MAX as u64;

const EXAMPLE: &str = "for example: 'from: {shape: [8, 12], grid: [4, 1]}' 'to: {grid: [2, 2]}'";

/// Two arrays that are coupled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoupledArrays {
    /// The array of the sender.
    pub from: ArrayDescription,
    /// The array of the receiver.
    pub to: ArrayDescription,
    /// The element types of the arrays that travel together.
    pub dtypes: Vec<Dtype>,
}

/// One of the two arrays of a coupling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayDescription {
    /// The extents of the whole array, if they are given.
    pub shape: Option<Vec<u64>>,
    /// The decomposition: the part of each rank.
    pub owned: DecompositionDescription,
    /// The coupled region; `None` for the whole array.
    pub region: Option<Vec<Bounds>>,
    /// The widths of the halo, below and above: one pair for all dimensions, one pair for each, or
    /// none.
    pub halo: Vec<(u64, u64)>,
    /// Whether the elements are in Fortran order.
    pub fortran: bool,
}

/// A decomposition: the part of the array that each rank owns.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DecompositionDescription {
    /// One rank owns the whole array.
    #[default]
    Whole,
    /// A grid of processes.
    Grid {
        /// The number of processes along each dimension.
        processes: Vec<u32>,
        /// The spread of each dimension over the processes: one for all dimensions, one for each,
        /// or none.
        spread: Vec<SpreadDescription>,
        /// Whether ranks count through the grid with the first dimension fastest.
        fortran: bool,
    },
    /// The boxes of each rank.
    Boxes(Vec<Vec<Vec<Bounds>>>),
    /// The indices of each rank's elements.
    Indices(Vec<Vec<Bounds>>),
}

/// How a dimension is spread over the processes along it.
#[derive(Clone, Debug, PartialEq)]
pub enum SpreadDescription {
    /// The sizes of two blocks differ by one at most.
    Even,
    /// Blocks of ceil(n/p) elements.
    Block,
    /// Blocks of this size, dealt out in turn.
    Cyclic(u64),
    /// The bounds of the blocks.
    Bounds(Vec<u64>),
}

/// Reads two sides from files; each file has one side or both. An argument that names no file and
/// has a colon is read as YAML.
/// # Errors
/// All problems, in one report.
pub fn read(given: &[PathBuf]) -> Result<CoupledArrays, ProblemReport> {
    let mut problems = Problems::default();
    let mut read = PartialPair::default();
    for (number, path) in (1..).zip(given) {
        read_argument(path, number, &mut read, &mut problems);
    }
    let arrays = read.complete();
    if arrays.is_none() && problems.errors() == 0 {
        let hint = EXAMPLE.to_string();
        let why =
            "a schedule is drawn between \"from\", the sender's side, and \"to\", the receiver's";
        let at = TextPosition::default();
        problems.error_hint(at, Code::MissingKey, "a side is missing", why, hint);
    }
    arrays
        .filter(|_| problems.errors() == 0)
        .ok_or_else(|| problems.into_report())
}

/// The parts of an [`CoupledArrays`] that the arguments read so far have given.
#[derive(Default)]
struct PartialPair {
    from: Option<ArrayDescription>,
    to: Option<ArrayDescription>,
    dtypes: Option<Vec<Dtype>>,
}

impl PartialPair {
    fn complete(self) -> Option<CoupledArrays> {
        Some(CoupledArrays {
            from: self.from?,
            to: self.to?,
            dtypes: self.dtypes.unwrap_or_else(|| vec![Dtype::Float64]),
        })
    }
}

/// Reads one argument, a file or YAML, into `read`.
fn read_argument(path: &Path, number: usize, read: &mut PartialPair, problems: &mut Problems) {
    let Some(root) = root(path, number, problems) else {
        return;
    };
    let Some(mut fields) = Fields::new(&root, "an exchange", problems) else {
        return;
    };
    if fields.take("ymmsl_version").is_some() {
        report_description(root.at, problems);
        return;
    }
    for (key, kept) in [("from", &mut read.from), ("to", &mut read.to)] {
        if let Some(node) = once(&mut fields, key, kept.is_some(), problems) {
            *kept = side(node, key, problems);
        }
    }
    if let Some(node) = once(&mut fields, "dtype", read.dtypes.is_some(), problems) {
        let dtypes = node.items().iter().filter_map(|item| dtype(item, problems));
        read.dtypes = Some(dtypes.collect());
    }
    fields.finish(problems);
}

/// Reports a file that describes a model, and no arrays.
fn report_description(at: TextPosition, problems: &mut Problems) {
    let why = "how arrays are spread over ranks is said by the programs, not by a description";
    let hint = format!("give the directory of a run, or two sides, {EXAMPLE}");
    problems.error_hint(at, Code::WrongType, "this is a description", why, hint);
}

/// The YAML tree of an argument.
fn root(path: &Path, number: usize, problems: &mut Problems) -> Option<Node> {
    let written = path
        .to_str()
        .filter(|text| text.contains(':') && !path.exists());
    let name = match written {
        Some(_) => format!("argument {number}"),
        None => path.display().to_string(),
    };
    let file = problems.add_file(name);
    let text = match written {
        Some(text) => text.to_owned(),
        None => file_text(path, file, problems)?,
    };
    yaml::parse(&text, file, problems)
}

/// The value of a key that only one argument may give.
fn once<'n>(
    fields: &mut Fields<'n>,
    key: &'static str,
    known: bool,
    problems: &mut Problems,
) -> Option<&'n Node> {
    let node = fields.take(key)?;
    if known {
        let what = format!("\"{key}\" is given twice");
        let why = "an argument before this one has it, and only one can count";
        problems.error(node.at, Code::Duplicate, what, why);
        return None;
    }
    Some(node)
}

fn side(node: &Node, which: &str, problems: &mut Problems) -> Option<ArrayDescription> {
    let before = problems.errors();
    let mut fields = Fields::new(node, format!("the side \"{which}\""), problems)?;
    let shape = fields
        .take("shape")
        .map(|node| numbers(node, "an extent", 0, LARGEST_INDEX, problems));
    let decomposition = DecompositionFields::take(&mut fields, problems);
    let region = fields
        .take("region")
        .map(|node| bounds(node, "a region", problems));
    let halo = fields.take("halo").map(|node| widths(node, problems));
    let fortran = order(&mut fields, "order", "the order of elements", problems);
    fields.finish(problems);

    decomposition.check(node, which, problems);
    let owned = decomposition.read(problems);
    (problems.errors() == before).then_some(ArrayDescription {
        shape,
        owned,
        region,
        halo: halo.unwrap_or_default(),
        fortran: fortran.unwrap_or(false),
    })
}

/// Whether an order is Fortran's.
fn order(
    fields: &mut Fields<'_>,
    key: &'static str,
    what: &str,
    problems: &mut Problems,
) -> Option<bool> {
    choice(
        fields.take(key)?,
        what,
        &[("c", false), ("f", true)],
        problems,
    )
}

/// The keys that give the part of each rank.
struct DecompositionFields<'n> {
    grid: Option<Vec<u64>>,
    spread: Option<&'n Node>,
    fortran_ranks: Option<bool>,
    boxes: Option<&'n Node>,
    indices: Option<&'n Node>,
}

impl<'n> DecompositionFields<'n> {
    fn take(fields: &mut Fields<'n>, problems: &mut Problems) -> Self {
        let grid = fields.take("grid");
        DecompositionFields {
            grid: grid
                .map(|node| numbers(node, "a number of processes", 1, MOST_PROCESSES, problems)),
            spread: fields.take("spread"),
            fortran_ranks: order(fields, "ranks", "the order of ranks", problems),
            boxes: fields.take("boxes"),
            indices: fields.take("indices"),
        }
    }

    /// Reports keys that contradict each other, or that need another key.
    fn check(&self, node: &Node, which: &str, problems: &mut Problems) {
        let given = [
            self.grid.is_some(),
            self.boxes.is_some(),
            self.indices.is_some(),
        ];
        if given.iter().filter(|given| **given).count() > 1 {
            let why =
                "the parts of the ranks are given by one of \"grid\", \"boxes\" and \"indices\"";
            let what = format!("\"{which}\" says twice who owns what");
            problems.error(node.at, Code::Duplicate, what, why);
        }
        if self.grid.is_none() && (self.spread.is_some() || self.fortran_ranks.is_some()) {
            let why = "\"spread\" and \"ranks\" are about a grid of processes";
            let what = format!("\"{which}\" has no \"grid\"");
            problems.error(node.at, Code::MissingKey, what, why);
        }
    }

    fn read(self, problems: &mut Problems) -> DecompositionDescription {
        match (self.grid, self.boxes, self.indices) {
            (Some(processes), ..) => DecompositionDescription::Grid {
                processes: processes.into_iter().map(|count| count as u32).collect(),
                spread: self
                    .spread
                    .map_or_else(Vec::new, |node| spreads(node, problems)),
                fortran: self.fortran_ranks.unwrap_or(false),
            },
            (_, Some(node), _) => {
                DecompositionDescription::Boxes(each_rank(node, "boxes", problems, boxes))
            }
            (_, _, Some(node)) => {
                DecompositionDescription::Indices(each_rank(node, "indices", problems, indices))
            }
            _ => DecompositionDescription::Whole,
        }
    }
}

/// The boxes of one rank: a list of boxes, or one box.
fn boxes(node: &Node, problems: &mut Problems) -> Vec<Vec<Bounds>> {
    let first = node.items().first();
    let of_slices = first.is_some_and(|first| matches!(first.kind(), NodeKind::Scalar(_)));
    let boxes = match of_slices || corners(node).is_some() {
        true => std::slice::from_ref(node),
        false => node.items(),
    };
    boxes
        .iter()
        .map(|node| bounds(node, "a box", problems))
        .collect()
}

/// The indices of one rank's elements.
fn indices(node: &Node, problems: &mut Problems) -> Vec<Bounds> {
    intervals(node, "an index", problems)
}

fn numbers(node: &Node, what: &str, least: u64, most: u64, problems: &mut Problems) -> Vec<u64> {
    node.items()
        .iter()
        .filter_map(|item| count(item, what, least, most, problems))
        .collect()
}

/// Reads a list with one item for each rank.
fn each_rank<T>(
    node: &Node,
    what: &str,
    problems: &mut Problems,
    mut read: impl FnMut(&Node, &mut Problems) -> T,
) -> Vec<T> {
    match node.kind() {
        NodeKind::List(ranks) => ranks.iter().map(|rank| read(rank, problems)).collect(),
        _ => wrong_type(node, what, "a list with an item for each rank", problems)
            .unwrap_or_default(),
    }
}

/// `[0:4, 2:8]` as Python writes slices, without the upper bounds; or the lower and the upper
/// bounds, `[[0, 2], [4, 8]]`.
fn bounds(node: &Node, what: &str, problems: &mut Problems) -> Vec<Bounds> {
    let Some(corners) = corners(node) else {
        return intervals(node, what, problems);
    };
    let [lower, upper] = corners.map(|corner| numbers(corner, what, 0, LARGEST_INDEX, problems));
    let mut pairs = lower.iter().zip(&upper);
    if lower.len() != upper.len() || pairs.any(|(lower, upper)| lower > upper) {
        let what = format!("{what} cannot be read");
        let why =
            format!("each upper bound is at its lower one or above; found {lower:?} and {upper:?}");
        problems.error(node.at, Code::BadValue, what, why);
        return Vec::new();
    }
    lower.into_iter().zip(upper).collect()
}

fn intervals(node: &Node, what: &str, problems: &mut Problems) -> Vec<Bounds> {
    node.items()
        .iter()
        .filter_map(|item| interval(item, what, problems))
        .collect()
}

/// The two lists of numbers, lower and upper bounds, that describe a box.
fn corners(node: &Node) -> Option<[&Node; 2]> {
    let is_number =
        |node: &Node| matches!(node.kind(), NodeKind::Scalar(scalar) if !scalar.text.contains(':'));
    let is_corner =
        |node: &Node| matches!(node.kind(), NodeKind::List(bounds) if bounds.iter().all(is_number));
    match node.items() {
        [lower, upper] if is_corner(lower) && is_corner(upper) => Some([lower, upper]),
        _ => None,
    }
}

/// `1`, `[1, 0]` or `[[1, 2], [0, 0]]`.
fn widths(node: &Node, problems: &mut Problems) -> Vec<(u64, u64)> {
    node.items()
        .iter()
        .filter_map(|item| width(item, problems))
        .collect()
}

fn width(node: &Node, problems: &mut Problems) -> Option<(u64, u64)> {
    let what = "the width of a halo";
    match numbers(node, what, 0, LARGEST_INDEX, problems)[..] {
        [both] => Some((both, both)),
        [below, above] => Some((below, above)),
        _ => {
            let wanted = "a number, or one below and one above";
            wrong_type(node, what, wanted, problems)
        }
    }
}

fn spreads(node: &Node, problems: &mut Problems) -> Vec<SpreadDescription> {
    node.items()
        .iter()
        .filter_map(|item| spread(item, problems))
        .collect()
}

fn spread(node: &Node, problems: &mut Problems) -> Option<SpreadDescription> {
    if let NodeKind::List(_) = node.kind() {
        let bounds = numbers(node, "a bound of a block", 0, LARGEST_INDEX, problems);
        return Some(SpreadDescription::Bounds(bounds));
    }
    let written = text(node, "a way to spread a dimension", problems)?;
    match (&*written, cyclic_block(&written)) {
        ("even", _) => Some(SpreadDescription::Even),
        ("block", _) => Some(SpreadDescription::Block),
        (_, Some(block)) => Some(SpreadDescription::Cyclic(block)),
        _ => {
            let why = format!("found {}", node.describe());
            let hint = "\"even\", \"block\", \"cyclic(b)\" with blocks of b, or a list of bounds";
            let what = "there is no such way to spread a dimension";
            problems.error_hint(node.at, Code::BadValue, what, why, hint.to_string());
            None
        }
    }
}

/// The size of the blocks in `cyclic(3)`.
fn cyclic_block(written: &str) -> Option<u64> {
    let block = written.strip_prefix("cyclic(")?.strip_suffix(')')?;
    let block = block.trim().parse().ok()?;
    (1..=LARGEST_INDEX).contains(&block).then_some(block)
}

fn dtype(node: &Node, problems: &mut Problems) -> Option<Dtype> {
    let names: Vec<(&str, Dtype)> = Dtype::ALL.map(|dtype| (dtype.name(), dtype)).to_vec();
    choice(node, "an element type", &names, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(texts: &[&str]) -> Result<CoupledArrays, ProblemReport> {
        read(&texts.iter().map(PathBuf::from).collect::<Vec<_>>())
    }

    fn refused(texts: &[&str]) -> String {
        sides(texts).unwrap_err().to_string()
    }

    #[test]
    fn both_sides_are_read_from_one_text_or_two() {
        let two = sides(&[
            "from: {shape: [8, 12], grid: [4, 1], halo: 1}",
            "to: {grid: [2, 2]}",
        ])
        .unwrap();
        assert_eq!(two.from.shape.as_deref(), Some(&[8, 12][..]));
        assert_eq!(
            (&two.from.halo[..], &two.dtypes[..]),
            (&[(1, 1)][..], &[Dtype::Float64][..])
        );
        let DecompositionDescription::Grid {
            processes,
            spread,
            fortran,
        } = &two.to.owned
        else {
            panic!("{two:?}")
        };
        assert_eq!(
            (&processes[..], &spread[..], *fortran),
            (&[2, 2][..], &[][..], false)
        );
        assert_eq!(
            sides(&["from: {shape: [8, 12], grid: [4, 1], halo: [1, 1]}\nto: {grid: [2, 2]}"])
                .unwrap()
                .to,
            two.to
        );
        let serial = sides(&["from: {shape: 8}\nto:\n  {}\ndtype: [float32, int8]"]).unwrap();
        assert_eq!(serial.to, ArrayDescription::default());
        assert_eq!(serial.dtypes, [Dtype::Float32, Dtype::Int8]);
    }

    #[test]
    fn every_way_to_own_is_read() {
        let side = |text: &str| sides(&[&format!("from: {text}"), "to: {}"]).unwrap().from;
        let grid = side(
            "{shape: [9, 9, 9], grid: [2, 2, 1], spread: [cyclic(3), [0, 4, 9], block], ranks: F, order: F}",
        );
        let spread = vec![
            SpreadDescription::Cyclic(3),
            SpreadDescription::Bounds(vec![0, 4, 9]),
            SpreadDescription::Block,
        ];
        assert_eq!(
            grid.owned,
            DecompositionDescription::Grid {
                processes: vec![2, 2, 1],
                spread,
                fortran: true
            }
        );
        assert!(grid.fortran);
        let boxes = side(
            "{shape: [4, 4], boxes: [[0:4, 0:2], [[0:2, 2:4], [2:4, 2:4]], []], region: [1:3, 0:4]}",
        );
        let one = |a, b| vec![a, b];
        let parts = vec![
            vec![one((0, 4), (0, 2))],
            vec![one((0, 2), (2, 4)), one((2, 4), (2, 4))],
            vec![],
        ];
        assert_eq!(boxes.owned, DecompositionDescription::Boxes(parts));
        assert_eq!(boxes.region, Some(one((1, 3), (0, 4))));
        // As in a description.
        let same = side(
            "{shape: [4, 4], boxes: [[[0, 0], [4, 2]], [[[0, 2], [2, 4]], [[2, 2], [4, 4]]], []], region: [[1, 0], [3, 4]]}",
        );
        assert_eq!(same, boxes);
        let line = side("{shape: 8, boxes: [0:3, [3:5, 7:8], [[5], [7]]], region: 1:8}");
        let ranks = vec![
            vec![vec![(0, 3)]],
            vec![vec![(3, 5), (7, 8)]],
            vec![vec![(5, 7)]],
        ];
        assert_eq!(
            (line.owned, line.region),
            (DecompositionDescription::Boxes(ranks), Some(vec![(1, 8)]))
        );
        let indices = side("{shape: 8, indices: [[0, 4:6], [1:4, 6, 7]], halo: [[0, 2]]}");
        assert_eq!(
            indices.owned,
            DecompositionDescription::Indices(vec![
                vec![(0, 1), (4, 6)],
                vec![(1, 4), (6, 7), (7, 8)]
            ])
        );
        assert_eq!(indices.halo, [(0, 2)]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let text = refused(&[
            "from: {shape: [8], grid: [2], spreads: even}",
            "to: {grid: [x]}",
        ]);
        assert!(
            text.contains("argument 1:1:31: error: unknown key \"spreads\""),
            "{text}"
        );
        assert!(
            text.contains("did you mean \"spread\"?") && text.contains("argument 2:1:13: error:"),
            "{text}"
        );
        assert!(refused(&["from: {grid: [2]}"]).contains("a side is missing"));
        assert!(refused(&["from: {grid: [2], boxes: []}"]).contains("says twice who owns what"));
        assert!(refused(&["from: {spread: even}"]).contains("has no \"grid\""));
        assert!(refused(&["from: {grid: 2, spread: cyclic}"]).contains("cyclic(b)"));
        assert!(refused(&["from: {}\nto: {}", "from: {}"]).contains("\"from\" is given twice"));
        assert!(refused(&["from: {region: [[4], [2, 3]]}"]).contains("found [4] and [2, 3]"));
        assert!(refused(&["from: {region: [4:2]}"]).contains("written as 2:8"));
        assert!(
            refused(&["from: {}\nto: {}\ndtype: flaot64"]).contains("did you mean \"float64\"?")
        );
        assert!(
            refused(&["/no/such/file"]).contains("/no/such/file: error: the file cannot be read")
        );
        assert!(
            sides(&["ymmsl_version: v0.2\nfrom: {}"])
                .unwrap_err()
                .to_string()
                .contains("this is a description")
        );
        for hostile in [
            "from: *a",
            "from: [",
            "from: {halo: {}}",
            "from: {boxes: {a: b}}",
            "- a: b",
            "from: {shape: {}}",
        ] {
            assert!(sides(&[hostile]).is_err(), "{hostile}");
        }
    }
}
