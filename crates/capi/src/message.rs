//! Messages. Any number of owners share a message.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use titin_path::ReceivedMessage;
use titin_runtime::{
    Content, Error, IncomingMessage, Kind, Layout, Mapped, MessageParts, Meta, Overlay,
    ReceivedAtOnce, Result, SharedBuffer, structure,
};

use crate::array::{ExpectedArray, elements_of, extent, filling, order_number, stride};
use crate::error::{Mismatch, elements, null, status, value};
use crate::handle::{Port, Recipient};
use crate::input;
use crate::language::{Getter, Language};
use crate::text::Text;
use crate::value::read::pointer;
use crate::value::{Node, Value, encode};

/// A message. Texts and values for C are made at the first call that asks for the text or value.
pub struct Message {
    /// The number of shares that the program owns.
    shares: AtomicUsize,
    /// Times, metadata and data. The content in the metadata gives the kind of the data.
    arrived: IncomingMessage,
    origin: Origin,
    overlay: Option<Arc<Overlay>>,
    for_c: OnceLock<Box<ForC>>,
}

/// The parts of a message as C sees the parts. Most programs ask for none: a message is made faster
/// without a place for each.
#[derive(Default)]
struct ForC {
    /// The origin in words.
    origin: OnceLock<Text>,
    names: OnceLock<Vec<Text>>,
    tree: OnceLock<Value>,
    settings: OnceLock<Value>,
}

thread_local! {
    /// Memory for the thread's next message.
    static SPARE: Cell<Option<Box<Message>>> = const { Cell::new(None) };
}

/// Where a message is from. An error that the program might ignore goes to the origin.
pub(crate) enum Origin {
    /// Made by the program.
    Made,
    /// Received by a port and slot.
    Received {
        recipient: Recipient,
        slot: Option<u32>,
    },
    /// Received from a path, which the text names.
    Path(Text),
    /// Given to a filter. The filter fails with the first error of the message.
    Filtered(Arc<OnceLock<Error>>),
}

impl ForC {
    fn with_tree(tree: Value) -> Box<Self> {
        Box::new(ForC {
            tree: tree.into(),
            ..ForC::default()
        })
    }
}

impl Origin {
    /// Received by a port and slot.
    #[inline(always)]
    pub(crate) fn received(port: &Port, slot: Option<u32>) -> Self {
        Origin::Received {
            recipient: port.recipient,
            slot,
        }
    }
}

impl Message {
    #[inline(always)]
    fn new(
        (timestamp, next_timestamp): (f64, Option<f64>),
        parts: MessageParts,
        origin: Origin,
    ) -> Self {
        let MessageParts {
            meta,
            body,
            structure,
            settings: overlay,
        } = parts;
        let for_c = match structure {
            None => OnceLock::new(),
            Some(plain) => OnceLock::from(ForC::with_tree(Value::received(plain, &body))),
        };
        let mut arrived = IncomingMessage {
            meta,
            body,
            ..IncomingMessage::default()
        };
        (arrived.head.timestamp, arrived.head.next_timestamp) = (timestamp, next_timestamp);
        Message {
            shares: AtomicUsize::new(1),
            arrived,
            origin,
            overlay,
            for_c,
        }
    }

    #[inline(always)]
    fn received(message: titin_runtime::Message, origin: Origin) -> Self {
        let times = (message.timestamp, message.next_timestamp);
        Message::new(times, message.into_parts(), origin)
    }

    /// A message for a filter, or a message made by the program.
    pub(crate) fn mapped(mapped: &Mapped, origin: Origin) -> Result<Self> {
        let Mapped {
            content,
            body,
            timestamp,
            next_timestamp,
        } = mapped;
        let structure = structure_of(content, body)?;
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
        Ok(Message::new((*timestamp, *next_timestamp), parts, origin))
    }

    /// A message received from a path. `path` is the path as errors name it.
    pub(crate) fn of_path(received: ReceivedMessage, path: String) -> Result<Self> {
        let ReceivedMessage {
            meta, bytes: body, ..
        } = received;
        let parts = MessageParts {
            structure: structure_of(&meta.content, &body)?,
            meta,
            body,
            settings: None,
        };
        Ok(Message::new(
            (0.0, None),
            parts,
            Origin::Path(Text::new(path)),
        ))
    }

    /// A pointer that owns a share of the message.
    pub(crate) fn into_raw(self) -> *mut Message {
        Box::into_raw(Box::new(self))
    }

