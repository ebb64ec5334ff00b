//! The reading side of a link, for the reactor or for a waiting caller.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use titin_wire::Malformed;

use super::reader::FrameReader;
use super::received::Received;
use super::socket::{read, read_with_files};
use super::streams::FurtherStreams;
use super::{Handler, Link, LinkId};
use crate::conduit_table::ConduitTable;
use crate::error::LinkError;
use crate::spin::WaitPolicy;
use crate::sync::WakeEvent;

/// The most bytes read from one link in a turn.
const TURN: usize = 4 << 20;

/// The most bytes read from one further stream in a turn.
const STREAM_TURN: usize = 1 << 20;

/// The most further streams read in a turn.
const STREAMS: usize = 16;

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The receivers of all frames of a process's links.
pub(crate) struct Receivers {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) conduits: Option<Arc<ConduitTable>>,
}

/// The reading side of a link. One thread at a time uses it.
pub(crate) struct LinkInput {
    reader: FrameReader,
    received: Vec<Received>,
    /// Descriptors that came, for frames not parsed yet.
    files: VecDeque<OwnedFd>,
    receivers: Weak<Receivers>,
    /// How long the link goes on after the end of a further stream.
    end_grace: Duration,
    ended: Option<EndedStreams>,
    /// Wakes a caller that sleeps at the sockets; made at the first sleep.
    event: Option<Arc<WakeEvent>>,
    /// Why nothing more can be read. The reactor learns of the error at its next read.
    lost: Option<LinkError>,
}

/// Further streams with an end while the first stream goes on.
struct EndedStreams {
    /// The ended streams still watched by the streams' epoll descriptor.
    numbers: Vec<usize>,
    /// When certainly a stream broke by itself.
    until: Instant,
    /// The error then.
    why: LinkError,
}

impl LinkInput {
    /// The input after a handshake: the bytes that came after the handshake on the first stream, and
    /// descriptors of the first frames.
    pub(crate) fn new(
        first_bytes: &[u8],
        files: VecDeque<OwnedFd>,
        receivers: &Arc<Receivers>,
        end_grace: Duration,
    ) -> Self {
        LinkInput {
            reader: FrameReader::new(first_bytes),
            received: Vec::new(),
            files,
            receivers: Arc::downgrade(receivers),
            end_grace,
            ended: None,
            event: None,
            lost: None,
        }
    }

    /// Reads available bytes, up to the length of a turn or until `is_wanted` by another thread, and
    /// hands on complete frames. Returns the number of bytes.
    ///
    /// # Errors
    /// [`LinkError`] if nothing more can be read, now and ever after.
    pub(super) fn read(
        &mut self,
        link: &Arc<Link>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<usize, LinkError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // Without receivers the reactor has ended.
        let Some(receivers) = self.receivers.upgrade() else {
            return Err(LinkError::Closed);
        };
        let outcome = self.read_all_streams(link, &receivers, is_wanted);
        outcome.inspect_err(|lost| self.lost = Some(lost.clone()))
    }

    /// Whether a caller may sleep at the sockets: as long as no further stream has ended. The
    /// streams' epoll descriptor is ready as long as it watches an ended stream, so the sleep would
    /// end at once.
    pub(super) fn may_sleep(&self) -> bool {
        self.ended.is_none()
    }

    /// Sleeps until the link brings bytes, for a caller that reads. False if the wait is over, or if
    /// the caller is to sleep elsewhere.
    pub(super) fn sleep(&mut self, link: &Link, policy: &mut dyn WaitPolicy) -> bool {
        if !self.may_sleep() {
            return false;
        }
        if self.event.is_none() {
            self.event = WakeEvent::new().ok().map(Arc::new);
        }
        let Some(event) = &self.event else {
            return false;
        };
        let socket = link.socket().as_fd();
        match link.streams_epoll() {
            Some(epoll) => policy.sleep_at(&[socket, epoll.as_fd()], event),
            None => policy.sleep_at(&[socket], event),
        }
    }

