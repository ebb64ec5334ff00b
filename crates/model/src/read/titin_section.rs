//! Reads the `titin:` section.

use indexmap::IndexMap;

use super::fields::{dotted, entries, identifier};
use super::implementations::{python_function, symbol};
use super::pattern::pattern;
use super::{Fields, choice, count, number, text, text_list, word_list, wrong_type};
use crate::byte_size::bytes_of;
use crate::filter::{FILTER_NAMES, FilterSide};
use crate::names::{Name, is_dotted};
use crate::problem::{Code, Problems, TextPosition, did_you_mean};
use crate::quantity::{self, Dimension, Quantity};
use crate::titin_section::{
    BufferLimits, Buffers, EndTime, Extras, FilterDefinition, LinkTuning, Links, Medium,
    PinnedMedium, ProgressGoal, RequiredPorts, Scales, StagedFiles, UserFunction,
};
use crate::yaml::{Node, NodeKind, Scalar, ScalarType, shorten};

pub(super) fn titin_section(node: &Node, problems: &mut Problems) -> Extras {
    let Some(mut fields) = Fields::new(node, "\"titin\"", problems) else {
        return Extras::default();
    };
    let extras = Extras {
        scales: by_path(&mut fields, "scales", problems, scales),
        stage: by_path(&mut fields, "stage", problems, stage),
        time_unit: read(&mut fields, "time_unit", problems, |node, _, problems| {
            time_unit(node, problems)
        }),
        progress: by_path(&mut fields, "progress", problems, progress),
        filters: by_path(&mut fields, "filters", problems, user_filter),
        required: by_path(&mut fields, "required", problems, required),
        medium: by_path(&mut fields, "medium", problems, pinned_medium),
        folder: read(&mut fields, "folder", problems, text),
        fields: by_path(&mut fields, "fields", problems, pattern),
        links: links(&mut fields, problems),
        buffer: fields
            .take("buffer")
            .map(|node| buffers(node, problems))
            .unwrap_or_default(),
        grace: read(&mut fields, "grace", problems, duration),
        heartbeat: read(&mut fields, "heartbeat", problems, timeout),
        register_timeout: read(&mut fields, "register_timeout", problems, timeout),
    };
    fields.finish(problems);
    extras
}

/// Reads the value of a key, if the key is there. `value` also gets the key, in quotes.
fn read<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    problems: &mut Problems,
    value: impl Fn(&Node, &str, &mut Problems) -> Option<T>,
) -> Option<T> {
    let node = fields.take(key)?;
    value(node, &format!("\"{key}\""), problems)
}

fn pinned_medium(
    _: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<PinnedMedium> {
    let media = Medium::ALL.map(|medium| (medium.key(), medium));
    Some(PinnedMedium {
        medium: choice(node, "the medium", &media, problems)?,
        at,
    })
}

fn links(fields: &mut Fields<'_>, problems: &mut Problems) -> Links {
    let mut components = by_path(fields, "links", problems, link);
    let default = components.shift_remove("default");
    Links {
        default: default.map_or_else(LinkTuning::default, |(tuning, _)| tuning),
        components,
    }
}

/// Reads the mapping from paths to values of a key.
fn by_path<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    problems: &mut Problems,
    read: impl Fn(&str, TextPosition, &Node, &mut Problems) -> Option<T>,
) -> IndexMap<Name, T> {
    let mut all = IndexMap::new();
    let what = format!("\"{key}\"");
    let given = fields.take(key);
    for entry in given
        .and_then(|node| entries(node, &what, problems))
        .unwrap_or_default()
    {
        let Some(path) = dotted(&entry.key, &format!("a key of {what}"), entry.at, problems) else {
            continue;
        };
        if let Some(item) = read(&path, entry.at, &entry.value, problems) {
            all.insert(path, item);
        }
    }
    all
}

