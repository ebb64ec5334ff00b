//! Filters: changes to a message on the way through a conduit.

use std::fmt;

use serde::{Deserialize, Serialize};
use titin_element::Dtype;

use crate::names::{Name, is_identifier};
use crate::problem::{did_you_mean, listing};
use crate::yaml::shorten;

/// One filter of a conduit, as written before the receiver: `a.out: last scale(2, 0.5) b.in`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The kind of the filter.
    pub kind: FilterKind,
    /// The side that the conduit pins the filter to (`scale(2, 0)@receiver`); `None` leaves the
    /// choice to the filter.
    pub side: Option<FilterSide>,
}

/// The change that a filter makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// Only the last message of a timeline passes.
    Last,
    /// One message is received many times.
    Repeat,
    /// One message is received once, then nil.
    Pad,
    /// Compressed on the wire, with this level.
    Zstd(Option<i32>),
    /// Every number `x` becomes `a x + b`.
    Scale {
        /// The factor.
        a: f64,
        /// The number to add.
        b: f64,
    },
    /// Converts array elements to another type.
    Astype(Dtype),
    /// A user function, named under `titin: filters`.
    User(Name),
}

/// The end of a conduit at which a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterSide {
    /// Before the wire.
    Sender,
    /// After the wire.
    Receiver,
}

impl FilterKind {
    /// Whether several messages become one.
    pub fn reduces(&self) -> bool {
        matches!(self, FilterKind::Last)
    }

    /// Whether the filter selects messages and leaves their data unchanged.
    pub fn chooses(&self) -> bool {
        self.reduces() || self.repeats()
    }

    /// Whether the filter can run at either end.
    pub(crate) fn takes_sides(&self) -> bool {
        matches!(
            self,
            FilterKind::Scale { .. } | FilterKind::Astype(_) | FilterKind::User(_)
        )
    }

    /// Whether one message becomes several.
    pub fn repeats(&self) -> bool {
        matches!(self, FilterKind::Repeat | FilterKind::Pad)
    }

    /// The rank in the order that yMMSL asks for; `None` if the filter may stand anywhere.
    fn rank(&self) -> Option<u8> {
        match self {
            FilterKind::Last => Some(0),
            FilterKind::Repeat => Some(1),
            FilterKind::Pad => Some(2),
            _ => None,
        }
    }
}

/// The names of the filters that come with titin.
pub const FILTER_NAMES: [&str; 6] = ["last", "repeat", "pad", "zstd", "scale", "astype"];

/// The hint for a Python filter that neither end of a conduit can call.
pub const PYTHON_BETWEEN: &str = "put a component in Python between the two, and the filter before it; or write the filter in a \
                                  language that makes shared libraries: {library: ..., symbol: ...}";

/// Splits `last scale(2, 1) b.in` into words; a blank inside parentheses does not split.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut depth) = (None, 0usize);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c.is_whitespace() && depth == 0 {
            words.extend(start.take().map(|s| &text[s..i]));
        } else if start.is_none() {
            start = Some(i);
        }
    }
    words.extend(start.map(|s| &text[s..]));
    words
}

/// Reads one filter. An unknown name is taken for a user filter; whether it exists is known once
/// all files are read. The error has the reason and a hint.
pub(crate) fn parse(word: &str) -> Result<Filter, FilterFault> {
    let (word, side) = split_side(word)?;
    let (name, arguments) = match word.split_once('(') {
        None => (word, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(inside) => (name, Some(arguments_in(inside))),
            None => return Err(fault(format!("\"{word}\" lacks its \")\""))),
        },
    };
    let kind = kind(name, arguments.as_deref())?;
    if side.is_some() && !kind.takes_sides() {
        let why = format!("\"{name}\" knows its side of the wire and cannot be pinned");
        return Err(fault(why));
    }
    Ok(Filter { kind, side })
}

/// The reason why a text is no filter, and a hint.
pub(crate) type FilterFault = (String, Option<String>);

fn fault(why: String) -> FilterFault {
    (why, None)
}

fn fault_hint(why: impl Into<String>, hint: impl Into<String>) -> FilterFault {
    (why.into(), Some(hint.into()))
}

/// Splits off the side that the filter is pinned to: `scale(2, 0)@receiver`.
fn split_side(word: &str) -> Result<(&str, Option<FilterSide>), FilterFault> {
    match word.rsplit_once('@') {
        Some((word, "sender")) => Ok((word, Some(FilterSide::Sender))),
        Some((word, "receiver")) => Ok((word, Some(FilterSide::Receiver))),
        Some((_, other)) => Err(fault(format!(
            "\"@{other}\" is no side of a conduit; write @sender or @receiver"
        ))),
        None => Ok((word, None)),
    }
}

/// Numbers and names, separated by commas or blanks. (In a YAML list on one line a comma would end
/// the item.)
fn arguments_in(text: &str) -> Vec<&str> {
    if text.contains(',') {
        return text.split(',').map(str::trim).collect();
    }
    text.split_whitespace().collect()
}

fn kind(name: &str, arguments: Option<&[&str]>) -> Result<FilterKind, FilterFault> {
    let plain = |kind| match arguments {
        None => Ok(kind),
        Some(_) => Err(fault(format!("\"{name}\" takes nothing in parentheses"))),
    };
    match name {
        "last" => plain(FilterKind::Last),
        "repeat" => plain(FilterKind::Repeat),
        "pad" => plain(FilterKind::Pad),
        "zstd" => zstd(arguments),
        "scale" => scale(arguments),
        "astype" => astype(arguments),
        _ if is_identifier(name) => plain(FilterKind::User(name.into())),
        _ => Err(fault(format!(
            "\"{}\" is not the name of a filter",
            shorten(name)
        ))),
    }
}

