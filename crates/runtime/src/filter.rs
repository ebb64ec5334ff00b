//! Filters on a conduit: what happens to a message on its way, and on which side of the wire.
//!
//! A chain is cut in two. Its head, up to the last filter that makes a message smaller or was pinned to the sender,
//! runs before the wire; the rest after it. `last`, `repeat` and `pad` choose messages rather than change them: they
//! belong to the receiving end, and since they choose by steps they commute with all that change data or times.

use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

use half::f16;
use titin_model::{Filter, FilterKind};
use titin_transport::{Buffer, Filling};
use titin_wire::control::UserFilter;
use titin_wire::meta::{Codec, Content, Dtype, Layout, Order};
use titin_wire::structure::{self, Value};

use crate::{Error, Kind, Result};

/// A message inside a filter of the user's.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// What the data are.
    pub content: Content,
    /// The data.
    pub body: Arc<Buffer>,
    /// Simulated time.
    pub timestamp: f64,
    /// Simulated time of the next message, if known.
    pub next_timestamp: Option<f64>,
}

/// A user's filter, ready to be called: one message in, one out, or why not.
pub type Function = Arc<dyn Fn(&Mapped) -> std::result::Result<Mapped, String> + Send + Sync>;

type Find = dyn Fn(&UserFilter) -> std::result::Result<Function, String> + Send + Sync;

/// How user's filters are found by this program's language.
#[derive(Clone, Default)]
pub struct Functions(Option<Arc<Find>>);

impl Functions {
    /// Filters are found by this function.
    pub fn new(
        find: impl Fn(&UserFilter) -> std::result::Result<Function, String> + Send + Sync + 'static,
    ) -> Self {
        Functions(Some(Arc::new(find)))
    }

    fn find(&self, filter: &UserFilter) -> std::result::Result<Function, String> {
        match &self.0 {
            Some(find) => find(filter),
            None => Err("this program's language has no way to call it".to_owned()),
        }
    }
}

/// What one end of a conduit does to messages, in order.
#[derive(Default)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    /// Over how many timelines only the last message passes.
    pub(crate) lasts: usize,
    /// Give the last one again.
    pub(crate) repeat: bool,
    /// In how many timelines a message is given once only.
    pub(crate) pads: usize,
}

enum Step {
    Zstd(i32),
    Scale(f64, f64),
    Astype(Dtype),
    User(String, Function),
}

const LEVEL: i32 = 3;

