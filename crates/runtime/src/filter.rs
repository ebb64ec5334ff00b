//! Filters on a conduit: how the filters change a message on the way, and on which side of the
//! wire.
//!
//! A chain has two parts. The head, up to the last filter that makes a message smaller or is pinned
//! to the sender, runs before the wire; the rest runs after. `last`, `repeat` and `pad` choose
//! among messages and do not change messages: the three belong to the receiving end. Since the
//! three choose by steps, they commute with all filters that change data or times.

use std::cell::RefCell;
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use titin_model::{Filter, FilterKind};
use titin_transport::{Buffer, Filling, SharedBuffer};
use titin_wire::control::FilterFunction;
use titin_wire::meta::{Codec, Content, Dtype, ElementKind, ElementValue, Layout, StorageOrder};
use titin_wire::structure::{self, Value};

use crate::{Error, Kind, Result};

/// A message inside a filter of the user's.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The kind and layout of the data.
    pub content: Content,
    /// The data.
    pub body: SharedBuffer,
    /// Simulated time.
    pub timestamp: f64,
    /// Simulated time of the next message, if known.
    pub next_timestamp: Option<f64>,
}

/// A filter of the user, ready to be called: one message in, one message or an error out.
pub type Function = Arc<dyn Fn(&Mapped) -> std::result::Result<Mapped, String> + Send + Sync>;

type Find = dyn Fn(&FilterFunction) -> std::result::Result<Function, String> + Send + Sync;

/// Finds user's filters in the language of the program.
#[derive(Clone, Default)]
pub struct Functions(Option<Arc<Find>>);

impl Functions {
    /// Finds filters by the function `find`.
    pub fn new(
        find: impl Fn(&FilterFunction) -> std::result::Result<Function, String> + Send + Sync + 'static,
    ) -> Self {
        Functions(Some(Arc::new(find)))
    }

    fn find(&self, filter: &FilterFunction) -> std::result::Result<Function, String> {
        match &self.0 {
            Some(find) => find(filter),
            None => Err("this program's language has no way to call it".to_owned()),
        }
    }
}

/// The work of one end of a conduit on messages, in order.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<FilterStep>,
    /// The number of timelines of which the last message alone passes.
    pub(crate) lasts: usize,
    /// Whether the receiver gets the last message again and again (`repeat`).
    pub(crate) repeat: bool,
    /// The number of timelines in which the receiver gets a message once.
    pub(crate) pads: usize,
}

enum FilterStep {
    Zstd(i32),
    Scale(f64, f64),
    Astype(Dtype),
    User(String, Function),
}

const LEVEL: i32 = 3;

impl Chain {
    /// The filters of a conduit that run at the given end.
    pub(crate) fn new(
        filters: &[Filter],
        sends: bool,
        defined: &std::collections::BTreeMap<String, FilterFunction>,
        functions: &Functions,
    ) -> Result<Self> {
        let (before, behind) = filters.split_at(titin_model::before_wire(filters));
        let mine = if sends { before } else { behind };
        let mut chain = Chain::default();
        for filter in filters {
            chain.lasts += usize::from(filter.kind == FilterKind::Last);
            chain.repeat |= filter.kind == FilterKind::Repeat;
            chain.pads += usize::from(filter.kind == FilterKind::Pad);
        }
        for filter in mine {
            match &filter.kind {
                FilterKind::Last | FilterKind::Repeat | FilterKind::Pad => {}
                FilterKind::Zstd(_) if !sends => {}
                FilterKind::Zstd(level) => {
                    chain.steps.push(FilterStep::Zstd(level.unwrap_or(LEVEL)))
                }
                FilterKind::Scale { a, b } => chain.steps.push(FilterStep::Scale(*a, *b)),
                FilterKind::Astype(dtype) => chain.steps.push(FilterStep::Astype(*dtype)),
                FilterKind::User(name) => {
                    let name = name.as_str();
                    let found = defined
                        .get(name)
                        .ok_or_else(|| "it is not defined".to_owned());
                    let function =
                        found
                            .and_then(|filter| functions.find(filter))
                            .map_err(|why| {
                                Error::new(
                                    Kind::Filter,
                                    format!("filter '{name}' cannot be called here: {why}"),
                                )
                            })?;
                    chain
                        .steps
                        .push(FilterStep::User(name.to_owned(), function));
                }
            }
        }
        // Filters of this end run on the data, and not on the compressed form, wherever `zstd`
        // stands in the chain.
        chain
            .steps
            .sort_by_key(|step| matches!(step, FilterStep::Zstd(_)));
        Ok(chain)
    }

