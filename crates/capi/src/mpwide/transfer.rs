//! Sending and receiving on several connections at once.

use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use titin_path::{Path, PathError, ReceiveMemory, Request, wait_any};
use titin_runtime::{Error, Result};

use crate::error::usage;
use crate::mpwide::area::Area;
use crate::mpwide::memory::ExactMemory;
use crate::mpwide::table::Carrier;
use crate::path::{located, translated};

/// A message to send.
pub(super) struct Outgoing {
    pub(super) carrier: Carrier,
    pub(super) bytes: Cow<'static, [u8]>,
}

/// A message to receive, of a size that both ends know.
pub(super) struct Incoming {
    pub(super) carrier: Carrier,
    pub(super) memory: &'static mut [u8],
}

/// Messages to send and to receive, from memory of the program. Bytes that the receiving may overwrite are copied.
///
/// # Safety
/// The bytes to send do not change, and no other code uses the memory to receive into, while the result and the calls made
/// with it live.
pub(super) unsafe fn messages(
    sends: Vec<(Carrier, Area)>,
    receives: Vec<(Carrier, Area)>,
) -> Result<(Vec<Outgoing>, Vec<Incoming>)> {
    let places: Vec<Area> = receives.iter().map(|(_, area)| *area).collect();
    for (number, place) in places.iter().enumerate() {
        if places[..number].iter().any(|other| place.overlaps(*other)) {
            return Err(usage(format!(
                "place {number} to receive into overlaps another one"
            )));
        }
    }
    let outgoing = sends.into_iter().map(|(carrier, area)| Outgoing {
        carrier,
        // SAFETY: as the caller promises. References live on only to bytes that no message is received into.
        bytes: unsafe { sendable(area, &places) },
    });
    let outgoing = outgoing.collect();
    let incoming = receives.into_iter().map(|(carrier, area)| Incoming {
        carrier,
        // SAFETY: as the caller promises. No place overlaps another one, nor bytes to send.
        memory: unsafe { area.memory() },
    });
    Ok((outgoing, incoming.collect()))
}

/// The bytes to send; a copy of bytes that a message may be received into.
///
/// # Safety
/// As [`messages`].
pub(super) unsafe fn sendable(area: Area, places: &[Area]) -> Cow<'static, [u8]> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { area.bytes() };
    match places.iter().any(|place| place.overlaps(area)) {
        true => Cow::Owned(bytes.to_vec()),
        false => Cow::Borrowed(bytes),
    }
}

/// Sends and receives all messages. The memory is free again when the call returns.
pub(super) fn transfer(mut outgoing: Vec<Outgoing>, mut incoming: Vec<Incoming>) -> Result<()> {
    let (sends, receives) = (outgoing.len(), incoming.len());
    match (outgoing.pop(), incoming.pop()) {
        (Some(message), None) if sends == 1 => {
            let sent = message.carrier.path.send(&message.bytes, None);
            sent.map_err(|why| alone(&message.carrier, why))
        }
        (None, Some(message)) if receives == 1 => {
            let path = &message.carrier.path;
            let received = path.receive_to(ExactMemory(message.memory), None);
            received.map_err(|why| alone(&message.carrier, why))?;
            Ok(())
        }
        (Some(sent), Some(received))
            if (sends, receives) == (1, 1) && is_same(&sent, &received) =>
        {
            let memory = ExactMemory(received.memory);
            exchange(&sent.carrier, &sent.bytes, memory).map(|_| ())
        }
        (sent, received) => {
            outgoing.extend(sent);
            incoming.extend(received);
            wait_for_all(&post(outgoing, incoming))
        }
    }
}

/// An error of a call on one connection.
fn alone(carrier: &Carrier, why: PathError) -> Error {
    failure(&carrier.label, std::slice::from_ref(carrier), why)
}

fn is_same(outgoing: &Outgoing, incoming: &Incoming) -> bool {
    Arc::ptr_eq(&outgoing.carrier.path, &incoming.carrier.path)
}

