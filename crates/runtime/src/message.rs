//! Messages as programs see them: payloads to send, and received messages.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use titin_transport::{Buffer, Filling, SharedBuffer};
use titin_wire::Malformed;
use titin_wire::meta::{Content, Layout, LayoutRef, MAX_RANK, Meta, StorageOrder};
use titin_wire::settings::Overlay;
use titin_wire::structure::{self, Encoded, Value};

use crate::iteration::Iteration;
use crate::{Error, Kind, Result};

/// The data to send. The memory stays with the caller, and the caller may change the memory once
/// the call has returned.
pub struct Payload<'a> {
    what: PayloadShape<'a>,
    pub(crate) parts: SmallVec<[IoSlice<'a>; 1]>,
    /// The bytes of all parts.
    length: u64,
    /// The memory itself, where titin has lent the memory: the memory is sent without a copy.
    pub(crate) lent: Option<SharedBuffer>,
    /// Whether the message announces a field.
    field: bool,
}

/// The shape of a payload. The sender makes new metadata of the shape if the last message had
/// another shape.
#[derive(Clone, Copy)]
enum PayloadShape<'a> {
    Nil,
    Array(LayoutRef<'a>),
    Structure,
}

/// The layout of an array as a caller gives it: numbers that titin has not checked. Serves to find
/// out whether the array is laid out like the last array.
#[derive(Debug, Clone, Copy)]
pub struct CallerLayout<'a> {
    /// The number of the element type.
    pub dtype: i32,
    /// The storage order.
    pub order: StorageOrder,
    /// Extent of each dimension.
    pub shape: &'a [u64],
}

impl CallerLayout<'_> {
    /// Whether a message is an array with this layout, and no index names.
    #[inline(always)]
    pub fn is_of(&self, meta: &Meta) -> bool {
        match &meta.content {
            Content::Array(layout) => !meta.field && self.is(layout),
            _ => false,
        }
    }

    /// Whether the array has this layout, and no index names.
    #[inline(always)]
    pub(crate) fn is(&self, layout: &Layout) -> bool {
        self.dtype == layout.dtype as i32
            && self.order == layout.order
            && self.shape.len() == layout.shape.len()
            && self.shape.iter().zip(&layout.shape).all(|(a, b)| a == b)
            && layout.names.is_empty()
    }
}

/// Memory lent by titin for an array: fill the memory, then send the memory in place.
#[derive(Debug)]
pub struct Loan {
    layout: Layout,
    memory: Filling,
}

/// A filled array in lent memory. The array does not change any more.
#[derive(Debug, Clone)]
pub struct Lent {
    layout: Layout,
    memory: SharedBuffer,
}

impl Loan {
    pub(crate) fn new(layout: Layout, memory: Filling) -> Self {
        Loan { layout, memory }
    }

    /// The shape and element type of the array.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The elements, in the order of the layout, little-endian, with undefined values at first.
    /// Aligned to 64 bytes, at the same address until all messages and views of the loan are gone.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.rest()
    }

    /// Ends the filling.
    pub fn finish(self) -> Lent {
        Lent {
            layout: self.layout,
            memory: self.memory.finish().into(),
        }
    }
}