    /// Whether the chain chooses among messages.
    pub(crate) fn chooses(&self) -> bool {
        self.lasts > 0 || self.follows()
    }

    /// Whether the receiver gets messages by the steps of the receiver.
    pub(crate) fn follows(&self) -> bool {
        self.repeat || self.pads > 0
    }

    /// Whether nothing is done to the data.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs the filters. Compression is the last filter before the wire; the codings are returned.
    pub(crate) fn apply(&self, mut mapped: Mapped) -> Result<(Mapped, Vec<(Codec, u64)>)> {
        let mut codings = Vec::new();
        for step in &self.steps {
            match step {
                FilterStep::Zstd(level) => {
                    codings.push((Codec::Zstd, mapped.body.len() as u64));
                    mapped.body = compress(&mapped.body, *level)?.into();
                }
                FilterStep::User(name, function) => {
                    mapped = within(name, || function(&mapped))
                        .and_then(timely)
                        .map_err(|why| {
                            Error::new(Kind::Filter, format!("filter '{name}' failed: {why}"))
                        })?;
                }
                FilterStep::Scale(a, b) => {
                    mapped = numbers(
                        mapped,
                        &format!("scale({}, {})", short(*a), short(*b)),
                        |l, e| scale(l, e, *a, *b),
                    )?
                }
                FilterStep::Astype(dtype) => {
                    mapped = numbers(mapped, &format!("astype({})", dtype.name()), |l, e| {
                        convert(l, e, *dtype)
                    })?;
                }
            }
        }
        Ok((mapped, codings))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain of {} steps", self.steps.len())
    }
}

/// How many calls of user's filters there are at the moment, in all threads.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The filter of the user that this thread runs.
    static INSIDE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The filter of the user that this thread runs. A call on an instance has a message in the filter,
/// so another call from inside would wait for ever.
pub(crate) fn inside() -> Option<String> {
    INSIDE.with_borrow(Clone::clone)
}

/// Whether this thread runs a filter of the user. Every call asks.
pub(crate) fn is_inside() -> bool {
    CALLS.load(Ordering::Relaxed) > 0 && INSIDE.with_borrow(Option::is_some)
}

struct Inside(Option<String>);

/// Calls a filter of the user.
fn within<T>(name: &str, function: impl FnOnce() -> T) -> T {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let _inside = Inside(INSIDE.replace(Some(name.to_owned())));
    function()
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0.take());
        CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The message from a filter, if the times can be sent.
fn timely(mapped: Mapped) -> std::result::Result<Mapped, String> {
    let Mapped {
        timestamp,
        next_timestamp,
        ..
    } = mapped;
    if timestamp.is_nan() {
        return Err("the timestamp that it gives is not a number".to_owned());
    }
    if timestamp.is_infinite() || next_timestamp.is_some_and(f64::is_infinite) {
        return Err("a timestamp that it gives is infinite".to_owned());
    }
    match next_timestamp.filter(|next| next.is_nan() || *next < timestamp) {
        Some(next) => Err(format!(
            "the next timestamp that it gives is {next:?}, before {timestamp:?}"
        )),
        None => Ok(mapped),
    }
}