impl Chain {
    /// The part of a conduit's filters that runs at this end.
    pub(crate) fn new(
        filters: &[Filter],
        sends: bool,
        defined: &std::collections::BTreeMap<String, UserFilter>,
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
                FilterKind::Zstd(level) => chain.steps.push(Step::Zstd(level.unwrap_or(LEVEL))),
                FilterKind::Scale { a, b } => chain.steps.push(Step::Scale(*a, *b)),
                FilterKind::Astype(wanted) => {
                    let dtype = Dtype::from_name(wanted.name()).ok_or_else(|| {
                        Error::new(Kind::Filter, format!("astype({}) is not known here", wanted.name()))
                    })?;
                    chain.steps.push(Step::Astype(dtype));
                }
                FilterKind::User(name) => {
                    let name = name.as_str();
                    let found = defined.get(name).ok_or_else(|| "it is not defined".to_owned());
                    let function = found.and_then(|filter| functions.find(filter)).map_err(|why| {
                        Error::new(Kind::Filter, format!("filter '{name}' cannot be called here: {why}"))
                    })?;
                    chain.steps.push(Step::User(name.to_owned(), function));
                }
            }
        }
        Ok(chain)
    }

    /// Whether it chooses among messages.
    pub(crate) fn chooses(&self) -> bool {
        self.lasts > 0 || self.follows()
    }

    /// Whether the receiver is given messages by where its own steps are.
    pub(crate) fn follows(&self) -> bool {
        self.repeat || self.pads > 0
    }

    /// Whether nothing is done to the data.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs the steps. Compression is the last one before the wire; its codings are returned.
    pub(crate) fn apply(&self, mut mapped: Mapped) -> Result<(Mapped, Vec<(Codec, u64)>)> {
        let mut codings = Vec::new();
        for step in &self.steps {
            match step {
                Step::Zstd(level) => {
                    codings.push((Codec::Zstd, mapped.body.len() as u64));
                    mapped.body = Arc::new(compress(&mapped.body, *level)?);
                }
                Step::User(name, function) => {
                    mapped = function(&mapped)
                        .map_err(|why| Error::new(Kind::Filter, format!("filter '{name}' failed: {why}")))?;
                }
                Step::Scale(a, b) => {
                    mapped = numbers(mapped, &format!("scale({a}, {b})"), |l, e| scale(l, e, *a, *b))?
                }
                Step::Astype(dtype) => {
                    mapped =
                        numbers(mapped, &format!("astype({})", dtype.name()), |l, e| convert(l, e, *dtype))?;
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

/// Undoes the codings of a message that came in.
pub(crate) fn decode(body: Arc<Buffer>, codings: &[(Codec, u64)]) -> Result<Arc<Buffer>> {
    codings.iter().rev().try_fold(body, |body, (Codec::Zstd, length)| {
        let damaged =
            |why: String| Error::new(Kind::TypeMismatch, format!("a compressed message is damaged: {why}"));
        // The memory for a false length is asked for, but not touched: pages come with what is really there.
        let mut decoder =
            zstd::stream::read::Decoder::with_buffer(&body[..]).map_err(|e| damaged(e.to_string()))?;
        let honest = zstd::bulk::Decompressor::upper_bound(&body).is_none_or(|bound| bound as u64 >= *length);
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
            Ok(0) => Ok(Arc::new(filling.finish())),
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

/// Runs a filter that changes an array's elements, or a number that is sent by itself; nil passes.
fn numbers(
    mut mapped: Mapped,
    name: &str,
    change: impl FnOnce(&Layout, &[u8]) -> std::result::Result<(Dtype, Filling), String>,
) -> Result<Mapped> {
    let failed = |why: String| Error::new(Kind::Filter, format!("filter {name} cannot be applied: {why}"));
    match &mut mapped.content {
        Content::Nil => {}
        Content::Structure => {
            let (dtype, element) = element(&mapped.body).map_err(failed)?;
            let (dtype, filling) = change(&Layout::new(dtype, Order::C, []), &element).map_err(failed)?;
            let changed = filling.finish();
            // Complex numbers are no numbers of structures.
            let Some(value) = number(read(dtype, &changed), dtype) else {
                mapped.content = Content::Array(Layout::new(dtype, Order::C, []));
                mapped.body = Arc::new(changed);
                return Ok(mapped);
            };
            let encoded = structure::encode(&value).map_err(|error| failed(error.to_string()))?;
            let parts: Vec<_> = encoded.parts.iter().map(|part| IoSlice::new(part.as_ref())).collect();
            mapped.body = Arc::new(Buffer::gather(&parts).map_err(no_memory)?);
        }
        Content::Array(layout) => {
            let (dtype, filling) = change(layout, &mapped.body).map_err(failed)?;
            layout.dtype = dtype;
            mapped.body = Arc::new(filling.finish());
        }
    }
    Ok(mapped)
}

/// A structure that is a number, as an element of an array.
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
fn number(number: Number, dtype: Dtype) -> Option<Value<Vec<u8>>> {
    Some(match number {
        Number::Whole(x) if dtype == Dtype::Bool => Value::Bool(x != 0),
        Number::Whole(x) => i64::try_from(x).map_or(Value::UInt(x as u64), Value::Int),
        Number::Real(x) => Value::Float(x),
        Number::Complex(..) => return None,
    })
}

/// One element, on its way from one type to another.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
    Complex(f64, f64),
}

/// `a x + b`. Real and complex arrays keep their type; whole numbers become float64.
fn scale(layout: &Layout, elements: &[u8], a: f64, b: f64) -> std::result::Result<(Dtype, Filling), String> {
    let dtype = match layout.dtype {
        Dtype::Bool => return Err("true and false are no numbers".to_owned()),
        Dtype::Float16 | Dtype::Float32 | Dtype::Float64 | Dtype::Complex64 | Dtype::Complex128 => {
            layout.dtype
        }
        _ => Dtype::Float64,
    };
    each(layout.dtype, elements, dtype, |number| match number {
        Number::Whole(x) => Number::Real(a * x as f64 + b),
        Number::Real(x) => Number::Real(a * x + b),
        Number::Complex(re, im) => Number::Complex(a * re + b, a * im),
    })
}

/// As NumPy's `astype`, except that complex numbers are not cut to real ones.
fn convert(layout: &Layout, elements: &[u8], dtype: Dtype) -> std::result::Result<(Dtype, Filling), String> {
    let complex = |dtype| matches!(dtype, Dtype::Complex64 | Dtype::Complex128);
    if complex(layout.dtype) && !complex(dtype) {
        return Err(format!("{} to {} would lose the imaginary part", layout.dtype.name(), dtype.name()));
    }
    each(layout.dtype, elements, dtype, |number| number)
}

fn each(
    from: Dtype,
    elements: &[u8],
    to: Dtype,
    change: impl Fn(Number) -> Number,
) -> std::result::Result<(Dtype, Filling), String> {
    let count = elements.len() / from.size();
    let mut filling = Filling::new((count * to.size()) as u64).map_err(|error| error.to_string())?;
    for (old, new) in elements.chunks_exact(from.size()).zip(filling.rest().chunks_exact_mut(to.size())) {
        write(to, change(read(from, old)), new);
    }
    filling.advance(count * to.size());
    Ok((to, filling))
}

fn read(dtype: Dtype, bytes: &[u8]) -> Number {
    macro_rules! le {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().expect("one element"))
        };
        ($type:ty, $range:expr) => {
            <$type>::from_le_bytes(bytes[$range].try_into().expect("half an element"))
        };
    }
    match dtype {
        Dtype::Bool | Dtype::UInt8 => Number::Whole(bytes[0].into()),
        Dtype::Int8 => Number::Whole(le!(i8).into()),
        Dtype::Int16 => Number::Whole(le!(i16).into()),
        Dtype::Int32 => Number::Whole(le!(i32).into()),
        Dtype::Int64 => Number::Whole(le!(i64).into()),
        Dtype::UInt16 => Number::Whole(le!(u16).into()),
        Dtype::UInt32 => Number::Whole(le!(u32).into()),
        Dtype::UInt64 => Number::Whole(le!(u64).into()),
        Dtype::Float16 => Number::Real(le!(f16).into()),
        Dtype::Float32 => Number::Real(le!(f32).into()),
        Dtype::Float64 => Number::Real(le!(f64)),
        Dtype::Complex64 => Number::Complex(le!(f32, ..4).into(), le!(f32, 4..).into()),
        Dtype::Complex128 => Number::Complex(le!(f64, ..8), le!(f64, 8..)),
    }
}

fn write(dtype: Dtype, number: Number, out: &mut [u8]) {
    let (re, im) = match number {
        Number::Whole(x) => (x as f64, 0.0),
        Number::Real(x) => (x, 0.0),
        Number::Complex(re, im) => (re, im),
    };
    // Whole numbers wrap as in NumPy; real ones are cut towards zero and held within the type.
    macro_rules! whole {
        ($type:ty) => {
            match number {
                Number::Whole(x) => x as $type,
                _ => re as $type,
            }
            .to_le_bytes()
        };
    }
    match dtype {
        Dtype::Bool => out[0] = u8::from(re != 0.0 || im != 0.0),
        Dtype::Int8 => out.copy_from_slice(&whole!(i8)),
        Dtype::Int16 => out.copy_from_slice(&whole!(i16)),
        Dtype::Int32 => out.copy_from_slice(&whole!(i32)),
        Dtype::Int64 => out.copy_from_slice(&whole!(i64)),
        Dtype::UInt8 => out.copy_from_slice(&whole!(u8)),
        Dtype::UInt16 => out.copy_from_slice(&whole!(u16)),
        Dtype::UInt32 => out.copy_from_slice(&whole!(u32)),
        Dtype::UInt64 => out.copy_from_slice(&whole!(u64)),
        Dtype::Float16 => out.copy_from_slice(&f16::from_f64(re).to_le_bytes()),
        Dtype::Float32 => out.copy_from_slice(&(re as f32).to_le_bytes()),
        Dtype::Float64 => out.copy_from_slice(&re.to_le_bytes()),
        Dtype::Complex64 => {
            out[..4].copy_from_slice(&(re as f32).to_le_bytes());
            out[4..].copy_from_slice(&(im as f32).to_le_bytes());
        }
        Dtype::Complex128 => {
            out[..8].copy_from_slice(&re.to_le_bytes());
            out[8..].copy_from_slice(&im.to_le_bytes());
        }
    }
}