impl Lent {
    pub(crate) fn new(layout: Layout, memory: Buffer) -> Self {
        Lent {
            layout,
            memory: memory.into(),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn memory(&self) -> &SharedBuffer {
        &self.memory
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        &self.memory
    }
}

impl<'a> Payload<'a> {
    /// An empty payload.
    pub fn nil() -> Self {
        Payload {
            what: PayloadShape::Nil,
            parts: SmallVec::new(),
            length: 0,
            lent: None,
            field: false,
        }
    }

    /// A contiguous array: the elements in the order of the layout, little-endian.
    pub fn array(form: impl Into<LayoutRef<'a>>, elements: &'a [u8]) -> Self {
        Payload {
            what: PayloadShape::Array(form.into()),
            parts: smallvec![IoSlice::new(elements)],
            length: elements.len() as u64,
            lent: None,
            field: false,
        }
    }

    /// An array in lent memory. A program may send the array any number of times. Peers on this
    /// host read the array in place, without a copy.
    pub fn lent(lent: &'a Lent) -> Self {
        Payload {
            lent: Some(lent.memory.clone()),
            ..Payload::array(&lent.layout, &lent.memory)
        }
    }

    /// A structure, encoded by [`structure::encode`].
    pub fn structure(encoded: &'a Encoded<'a>) -> Self {
        let parts: SmallVec<[IoSlice<'a>; 1]> = encoded
            .parts
            .iter()
            .map(|part| IoSlice::new(part.as_ref()))
            .collect();
        Payload {
            what: PayloadShape::Structure,
            length: parts.iter().map(|part| part.len() as u64).sum(),
            parts,
            lent: None,
            field: false,
        }
    }

    /// A structure that is already encoded.
    pub(crate) fn encoded(encoded: &'a [u8]) -> Self {
        Payload {
            what: PayloadShape::Structure,
            parts: smallvec![IoSlice::new(encoded)],
            length: encoded.len() as u64,
            lent: None,
            field: false,
        }
    }

    /// The same payload in a message that announces a field.
    pub(crate) fn of_field(self) -> Self {
        Payload {
            field: true,
            ..self
        }
    }

    /// The payload of a received message, to be sent on.
    pub(crate) fn of(message: &'a Message) -> Self {
        let payload = match message.content() {
            Content::Nil => Payload::nil(),
            Content::Array(layout) => Payload::array(layout, message.bytes()),
            Content::Structure => Payload::encoded(message.bytes()),
        };
        Payload {
            field: message.meta.field,
            ..payload
        }
    }

    /// The metadata, if the payload needs nothing but content in the metadata.
    pub(crate) fn meta(&self) -> Meta {
        Meta {
            content: self.content(),
            field: self.field,
            ..Meta::default()
        }
    }

    /// The content, for the metadata.
    pub(crate) fn content(&self) -> Content {
        match self.what {
            PayloadShape::Nil => Content::Nil,
            PayloadShape::Array(form) => Content::Array(form.to_layout()),
            PayloadShape::Structure => Content::Structure,
        }
    }

    /// Whether the payload is empty.
    pub(crate) fn is_nil(&self) -> bool {
        matches!(self.what, PayloadShape::Nil)
    }

    /// Whether the given metadata have the content of the payload.
    #[inline(always)]
    pub(crate) fn is(&self, meta: &Meta) -> bool {
        match (&self.what, &meta.content) {
            (PayloadShape::Nil, Content::Nil) => true,
            (PayloadShape::Structure, Content::Structure) => self.field == meta.field,
            (PayloadShape::Array(form), Content::Array(layout)) => {
                self.field == meta.field && form.is(layout)
            }
            _ => false,
        }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Checks that the elements of an array fill the shape of the array.
    pub(crate) fn check(&self) -> Result<()> {
        let PayloadShape::Array(form) = self.what else {
            return Ok(());
        };
        let length = self.length();
        if form.shape.len() > MAX_RANK {
            let text = format!("an array of rank {}, at most {MAX_RANK}", form.shape.len());
            return Err(Error::new(Kind::Usage, text));
        }
        form.check_names()
            .map_err(|error| Error::new(Kind::Usage, error.to_string()))?;
        if form.bytes() != Some(length) {
            let text = format!(
                "{length} bytes for an array of {:?} {}",
                form.shape,
                form.dtype.name()
            );
            return Err(Error::new(Kind::Usage, text));
        }
        Ok(())
    }
}

/// A received message. The data are a view that lives as long as the message, past `close()` and
/// past the end of the sender.
#[derive(Debug, Clone)]
pub struct Message {
    /// Simulated time of the data.
    pub timestamp: f64,
    /// Simulated time of the next message, where the sender knows the time.
    pub next_timestamp: Option<f64>,
    /// The metadata, with the content of the message.
    pub(crate) meta: Arc<Meta>,
    /// The settings overlay of the message.
    pub settings: Option<Arc<Overlay>>,
    /// The number of the message on the conduit.
    pub(crate) number: u64,
    /// The exchange to which a piece of a field belongs.
    pub(crate) tag: u32,
    /// The number of slots of the sender's port, where slots are counted at run time.
    pub(crate) slots: Option<u32>,
    /// The step in which the sender sent the message.
    pub(crate) iteration: Iteration,
    pub(crate) body: SharedBuffer,
    /// The structure in the body of a message for a program, after [`Message::read`].
    pub(crate) tree: Option<Arc<Tree>>,
}

/// The parts of a message.
#[derive(Debug)]
pub struct MessageParts {
    /// The metadata, with the content of the message.
    pub meta: Arc<Meta>,
    /// The payload.
    pub body: SharedBuffer,
    /// The structure in the payload, if the payload is a structure.
    pub structure: Option<Value<Range<usize>>>,
    /// The settings overlay of the message.
    pub settings: Option<Arc<Overlay>>,
}

/// A received structure; arrays and bytes inside are ranges of the payload.
pub(crate) type Tree = Value<Range<usize>>;

impl Message {
    /// A message without data.
    pub(crate) fn nil(timestamp: f64) -> Self {
        let (meta, body) = (Arc::default(), SharedBuffer::default());
        let (settings, iteration) = (None, Iteration::default());
        let (next_timestamp, number, tag, slots, tree) = (None, 0, 0, None, None);
        Message {
            timestamp,
            next_timestamp,
            meta,
            settings,
            number,
            tag,
            slots,
            iteration,
            body,
            tree,
        }
    }

    /// Reads the structure in the message. Titin reads each message before a program gets the
    /// message, so that malformed data are an error of the receiving call, and of no later call.
    pub(crate) fn read(mut self) -> std::result::Result<Self, Malformed> {
        if *self.content() == Content::Structure && self.tree.is_none() {
            self.tree = Some(Arc::new(structure::decode(&self.body)?));
        }
        Ok(self)
    }

    /// The kind and layout of the data.
    pub fn content(&self) -> &Content {
        &self.meta.content
    }

    /// The array and its elements.
    ///
    /// # Errors
    /// [`Kind::TypeMismatch`] if the data are no array.
    pub fn array(&self) -> Result<(&Layout, &[u8])> {
        match self.content() {
            Content::Array(layout) => Ok((layout, &self.body)),
            Content::Nil => Err(Error::new(
                Kind::TypeMismatch,
                "expected an array, the message carries nil",
            )),
            Content::Structure => Err(Error::new(
                Kind::TypeMismatch,
                "expected an array, the message carries a structure",
            )),
        }
    }

    /// The structure. Arrays and bytes are ranges of [`Message::bytes`]. An array alone is a
    /// structure, too.
    pub fn structure(&self) -> Value<Range<usize>> {
        match (self.content(), &self.tree) {
            (Content::Array(layout), _) => Value::Array(layout.clone(), 0..self.body.len()),
            (_, Some(tree)) => Value::clone(tree),
            (_, None) => Value::Nil,
        }
    }

    /// The payload, aligned to 64 bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The parts of the message, for callers with another form of messages.
    #[inline(always)]
    pub fn into_parts(self) -> MessageParts {
        let Message {
            meta,
            body,
            tree,
            settings,
            ..
        } = self;
        MessageParts {
            meta,
            body,
            structure: tree.map(Arc::unwrap_or_clone),
            settings,
        }
    }

    /// Shared ownership of the payload, for views that outlive the message.
    pub fn buffer(&self) -> SharedBuffer {
        self.body.clone()
    }
}
