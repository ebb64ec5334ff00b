//! Reads the `titin:` section.

mod hosts;

use indexmap::IndexMap;

use super::fields::{dotted, entries, identifier};
use super::implementations::{python_function, symbol};
use super::pattern::pattern;
use super::{Fields, choice, count, number, text, text_list, truth, word_list, wrong_type};
use crate::byte_size::bytes_of;
use crate::filter::{FILTER_NAMES, FilterSide};
use crate::names::{Name, is_dotted};
use crate::problem::{Code, Problems, TextPosition, did_you_mean};
use crate::quantity::{self, Dimension, Quantity, UnitError};
use crate::titin_section::{
    BufferLimits, Buffers, Compress, EndTime, Ensemble, Extras, FilterDefinition, LinkTuning,
    Links, Medium, PinnedMedium, ProgressGoal, RequiredPorts, Scales, StagedFiles, UserFunction,
};
use crate::yaml::{MapEntry, Node, NodeKind, Scalar, ScalarType, shorten};

use hosts::{hosts, sites};

pub(super) fn titin_section(node: &Node, problems: &mut Problems) -> Extras {
    let Some(mut fields) = Fields::new(node, "\"titin\"", problems) else {
        return Extras::default();
    };
    let extras = Extras {
        scales: by_path(&mut fields, "scales", problems, scales),
        stage: by_path(&mut fields, "stage", problems, stage),
        time_unit: read(&mut fields, "time_unit", problems, time_unit),
        progress: by_path(&mut fields, "progress", problems, progress),
        ensemble: by_path(&mut fields, "ensemble", problems, ensemble),
        filters: by_path(&mut fields, "filters", problems, user_filter),
        required: by_path(&mut fields, "required", problems, required),
        medium: by_path(&mut fields, "medium", problems, pinned_medium),
        folder: read(&mut fields, "folder", problems, folder),
        fields: by_path(&mut fields, "fields", problems, pattern),
        links: links(&mut fields, problems),
        hosts: hosts(&mut fields, problems),
        sites: sites(&mut fields, problems),
        patience: read(&mut fields, "patience", problems, timeout),
        encrypt: read(&mut fields, "encrypt", problems, truth),
        buffer: read(&mut fields, "buffer", problems, buffers).unwrap_or_default(),
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

fn folder(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let path = text(node, what, problems)?;
    if !path.trim().is_empty() {
        return Some(path);
    }
    problems.error_hint(
        node.at,
        Code::BadValue,
        format!("{what} is empty"),
        "the path of a folder is expected",
        "write the path, or leave the line out for the run directory".to_owned(),
    );
    None
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
    let (si, example) = match dimension {
        Dimension::LENGTH => ("m", "2.5 km"),
        _ => ("s", "10 ms"),
    };
    let value_si = match node.kind() {
        NodeKind::Scalar(Scalar {
            of: ScalarType::Text,
            text,
        }) => {
            if let Err(error) = quantity::parse(text) {
                report_unreadable(node.at, what, &error, problems);
                return None;
            }
            quantity::parse_in(text, si).ok()
        }
        _ => Some(number(node, what, problems)?),
    };
    let value_si = value_si.filter(|value| value.is_finite() && *value >= 0.0);
    if value_si.is_none() {
        let found = node.describe();
        let why =
            format!("{dimension} of 0 or more is expected, such as \"{example}\"; found {found}");
        problems.error(node.at, Code::Unit, format!("{what} does not fit"), why);
    }
    Some(Quantity {
        value_si: value_si?,
        dimension,
    })
}

fn report_unreadable(at: TextPosition, what: &str, error: &UnitError, problems: &mut Problems) {
    let what = format!("{what} cannot be read");
    let hint = error.hint().map(str::to_string);
    problems.error_hint(at, Code::Unit, what, error.to_string(), hint);
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
    let scales = Scales {
        dt: read(&mut fields, "dt", problems, duration),
        total: read(&mut fields, "total", problems, duration),
        dx: read(&mut fields, "dx", problems, lengths).unwrap_or_default(),
        extent: read(&mut fields, "extent", problems, lengths).unwrap_or_default(),
        at,
    };
    fields.finish(problems);
    for (small, large, why) in [
        (
            scales.dt.as_slice(),
            scales.total.as_slice(),
            "\"dt\" is more than \"total\"",
        ),
        (&scales.dx, &scales.extent, "\"dx\" is more than \"extent\""),
    ] {
        let mut pairs = small.iter().zip(large);
        if pairs.any(|(small, large)| small.value_si > large.value_si) {
            let what = format!("the scales of \"{path}\" do not fit together");
            problems.error(at, Code::BadValue, what, why);
        }
    }
    Some(scales)
}

/// A length, or one in each dimension.
fn lengths(node: &Node, what: &str, problems: &mut Problems) -> Option<Vec<Quantity>> {
    let lengths = node
        .items()
        .iter()
        .filter_map(|item| measure(item, what, Dimension::LENGTH, problems));
    Some(lengths.collect())
}

fn stage(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<StagedFiles> {
    let mut fields = Fields::new(node, format!("the files of \"{path}\""), problems)?;
    let [input, output] =
        [("in", "a file to stage in"), ("out", "a file to stage out")].map(|(key, what)| {
            let node = fields.take(key);
            node.map(|node| text_list(node, what, problems))
                .unwrap_or_default()
        });
    fields.finish(problems);
    Some(StagedFiles { input, output, at })
}

fn ensemble(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<Ensemble> {
    let mut fields = Fields::new(node, format!("the ensemble \"{path}\""), problems)?;
    let mut number = |key: &'static str, least: u64| {
        let most = u64::from(u32::MAX);
        read(&mut fields, key, problems, |node, what, problems| {
            count(node, what, least, most, problems).map(|number| number as u32)
        })
    };
    let ensemble = Ensemble {
        allow_failures: number("allow_failures", 0).unwrap_or_default(),
        retry: number("retry", 0).unwrap_or_default(),
        at_once: number("at_once", 1),
        at,
    };
    fields.finish(problems);
    Some(ensemble)
}

/// A unit of time, such as `h`.
fn time_unit(node: &Node, what: &str, problems: &mut Problems) -> Option<Name> {
    let written = text(node, what, problems)?;
    let (why, hint) = match quantity::parse(&format!("1 {written}")) {
        Ok(one) if one.dimension == Dimension::TIME => return Some(written.as_str().into()),
        Ok(one) => {
            let measured = one.dimension;
            let why = format!("\"{}\" measures {measured}", shorten(&written));
            (why, None)
        }
        Err(error) => (error.to_string(), error.hint().map(str::to_string)),
    };
    let hint = hint.unwrap_or_else(|| "write one such as s, ms, h, days or yr".to_string());
    let what = format!("{what} is no unit of time");
    problems.error_hint(node.at, Code::Unit, what, why, hint);
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
    let mut fields = Fields::new(node, what, problems)?;
    let called = ["python", "library", "symbol"].map(|key| fields.take(key));
    let side = fields.take("side");
    let what = fields.what().to_string();
    fields.finish(problems);
    let side = side.and_then(|node| choice(node, "the side", &SIDES, problems));
    let call = filter_call(called, at, &what, problems)?;
    Some(FilterDefinition { call, side, at })
}

const SIDES: [(&str, FilterSide); 2] = [
    ("sender", FilterSide::Sender),
    ("receiver", FilterSide::Receiver),
];

/// The function of a filter, in Python or in a library.
fn filter_call(
    [python, library, symbol]: [Option<&Node>; 3],
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<UserFunction> {
    match (python, library, symbol) {
        (Some(node), None, None) => {
            let written = text(node, "\"python\"", problems)?;
            python_function(&written, node.at, what, problems)
        }
        (None, Some(path), Some(symbol)) => {
            let path = text(path, "\"library\"", problems)?;
            let name = text(symbol, "\"symbol\"", problems)?;
            let symbol = self::symbol(name, at, what, problems)?;
            Some(UserFunction::Library { path, symbol })
        }
        _ => {
            let why =
                "write {python: \"module:function\"} or {library: \"path.so\", symbol: \"name\"}";
            let what = format!("{what} does not say what to call");
            problems.error(at, Code::MissingKey, what, why);
            None
        }
    }
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
    let mut fields = Fields::new(node, format!("the links of \"{path}\""), problems)?;
    let tuning = LinkTuning {
        streams: read(&mut fields, "streams", problems, streams),
        pacing: read(&mut fields, "pacing", problems, rate),
        send_buffer: read(&mut fields, "send_buffer", problems, socket_buffer),
        receive_buffer: read(&mut fields, "receive_buffer", problems, socket_buffer),
        compress: read(&mut fields, "compress", problems, compress),
    };
    fields.finish(problems);
    Some((tuning, at))
}

fn compress(node: &Node, what: &str, problems: &mut Problems) -> Option<Compress> {
    let choices = Compress::ALL.map(|compress| (compress.key(), compress));
    choice(node, what, &choices, problems)
}

fn streams(node: &Node, what: &str, problems: &mut Problems) -> Option<u32> {
    const MOST_STREAMS: u64 = 256;
    count(node, what, 1, MOST_STREAMS, problems).map(|n| n as u32)
}

fn buffers(node: &Node, what: &str, problems: &mut Problems) -> Option<Buffers> {
    let mut buffers = Buffers::default();
    for entry in entries(node, what, problems)? {
        if entry.key != "default" && !entry.key.contains('.') {
            report_no_port(entry, problems);
            continue;
        }
        let Some((path, limits)) = buffer_limits(entry, problems) else {
            continue;
        };
        if path == "default" {
            buffers.default = limits;
        } else {
            buffers.ports.insert(path, (limits, entry.at));
        }
    }
    Some(buffers)
}

/// Reports an entry under `buffer` that is for no port.
fn report_no_port(entry: &MapEntry, problems: &mut Problems) {
    let found = shorten(&entry.key);
    let why = format!("\"buffer\" has limits by port, or for \"default\"; found \"{found}\"");
    let hint = did_you_mean(&entry.key, ["default"]).unwrap_or_else(|| {
        "write buffer: {default: {messages: 64, bytes: 1 GiB}, macro.out: {messages: 8}}"
            .to_string()
    });
    problems.error_hint(entry.at, Code::UnknownKey, "this is no port", why, hint);
}

fn buffer_limits(entry: &MapEntry, problems: &mut Problems) -> Option<(Name, BufferLimits)> {
    let path = dotted(&entry.key, "a port", entry.at, problems)?;
    let what = format!("the buffer of \"{}\"", shorten(&entry.key));
    let mut fields = Fields::new(&entry.value, what, problems)?;
    let limits = BufferLimits {
        messages: read(&mut fields, "messages", problems, messages),
        bytes: read(&mut fields, "bytes", problems, bytes),
    };
    fields.finish(problems);
    Some((path, limits))
}

fn messages(node: &Node, what: &str, problems: &mut Problems) -> Option<u64> {
    count(node, what, 1, i64::MAX as u64, problems)
}

/// The size of a socket's buffer. The window of a small buffer may be smaller than a segment; the
/// system then sends only when a timer ends. On the loopback interface a segment has up to 64 KiB.
fn socket_buffer(node: &Node, what: &str, problems: &mut Problems) -> Option<u64> {
    const LEAST: u64 = 64 << 10;
    let size = bytes(node, what, problems)?;
    if size < LEAST {
        let what = format!("{what} is too small");
        let why = format!(
            "it is at least 64 KiB, found {size} bytes: a connection whose buffers hold less than a segment, which has up to \
             64 KiB on the loopback interface, stalls"
        );
        let hint = "leave it out: the system's own choice grows as needed".to_string();
        problems.error_hint(node.at, Code::BadValue, what, why, hint);
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
    let has_unit = matches!(node.kind(), NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text);
    if !has_unit && rate < SLOWEST_PLAIN {
        warn_of_slow_rate(rate, node.at, what, problems);
    }
    Some(rate)
}

fn warn_of_slow_rate(rate: u64, at: TextPosition, what: &str, problems: &mut Problems) {
    let what = format!("{what} is {rate} bytes per second");
    let seconds = 1_000_000 / rate;
    let why = format!("a plain number is in bytes per second: at this rate 1 MB takes {seconds} s");
    let hint = format!(
        "write \"{rate} MB/s\" if megabytes are meant, or \"{rate} B/s\" if it is to be so slow"
    );
    problems.warn(at, Code::Unit, what, why, hint);
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