    /// Gives a share up; true if the share was the last, and the message is to be freed.
    #[inline(always)]
    fn give_up(&self) -> bool {
        // The owner of the only share is the only one to make further shares, so no addition can
        // come between. A look takes a tenth of the time of an atomic subtraction.
        self.shares.load(Ordering::Acquire) == 1 || self.shares.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Receives a message by the short way. With `waits`, waits a moment for the message. Gives the
    /// memory back, as the outer error, if the call has to go the long way.
    #[inline(always)]
    pub(crate) fn receive_repeated(
        mut self: Box<Self>,
        port: &Port,
        slot: Option<u32>,
        waits: bool,
    ) -> std::result::Result<Result<Box<Self>>, Box<Self>> {
        let instance = &port.shared.instance;
        match instance.receive_repeated(port.id, slot, waits, &mut self.arrived) {
            None => Err(self),
            Some(received) => {
                Ok(received.map(|received| self.received_at_once(received, port, slot)))
            }
        }
    }

    /// The message that a call by the short way has received into this memory.
    #[inline(always)]
    pub(crate) fn received_at_once(
        mut self: Box<Self>,
        received: ReceivedAtOnce,
        port: &Port,
        slot: Option<u32>,
    ) -> Box<Self> {
        match received {
            ReceivedAtOnce::InPlace => {
                self.origin = Origin::received(port, slot);
                self
            }
            ReceivedAtOnce::Other(message) => self.holding(message, port, slot),
        }
    }

    /// The memory that a call by the short way writes a message to.
    #[inline(always)]
    pub(crate) fn arrived_mut(&mut self) -> &mut IncomingMessage {
        &mut self.arrived
    }

    /// A message received by a port and slot, in this memory.
    #[inline(always)]
    pub(crate) fn holding(
        mut self: Box<Self>,
        message: titin_runtime::Message,
        port: &Port,
        slot: Option<u32>,
    ) -> Box<Self> {
        *self = Message::received(message, Origin::received(port, slot));
        self
    }

    /// Memory for a message: that of the thread's last freed message, or new memory.
    #[inline(always)]
    pub(crate) fn spare() -> Box<Self> {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        spare.unwrap_or_else(|| {
            let nothing = MessageParts {
                meta: IncomingMessage::default().meta,
                body: SharedBuffer::default(),
                structure: None,
                settings: None,
            };
            Box::new(Message::new((0.0, None), nothing, Origin::Made))
        })
    }

    /// Keeps the memory of a message that nothing uses any more, for the thread's next message: to
    /// get and to free memory would take a tenth of the time of a small message.
    #[inline(always)]
    pub(crate) fn keep_memory(mut self: Box<Self>) {
        if self.for_c.get().is_none() && self.overlay.is_none() {
            self.arrived.body.keep_if_small();
            *self.shares.get_mut() = 1;
            let _ = SPARE.try_with(|spare| spare.set(Some(self)));
        }
    }

    pub(crate) fn timestamp(&self) -> f64 {
        self.arrived.head.timestamp
    }

    pub(crate) fn next(&self) -> Option<f64> {
        self.arrived.head.next_timestamp
    }

    pub(crate) fn body(&self) -> &SharedBuffer {
        &self.arrived.body
    }

    fn for_c(&self) -> &ForC {
        self.for_c.get_or_init(Box::default)
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        match &self.arrived.meta.content {
            Content::Array(layout) => Some(layout),
            _ => None,
        }
    }

    /// The array, if the array is as expected.
    fn array(
        &self,
        expected: &ExpectedArray<'_>,
    ) -> std::result::Result<(&Layout, *const c_void), Mismatch> {
        match self.layout() {
            Some(layout) => {
                expected.check(layout)?;
                Ok((layout, pointer(self.body())))
            }
            None => Err(expected.mismatch(self.tree(), Getter::of_message)),
        }
    }

    /// The error for a program that takes the data for another type. The origin keeps the error,
    /// since the program might ignore the error.
    fn refused(&self, mismatch: Mismatch) -> Mismatch {
        match &self.origin {
            Origin::Made => mismatch,
            Origin::Path(path) => mismatch
                .map(|error| Error::new(error.kind, format!("{}: {}", path.as_str(), error.text))),
            Origin::Received { recipient, slot } => {
                let located = mismatch.map(|error| recipient.located(*slot, error));
                recipient.hold(&located.in_language(Language::C));
                located
            }
            Origin::Filtered(failed) => failed
                .get_or_init(|| mismatch.in_language(Language::C))
                .clone()
                .into(),
        }
    }

    /// The port of the message, and the message's sender, as errors name port and sender; or the path.
    fn origin(&self) -> Option<&Text> {
        match &self.origin {
            Origin::Received { recipient, slot } => {
                let text = || Text::new(recipient.origin(*slot));
                Some(self.for_c().origin.get_or_init(text))
            }
            Origin::Path(path) => Some(path),
            Origin::Made | Origin::Filtered(_) => None,
        }
    }

    /// The data as a tree.
    fn tree(&self) -> &Value {
        self.for_c().tree.get_or_init(|| {
            let plain = match self.layout() {
                Some(layout) => structure::Value::Array(layout.clone(), 0..self.body().len()),
                // The tree of a structure was made with the message.
                None => structure::Value::Nil,
            };
            Value::received(plain, self.body())
        })
    }
}

/// The decoded data of a message whose data are a structure.
fn structure_of(
    content: &Content,
    body: &SharedBuffer,
) -> Result<Option<structure::Value<Range<usize>>>> {
    if !matches!(content, Content::Structure) {
        return Ok(None);
    }
    structure::decode(body).map(Some).map_err(|error| {
        Error::new(
            Kind::TypeMismatch,
            format!("the message cannot be read: {error}"),
        )
    })
}

/// A value as the data of a message: nil, an array, or a structure for any other value.
pub(crate) fn content(data: &Value) -> Result<(Content, SharedBuffer)> {
    let gather = |parts: &[&[u8]]| {
        let mut filling = filling(parts.iter().map(|part| part.len() as u64).sum())?;
        parts.iter().for_each(|part| filling.push(part));
        Ok(filling.finish().into())
    };
    match &data.0 {
        Node::Nil => Ok((Content::Nil, SharedBuffer::default())),
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

/// A share of a message, for code of the library that keeps the message's memory.
pub(crate) struct SharedMessage(*mut Message);

impl SharedMessage {
    /// One more share of a message.
    ///
    /// # Safety
    /// `message` is NULL or a message, and the caller owns a share.
    pub(crate) unsafe fn of(message: *mut Message) -> Result<Self> {
        // SAFETY: as the caller promises.
        unsafe { behind(message) }?;
        // SAFETY: as the caller promises.
        Ok(SharedMessage(unsafe { titin_message_retain(message) }))
    }

    /// The array that is the data of the message, of any type and shape. The elements live as long as
    /// this share.
    pub(crate) fn any_array(&self) -> Result<(&Layout, *const c_void)> {
        // SAFETY: this share keeps the message.
        let message = unsafe { &*self.0 };
        match message.layout() {
            Some(layout) => Ok((layout, pointer(message.body()))),
            None => {
                let text = format!("expected an array, found {}", message.tree().summary());
                let error = Error::new(Kind::TypeMismatch, text);
                Err(message.refused(error.into()).in_language(Language::C))
            }
        }
    }
}

impl Drop for SharedMessage {
    fn drop(&mut self) {
        // SAFETY: the share was taken by `SharedMessage::of`, and ends here.
        unsafe { titin_message_free(self.0) };
    }
}

/// The message behind a pointer.
///
/// # Safety
/// `message` is NULL or a message that is not freed while the result is used.
unsafe fn behind<'a>(message: *const Message) -> Result<&'a Message> {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.ok_or_else(|| null("message", "titin_receive"))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_retain(message: *mut Message) -> *mut Message {
    if !message.is_null() {
        // SAFETY: `message` came from `Message::into_raw`, and the caller owns a share.
        unsafe { &*message }.shares.fetch_add(1, Ordering::Relaxed);
    }
    message
}

/// # Safety
/// `message` is NULL or a message. The caller owns a share of the message, and gives the share up.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn titin_message_free(message: *mut Message) {
    let _ = status(|| {
        // SAFETY: `message` is NULL or came from `Message::into_raw`, and after the last share was
        // given up there is no other share.
        unsafe {
            if message.as_ref().is_some_and(Message::give_up) {
                Box::from_raw(message).keep_memory();
            }
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
        Some(Origin::Received { recipient, .. }) => recipient.name().as_ptr(),
        _ => std::ptr::null(),
    }
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_origin(message: *const Message) -> *const c_char {
    // SAFETY: as the caller promises.
    let message = unsafe { message.as_ref() };
    message
        .and_then(Message::origin)
        .map_or(std::ptr::null(), Text::as_ptr)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_timestamp(message: *const Message) -> f64 {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.map_or(f64::NAN, |message| message.timestamp())
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_has_next(message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }.map_or(0, |message| c_int::from(message.next().is_some()))
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_next_timestamp(message: *const Message) -> f64 {
    // SAFETY: as the caller promises.
    unsafe { message.as_ref() }
        .and_then(Message::next)
        .unwrap_or(input::NO_NEXT)
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_kind(message: *const Message) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        let message = unsafe { behind(message) }?;
        match message.arrived.meta.content {
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
            .for_c()
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
/// `message` is NULL or a message; `extents` is NULL or points to `rank` writable numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_array(
    message: *const Message,
    dtype: c_int,
    rank: c_int,
    extents: *mut i64,
    order: c_int,
) -> *const c_void {
    elements(|| {
        // SAFETY: as the caller promises.
        let message = unsafe { message.as_ref() };
        let found = |expected: &ExpectedArray<'_>| {
            message
                .ok_or_else(|| null("message", "titin_receive"))?
                .array(expected)
        };
        // SAFETY: as the caller promises.
        let data = unsafe { elements_of((dtype, rank, extents, order), found) };
        data.map_err(|mismatch| match message {
            Some(message) => message.refused(mismatch),
            None => mismatch,
        })
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_raw_data(message: *const Message) -> *const c_void {
    // SAFETY: as the caller promises.
    let array = unsafe { message.as_ref() }.filter(|message| message.layout().is_some());
    array.map_or(std::ptr::null(), |message| pointer(message.body()))
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
        let message = unsafe { behind(message) }?;
        Ok(&raw const *message.tree())
    })
}

/// # Safety
/// `message` is NULL or a message.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_message_settings(message: *const Message) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let message = unsafe { behind(message) }?;
        let overlay = message.overlay.as_ref();
        let settings = overlay.map(|overlay| {
            message
                .for_c()
                .settings
                .get_or_init(|| Value::overlay(overlay))
        });
        Ok(settings.map_or(std::ptr::null(), |settings| &raw const *settings))
    })
}
