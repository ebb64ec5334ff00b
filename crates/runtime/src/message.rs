//! Messages as programs see them: what is sent, and what was received.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use titin_transport::{Buffer, Filling};
use titin_wire::Malformed;
use titin_wire::meta::{Content, Layout, LayoutRef, MAX_RANK, Meta};
use titin_wire::settings::Overlay;
use titin_wire::structure::{self, Encoded, Value};

use crate::iteration::Iteration;
use crate::{Error, Kind, Result};

/// What to send. The memory stays the caller's, who may change it once the call has returned.
pub struct Payload<'a> {
    what: What<'a>,
    pub(crate) parts: SmallVec<[IoSlice<'a>; 1]>,
    /// The memory itself, where it was lent by titin: it goes as it is.
    pub(crate) lent: Option<Arc<Buffer>>,
    /// Whether it says that a field follows.
    field: bool,
}

/// What a payload is: its content, which is made only where none like it was sent before.
#[derive(Clone, Copy)]
enum What<'a> {
    Nil,
    Array(LayoutRef<'a>),
    Structure,
}

/// Memory for an array that is to be sent, lent by titin: fill it, then send it from where it lies.
#[derive(Debug)]
pub struct Loan {
    layout: Layout,
    memory: Filling,
}

/// An array that was filled in lent memory, and does not change any more.
#[derive(Debug, Clone)]
pub struct Lent {
    layout: Layout,
    memory: Arc<Buffer>,
}

impl Loan {
    pub(crate) fn new(layout: Layout, memory: Filling) -> Self {
        Loan { layout, memory }
    }

    /// What the array looks like.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its elements, in the order that the layout says, little-endian; what they are at first is not said. Aligned to
    /// 64 bytes, at the same place until all that was made of this is gone.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.rest()
    }

    /// Ends the filling.
    pub fn finish(self) -> Lent {
        Lent {
            layout: self.layout,
            memory: Arc::new(self.memory.finish()),
        }
    }
}