/// A number with a unit, or a plain number in SI units.
fn measure(
    node: &Node,
    what: &str,
    dimension: Dimension,
    problems: &mut Problems,
) -> Option<Quantity> {
    let si = if dimension == Dimension::LENGTH {
        "m"
    } else {
        "s"
    };
    let value_si = match node.kind() {
        NodeKind::Scalar(Scalar {
            of: ScalarType::Text,
            text,
        }) => match quantity::parse(text) {
            Ok(_) => quantity::parse_in(text, si).ok(),
            Err(error) => {
                let hint = error.hint().map(str::to_string);
                problems.error_hint(
                    node.at,
                    Code::Unit,
                    format!("{what} cannot be read"),
                    error.to_string(),
                    hint,
                );
                return None;
            }
        },
        _ => Some(number(node, what, problems)?),
    };
    let Some(value_si) = value_si.filter(|value| value.is_finite() && *value >= 0.0) else {
        let like = if dimension == Dimension::LENGTH {
            "2.5 km"
        } else {
            "10 ms"
        };
        let why = format!(
            "{dimension} of 0 or more is expected, such as \"{like}\"; found {}",
            node.describe()
        );
        problems.error(node.at, Code::Unit, format!("{what} does not fit"), why);
        return None;
    };
    Some(Quantity {
        value_si,
        dimension,
    })
}

fn duration(node: &Node, what: &str, problems: &mut Problems) -> Option<Quantity> {
    measure(node, what, Dimension::TIME, problems)
}

/// A duration after which a process counts as lost; it must not be 0.
fn timeout(node: &Node, what: &str, problems: &mut Problems) -> Option<Quantity> {
    let duration = duration(node, what, problems)?;
    if duration.value_si == 0.0 {
        let why = "after no time at all everything would count as lost";
        let hint = "leave it out for what is usual".to_string();
        problems.error_hint(node.at, Code::BadValue, format!("{what} is 0"), why, hint);
        return None;
    }
    Some(duration)
}

fn scales(path: &str, at: TextPosition, node: &Node, problems: &mut Problems) -> Option<Scales> {
    let mut fields = Fields::new(node, format!("the scales of \"{path}\""), problems)?;
    let dt = fields
        .take("dt")
        .and_then(|n| duration(n, "\"dt\"", problems));
    let total = fields
        .take("total")
        .and_then(|n| duration(n, "\"total\"", problems));
    let dx = fields
        .take("dx")
        .map(|n| lengths(n, "\"dx\"", problems))
        .unwrap_or_default();
    let extent = fields
        .take("extent")
        .map(|n| lengths(n, "\"extent\"", problems))
        .unwrap_or_default();
    fields.finish(problems);
    for (small, large, names) in [
        (dt.as_slice(), total.as_slice(), ("dt", "total")),
        (dx.as_slice(), extent.as_slice(), ("dx", "extent")),
    ] {
        if small
            .iter()
            .zip(large)
            .any(|(small, large)| small.value_si > large.value_si)
        {
            let what = format!("the scales of \"{path}\" do not fit together");
            problems.error(
                at,
                Code::BadValue,
                what,
                format!("\"{}\" is more than \"{}\"", names.0, names.1),
            );
        }
    }
    Some(Scales {
        dt,
        total,
        dx,
        extent,
        at,
    })
}

fn lengths(node: &Node, what: &str, problems: &mut Problems) -> Vec<Quantity> {
    let one = std::slice::from_ref(node);
    let items = if let NodeKind::List(items) = node.kind() {
        items.as_slice()
    } else {
        one
    };
    items
        .iter()
        .filter_map(|item| measure(item, what, Dimension::LENGTH, problems))
        .collect()
}