/// Undoes the codings of a received message.
pub(crate) fn decode(body: SharedBuffer, codings: &[(Codec, u64)]) -> Result<SharedBuffer> {
    codings
        .iter()
        .rev()
        .try_fold(body, |body, (Codec::Zstd, length)| {
            let damaged = |why: String| {
                Error::new(
                    Kind::TypeMismatch,
                    format!("a compressed message is damaged: {why}"),
                )
            };
            // The memory for a false length is reserved, but not touched: the system gives pages
            // for the real bytes alone.
            let mut decoder = zstd::stream::read::Decoder::with_buffer(&body[..])
                .map_err(|e| damaged(e.to_string()))?;
            let honest = zstd::bulk::Decompressor::upper_bound(&body)
                .is_none_or(|bound| bound as u64 >= *length);
            if !honest {
                return Err(damaged(format!("it claims {length} bytes")));
            }
            let mut filling = Filling::new(*length).map_err(no_memory)?;
            while !filling.rest().is_empty() {
                match std::io::Read::read(&mut decoder, filling.rest()) {
                    Ok(0) => return Err(damaged("it ends early".to_owned())),
                    Ok(count) => filling.advance(count),
                    Err(error) => return Err(damaged(error.to_string())),
                }
            }
            match std::io::Read::read(&mut decoder, &mut [0]) {
                Ok(0) => Ok(filling.finish().into()),
                Ok(_) => Err(damaged(format!("it goes on behind {length} bytes"))),
                Err(error) => Err(damaged(error.to_string())),
            }
        })
}

pub(crate) fn no_memory(error: std::io::Error) -> Error {
    Error::new(Kind::NoMemory, error.to_string())
}

fn compress(body: &[u8], level: i32) -> Result<Buffer> {
    let bytes = zstd::bulk::compress(body, level)
        .map_err(|error| Error::new(Kind::Filter, format!("zstd failed: {error}")))?;
    Buffer::gather(&[IoSlice::new(&bytes)]).map_err(no_memory)
}

/// Runs a filter that changes the elements of an array, or a number sent alone. Nil passes.
fn numbers(
    mut mapped: Mapped,
    name: &str,
    change: impl FnOnce(&Layout, &[u8]) -> std::result::Result<(Dtype, Filling), String>,
) -> Result<Mapped> {
    let failed = |why: String| {
        Error::new(
            Kind::Filter,
            format!("filter {name} cannot be applied: {why}"),
        )
    };
    match &mut mapped.content {
        Content::Nil => {}
        Content::Structure => {
            let (dtype, element) = element(&mapped.body).map_err(failed)?;
            let (dtype, filling) =
                change(&Layout::new(dtype, StorageOrder::C, []), &element).map_err(failed)?;
            let changed = filling.finish();
            // Complex numbers are no numbers of structures.
            let Some(value) = number(dtype.read(&changed)) else {
                mapped.content = Content::Array(Layout::new(dtype, StorageOrder::C, []));
                mapped.body = changed.into();
                return Ok(mapped);
            };
            let encoded = structure::encode(&value).map_err(|error| failed(error.to_string()))?;
            let parts: Vec<_> = encoded
                .parts
                .iter()
                .map(|part| IoSlice::new(part.as_ref()))
                .collect();
            mapped.body = Buffer::gather(&parts).map_err(no_memory)?.into();
        }
        Content::Array(layout) => {
            let (dtype, filling) = change(layout, &mapped.body).map_err(failed)?;
            layout.dtype = dtype;
            mapped.body = filling.finish().into();
        }
    }
    Ok(mapped)
}

/// A number of a structure, as an element of an array.
fn element(body: &[u8]) -> std::result::Result<(Dtype, Vec<u8>), String> {
    match structure::decode(body).map_err(|error| error.to_string())? {
        Value::Bool(flag) => Ok((Dtype::Bool, vec![flag.into()])),
        Value::Int(number) => Ok((Dtype::Int64, number.to_le_bytes().into())),
        Value::UInt(number) => Ok((Dtype::UInt64, number.to_le_bytes().into())),
        Value::Float(number) => Ok((Dtype::Float64, number.to_le_bytes().into())),
        _ => Err("the message carries a structure, and no array or number".to_owned()),
    }
}

