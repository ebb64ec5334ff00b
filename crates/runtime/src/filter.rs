//! Filters on a conduit: how the filters change a message on the way, and on which side of the
//! wire.
//!
//! A chain has two parts. The head, up to the last filter that makes a message smaller or is pinned
//! to the sender, runs before the wire; the rest runs after. `last`, `repeat` and `pad` choose
//! among messages and do not change messages: the three belong to the receiving end. Since the
//! three choose by steps, they commute with all filters that change data or times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IoSlice, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use titin_model::{Filter, FilterKind};
use titin_transport::{Buffer, Filling, SharedBuffer};
use titin_wire::Malformed;
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

/// Why a filter of the user cannot be found or called, or has failed, as the end of a sentence that
/// names the filter. The program of the user and the binding decide what can fail.
pub type FilterFailure = Box<dyn std::error::Error + Send + Sync>;

/// A filter of the user, ready to be called: one message in, one message or an error out.
pub type Function =
    Arc<dyn Fn(&Mapped) -> std::result::Result<Mapped, FilterFailure> + Send + Sync>;

type Find = dyn Fn(&FilterFunction) -> std::result::Result<Function, FilterFailure> + Send + Sync;

/// Finds user's filters in the language of the program.
#[derive(Clone, Default)]
pub struct Functions(Option<Arc<Find>>);

impl Functions {
    /// Finds filters by the function `find`.
    pub fn new(
        find: impl Fn(&FilterFunction) -> std::result::Result<Function, FilterFailure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Functions(Some(Arc::new(find)))
    }

    fn find(&self, filter: &FilterFunction) -> std::result::Result<Function, FilterFailure> {
        match &self.0 {
            Some(find) => find(filter),
            None => Err("this program's language has no way to call it".into()),
        }
    }