/// Sends a message and receives one, on one connection. Returns the size of the received message.
pub(super) fn exchange(carrier: &Carrier, bytes: &[u8], memory: impl ReceiveMemory) -> Result<u64> {
    let parts = [IoSlice::new(bytes)];
    let received = carrier.path.exchange_to(&parts, None, memory, None);
    let received = received.map_err(|why| alone(carrier, why))?;
    Ok(received.length)
}

/// A non-blocking call. It does not keep its connection from being closed.
pub(super) struct Posted {
    path: Weak<Path>,
    label: String,
    pub(super) request: Request,
}

impl Posted {
    pub(super) fn new(carrier: &Carrier, request: Request) -> Self {
        Posted {
            path: Arc::downgrade(&carrier.path),
            label: carrier.label.clone(),
            request,
        }
    }

    /// The connection, unless it was closed meanwhile.
    fn carrier(&self) -> Option<Carrier> {
        let path = self.path.upgrade()?;
        let label = self.label.clone();
        Some(Carrier { path, label })
    }

    /// Waits for the call. Returns the size of the received message.
    pub(super) fn wait(&self) -> Result<u64> {
        let length = self.request.wait(None).and_then(|()| self.length());
        length.map_err(|why| failure(&self.label, self.carrier().as_slice(), why))
    }

    /// What the call has returned: the size of the received message. Only for a call that is done.
    fn length(&self) -> titin_path::Result<u64> {
        let outcome = self.request.outcome()?;
        Ok(outcome.map_or(0, |message| message.length))
    }
}

/// Begins to send and to receive.
pub(super) fn post(outgoing: Vec<Outgoing>, incoming: Vec<Incoming>) -> Vec<Posted> {
    let sends = outgoing.into_iter().map(post_send);
    let mut posted: Vec<Posted> = sends.collect();
    posted.extend(incoming.into_iter().map(|Incoming { carrier, memory }| {
        let request = carrier.path.post_receive(ExactMemory(memory));
        Posted::new(&carrier, request)
    }));
    posted
}

/// Begins to send.
pub(super) fn post_send(Outgoing { carrier, bytes }: Outgoing) -> Posted {
    let request = match bytes {
        Cow::Borrowed(bytes) => carrier.path.post_send(bytes, None),
        Cow::Owned(bytes) => carrier.path.post_send(bytes, None),
    };
    Posted::new(&carrier, request)
}

/// Waits for all calls, or until one has failed.
pub(super) fn wait_for_all(posted: &[Posted]) -> Result<()> {
    let mut pending: Vec<&Posted> = posted.iter().collect();
    while !pending.is_empty() {
        let requests: Vec<&Request> = pending.iter().map(|call| &call.request).collect();
        let place = wait_any(&requests, None).map_err(translated)?;
        let done = pending.swap_remove(place);
        done.length().map_err(|why| {
            let carriers: Vec<Carrier> = posted.iter().filter_map(Posted::carrier).collect();
            failure(&done.label, &carriers, why)
        })?;
    }
    Ok(())
}

/// An error of the connection `label`, in a call that uses all of `carriers`. The other program may have ended because it
/// has dropped a message of this one: then the text says so.
pub(super) fn failure(label: &str, carriers: &[Carrier], why: PathError) -> Error {
    if matches!(why, PathError::Closed | PathError::Lost(_)) {
        let until = Instant::now() + ACCOUNT;
        for carrier in carriers {
            if let Some(told) = dropped(&carrier.path, until) {
                return located(&carrier.label, told);
            }
        }
    }
    located(label, why)
}

/// How long a call that has failed waits for the other end's accounts of dropped messages.
const ACCOUNT: Duration = Duration::from_secs(1);

/// The other end's account of a message that it has dropped. Calls that receive do not tell of it.
fn dropped(path: &Path, until: Instant) -> Option<PathError> {
    let left = until.saturating_duration_since(Instant::now());
    let flushed = path.flush(Some(left));
    // A path that was closed flushes nothing, and sends nothing.
    let told = match flushed {
        Err(PathError::Closed | PathError::Lost(_)) => path.send(&[], Some(Duration::ZERO)),
        flushed => flushed,
    };
    told.err()
        .filter(|why| matches!(why, PathError::Dropped { .. }))
}