fn stage(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<StagedFiles> {
    let mut fields = Fields::new(node, format!("the files of \"{path}\""), problems)?;
    let input = fields
        .take("in")
        .map(|n| text_list(n, "a file to stage in", problems))
        .unwrap_or_default();
    let output = fields
        .take("out")
        .map(|n| text_list(n, "a file to stage out", problems))
        .unwrap_or_default();
    fields.finish(problems);
    Some(StagedFiles { input, output, at })
}

/// A unit of time, such as `h`.
fn time_unit(node: &Node, problems: &mut Problems) -> Option<Name> {
    let written = text(node, "\"time_unit\"", problems)?;
    let (why, hint) = match quantity::parse(&format!("1 {written}")) {
        Ok(one) if one.dimension == Dimension::TIME => return Some(written.as_str().into()),
        Ok(one) => (
            format!("\"{}\" measures {}", shorten(&written), one.dimension),
            None,
        ),
        Err(error) => (error.to_string(), error.hint().map(str::to_string)),
    };
    let hint = hint.or_else(|| Some("write one such as s, ms, h, days or yr".to_string()));
    problems.error_hint(
        node.at,
        Code::Unit,
        "\"time_unit\" is no unit of time",
        why,
        hint,
    );
    None
}

fn progress(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<ProgressGoal> {
    let what = format!("the end of \"{path}\"");
    let end = match node.kind() {
        NodeKind::Scalar(Scalar {
            of: ScalarType::Text,
            text,
        }) if is_dotted(text) => EndTime::Setting(text.as_str().into()),
        NodeKind::Scalar(scalar) if scalar.text.parse::<f64>().is_ok() => {
            let end = duration(node, &what, problems)?;
            EndTime::Time(Quantity {
                dimension: Dimension::NONE,
                ..end
            })
        }
        _ => EndTime::Time(duration(node, &what, problems)?),
    };
    Some(ProgressGoal { end, at })
}

fn user_filter(
    name: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<FilterDefinition> {
    let name = identifier(name, "a filter", at, problems)?;
    let what = format!("filter \"{name}\"");
    if FILTER_NAMES.contains(&&*name) {
        let why = "titin has a filter of this name; choose another";
        problems.error(at, Code::Duplicate, format!("{what} is there already"), why);
        return None;
    }
    let mut fields = Fields::new(node, what.as_str(), problems)?;
    let [python, library, symbol, side] =
        ["python", "library", "symbol", "side"].map(|key| fields.take(key));
    fields.finish(problems);
    let sides = [
        ("sender", FilterSide::Sender),
        ("receiver", FilterSide::Receiver),
    ];
    let side = side.and_then(|n| choice(n, "the side", &sides, problems));
    let call = match (python, library, symbol) {
        (Some(node), None, None) => python_function(
            &text(node, "\"python\"", problems)?,
            node.at,
            &what,
            problems,
        )?,
        (None, Some(path), Some(symbol)) => {
            let (path, name) = (
                text(path, "\"library\"", problems)?,
                text(symbol, "\"symbol\"", problems)?,
            );
            UserFunction::Library {
                path,
                symbol: self::symbol(name, at, &what, problems)?,
            }
        }
        _ => {
            let why =
                "write {python: \"module:function\"} or {library: \"path.so\", symbol: \"name\"}";
            problems.error(
                at,
                Code::MissingKey,
                format!("{what} does not say what to call"),
                why,
            );
            return None;
        }
    };
    Some(FilterDefinition { call, side, at })
}

fn required(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<RequiredPorts> {
    let written = word_list(
        node,
        &format!("the ports that \"{path}\" requires"),
        problems,
    );
    let ports = written
        .iter()
        .filter_map(|(word, at)| identifier(word, "a port", *at, problems))
        .collect();
    Some(RequiredPorts { ports, at })
}

fn link(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<(LinkTuning, TextPosition)> {
    const MOST_STREAMS: u64 = 256;
    let mut fields = Fields::new(node, format!("the links of \"{path}\""), problems)?;
    let streams = fields
        .take("streams")
        .and_then(|n| count(n, "\"streams\"", 1, MOST_STREAMS, problems));
    let pacing = fields
        .take("pacing")
        .and_then(|n| rate(n, "\"pacing\"", problems));
    let [send_buffer, receive_buffer] = ["send_buffer", "receive_buffer"].map(|key| {
        fields
            .take(key)
            .and_then(|n| socket_buffer(n, &format!("\"{key}\""), problems))
    });
    fields.finish(problems);
    let streams = streams.map(|n| n as u32);
    Some((
        LinkTuning {
            streams,
            pacing,
            send_buffer,
            receive_buffer,
        },
        at,
    ))
}

fn buffers(node: &Node, problems: &mut Problems) -> Buffers {
    let mut buffers = Buffers::default();
    for entry in entries(node, "\"buffer\"", problems).unwrap_or_default() {
        let what = format!("the buffer of \"{}\"", shorten(&entry.key));
        if entry.key != "default" && !entry.key.contains('.') {
            let why = format!(
                "\"buffer\" has limits by port, or for \"default\"; found \"{}\"",
                shorten(&entry.key)
            );
            let hint = did_you_mean(&entry.key, ["default"]).unwrap_or_else(|| {
                "write buffer: {default: {messages: 64, bytes: 1 GiB}, macro.out: {messages: 8}}".to_string()
            });
            problems.error_hint(entry.at, Code::UnknownKey, "this is no port", why, hint);
            continue;
        }
        let Some(path) = dotted(&entry.key, "a port", entry.at, problems) else {
            continue;
        };
        let Some(mut fields) = Fields::new(&entry.value, what, problems) else {
            continue;
        };
        let messages = fields
            .take("messages")
            .and_then(|n| count(n, "\"messages\"", 1, i64::MAX as u64, problems));
        let bytes = fields
            .take("bytes")
            .and_then(|n| bytes(n, "\"bytes\"", problems));
        fields.finish(problems);
        let buffer = BufferLimits { messages, bytes };
        if path == "default" {
            buffers.default = buffer;
        } else {
            buffers.ports.insert(path, (buffer, entry.at));
        }
    }
    buffers
}

/// The size of a socket's buffer. The window of a small buffer may be smaller than a segment; the
/// system then sends only when a timer ends. On the loopback interface a segment has up to 64 KiB.
fn socket_buffer(node: &Node, what: &str, problems: &mut Problems) -> Option<u64> {
    const LEAST: u64 = 64 << 10;
    let size = bytes(node, what, problems)?;
    if size < LEAST {
        let why = format!(
            "it is at least 64 KiB, found {size} bytes: a connection whose buffers hold less than a segment, which has up to \
             64 KiB on the loopback interface, stalls"
        );
        let hint = "leave it out: the system's own choice grows as needed".to_string();
        problems.error_hint(
            node.at,
            Code::BadValue,
            format!("{what} is too small"),
            why,
            hint,
        );
        return None;
    }
    Some(size)
}

/// A number of bytes: `1073741824`, `1 GiB`, `64 kB`.
fn bytes(node: &Node, what: &str, problems: &mut Problems) -> Option<u64> {
    some_bytes(
        node,
        what,
        "a number of bytes, such as 4096 or \"64 MiB\"",
        bytes_of,
        problems,
    )
}

/// A lower rate without a unit is most likely meant in another unit.
const SLOWEST_PLAIN: u64 = 1_000_000;

/// Bytes per second: as [`bytes`], with an optional `/s`.
fn rate(node: &Node, what: &str, problems: &mut Problems) -> Option<u64> {
    let wanted = "a number of bytes per second, such as \"100 MB/s\" or \"64 MiB\" (kbit/s and the like are not known)";
    let of = |text: &str| bytes_of(text.strip_suffix("/s").unwrap_or(text).trim_end());
    let rate = some_bytes(node, what, wanted, of, problems)?;
    let plain = !matches!(
        node.kind(),
        NodeKind::Scalar(Scalar {
            of: ScalarType::Text,
            ..
        })
    );
    if plain && rate < SLOWEST_PLAIN {
        let why = format!(
            "a plain number is in bytes per second: at this rate 1 MB takes {} s",
            1_000_000 / rate
        );
        let hint = format!(
            "write \"{rate} MB/s\" if megabytes are meant, or \"{rate} B/s\" if it is to be so slow"
        );
        problems.warn(
            node.at,
            Code::Unit,
            format!("{what} is {rate} bytes per second"),
            why,
            hint,
        );
    }
    Some(rate)
}

/// A positive number: a plain number, or a text that `of` reads; `wanted` describes the expected
/// form.
fn some_bytes(
    node: &Node,
    what: &str,
    wanted: &str,
    of: impl Fn(&str) -> Option<u64>,
    problems: &mut Problems,
) -> Option<u64> {
    let NodeKind::Scalar(Scalar {
        of: ScalarType::Text,
        text,
    }) = node.kind()
    else {
        return count(node, what, 1, i64::MAX as u64, problems);
    };
    match of(text) {
        Some(bytes) if bytes > 0 => Some(bytes),
        _ => wrong_type(node, what, wanted, problems),
    }
}