    /// The filter of a name in the description.
    fn find_defined(
        &self,
        name: &str,
        defined: &BTreeMap<String, FilterFunction>,
    ) -> Result<Function> {
        let found = match defined.get(name) {
            Some(filter) => self.find(filter),
            None => Err("it is not defined".into()),
        };
        found.map_err(|why| {
            let text = format!("filter '{name}' cannot be called here: {why}");
            Error::new(Kind::Filter, text)
        })
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
        defined: &BTreeMap<String, FilterFunction>,
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
                    let function = functions.find_defined(name, defined)?;
                    let step = FilterStep::User(name.to_owned(), function);
                    chain.steps.push(step);
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

    /// Whether the chain compresses.
    pub(crate) fn compresses(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step, FilterStep::Zstd(_)))
    }

    /// Whether the chain has neither filters nor step filters.
    pub(crate) fn passes_all(&self) -> bool {
        self.is_empty() && !self.chooses()
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
                FilterStep::User(name, function) => mapped = call(name, function, &mapped)?,
                FilterStep::Scale(a, b) => {
                    let name = format!("scale({}, {})", short(*a), short(*b));
                    mapped = numbers(mapped, &name, |array| scale(array, *a, *b))?
                }
                FilterStep::Astype(dtype) => {
                    let name = format!("astype({})", dtype.name());
                    mapped = numbers(mapped, &name, |array| convert(array, *dtype))?;
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

/// The message from a filter of the user.
fn call(name: &str, function: &Function, mapped: &Mapped) -> Result<Mapped> {
    let failed =
        |why: FilterFailure| Error::new(Kind::Filter, format!("filter '{name}' failed: {why}"));
    let mapped = within(name, || function(mapped)).map_err(failed)?;
    match fault_of_times(&mapped) {
        Some(fault) => Err(failed(fault.into())),
        None => Ok(mapped),
    }
}

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

/// Why the times of a message from a filter cannot be sent.
fn fault_of_times(mapped: &Mapped) -> Option<String> {
    let (timestamp, next) = (mapped.timestamp, mapped.next_timestamp);
    if timestamp.is_nan() {
        return Some("the timestamp that it gives is not a number".to_owned());
    }
    if timestamp.is_infinite() || next.is_some_and(f64::is_infinite) {
        return Some("a timestamp that it gives is infinite".to_owned());
    }
    let next = next.filter(|next| next.is_nan() || *next < timestamp)?;
    Some(format!(
        "the next timestamp that it gives is {next:?}, before {timestamp:?}"
    ))
}

/// Undoes the codings of a received message.
pub(crate) fn decode(body: SharedBuffer, codings: &[(Codec, u64)]) -> Result<SharedBuffer> {
    let mut codings = codings.iter().rev();
    codings.try_fold(body, |body, (Codec::Zstd, length)| {
        Ok(decompress(&body, *length)?.into())
    })
}

/// The `length` bytes that were compressed to `body`.
fn decompress(body: &[u8], length: u64) -> Result<Buffer> {
    // The memory for a false length is reserved, but not touched: the system gives pages for the
    // real bytes alone.
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(damaged)?;
    let bound = zstd::bulk::Decompressor::upper_bound(body);
    if bound.is_some_and(|bound| (bound as u64) < length) {
        return Err(damaged(format!("it claims {length} bytes")));
    }
    let mut filling = Filling::new(length).map_err(no_memory)?;
    while !filling.rest().is_empty() {
        match decoder.read(filling.rest()).map_err(damaged)? {
            0 => return Err(damaged("it ends early")),
            count => filling.advance(count),
        }
    }
    match decoder.read(&mut [0]).map_err(damaged)? {
        0 => Ok(filling.finish()),
        _ => Err(damaged(format!("it goes on behind {length} bytes"))),
    }
}

fn damaged(why: impl fmt::Display) -> Error {
    let text = format!("a compressed message is damaged: {why}");
    Error::new(Kind::TypeMismatch, text)
}

pub(crate) fn no_memory(error: io::Error) -> Error {
    Error::new(Kind::NoMemory, error.to_string())
}

pub(crate) fn compress(body: &[u8], level: i32) -> Result<Buffer> {
    let bytes = zstd::bulk::compress(body, level).map_err(zstd_failed)?;
    Buffer::gather(&[IoSlice::new(&bytes)]).map_err(no_memory)
}

/// How many bytes pieces become when each is compressed.
pub(crate) fn compress_pieces(pieces: &[&[u8]], level: i32) -> Result<u64> {
    let mut compressor = zstd::bulk::Compressor::new(level).map_err(zstd_failed)?;
    let mut lengths = pieces
        .iter()
        .map(|piece| compressor.compress(piece).map(|bytes| bytes.len() as u64));
    lengths
        .try_fold(0, |sum, length| Ok(sum + length?))
        .map_err(zstd_failed)
}

fn zstd_failed(error: io::Error) -> Error {
    Error::new(Kind::Filter, format!("zstd failed: {error}"))
}

/// Numbers of a type.
struct Numbers<'a> {
    dtype: Dtype,
    elements: &'a [u8],
}

/// Why a filter cannot change numbers.
#[derive(Debug, thiserror::Error)]
enum NumberFilterError {
    #[error("true and false are no numbers")]
    Flags,
    #[error("{} to {} would lose the imaginary part", .from.name(), .to.name())]
    Imaginary { from: Dtype, to: Dtype },
    #[error("{} cannot hold what becomes of {before}", .dtype.name())]
    NotFinite { dtype: Dtype, before: ElementValue },
    #[error("{} cannot hold {number}", .dtype.name())]
    TooLarge { dtype: Dtype, number: ElementValue },
    #[error("the message carries a structure, and no array or number")]
    Structure,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Memory(#[from] io::Error),
}

/// Numbers that a filter has changed, and their type.
type ChangedNumbers = std::result::Result<(Dtype, Filling), NumberFilterError>;

/// Runs a filter that changes the elements of an array, or a number sent alone. Nil passes.
fn numbers(
    mut mapped: Mapped,
    name: &str,
    change: impl FnOnce(Numbers<'_>) -> ChangedNumbers,
) -> Result<Mapped> {
    let failed = |why: NumberFilterError| {
        let text = format!("filter {name} cannot be applied: {why}");
        Error::new(Kind::Filter, text)
    };
    match &mut mapped.content {
        Content::Nil => {}
        Content::Structure => {
            let (dtype, element) = element(&mapped.body).map_err(failed)?;
            let elements = &element;
            let (dtype, filling) = change(Numbers { dtype, elements }).map_err(failed)?;
            let changed = filling.finish();
            // Complex numbers are no numbers of structures.
            let Some(value) = number(dtype, dtype.read(&changed)) else {
                mapped.content = Content::Array(Layout::new(dtype, StorageOrder::C, []));
                mapped.body = changed.into();
                return Ok(mapped);
            };
            let encoded = structure::encode(&value).map_err(|error| failed(error.into()))?;
            let parts = encoded.parts.iter();
            let parts: Vec<_> = parts.map(|part| IoSlice::new(part.as_ref())).collect();
            mapped.body = Buffer::gather(&parts).map_err(no_memory)?.into();
        }
        Content::Array(layout) => {
            let (dtype, elements) = (layout.dtype, &mapped.body[..]);
            let (dtype, filling) = change(Numbers { dtype, elements }).map_err(failed)?;
            layout.dtype = dtype;
            mapped.body = filling.finish().into();
        }
    }
    Ok(mapped)
}

/// A number of a structure, as an element of an array.
fn element(body: &[u8]) -> std::result::Result<(Dtype, Vec<u8>), NumberFilterError> {
    match structure::decode(body)? {
        Value::Bool(flag) => Ok((Dtype::Bool, vec![flag.into()])),
        Value::Int(number) => Ok((Dtype::Int64, number.to_le_bytes().into())),
        Value::UInt(number) => Ok((Dtype::UInt64, number.to_le_bytes().into())),
        Value::Float(number) => Ok((Dtype::Float64, number.to_le_bytes().into())),
        Value::Float32(number) => Ok((Dtype::Float32, number.to_le_bytes().into())),
        _ => Err(NumberFilterError::Structure),
    }
}

/// An element of an array as a structure; `None` for complex numbers.
fn number(dtype: Dtype, number: ElementValue) -> Option<Value<Vec<u8>>> {
    Some(match number {
        ElementValue::Bool(flag) => Value::Bool(flag),
        ElementValue::Whole(x) => i64::try_from(x).map_or(Value::UInt(x as u64), Value::Int),
        ElementValue::Real(x) if dtype == Dtype::Float32 => Value::Float32(x as f32),
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
fn scale(numbers: Numbers<'_>, a: f64, b: f64) -> ChangedNumbers {
    let dtype = match numbers.dtype.kind() {
        ElementKind::Bool => return Err(NumberFilterError::Flags),
        ElementKind::Float | ElementKind::Complex => numbers.dtype,
        ElementKind::Signed | ElementKind::Unsigned => Dtype::Float64,
    };
    numbers.each(dtype, |number| match number {
        ElementValue::Bool(_) => number,
        ElementValue::Whole(x) => ElementValue::Real(a * x as f64 + b),
        ElementValue::Real(x) => ElementValue::Real(a * x + b),
        ElementValue::Complex(re, im) => ElementValue::Complex(a * re + b, a * im),
    })
}

/// Converts to another type. Rounds reals to shorter reals, and cuts reals towards zero to whole
/// numbers. Refuses a number that the type cannot hold, and the cut of complex numbers to real
/// numbers.
fn convert(numbers: Numbers<'_>, to: Dtype) -> ChangedNumbers {
    let from = numbers.dtype;
    if from.is_complex() && !to.is_complex() {
        return Err(NumberFilterError::Imaginary { from, to });
    }
    numbers.each(to, |number| number)
}

impl Numbers<'_> {
    /// Changes each number, and writes the number with the type `dtype`.
    fn each(&self, dtype: Dtype, change: impl Fn(ElementValue) -> ElementValue) -> ChangedNumbers {
        let count = self.elements.len() / self.dtype.size();
        let mut filling = Filling::new((count * dtype.size()) as u64)?;
        let old = self.elements.chunks_exact(self.dtype.size());
        let new = filling.rest().chunks_exact_mut(dtype.size());
        for (old, new) in old.zip(new) {
            let before = self.dtype.read(old);
            let number = change(before);
            if !number.is_finite() && before.is_finite() {
                return Err(NumberFilterError::NotFinite { dtype, before });
            }
            let cast = dtype.cast(number);
            let written = cast.and_then(|number| dtype.write(number, new));
            written.ok_or(NumberFilterError::TooLarge { dtype, number })?;
        }
        filling.advance(count * dtype.size());
        Ok((dtype, filling))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compressed bytes of a peer, some of them changed, with a false length, are decompressed
        /// or refused.
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
            // With two codings, the length of the inner coding is correct, or is the given false
            // length.
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
            let elements = &element;
            let scaled = scale(Numbers { dtype, elements }, a, b);
            let scaled = scaled.map(|(dtype, filling)| dtype.read(&filling.finish()).to_string());
            scaled.map_err(|why| why.to_string())
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
            fault_of_times(&Mapped {
                content: Content::Nil,
                body,
                timestamp,
                next_timestamp,
            })
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
