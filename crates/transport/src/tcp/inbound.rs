//! What comes in on a link, for whoever reads it: the reactor, or a caller that waits.

use std::io::IoSliceMut;
use std::sync::{Arc, Weak};

use rustix::io::Errno;

use super::{Link, Reader, Received};
use crate::descriptors::Held;
use crate::{Exchange, Handler, Lost};

/// What is read from one link before others get their turn.
const TURN: usize = 4 << 20;

/// Where what comes in on the links of a process goes.
pub(crate) struct Sinks {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Option<Arc<Exchange>>,
}

/// The reading side of a link. One thread at a time is at it.
pub(crate) struct Inbound {
    reader: Reader,
    received: Vec<Received>,
    sinks: Weak<Sinks>,
    /// Why nothing more can be read. The reactor is told when it comes to read.
    lost: Option<Lost>,
}

impl Inbound {
    pub(crate) fn new(reader: Reader, sinks: &Arc<Sinks>) -> Self {
        Inbound { reader, received: Vec::new(), sinks: Arc::downgrade(sinks), lost: None }
    }

    /// Reads what is there, up to the length of a turn, and hands on what is complete. Gives the number of bytes.
    ///
    /// # Errors
    /// [`Lost`] if nothing more can be read, now and ever after.
    pub(super) fn pour(&mut self, link: &Arc<Link>) -> Result<usize, Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // The reactor has ended.
        let Some(sinks) = self.sinks.upgrade() else { return Err(Lost::Closed) };
        let mut turn = 0;
        loop {
            let outcome = self.reader.read(&mut self.received, |slices| read(link.socket(), slices));
            let handed = self.received.drain(..).try_for_each(|item| sinks.hand_on(link, item));
            match handed.and(outcome) {
                Ok((count, more)) => {
                    turn += count;
                    if !more || turn > TURN {
                        return Ok(turn);
                    }
                }
                Err(lost) => {
                    self.lost = Some(lost.clone());
                    return Err(lost);
                }
            }
        }
    }
}

impl Sinks {
    fn hand_on(&self, link: &Arc<Link>, received: Received) -> Result<(), Lost> {
        if link.closed() {
            return Ok(());
        }
        if let Received::Control(body) = received {
            self.handler.control(link, &body);
            return Ok(());
        }
        let Some(exchange) = &self.exchange else {
            return Err(titin_wire::Malformed::new("frame", "data on a link that carries none").into());
        };
        match received {
            Received::Message(message) => exchange.inbox(message.head.conduit).deliver(message)?,
            Received::Ended(conduit, sent) => exchange.inbox(conduit).end(sent)?,
            Received::Asked(conduit, sequence) => exchange.inbox(conduit).ask(sequence),
            Received::Acknowledged(conduit, ack) => {
                exchange.window(conduit).inspect(|window| window.acknowledged(ack));
            }
            Received::Control(_) => {}
        }
        Ok(())
    }
}

/// Reads without blocking; 0 if nothing is there.
fn read(socket: &Held, slices: &mut [IoSliceMut<'_>]) -> Result<usize, Lost> {
    loop {
        match rustix::io::readv(socket, slices) {
            Ok(0) => return Err(Lost::Closed),
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}