impl Lent {
    pub(crate) fn new(layout: Layout, memory: Buffer) -> Self {
        Lent {
            layout,
            memory: Arc::new(memory),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn memory(&self) -> &Arc<Buffer> {
        &self.memory
    }

    /// Its elements.
    pub fn bytes(&self) -> &[u8] {
        &self.memory
    }
}

impl<'a> Payload<'a> {
    /// Nothing.
    pub fn nil() -> Self {
        Payload {
            what: What::Nil,
            parts: SmallVec::new(),
            lent: None,
            field: false,
        }
    }

    /// A contiguous array: its elements in the order that its form says, little-endian.
    pub fn array(form: impl Into<LayoutRef<'a>>, elements: &'a [u8]) -> Self {
        Payload {
            what: What::Array(form.into()),
            parts: smallvec![IoSlice::new(elements)],
            lent: None,
            field: false,
        }
    }

    /// An array in lent memory. It may be sent any number of times, and is not copied where peers can read it in place.
    pub fn lent(lent: &'a Lent) -> Self {
        Payload {
            lent: Some(lent.memory.clone()),
            ..Payload::array(&lent.layout, &lent.memory)
        }
    }

    /// A structure, encoded by [`structure::encode`].
    pub fn structure(encoded: &'a Encoded<'a>) -> Self {
        let parts = encoded
            .parts
            .iter()
            .map(|part| IoSlice::new(part.as_ref()))
            .collect();
        Payload {
            what: What::Structure,
            parts,
            lent: None,
            field: false,
        }
    }

    /// A structure that was encoded before.
    pub(crate) fn encoded(encoded: &'a [u8]) -> Self {
        Payload {
            what: What::Structure,
            parts: smallvec![IoSlice::new(encoded)],
            lent: None,
            field: false,
        }
    }

    /// As [`Payload::encoded`], of what says that a field follows.
    pub(crate) fn of_field(encoded: &'a [u8]) -> Self {
        Payload {
            field: true,
            ..Payload::encoded(encoded)
        }
    }

    /// What was received, to be sent on.
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

    /// Its metadata, if it needs no others than what it is.
    pub(crate) fn meta(&self) -> Meta {
        Meta {
            content: self.content(),
            field: self.field,
            ..Meta::default()
        }
    }

    /// What it is, for its metadata.
    pub(crate) fn content(&self) -> Content {
        match self.what {
            What::Nil => Content::Nil,
            What::Array(form) => Content::Array(form.to_layout()),
            What::Structure => Content::Structure,
        }
    }

    /// Whether it is nothing.
    pub(crate) fn is_nil(&self) -> bool {
        matches!(self.what, What::Nil)
    }

    /// Whether these are its metadata, but for others than what it is.
    #[inline(always)]
    pub(crate) fn is(&self, meta: &Meta) -> bool {
        match (&self.what, &meta.content) {
            (What::Nil, Content::Nil) => true,
            (What::Structure, Content::Structure) => self.field == meta.field,
            (What::Array(form), Content::Array(layout)) => form.is(layout),
            _ => false,
        }
    }

    /// Bytes of it.
    pub(crate) fn length(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Checks that an array's elements fill its shape.
    pub(crate) fn check(&self) -> Result<()> {
        let What::Array(form) = self.what else {
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

/// A message that was received. Its data are a view that lives as long as this, past `close()` and past the sender.
#[derive(Debug, Clone)]
pub struct Message {
    /// Simulated time of the data.
    pub timestamp: f64,
    /// Simulated time of the next message, where the sender knows it.
    pub next_timestamp: Option<f64>,
    /// What travelled with it, of which the content is what the data are.
    pub(crate) meta: Arc<Meta>,
    /// The settings overlay that came with it, if there is one.
    pub settings: Option<Arc<Overlay>>,
    /// Its number on its conduit.
    pub(crate) number: u64,
    /// Of a piece of a field, the exchange that it belongs to.
    pub(crate) tag: u32,
    /// The number of slots of its sender's port, where that is counted at run time.
    pub(crate) slots: Option<u32>,
    /// In which step it was sent.
    pub(crate) iteration: Iteration,
    pub(crate) body: Arc<Buffer>,
    /// The structure in the body, if that is one that a program gets: [`Message::read`] has looked at all of it.
    pub(crate) tree: Option<Arc<Tree>>,
}

/// What a message is made of.
#[derive(Debug)]
pub struct MessageParts {
    /// Says what the data are.
    pub meta: Arc<Meta>,
    /// The payload.
    pub body: Arc<Buffer>,
    /// The structure in the payload, if it is one.
    pub structure: Option<Value<Range<usize>>>,
    /// The settings overlay that came with it.
    pub settings: Option<Arc<Overlay>>,
}

/// A structure that was received; arrays and bytes in it are ranges of the payload.
pub(crate) type Tree = Value<Range<usize>>;

impl Message {
    /// A message without data.
    pub(crate) fn nil(timestamp: f64) -> Self {
        let (meta, body) = (Arc::default(), Arc::default());
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

    /// Reads the structure that the message carries, if it carries one. What a program gets has been read, so that
    /// malformed data are an error of the call that receives, and of none after it.
    pub(crate) fn read(mut self) -> std::result::Result<Self, Malformed> {
        if *self.content() == Content::Structure && self.tree.is_none() {
            self.tree = Some(Arc::new(structure::decode(&self.body)?));
        }
        Ok(self)
    }

    /// What the data are.
    pub fn content(&self) -> &Content {
        &self.meta.content
    }

    /// The array and its elements.
    ///
    /// # Errors
    /// [`Kind::TypeMismatch`] if the data are something else.
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

    /// The structure; arrays and bytes in it are ranges of [`Message::bytes`]. An array is a structure of its own.
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

    /// What it is made of, to whoever keeps that in another way.
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
    pub fn buffer(&self) -> Arc<Buffer> {
        self.body.clone()
    }
}
