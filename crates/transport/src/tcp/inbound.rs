//! What comes in on a link, for whoever reads it: the reactor, or a caller that waits.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::socket::{read, read_with_files};
use super::stripes::Stripes;
use super::{Link, LinkId, Reader, Received};
use crate::{Exchange, Handler, Lost};

/// What is read from one link before others get their turn.
const TURN: usize = 4 << 20;

/// What is read from one further stream before the others get their turn.
const SHARE: usize = 1 << 20;

/// Further streams that are looked at in one turn.
const STREAMS: usize = 16;

/// How long the link goes on without a further stream that has ended. When the other end closes the link, or its process ends,
/// all streams end, but the network may bring the end of the first one, and what was said before it, last.
const GRACE: Duration = Duration::from_secs(1);

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Where what comes in on the links of a process goes.
pub(crate) struct Sinks {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Option<Arc<Exchange>>,
}

/// The reading side of a link. One thread at a time is at it.
pub(crate) struct Inbound {
    reader: Reader,
    received: Vec<Received>,
    /// Descriptors that came, for frames that are still to be read.
    files: VecDeque<OwnedFd>,
    sinks: Weak<Sinks>,
    /// Whether further streams have been read.
    begun: bool,
    /// That further streams have ended.
    ended: Option<Ended>,
    /// Why nothing more can be read. The reactor is told when it comes to read.
    lost: Option<Lost>,
}

/// Further streams have ended, and the first one has not.
struct Ended {
    /// Those that are still watched.
    numbers: Vec<usize>,
    /// When it is sure that one of them broke by itself.
    until: Instant,
    /// What to tell then.
    why: Lost,
}

impl Inbound {
    /// Goes on behind a handshake, with which descriptors of the first frames may have come.
    pub(crate) fn new(reader: Reader, files: VecDeque<OwnedFd>, sinks: &Arc<Sinks>) -> Self {
        let (received, sinks) = (Vec::new(), Arc::downgrade(sinks));
        Inbound {
            reader,
            received,
            files,
            sinks,
            begun: false,
            ended: None,
            lost: None,
        }
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
        let Some(sinks) = self.sinks.upgrade() else {
            return Err(Lost::Closed);
        };
        let outcome = self
            .pour_stream(link, &sinks)
            .and_then(|count| match &link.stripes {
                Some(stripes) => {
                    if let Some(ended) = self
                        .ended
                        .as_ref()
                        .filter(|ended| ended.until <= Instant::now())
                    {
                        return Err(ended.why.clone());
                    }
                    Ok(count + self.pour_stripes(link, stripes, &sinks)?)
                }
                None => Ok(count),
            });
        outcome.inspect_err(|lost| self.lost = Some(lost.clone()))
    }

    /// Has streams that have ended watched no more, for the reactor, which is to read again at the time that this gives, if
    /// it does.
    pub(super) fn doubts(&mut self, stripes: &Stripes) -> Option<Instant> {
        let ended = self.ended.as_mut()?;
        ended
            .numbers
            .drain(..)
            .for_each(|number| stripes.leave(number));
        Some(ended.until)
    }

    fn pour_stream(&mut self, link: &Arc<Link>, sinks: &Sinks) -> Result<usize, Lost> {
        let mut turn = 0;
        loop {
            let files = &mut self.files;
            let outcome = self
                .reader
                .read(&mut self.received, |slices| match link.shared() {
                    None => read(link.socket(), slices),
                    Some(_) => read_with_files(link.socket(), slices, files),
                });
            self.hand_on(link, sinks)?;
            let (count, more) = outcome?;
            turn += count;
            if !more || turn > TURN {
                return Ok(turn);
            }
        }
    }

