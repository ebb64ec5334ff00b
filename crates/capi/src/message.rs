//! Messages, which any number of owners share.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use titin_runtime::{
    Buffer, Content, Error, Kind, Layout, Mapped, MessageParts, Meta, Overlay, Result, structure,
};

use crate::array::{Expected, OTHERWISE, extent, filling, look, order_number, stride};
use crate::error::{null, status, value};
use crate::handle::Recipient;
use crate::input;
use crate::text::Text;
use crate::value::number::getter;
use crate::value::read::pointer;
use crate::value::{Node, Value, encode};

/// A message with what C asks of it, made when it asks.
pub struct Message {
    pub(crate) timestamp: f64,
    pub(crate) next: Option<f64>,
    /// Of which the content is what the data are.
    meta: Arc<Meta>,
    pub(crate) body: Arc<Buffer>,
    origin: Origin,
    overlay: Option<Arc<Overlay>>,
    names: OnceLock<Vec<Text>>,
    tree: OnceLock<Value>,
    settings: OnceLock<Value>,
}

/// Where a message is from, which is where an error goes that the program may not look at.
pub(crate) enum Origin {
    Made,
    /// Received by the port at this place.
    Received {
        recipient: Arc<Recipient>,
        port: u32,
        slot: Option<u32>,
    },
    /// A filter looks at it, which such an error fails.
    Filtered(Arc<OnceLock<Error>>),
}

impl Message {
    #[inline(always)]
    fn new(timestamp: f64, next: Option<f64>, parts: MessageParts, origin: Origin) -> Self {
        let MessageParts {
            meta,
            body,
            structure,
            settings: overlay,
        } = parts;
        let tree = structure
            .map(|plain| Value::received(plain, &body))
            .map_or_else(OnceLock::new, OnceLock::from);
        let (names, settings) = (OnceLock::new(), OnceLock::new());
        Message {
            timestamp,
            next,
            meta,
            body,
            origin,
            overlay,
            names,
            tree,
            settings,
        }
    }

    #[inline(always)]
    pub(crate) fn received(message: titin_runtime::Message, origin: Origin) -> Self {
        let (timestamp, next) = (message.timestamp, message.next_timestamp);
        Message::new(timestamp, next, message.into_parts(), origin)
    }

    /// What a filter looks at, or a message of the user's making.
    pub(crate) fn mapped(mapped: &Mapped, origin: Origin) -> Result<Self> {
        let Mapped {
            content,
            body,
            timestamp,
            next_timestamp,
        } = mapped;
        let structure = match content {
            Content::Structure => Some(structure::decode(body).map_err(|error| {
                Error::new(
                    Kind::TypeMismatch,
                    format!("the message cannot be read: {error}"),
                )
            })?),
            _ => None,
        };
        let meta = Arc::new(Meta {
            content: content.clone(),
            ..Meta::default()
        });
        let parts = MessageParts {
            meta,
            body: body.clone(),
            structure,
            settings: None,
        };
        Ok(Message::new(*timestamp, *next_timestamp, parts, origin))
    }

    /// A pointer that owns a share of the message.
    pub(crate) fn into_raw(self) -> *mut Message {
        Arc::into_raw(Arc::new(self)).cast_mut()
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        match &self.meta.content {
            Content::Array(layout) => Some(layout),
            _ => None,
        }
    }

    /// The array, if it is what is expected.
    fn array(&self, expected: &Expected<'_>) -> Result<(&Layout, *const c_void)> {
        if let Some(layout) = self.layout() {
            expected.check(layout)?;
            return Ok((layout, pointer(&self.body)));
        }
        let tree = self.tree();
        let otherwise = match tree.number() {
            None => OTHERWISE.to_owned(),
            Some(number) => format!("read it with {} of titin_message_value", getter(number)),
        };
        Err(expected.mismatch(&tree.what(), &otherwise))
    }

    /// The error of a program that takes it for something else, kept where the program need not look at it.
    fn refused(&self, error: Error) -> Error {
        match &self.origin {
            Origin::Made => error,
            Origin::Received {
                recipient,
                port,
                slot,
            } => {
                let error = recipient.located(*port, *slot, error);
                recipient.hold(&error);
                error
            }
            Origin::Filtered(failed) => failed.get_or_init(|| error).clone(),
        }
    }

    /// The data as a tree.
    fn tree(&self) -> &Value {
        self.tree.get_or_init(|| {
            let plain = match self.layout() {
                Some(layout) => structure::Value::Array(layout.clone(), 0..self.body.len()),
                // A structure is there from the beginning.
                None => structure::Value::Nil,
            };
            Value::received(plain, &self.body)
        })
    }
}

/// What a value becomes as the data of a message: an array goes as such, everything else as a structure.
pub(crate) fn content(data: &Value) -> Result<(Content, Arc<Buffer>)> {
    let gather = |parts: &[&[u8]]| {
        let mut filling = filling(parts.iter().map(|part| part.len() as u64).sum())?;
        parts.iter().for_each(|part| filling.push(part));
        Ok(Arc::new(filling.finish()))
    };
    match &data.0 {
        Node::Nil => Ok((Content::Nil, Arc::default())),
        Node::Array(array) => Ok((
            Content::Array(array.layout.clone()),
            gather(&[array.data.as_ref()])?,
        )),
        _ => {
            let plain = data.plain();
            let encoded = encode(&plain)?;
            let parts: Vec<&[u8]> = encoded.parts.iter().map(AsRef::as_ref).collect();
            Ok((Content::Structure, gather(&parts)?))
        }
    }
}

