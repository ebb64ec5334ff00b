//! A path, as the program sees it.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::meta::Layout;
use titin_wire::path::LONGEST_TEXT;
use titin_wire::{Address, Secret};

use crate::context::Context;
use crate::cycle::post_cycle;
use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::memory::{ReceiveMemory, SendMemory};
use crate::receive::{MemoryDestination, ReceiveTransfer, ReceivedMessage};
use crate::relay::Relay;
use crate::request::{Carrying, Request, RequestPart, post_barrier, post_receive, post_send};
use crate::send::{Draining, SendTransfer};
use crate::settings::PathSettings;
use crate::statistics::PathStatistics;
use crate::time_limit::TimeLimit;

/// A way to one other program. Several threads may call. Calls that send are done one after the other, in their order, and
/// so are calls that receive.
///
/// The non-blocking forms (`post_…`) do not wait: what they return is a [`Request`]. Any number of them may be under way.
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
    /// [`PathError::NotOpened`] with the reason; [`PathError::OtherKey`].
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

    /// How many streams carry a large message of this end at a time.
    pub fn streams(&self) -> usize {
        self.end.carrier.streams()
    }

    /// What the path has carried, and how.
    pub fn statistics(&self) -> PathStatistics {
        self.end.counts.statistics(&self.end.link)
    }

    /// Has this end send large messages by at most so many streams from now on, at most 256, and opens those that are missing:
    /// they carry messages as soon as they are there, as [`Path::streams`] tells. `None`: titin chooses. The other end sends by
    /// as many as it has set, or by all that are open if titin chooses for it.
    pub fn set_streams(&self, most: Option<u32>) {
        self.end.link.set_streams(most.map(|most| most as usize));
    }

    /// Has this end send large messages in pieces of so many bytes from now on, of the nearest of 1 KiB to 1 MiB, where
    /// several streams carry them. `None`: titin chooses.
    pub fn set_piece(&self, bytes: Option<u64>) {
        self.end.link.set_piece(bytes);
    }

    /// Has this end send at most so many bytes per second from now on; `None` is for no limit.
    pub fn set_pacing(&self, rate: Option<u64>) {
        self.end.link.set_pacing(rate);
    }

    /// Sets the sizes of the buffers of each stream at this end, in bytes; `None` leaves a size as it is.
    pub fn set_buffers(&self, send: Option<u64>, receive: Option<u64>) {
        self.end.link.set_buffers(send, receive);
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
        let mut transfer = SendTransfer::new(parts, layout, Draining::Awaited);
        let end = &self.end;
        end.call(&end.sends, "sending a message", limit, &mut transfer)
    }

    /// Receives the next message into `memory`, which may be larger than the message. Waits for at most `limit`. A
    /// call whose time is over loses nothing: the next call goes on with the message.
    ///
    /// # Errors
    /// [`PathError::Late`]; [`PathError::Dropped`] if the call waits while the other end drops an earlier message of this
    /// end, for which the other program perhaps waits as well; [`PathError::Unfit`], [`PathError::Abandoned`], [`PathError::Closed`] behind
    /// the last message, and the loss of the path.
    pub fn receive_into(
        &self,
        memory: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        self.receive_to(memory, limit)
    }

    /// Receives the next message, whose size the caller need not know.
    ///
    /// # Errors
    /// As [`Path::receive_into`]; [`PathError::NoMemory`] if there is no memory for the message.
    pub fn receive(&self, limit: Option<Duration>) -> Result<ReceivedMessage> {
        self.receive_to((), limit)
    }

    /// Receives the next message into `memory`: one place, several of them, or memory that looks at the metadata first. After
    /// a call whose time is over, the next call asks its memory anew.
    ///
    /// # Errors
    /// As [`Path::receive_into`].
    pub fn receive_to(
        &self,
        memory: impl ReceiveMemory,
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        let mut transfer = ReceiveTransfer::waiting(MemoryDestination::new(memory));
        let end = &self.end;
        end.call(&end.receives, "a message", limit, &mut transfer)
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
        self.exchange_to(&[IoSlice::new(bytes)], None, memory, limit)
    }

    /// As [`Path::send_parts`] and [`Path::receive_to`], both at once. If only the sending fails, the received message is
    /// kept for the next call.
    ///
    /// # Errors
    /// As [`Path::send_parts`] and [`Path::receive_to`].
    pub fn exchange_to(
        &self,
        parts: &[IoSlice<'_>],
        layout: Option<Layout>,
        memory: impl ReceiveMemory,
        limit: Option<Duration>,
    ) -> Result<ReceivedMessage> {
        let end = &self.end;
        let mut outgoing = SendTransfer::new(parts, layout, Draining::Awaited);
        let mut incoming = ReceiveTransfer::waiting(MemoryDestination::new(memory));
        let (mut sends, receives) = (Some(end.sends.enter(end)), end.receives.enter(end));
        let (mut sent, mut received) = (None, None);
        let done = end.wait("an exchange", TimeLimit::begin(limit), || {
            if let Some(place) = &sends {
                sent = place.advance(&mut outgoing)?;
            }
            // The next call that sends need not wait for the message that comes in.
            if sent.is_some() {
                sends = None;
            }
            if received.is_none() {
                received = receives.advance(&mut incoming)?;
            }
            Ok(sent.and_then(|()| received.take()))
        });
        if done.is_err() {
            if let Some(place) = sends {
                place.give_up(&mut outgoing);
            }
            match received {
                None => receives.give_up(&mut incoming),
                Some(received) => {
                    receives.with_state(|state| incoming.keep_whole(end, state, received));
                }
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

    /// The non-blocking form of [`Path::send_parts`].
    pub fn post_send(
        &self,
        memory: impl SendMemory + Send + 'static,
        layout: Option<Layout>,
    ) -> Request {
        Request::new(vec![post_send(
            &self.end,
            SendTransfer::new(memory, layout, Draining::Copied),
        )])
    }

    /// The non-blocking form of [`Path::receive_to`].
    pub fn post_receive(&self, memory: impl ReceiveMemory + Send + 'static) -> Request {
        let incoming = ReceiveTransfer::new(MemoryDestination::new(memory));
        Request::new(vec![post_receive(&self.end, incoming)])
    }

    /// The non-blocking form of [`Path::exchange_to`]. Both halves go on until they are done: if only the sending fails, the
    /// received message is with the request ([`Request::received`]).
    pub fn post_exchange(
        &self,
        parts: impl SendMemory + Send + 'static,
        layout: Option<Layout>,
        memory: impl ReceiveMemory + Send + 'static,
    ) -> Request {
        let outgoing = SendTransfer::new(parts, layout, Draining::Copied);
        let incoming = ReceiveTransfer::new(MemoryDestination::new(memory));
        Request::new(vec![
            post_send(&self.end, outgoing),
            post_receive(&self.end, incoming),
        ])
    }

    /// The non-blocking form of [`Path::barrier`].
    pub fn post_barrier(&self) -> Request {
        Request::new(vec![post_barrier(&self.end)])
    }

    /// The account of an earlier message that the other program has dropped, once. The calls that send tell it by themselves,
    /// but for [`Path::post_cycle`]: a program that passes messages on asks before the next one.
    ///
    /// # Errors
    /// [`PathError::Dropped`] if there is one.
    pub fn check_dropped(&self) -> Result<()> {
        self.end.check_dropped()
    }

    /// Receives the next message, and passes it on to another path, part by part as the parts come in. The message also
    /// goes to `memory`, if there is any. A cycle that is cancelled in the middle of the message has the message dropped:
    /// both other programs hear of it.
    ///
    /// The errors of the request are those of a receive, and those of a send on the path `to`, without accounts of
    /// earlier messages.
    pub fn post_cycle(
        &self,
        to: &Path,
        memory: Option<impl ReceiveMemory + Send + 'static>,
    ) -> Request {
        post_cycle(&self.end, &to.end, memory)
    }

    /// Passes all messages on, from this path to the other one and back, until the other program of one of the two closes
    /// its path, and its last messages have gone on. Meanwhile no other call uses the two paths. Barriers do not go on. A
    /// program whose message does not fit at the far end hears of it with the next message that goes on.
    ///
    /// The errors of the request are those of a receive and of a send, on either path.
    pub fn post_relay(&self, other: &Path) -> Request {
        let relay = Relay::begin([self.end.clone(), other.end.clone()]);
        let part = |path: &Path| RequestPart {
            end: path.end.clone(),
            by: Carrying::Relay(relay.clone()),
            completion: relay.completion.clone(),
        };
        Request::new(vec![part(self), part(other)])
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
