//! A path, as the program sees it.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::meta::{Layout, Meta};
use titin_wire::path::LONGEST_TEXT;
use titin_wire::{Address, Secret};

use crate::context::Context;
use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::receive::{MemoryChoice, ReceiveTransfer, ReceivedMessage};
use crate::send::SendTransfer;
use crate::settings::PathSettings;
use crate::time_limit::TimeLimit;

/// A way to one other program. Several threads may call: those that send take turns, and so do those that receive.
///
/// The program that drops a path drops what has not arrived; [`Path::close`] waits for it.
pub struct Path {
    end: Arc<PathEnd>,
    context: Arc<Context>,
}

impl Path {
    /// Opens a path to the first of the addresses where a program with the key listens. `name` tells the other
    /// program which path it is. Waits for the other program to listen, for at most
    /// [`PathSettings::patience`].
    ///
    /// # Errors
    /// [`PathError::NotOpened`] with the reason.
    pub fn open(
        addresses: &[Address],
        name: &str,
        key: &Secret,
        settings: &PathSettings,
    ) -> Result<Self> {
        if name.len() > LONGEST_TEXT {
            let length = name.len();
            let why = format!("the name of a path has {length} bytes: at most {LONGEST_TEXT}");
            return Err(PathError::Message(why));
        }
        let context = Context::to_open(key)?;
        let end = context.open(addresses, name, settings)?;
        Ok(Path { end, context })
    }

    pub(crate) fn new(end: Arc<PathEnd>, context: Arc<Context>) -> Self {
        Path { end, context }
    }

    /// The name that the opening program has given.
    pub fn name(&self) -> &str {
        &self.end.name
    }

    /// How many streams carry a large message at a time.
    pub fn streams(&self) -> usize {
        self.end.carrier.streams()
    }

    /// Sends bytes. Waits for at most `limit`, and then gives the message up. Afterwards the caller may change the
    /// bytes; they may still be under way.
    ///
    /// # Errors
    /// [`PathError::Late`], [`PathError::Dropped`] of an earlier message, and the loss of the path.
    pub fn send(&self, bytes: &[u8], limit: Option<Duration>) -> Result<()> {
        self.send_parts(&[IoSlice::new(bytes)], None, limit)
    }

    /// As [`Path::send`], for one message from several places of the memory: an array with this layout, or bytes.
    ///
    /// # Errors
    /// As [`Path::send`], and [`PathError::Message`] if the layout has another number of bytes.
    pub fn send_parts(
        &self,
        parts: &[IoSlice<'_>],
        layout: Option<Layout>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let (what, time) = ("sending a message", TimeLimit::begin(limit));
        let mut sender = self.end.take_turn(&self.end.send_state, what, time)?;
        let mut transfer = SendTransfer::new(&self.end, &mut sender, parts, layout)?;
        let sent = self.end.wait(what, time, || transfer.advance());
        if sent.is_err() {
            transfer.abandon();
        }
        sent
    }

    /// Receives the next message into `memory`, which may be larger than the message. Waits for at most `limit`. A
    /// call whose time is over loses nothing: the next call goes on with the message.
    ///
    /// # Errors
    /// [`PathError::Late`], [`PathError::Unfit`], [`PathError::Abandoned`], [`PathError::Closed`] behind
    /// the last message, and the loss of the path.
    pub fn receive_into(
        &self,
        memory: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        self.receive_where(&mut always(memory), limit)
    }

    /// Receives the next message, whose size the caller need not know.
    ///
    /// # Errors
    /// As [`Path::receive_into`]; [`PathError::NoMemory`] if there is no memory for the message.
    pub fn receive(&self, limit: Option<Duration>) -> Result<ReceivedMessage> {
        self.receive_where(&mut |_, _| Ok(None), limit)
    }

    /// Receives the next message into the memory that `choose` chooses, once the metadata of the message are known.
    /// Behind a call whose time is over, the next call chooses anew.
    ///
    /// # Errors
    /// As [`Path::receive_into`].
    pub fn receive_where(
        &self,
        choose: MemoryChoice<'_, '_>,
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        let time = TimeLimit::begin(limit);
        let mut transfer = ReceiveTransfer::begin(&self.end, choose, time)?;
        let received = self.end.wait("a message", time, || transfer.advance());
        if received.is_err() {
            transfer.keep();
        }
        received
    }

    /// Sends bytes and receives the next message into `memory`, both at once: neither waits for the other.
    ///
    /// # Errors
    /// As [`Path::send`] and [`Path::receive_into`].
    pub fn exchange(
        &self,
        bytes: &[u8],
        memory: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        let parts = [IoSlice::new(bytes)];
        self.exchange_where(&parts, None, &mut always(memory), limit)
    }

    /// As [`Path::send_parts`] and [`Path::receive_where`], both at once. If only the sending fails, the received message is
    /// kept for the next call.
    ///
    /// # Errors
    /// As [`Path::send_parts`] and [`Path::receive_where`].
    pub fn exchange_where(
        &self,
        parts: &[IoSlice<'_>],
        layout: Option<Layout>,
        choose: MemoryChoice<'_, '_>,
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        let (what, time) = ("an exchange", TimeLimit::begin(limit));
        let mut sender = self.end.take_turn(&self.end.send_state, what, time)?;
        let mut outgoing = SendTransfer::new(&self.end, &mut sender, parts, layout)?;
        let mut incoming = ReceiveTransfer::begin(&self.end, choose, time)?;
        let (mut sent, mut received) = (None, None);
        let done = self.end.wait(what, time, || {
            if sent.is_none() {
                sent = outgoing.advance()?;
            }
            if received.is_none() {
                received = incoming.advance()?;
            }
            Ok(sent.and_then(|()| received.take()))
        });
        if done.is_err() {
            outgoing.abandon();
            match received {
                Some(received) => incoming.keep_whole(received),
                None => incoming.keep(),
            }
        }
        done
    }

    /// Waits until the other program has come to its barrier as often as this one. Behind a call whose time was over, the
    /// next one goes on with the same barrier.
    ///
    /// # Errors
    /// [`PathError::Late`]; [`PathError::Dropped`] of an earlier message, behind the barrier; and the loss of the path.
    pub fn barrier(&self, limit: Option<Duration>) -> Result<()> {
        self.end.pass_barrier(limit)
    }

    /// Waits until the other program has received all messages that were sent.
    ///
    /// # Errors
    /// As [`Path::barrier`].
    pub fn flush(&self, limit: Option<Duration>) -> Result<()> {
        self.end.flush(limit)
    }

    /// Waits until the other end has all messages, and closes the path at both ends. The other program can still
    /// receive what has arrived.
    ///
    /// # Errors
    /// [`PathError::Late`]; [`PathError::Dropped`] of a message; [`PathError::Closed`] if the other program has closed
    /// the path without having received all messages; and the loss of the path. The path is closed in any case.
    pub fn close(self, limit: Option<Duration>) -> Result<()> {
        self.end.close(limit)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.end.leave();
        self.end.end();
        self.context.forget(&self.end);
    }
}

/// Chooses memory of the caller for a message.
fn always<'m>(
    memory: &'m mut [u8],
) -> impl FnMut(&Meta, u64) -> std::result::Result<Option<&'m mut [u8]>, String> {
    let mut memory = Some(memory);
    move |_, _| Ok(memory.take())
}