/// # Safety
/// `message` is NULL or a message that lives as long as the result is used.
unsafe fn layout<'a>(message: *const Message) -> Option<&'a Layout> {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.and_then(Message::layout)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_retain(message: *mut Message) -> *mut Message {
    if !message.is_null() {
        // SAFETY: it came from `Message::into_raw`, and the caller owns a share.
        unsafe { Arc::increment_strong_count(message.cast_const()) };
    }
    message
}

/// # Safety
/// `message` is NULL or a message of which the caller owns a share, which it gives up.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn titin_message_free(message: *mut Message) {
    let _ = status(|| {
        if !message.is_null() {
            // SAFETY: it came from `Message::into_raw`, and the caller gives up its share.
            unsafe { Arc::decrement_strong_count(message.cast_const()) };
        }
        Ok(())
    });
}

/// # Safety
/// `data` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_new(
    data: *const Value,
    timestamp: f64,
    next: f64,
) -> *mut Message {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let data = unsafe { data.as_ref() }.ok_or_else(|| null("value", "a titin_new_ call"))?;
        let (content, body) = content(data)?;
        let next_timestamp = input::next(next);
        Ok(Message::mapped(
            &Mapped {
                content,
                body,
                timestamp,
                next_timestamp,
            },
            Origin::Made,
        )?
        .into_raw())
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_port(message: *const Message) -> *const c_char {
    // SAFETY: as the caller promises.
    match unsafe { message.as_ref() }.map(|message| &message.origin) {
        Some(Origin::Received {
            recipient, port, ..
        }) => recipient.port(*port).as_ptr(),
        _ => std::ptr::null(),
    }
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_timestamp(message: *const Message) -> f64 {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.map_or(f64::NAN, |message| message.timestamp)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_has_next(message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.map_or(0, |message| c_int::from(message.next.is_some()))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_next_timestamp(message: *const Message) -> f64 {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }
        .and_then(|message| message.next)
        .unwrap_or(input::NO_NEXT)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_kind(message: *const Message) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        let message =
            unsafe { message.as_ref() }.ok_or_else(|| null("message", "titin_receive"))?;
        match message.meta.content {
            Content::Structure => Ok(message.tree().kind()),
            Content::Array(_) => Ok(8),
            Content::Nil => Ok(1),
        }
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_dtype(message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }.map_or(0, |layout| layout.dtype as c_int)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_rank(message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }.map_or(0, |layout| layout.shape.len() as c_int)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_extent(message: *const Message, dimension: c_int) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }.map_or(0, |layout| extent(layout, dimension))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_stride(message: *const Message, dimension: c_int) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }.map_or(0, |layout| stride(layout, dimension))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_order(message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }.map_or(0, |layout| order_number(layout.order))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_index_name(
    message: *const Message,
    dimension: c_int,
) -> *const c_char {
    // SAFETY: as the caller promises.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return std::ptr::null();
    };
    let names = message.layout().map(|layout| {
        message
            .names
            .get_or_init(|| layout.names.iter().map(Text::new).collect())
            .as_slice()
    });
    let name = usize::try_from(dimension)
        .ok()
        .and_then(|index| names?.get(index));
    name.map_or(std::ptr::null(), Text::as_ptr)
}

/// # Safety
/// `message` is NULL or a message; `extents` is NULL or points to `rank` numbers that may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_array(
    message: *const Message,
    dtype: c_int,
    rank: c_int,
    extents: *mut i64,
    order: c_int,
) -> *const c_void {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let message = unsafe { message.as_ref() };
        let found = |expected: &Expected<'_>| {
            message
                .ok_or_else(|| null("message", "titin_receive"))?
                .array(expected)
        };
        // SAFETY: as the caller promises.
        let data = unsafe { look((dtype, rank, extents, order), found) };
        data.map_err(|error| {
            message.map_or_else(|| error.clone(), |message| message.refused(error.clone()))
        })
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_raw_data(message: *const Message) -> *const c_void {
    // SAFETY: as the caller promises.
    let array = unsafe { message.as_ref() }.filter(|message| message.layout().is_some());
    array.map_or(std::ptr::null(), |message| pointer(&message.body))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_elements(message: *const Message) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }
        .and_then(Layout::elements)
        .unwrap_or(0) as i64
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_nbytes(message: *const Message) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { layout(message) }
        .and_then(Layout::bytes)
        .unwrap_or(0) as i64
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_value(message: *const Message) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let message =
            unsafe { message.as_ref() }.ok_or_else(|| null("message", "titin_receive"))?;
        Ok(&raw const *message.tree())
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_settings(message: *const Message) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let message =
            unsafe { message.as_ref() }.ok_or_else(|| null("message", "titin_receive"))?;
        let overlay = message.overlay.as_ref();
        let settings =
            overlay.map(|overlay| message.settings.get_or_init(|| Value::overlay(overlay)));
        Ok(settings.map_or(std::ptr::null(), |settings| &raw const *settings))
    })
}