fn zstd(arguments: Option<&[&str]>) -> Result<FilterKind, FilterFault> {
    match arguments {
        None => Ok(FilterKind::Zstd(None)),
        Some([level]) => match level.parse() {
            Ok(level @ 1..=22) => Ok(FilterKind::Zstd(Some(level))),
            _ => Err(fault(format!(
                "\"{level}\" is not a level of zstd; they go from 1 to 22"
            ))),
        },
        Some(_) => Err(fault_hint("zstd takes one level", "write zstd or zstd(3)")),
    }
}

fn scale(arguments: Option<&[&str]>) -> Result<FilterKind, FilterFault> {
    match arguments {
        Some([a]) => Ok(FilterKind::Scale {
            a: finite(a)?,
            b: 0.0,
        }),
        Some([a, b]) => Ok(FilterKind::Scale {
            a: finite(a)?,
            b: finite(b)?,
        }),
        _ => {
            let why = "scale needs its numbers a and b, for a x + b";
            Err(fault_hint(why, "write scale(2.0, 0.5)"))
        }
    }
}

fn finite(text: &str) -> Result<f64, FilterFault> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => {
            let why = format!("\"{text}\" is not a number");
            Err(fault_hint(why, "write scale(a, b), as scale(2.0, 0.5)"))
        }
    }
}

fn astype(arguments: Option<&[&str]>) -> Result<FilterKind, FilterFault> {
    let Some([wanted]) = arguments else {
        return Err(fault_hint(
            "astype needs the type wanted",
            "write astype(float32)",
        ));
    };
    if let Some(dtype) = Dtype::from_name(wanted) {
        return Ok(FilterKind::Astype(dtype));
    }
    let names = || Dtype::NAMES.into_iter();
    let hint = did_you_mean(wanted, names()).unwrap_or_else(|| listing(names()));
    Err(fault_hint(format!("\"{wanted}\" is no element type"), hint))
}

impl Filter {
    /// Whether the filter has to run before the wire: because of a pin to the sender, or because
    /// the filter makes messages smaller.
    fn is_early(&self) -> bool {
        match (self.side, &self.kind) {
            (Some(side), _) => side == FilterSide::Sender,
            (None, FilterKind::Zstd(_)) => true,
            // Most numbers are sent as float64, so a conversion to a smaller type pays before the
            // wire.
            (None, FilterKind::Astype(to)) => to.size() < 8,
            (None, _) => false,
        }
    }
}

/// The number of a conduit's filters that run before the wire: up to the last filter that has to.
pub fn before_wire(filters: &[Filter]) -> usize {
    filters
        .iter()
        .rposition(Filter::is_early)
        .map_or(0, |last| last + 1)
}

/// Whether the filters stand in a valid order.
pub(crate) fn check_order(filters: &[Filter]) -> Result<(), WrongOrder<'_>> {
    let ranked = filters
        .iter()
        .filter_map(|f| f.kind.rank().map(|rank| (rank, f)));
    let ranked: Vec<_> = ranked.collect();
    match ranked.windows(2).find(|pair| pair[0].0 > pair[1].0) {
        None => Ok(()),
        Some(pair) => Err(WrongOrder {
            first: pair[0].1,
            second: pair[1].1,
        }),
    }
}

/// Two filters that stand in the wrong order.
#[derive(Debug)]
pub(crate) struct WrongOrder<'f> {
    first: &'f Filter,
    second: &'f Filter,
}

impl fmt::Display for WrongOrder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" stands before \"{}\"", self.first, self.second)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FilterKind::Last => f.write_str("last")?,
            FilterKind::Repeat => f.write_str("repeat")?,
            FilterKind::Pad => f.write_str("pad")?,
            FilterKind::Zstd(None) => f.write_str("zstd")?,
            FilterKind::Zstd(Some(level)) => write!(f, "zstd({level})")?,
            FilterKind::Scale { a, b } => write!(f, "scale({a:?}, {b:?})")?,
            FilterKind::Astype(to) => write!(f, "astype({})", to.name())?,
            FilterKind::User(name) => write!(f, "{name}")?,
        }
        match self.side {
            None => Ok(()),
            Some(FilterSide::Sender) => f.write_str("@sender"),
            Some(FilterSide::Receiver) => f.write_str("@receiver"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Filter>, String> {
        words(text)
            .into_iter()
            .map(|w| parse(w).map_err(|e| e.0))
            .collect()
    }

    #[test]
    fn filters_read_and_print_the_same() {
        for text in [
            "last repeat pad",
            "zstd(3)",
            "scale(2.0, 0.5)@receiver astype(float32)",
            "mine@sender zstd",
        ] {
            let filters = read(text).unwrap();
            let printed = filters
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ");
            assert_eq!(printed, text);
        }
    }

    #[test]
    fn bad_filters_say_why() {
        for (text, why) in [
            ("l-st", "not the name"),
            ("last(2)", "nothing in parentheses"),
            ("zstd(99)", "1 to 22"),
            ("scale", "needs its numbers"),
            ("scale(2", "lacks its"),
            ("scale(nan)", "not a number"),
            ("astype(float33)", "no element type"),
            ("last@sender", "cannot be pinned"),
            ("mine@home", "no side"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_order_is_last_repeat_pad_and_ours_stand_anywhere() {
        let order = |text| check_order(&read(text).unwrap()).map_err(|error| error.to_string());
        assert!(order("last last zstd repeat pad").is_ok());
        assert!(
            order("repeat scale(2) last")
                .unwrap_err()
                .contains("\"repeat\" stands before \"last\"")
        );
        assert!(order("pad repeat").is_err());
    }
}
