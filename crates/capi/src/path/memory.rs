//! Memory of the program that calls on paths send from and receive into.

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::io::IoSlice;
use std::sync::Arc;

use titin_path::{ReceiveMemory, ReceivedMessage, SendMemory};
use titin_runtime::{Content, Meta, Result};

use crate::array::{ArrayArguments, CallerArray};
use crate::elements::Elements;
use crate::error::usage;
use crate::input;

/// The bytes of several places.
///
/// # Safety
/// `parts` and `lengths` are NULL or point to `count` entries each; each part is NULL or points to as many bytes as its
/// length says, which do not change while the result lives.
pub(super) unsafe fn parts<'a>(
    count: c_int,
    parts: *const *const c_void,
    lengths: *const i64,
) -> Result<Vec<IoSlice<'a>>> {
    // SAFETY: as the caller promises.
    unsafe {
        let parts = input::list(parts, count, "parts")?;
        let lengths = input::list(lengths, count, "lengths of parts")?;
        let parts = parts.iter().zip(lengths).map(|(part, length)| {
            input::slice(part.cast(), *length, "bytes of a part").map(IoSlice::new)
        });
        parts.collect()
    }
}

/// Several places to write to.
///
/// # Safety
/// `parts` and `rooms` are NULL or point to `count` entries each; each part is NULL or points to as many bytes as its room
/// says, which no other code uses while the result lives.
pub(super) unsafe fn rooms<'a>(
    count: c_int,
    parts: *const *mut c_void,
    rooms: *const i64,
) -> Result<Vec<&'a mut [u8]>> {
    // SAFETY: as the caller promises.
    unsafe {
        let parts = input::list(parts, count, "parts")?;
        let rooms = input::list(rooms, count, "rooms of parts")?;
        check_apart(parts, rooms)?;
        let parts = parts
            .iter()
            .zip(rooms)
            .map(|(part, room)| input::slice_mut(part.cast(), *room, "bytes of a part"));
        parts.collect()
    }
}

/// The error for places that share memory: one byte of a message would overwrite another.
fn check_apart(parts: &[*mut c_void], rooms: &[i64]) -> Result<()> {
    let places = parts.iter().zip(rooms).filter(|(_, room)| **room > 0);
    let mut places: Vec<_> = places
        .map(|(part, room)| (part.addr(), *room as usize))
        .collect();
    places.sort_unstable();
    let is_apart = |pair: &[(usize, usize)]| pair[0].0.saturating_add(pair[0].1) <= pair[1].0;
    match places.windows(2).all(is_apart) {
        true => Ok(()),
        false => Err(usage(
            "two of the places to receive into share memory: give places without overlaps",
        )),
    }
}

/// The elements of an array to send, as they lie in the program's memory or as a packed copy.
pub(super) struct ArrayElements(pub(super) Elements);

impl SendMemory for ArrayElements {
    fn parts(&self) -> Cow<'_, [IoSlice<'_>]> {
        Cow::Owned(vec![IoSlice::new(self.0.as_ref())])
    }
}

/// An array to receive into. A message whose elements are in another order than those of the array goes to memory of the
/// path, and is copied at the end.
pub(super) struct ArrayMemory<'a>(CallerArray<'a>);

impl<'a> ArrayMemory<'a> {
    /// # Safety
    /// As [`ArrayArguments::read`]. The elements may be written, and no other code uses them while the result lives.
    pub(super) unsafe fn new(arguments: ArrayArguments) -> Result<Self> {
        // SAFETY: as the caller promises.
        let array = unsafe { arguments.read() }?;
        array.check_distinct()?;
        Ok(ArrayMemory(array))
    }

    /// Fails if this array shares memory with an array that the same call sends.
    pub(super) fn check_apart(&self, sent: &CallerArray<'_>) -> Result<()> {
        match self.0.overlaps(sent) {
            false => Ok(()),
            true => Err(usage(
                "the array to receive into shares memory with the array to send: give two arrays without overlaps",
            )),
        }
    }

    /// Writes the elements of a received message, unless they were received in place.
    pub(super) fn fill(&self, received: &ReceivedMessage) {
        let is_elsewhere = received.bytes.len() as u64 == received.length;
        if let Content::Array(layout) = &received.meta.content
            && is_elsewhere
        {
            // SAFETY: `accepts` has looked at the layout. The elements may be written, as the caller of `new` promises.
            unsafe { self.0.fill_with(layout, &received.bytes) };
        }
    }
}

impl ReceiveMemory for &ArrayMemory<'_> {
    fn accepts(&mut self, meta: &Meta, _: u64) -> std::result::Result<bool, String> {
        let Content::Array(layout) = &meta.content else {
            return Err("it is no array".to_owned());
        };
        self.0.check(layout).map_err(|why| why.text)?;
        Ok(self.0.is_alike(layout))
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        // SAFETY: as the caller of `new` promises.
        let memory = unsafe { self.0.memory() };
        &mut memory[skipped as usize..]
    }
}

/// An [`ArrayMemory`] for a non-blocking call, with extents of its own.
pub(super) struct PostedArray {
    memory: ArrayMemory<'static>,
    /// Where `memory` has its extents.
    _extents: Arc<[i64]>,
}

// SAFETY: the program leaves the elements alone until the call is done (titin_path.h, "Without waiting").
unsafe impl Send for PostedArray {}
// SAFETY: as above; the call and the request use the elements one after the other.
unsafe impl Sync for PostedArray {}

impl PostedArray {
    /// # Safety
    /// As [`ArrayMemory::new`], but for the extents, which are copied.
    pub(super) unsafe fn new(arguments: ArrayArguments) -> Result<Arc<Self>> {
        // SAFETY: as the caller promises. The extents live as long as the array.
        unsafe {
            let extents = input::list(arguments.extents, arguments.rank, "extents")?;
            let extents: Arc<[i64]> = extents.into();
            let memory = ArrayMemory::new(ArrayArguments {
                extents: extents.as_ptr(),
                ..arguments
            })?;
            Ok(Arc::new(PostedArray {
                memory,
                _extents: extents,
            }))
        }
    }

    pub(super) fn check_apart(&self, sent: &CallerArray<'_>) -> Result<()> {
        self.memory.check_apart(sent)
    }

    pub(super) fn fill(&self, received: &ReceivedMessage) {
        self.memory.fill(received);
    }
}

/// The share of a non-blocking call in the array.
pub(super) struct PostedArrayMemory(pub(super) Arc<PostedArray>);

impl ReceiveMemory for PostedArrayMemory {
    fn accepts(&mut self, meta: &Meta, length: u64) -> std::result::Result<bool, String> {
        (&self.0.memory).accepts(meta, length)
    }

    fn place(&mut self, skipped: u64) -> &mut [u8] {
        // SAFETY: as the caller of `new` promises.
        let memory = unsafe { self.0.memory.0.memory() };
        &mut memory[skipped as usize..]
    }
}