    /// Reads what is there on the further streams, and writes what waits for them.
    fn pour_stripes(
        &mut self,
        link: &Arc<Link>,
        stripes: &Stripes,
        sinks: &Sinks,
    ) -> Result<usize, Lost> {
        // What came in behind the handshake was never parsed, and no event announces it.
        if !std::mem::replace(&mut self.begun, true) {
            for number in 1..=stripes.count() {
                self.reader
                    .read_stream(number, &mut self.received, |_| Ok(0))?;
            }
            self.hand_on(link, sinks)?;
        }
        let mut events = Vec::with_capacity(STREAMS);
        match epoll::wait(
            stripes.bundle(),
            rustix::buffer::spare_capacity(&mut events),
            Some(&NOW),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events: Vec<_> = events
            .iter()
            .map(|event| (event.data.u64() as usize, event.flags))
            .collect();
        if events
            .iter()
            .any(|(_, flags)| flags.contains(epoll::EventFlags::OUT))
            && let Err(failure) = stripes.flush()
        {
            // What the first stream has brought is still read, and then its end.
            link.break_off(stripes, failure);
        }
        let mut turn = 0;
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        for (number, _) in events
            .into_iter()
            .filter(|(_, flags)| flags.intersects(readable))
        {
            let mut share = 0;
            loop {
                let fill = |slices: &mut [IoSliceMut<'_>]| read(stripes.socket(number), slices);
                let outcome = self.reader.read_stream(number, &mut self.received, fill);
                self.hand_on(link, sinks)?;
                match outcome {
                    Ok((count, more)) => {
                        share += count;
                        if !more || share > SHARE {
                            break;
                        }
                    }
                    Err(why @ (Lost::Closed | Lost::System(_))) => {
                        self.note_end(number, stripes.count(), &why);
                        break;
                    }
                    Err(lost) => return Err(lost),
                }
            }
            turn += share;
        }
        Ok(turn)
    }

    fn note_end(&mut self, number: usize, count: usize, why: &Lost) {
        let ended = self.ended.get_or_insert_with(|| Ended {
            numbers: Vec::new(),
            until: Instant::now() + GRACE,
            why: Lost::Stream {
                number,
                count,
                why: why.to_string(),
            },
        });
        if !ended.numbers.contains(&number) {
            ended.numbers.push(number);
        }
    }

    fn hand_on(&mut self, link: &Arc<Link>, sinks: &Sinks) -> Result<(), Lost> {
        self.received
            .drain(..)
            .try_for_each(|item| sinks.hand_on(link, item, &mut self.files))
    }
}

impl Sinks {
    fn hand_on(
        &self,
        link: &Arc<Link>,
        received: Received,
        files: &mut VecDeque<OwnedFd>,
    ) -> Result<(), Lost> {
        if link.closed() {
            return Ok(());
        }
        if let Received::Control(body) = received {
            self.handler.control(link, &body);
            return Ok(());
        }
        match link.shared() {
            Some(shared) => {
                let file = matches!(received, Received::Segment { .. })
                    .then(|| files.pop_front())
                    .flatten();
                shared.receive(received, file)
            }
            None => self.deliver(received, || Some(link.id())),
        }
    }

    /// Hands on what is not a control message, and has come by this link.
    ///
    /// # Errors
    /// [`Malformed`](titin_wire::Malformed) if it does not belong here.
    #[inline]
    pub(crate) fn deliver(
        &self,
        received: Received,
        link: impl FnOnce() -> Option<LinkId>,
    ) -> Result<(), Lost> {
        let Some(exchange) = &self.exchange else {
            return Err(
                titin_wire::Malformed::new("frame", "data on a link that carries none").into(),
            );
        };
        match received {
            Received::Message(message) => {
                let conduit = message.head.conduit;
                let (inbox, is_new) = exchange.arrival(conduit);
                inbox.deliver(message)?;
                if is_new {
                    self.handler.stray(link(), conduit);
                }
            }
            Received::Ended(conduit, sent) => exchange.inbox(conduit).end(sent)?,
            Received::Asked(conduit, sequence) => exchange.inbox(conduit).ask(sequence),
            Received::Acknowledged(conduit, ack) => {
                exchange
                    .window(conduit)
                    .inspect(|window| window.acknowledged(ack));
            }
            Received::Control(_)
            | Received::Segment { .. }
            | Received::Withdrawn(_)
            | Received::Look => {
                let why = "it belongs between processes that share memory";
                return Err(titin_wire::Malformed::new("frame", why).into());
            }
        }
        Ok(())
    }
}