    /// Has the streams' epoll descriptor no longer watch ended streams, for the reactor. Returns when
    /// the reactor is to read again although nothing has come, if so.
    pub(super) fn unwatch_ended(&mut self, streams: &FurtherStreams) -> Option<Instant> {
        let ended = self.ended.as_mut()?;
        ended
            .numbers
            .drain(..)
            .for_each(|number| streams.unwatch(number));
        Some(ended.until)
    }

    fn read_all_streams(
        &mut self,
        link: &Arc<Link>,
        receivers: &Receivers,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<usize, LinkError> {
        if let Some(streams) = link.streams.get() {
            self.take_in_streams(streams)?;
        }
        let count = self.read_first_stream(link, receivers, is_wanted)?;
        let Some(streams) = link.streams.get() else {
            return Ok(count);
        };
        match &self.ended {
            Some(ended) if ended.until <= Instant::now() => Err(ended.why.clone()),
            _ => Ok(count + self.read_further_streams(link, streams, receivers, is_wanted)?),
        }
    }

    /// Parses what came after the handshakes of streams that have joined since the last turn. No event
    /// announces these bytes.
    fn take_in_streams(&mut self, streams: &FurtherStreams) -> Result<(), LinkError> {
        for number in self.reader.further_streams() + 1..=streams.count() {
            self.reader.add_stream(&streams.take_first_bytes(number));
            let received = &mut self.received;
            self.reader.read_stream(number, received, |_| Ok(0))?;
        }
        Ok(())
    }

    fn read_first_stream(
        &mut self,
        link: &Arc<Link>,
        receivers: &Receivers,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<usize, LinkError> {
        let mut turn = 0;
        loop {
            let files = &mut self.files;
            let outcome =
                self.reader
                    .read(&mut self.received, |slices| match link.side_carrier() {
                        None => read(link.socket(), slices),
                        Some(_) => read_with_files(link.socket(), slices, files),
                    });
            self.hand_on(link, receivers)?;
            let (count, more) = outcome?;
            turn += count;
            if !more || turn > TURN || is_wanted() {
                return Ok(turn);
            }
        }
    }

    /// Reads available bytes of the further streams, and writes the streams' queue.
    fn read_further_streams(
        &mut self,
        link: &Arc<Link>,
        streams: &FurtherStreams,
        receivers: &Receivers,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<usize, LinkError> {
        let mut events = ready_streams(streams)?;
        // The next turn takes in streams that have joined meanwhile.
        events.retain(|(number, _)| *number <= self.reader.further_streams());
        let is_writable =
            |(_, flags): &(usize, epoll::EventFlags)| flags.contains(epoll::EventFlags::OUT);
        if events.iter().any(is_writable)
            && let Err(failure) = streams.flush()
        {
            // The first stream is still read to the end.
            link.break_off(streams, failure);
        }
        let mut turn = 0;
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        for (number, flags) in events {
            // The next wait shows the other streams again.
            if flags.intersects(readable) && (turn == 0 || !is_wanted()) {
                turn += self.read_further_stream(number, link, streams, receivers)?;
            }
        }
        Ok(turn)
    }

    /// Reads available bytes of one further stream, up to the stream's share of a turn.
    fn read_further_stream(
        &mut self,
        number: usize,
        link: &Arc<Link>,
        streams: &FurtherStreams,
        receivers: &Receivers,
    ) -> Result<usize, LinkError> {
        let mut turn = 0;
        loop {
            let fill = |slices: &mut [IoSliceMut<'_>]| read(streams.socket(number), slices);
            let outcome = self.reader.read_stream(number, &mut self.received, fill);
            self.hand_on(link, receivers)?;
            match outcome {
                Ok((count, more)) => {
                    turn += count;
                    if !more || turn > STREAM_TURN {
                        return Ok(turn);
                    }
                }
                Err(why @ (LinkError::Closed | LinkError::System(_))) => {
                    self.note_end(number, streams.count(), link, &why);
                    return Ok(turn);
                }
                Err(lost) => return Err(lost),
            }
        }
    }

    fn note_end(&mut self, number: usize, count: usize, link: &Link, why: &LinkError) {
        let patience = link.patience().map(|patience| patience.outage);
        let grace = patience.unwrap_or(self.end_grace);
        let ended = self.ended.get_or_insert_with(|| EndedStreams {
            numbers: Vec::new(),
            until: Instant::now() + grace,
            why: LinkError::Stream {
                number,
                count,
                why: why.to_string(),
            },
        });
        if !ended.numbers.contains(&number) {
            ended.numbers.push(number);
        }
    }

    fn hand_on(&mut self, link: &Arc<Link>, receivers: &Receivers) -> Result<(), LinkError> {
        self.received
            .drain(..)
            .try_for_each(|received| receivers.hand_on(link, received, &mut self.files))
    }
}

/// The ready streams, and the events of each.
fn ready_streams(streams: &FurtherStreams) -> Result<Vec<(usize, epoll::EventFlags)>, LinkError> {
    let mut events = Vec::with_capacity(STREAMS);
    match epoll::wait(
        streams.epoll(),
        rustix::buffer::spare_capacity(&mut events),
        Some(&NOW),
    ) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(events
        .iter()
        .map(|event| (event.data.u64() as usize, event.flags))
        .collect())
}

impl Receivers {
    fn hand_on(
        &self,
        link: &Arc<Link>,
        received: Received,
        files: &mut VecDeque<OwnedFd>,
    ) -> Result<(), LinkError> {
        if link.closed() {
            return Ok(());
        }
        match received {
            Received::Control(body) => {
                self.handler.control(link, &body);
                return Ok(());
            }
            Received::MoreStreams(count) => {
                link.request_streams(count as usize);
                return Ok(());
            }
            _ => {}
        }
        match link.side_carrier() {
            Some(carrier) => {
                let file = matches!(received, Received::Segment { .. })
                    .then(|| files.pop_front())
                    .flatten();
                carrier.receive(received, file)
            }
            None => {
                let conduits = link.conduits.get().or(self.conduits.as_ref());
                self.deliver_to(conduits, received, || Some(link.id()))
            }
        }
    }

    /// Hands on a frame other than a control message, from the link `link`.
    ///
    /// # Errors
    /// [`Malformed`] if the frame does not belong here.
    #[inline]
    pub(crate) fn deliver(
        &self,
        received: Received,
        link: impl FnOnce() -> Option<LinkId>,
    ) -> Result<(), LinkError> {
        self.deliver_to(self.conduits.as_ref(), received, link)
    }

    #[inline]
    fn deliver_to(
        &self,
        conduits: Option<&Arc<ConduitTable>>,
        received: Received,
        link: impl FnOnce() -> Option<LinkId>,
    ) -> Result<(), LinkError> {
        let Some(conduits) = conduits else {
            return Err(Malformed::new("frame", "data on a link that carries none").into());
        };
        match received {
            Received::Message(message) => {
                let conduit = message.head.conduit;
                let (inbox, is_new) = conduits.arrival(conduit)?;
                inbox.deliver(message)?;
                if is_new {
                    self.handler.stray(link(), conduit);
                }
            }
            Received::Ended(conduit, sent) => conduits.arrival(conduit)?.0.end(sent)?,
            Received::Asked(conduit, sequence) => conduits.arrival(conduit)?.0.ask(sequence),
            Received::Acknowledged(conduit, ack) => {
                conduits
                    .window(conduit)
                    .inspect(|window| window.acknowledged(ack));
            }
            Received::Control(_)
            | Received::MoreStreams(_)
            | Received::Segment { .. }
            | Received::Withdrawn(_)
            | Received::Look => {
                let why = "it belongs between processes that share memory";
                return Err(Malformed::new("frame", why).into());
            }
        }
        Ok(())
    }
}