/// An element of an array as a structure; `None` for complex numbers.
fn number(number: ElementValue) -> Option<Value<Vec<u8>>> {
    Some(match number {
        ElementValue::Bool(flag) => Value::Bool(flag),
        ElementValue::Whole(x) => i64::try_from(x).map_or(Value::UInt(x as u64), Value::Int),
        ElementValue::Real(x) => Value::Float(x),
        ElementValue::Complex(..) => return None,
    })
}

/// A number in the form of a description: no long row of zeros.
fn short(number: f64) -> String {
    let (plain, debug) = (number.to_string(), format!("{number:?}"));
    if plain.len() > debug.len() {
        debug
    } else {
        plain
    }
}

/// `a x + b`. Real and complex arrays keep their type; whole numbers become float64. A finite
/// number stays finite, or the filter refuses the message.
fn scale(
    layout: &Layout,
    elements: &[u8],
    a: f64,
    b: f64,
) -> std::result::Result<(Dtype, Filling), String> {
    let dtype = match layout.dtype.kind() {
        ElementKind::Bool => return Err("true and false are no numbers".to_owned()),
        ElementKind::Float | ElementKind::Complex => layout.dtype,
        ElementKind::Signed | ElementKind::Unsigned => Dtype::Float64,
    };
    each(layout.dtype, elements, dtype, |number| match number {
        ElementValue::Bool(_) => number,
        ElementValue::Whole(x) => ElementValue::Real(a * x as f64 + b),
        ElementValue::Real(x) => ElementValue::Real(a * x + b),
        ElementValue::Complex(re, im) => ElementValue::Complex(a * re + b, a * im),
    })
}

/// Converts to another type. Rounds reals to shorter reals, and cuts reals towards zero to whole
/// numbers. Refuses a number that the type cannot hold, and the cut of complex numbers to real
/// numbers.
fn convert(
    layout: &Layout,
    elements: &[u8],
    dtype: Dtype,
) -> std::result::Result<(Dtype, Filling), String> {
    if layout.dtype.is_complex() && !dtype.is_complex() {
        return Err(format!(
            "{} to {} would lose the imaginary part",
            layout.dtype.name(),
            dtype.name()
        ));
    }
    each(layout.dtype, elements, dtype, |number| number)
}

