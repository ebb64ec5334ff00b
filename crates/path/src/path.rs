//! A path, as the program sees it.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::meta::{Content, Layout, Meta};
use titin_wire::{Address, Secret};

use crate::context::Context;
use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::receive::{ReceiveTransfer, Received, ReceivedInto, ReceivedMessage};
use crate::send::SendTransfer;
use crate::settings::PathSettings;

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
        self.send_parts(&[IoSlice::new(bytes)], limit)
    }

    /// As [`Path::send`], for one message from several places of the memory.
    ///
    /// # Errors
    /// As [`Path::send`].
    pub fn send_parts(&self, parts: &[IoSlice<'_>], limit: Option<Duration>) -> Result<()> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let mut sender = self.end.sender();
        let meta = sender.meta_of_bytes(length);
        self.send_message(parts, meta, limit)
    }

    /// As [`Path::send_parts`], for an array with this layout.
    ///
    /// # Errors
    /// As [`Path::send`], and [`PathError::Message`] if the layout has another number of bytes.
    pub fn send_array(
        &self,
        parts: &[IoSlice<'_>],
        layout: Layout,
        limit: Option<Duration>,
    ) -> Result<()> {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let mut sender = self.end.sender();
        let meta = sender.meta_of(Content::Array(layout));
        meta.check(length)
            .map_err(|why| PathError::Message(why.to_string()))?;
        self.send_message(parts, meta, limit)
    }

    fn send_message(
        &self,
        parts: &[IoSlice<'_>],
        meta: Arc<Meta>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let mut transfer = SendTransfer::new(&self.end, parts, meta);
        let sent = self
            .end
            .wait("sending a message", limit, || transfer.advance());
        if sent.is_err() {
            transfer.abandon();
        }
        sent
    }

    /// Receives the next message into `memory`, which may be larger than the message. Waits for at most `limit`. A
    /// call whose time is over loses nothing: the next call goes on with the message.
    ///
    /// # Errors
    /// [`PathError::Late`], [`PathError::TooLarge`], [`PathError::Abandoned`], [`PathError::Closed`] behind
    /// the last message, and the loss of the path.
    pub fn receive_into(&self, memory: &mut [u8], limit: Option<Duration>) -> Result<ReceivedInto> {
        let mut transfer = ReceiveTransfer::into_memory(&self.end, memory);
        match self.await_message(&mut transfer, limit) {
            Ok(received) => Ok(received.into()),
            Err(why) => {
                transfer.keep();
                Err(why)
            }
        }
    }

    /// Receives the next message, whose size the caller need not know.
    ///
    /// # Errors
    /// As [`Path::receive_into`]; [`PathError::Message`] if there is no memory for the message.
    pub fn receive(&self, limit: Option<Duration>) -> Result<ReceivedMessage> {
        let mut transfer = ReceiveTransfer::into_own(&self.end);
        match self.await_message(&mut transfer, limit) {
            Ok(Received::Short(message)) => Ok(ReceivedMessage {
                meta: message.meta,
                bytes: message.body,
            }),
            Ok(Received::Long(message)) => Ok(ReceivedMessage {
                meta: Arc::new(message.meta),
                bytes: transfer.into_bytes(),
            }),
            Err(why) => {
                transfer.keep();
                Err(why)
            }
        }
    }

    fn await_message(
        &self,
        transfer: &mut ReceiveTransfer<'_>,
        limit: Option<Duration>,
    ) -> Result<Received> {
        self.end.wait("a message", limit, || transfer.advance())
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
    ) -> Result<ReceivedInto> {
        let parts = [IoSlice::new(bytes)];
        let mut sender = self.end.sender();
        let meta = sender.meta_of_bytes(bytes.len() as u64);
        let mut outgoing = SendTransfer::new(&self.end, &parts, meta);
        let mut incoming = ReceiveTransfer::into_memory(&self.end, memory);
        let (mut sent, mut received) = (None, None);
        let done = self.end.wait("an exchange", limit, || {
            if sent.is_none() {
                sent = outgoing.advance()?;
            }
            if received.is_none() {
                received = incoming.advance()?;
            }
            Ok((sent.is_some() && received.is_some()).then_some(()))
        });
        if let Err(why) = done {
            outgoing.abandon();
            incoming.keep();
            return Err(why);
        }
        Ok(received.expect("the wait is over").into())
    }

    /// Waits until the other program has come to its barrier as often as this one.
    ///
    /// # Errors
    /// [`PathError::Late`], [`PathError::Dropped`] of an earlier message, and the loss of the path.
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
    /// [`PathError::Late`], and the loss of the path. The path is closed in any case.
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

impl From<Received> for ReceivedInto {
    fn from(received: Received) -> Self {
        match received {
            Received::Short(message) => ReceivedInto {
                length: message.body.len() as u64,
                meta: message.meta,
            },
            Received::Long(message) => ReceivedInto {
                length: message.length,
                meta: Arc::new(message.meta),
            },
        }
    }
}