fn each(
    from: Dtype,
    elements: &[u8],
    to: Dtype,
    change: impl Fn(ElementValue) -> ElementValue,
) -> std::result::Result<(Dtype, Filling), String> {
    let count = elements.len() / from.size();
    let mut filling =
        Filling::new((count * to.size()) as u64).map_err(|error| error.to_string())?;
    for (old, new) in elements
        .chunks_exact(from.size())
        .zip(filling.rest().chunks_exact_mut(to.size()))
    {
        let before = from.read(old);
        let number = change(before);
        if !number.is_finite() && before.is_finite() {
            return Err(format!(
                "{} cannot hold what becomes of {before}",
                to.name()
            ));
        }
        to.cast(number)
            .and_then(|number| to.write(number, new))
            .ok_or_else(|| format!("{} cannot hold {number}", to.name()))?;
    }
    filling.advance(count * to.size());
    Ok((to, filling))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What a peer says it has compressed, with changed bytes and a false length: it is undone or refused.
        #[test]
        fn damaged_codings_are_undone_or_refused(
            body in vec(0..3u8, 0..2000),
            changes in vec((0..200usize, any::<u8>()), 0..4),
            cut in 0..200usize,
            length in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..3000u64).prop_map(Some)],
            times in 1..3usize,
        ) {
            let packed = (0..times).fold(body.clone(), |body, _| zstd::bulk::compress(&body, 1).unwrap());
            let mut changed = packed.clone();
            for (at, byte) in &changes {
                if let Some(place) = changed.get_mut(*at) {
                    *place = *byte;
                }
            }
            changed.truncate(packed.len().saturating_sub(cut.saturating_sub(100)));
            // Of two codings the inner one is told as long as it is, or as the outer one.
            let lengths = [length.unwrap_or(body.len() as u64), length.unwrap_or(zstd::bulk::compress(&body, 1).unwrap().len() as u64)];
            let codings: Vec<_> = lengths[..times].iter().map(|length| (Codec::Zstd, *length)).collect();
            let filled = Buffer::gather(&[IoSlice::new(&changed)]).unwrap();
            match decode(filled.into(), &codings) {
                Ok(found) => {
                    prop_assert_eq!(found.len() as u64, codings[0].1);
                    prop_assert!(changed != packed || found[..] == body[..]);
                }
                Err(_) => prop_assert!(changed != packed || length.is_some()),
            }
        }
    }

    #[test]
    fn what_is_finite_is_not_scaled_to_infinity() {
        let scaled = |dtype: Dtype, number, a, b| {
            let mut element = vec![0; dtype.size()];
            dtype.write(number, &mut element).unwrap();
            let scaled = scale(&Layout::new(dtype, StorageOrder::C, [1]), &element, a, b);
            scaled.map(|(dtype, filling)| dtype.read(&filling.finish()).to_string())
        };
        use ElementValue::{Complex, Real, Whole};
        for (dtype, number, a, b) in [
            (Dtype::Float64, Real(1e300), 1e300, 0.0),
            (Dtype::Float32, Real(1e38), 1e300, 0.0),
            (Dtype::Float64, Real(-1.7e308), 1.0, -1.7e308),
            (Dtype::Int64, Whole(i64::MAX.into()), 1e300, 0.0),
            (Dtype::Complex128, Complex(0.0, 1e300), 1e300, 0.0),
        ] {
            let why = scaled(dtype, number, a, b).unwrap_err();
            assert!(
                why.contains(" cannot hold what becomes of "),
                "{number} as {}: {why}",
                dtype.name()
            );
        }
        assert!(
            scaled(Dtype::Float32, Real(1e38), 1e3, 0.0)
                .unwrap_err()
                .contains("float32 cannot hold")
        );
        assert_eq!(
            scaled(Dtype::Float64, Real(f64::INFINITY), 2.0, 0.0).unwrap(),
            "inf"
        );
        assert_eq!(
            scaled(Dtype::Float32, Real(f64::NAN), 2.0, 0.0).unwrap(),
            "NaN"
        );
        assert_eq!(
            [2.0, 0.5, 1e300, 1e-7].map(short),
            ["2", "0.5", "1e300", "1e-7"]
        );
    }

    #[test]
    fn times_that_cannot_be_sent_are_the_filters_fault() {
        let made = |timestamp, next_timestamp| {
            let body = SharedBuffer::default();
            timely(Mapped {
                content: Content::Nil,
                body,
                timestamp,
                next_timestamp,
            })
            .err()
        };
        assert_eq!(made(1.0, None), None);
        assert_eq!(made(1.0, Some(1.0)), None);
        assert!(
            made(f64::NAN, None)
                .unwrap()
                .contains("timestamp that it gives is not a number")
        );
        assert!(made(10.0, Some(3.0)).unwrap().contains("3.0, before 10.0"));
        assert!(made(10.0, Some(f64::NAN)).is_some());
        for (time, next) in [
            (f64::INFINITY, None),
            (f64::NEG_INFINITY, Some(0.0)),
            (10.0, Some(f64::INFINITY)),
        ] {
            assert_eq!(
                made(time, next).unwrap(),
                "a timestamp that it gives is infinite"
            );
        }
    }

    #[test]
    fn a_thread_knows_which_filter_it_is_in() {
        let seen = within("outer", || {
            let inner = within("inner", inside);
            let others = std::thread::spawn(is_inside).join().unwrap();
            (inner, inside(), is_inside(), others)
        });
        assert_eq!(
            seen,
            (
                Some("inner".to_owned()),
                Some("outer".to_owned()),
                true,
                false
            )
        );
        assert_eq!((inside(), is_inside()), (None, false));
    }
}
