//! The waits of a sender for room in the sockets of a link.
//!
//! The other end may be a sender as well, and drain its socket only once this end drains its own. A
//! sender without room therefore reads its link in the reactor's place: otherwise each end would
//! keep two threads busy, which share the cores and the link's cache lines.

use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use titin_os::time::timespec;

use super::input::LinkInput;
use super::{AttendedLink, Link};
use crate::error::LinkError;

/// The shortest wait of a sender for a full socket, before the rest of the message is copied.
const STALL: Duration = Duration::from_millis(5);

/// The longest wait of a sender for a full socket. A message of more than 500 MB is copied
/// although the copy takes longer.
const LONGEST_STALL: Duration = Duration::from_millis(500);

/// A sender's waits for room, during one message.
pub(super) struct RoomWait<'a> {
    link: &'a Link,
    /// The longest wait; `None` for no waits.
    stall: Option<Duration>,
    reading: Option<ReadingSide<'a>>,
    /// Whether the sender has waited since the last call of [`RoomWait::go_on`].
    waited: bool,
}

/// The reading side of a link, held by a sender.
struct ReadingSide<'a> {
    // Dropped first: the reactor, woken for bytes that have come in meanwhile, finds the input free.
    input: MutexGuard<'a, LinkInput>,
    link: Arc<Link>,
    _attended: AttendedLink<'a>,
}

impl<'a> RoomWait<'a> {
    /// The waits during a message of `length` bytes. Each wait lasts at most as long as a copy of the
    /// message to fresh memory takes, at a byte a nanosecond, between 5 ms and 500 ms. A receiver may
    /// read nothing for as long while allocating room for a large message.
    pub(super) fn new(link: &'a Link, length: u64) -> Self {
        RoomWait {
            link,
            stall: Some(Duration::from_nanos(length).clamp(STALL, LONGEST_STALL)),
            reading: None,
            waited: false,
        }
    }

    /// No waits: the rest of a message that finds no room is copied at once.
    pub(super) fn none(link: &'a Link) -> Self {
        RoomWait {
            link,
            stall: None,
            reading: None,
            waited: false,
        }
    }

    /// Leaves the reading side to other threads. A thread that waits for its turn to write must not
    /// keep the reading side: the thread at work may wait for room that comes only once this link is
    /// read.
    pub(super) fn release(&mut self) {
        self.reading = None;
    }

    /// Leaves the reading side to other threads, unless the sender has waited since the last call.
    pub(super) fn go_on(&mut self) {
        if !std::mem::take(&mut self.waited) {
            self.release();
        }
    }

    /// Waits until one of `sockets` takes bytes; false if none does for a while. A signal does
    /// not end the wait.
    pub(super) fn wait<'s>(
        &mut self,
        sockets: impl IntoIterator<Item = &'s OwnedFd>,
    ) -> Result<bool, LinkError> {
        let Some(stall) = self.stall else {
            return Ok(false);
        };
        self.waited = true;
        self.reading = self
            .reading
            .take()
            .or_else(|| ReadingSide::try_take(self.link));
        let sockets: Vec<&OwnedFd> = sockets.into_iter().collect();
        let deadline = Instant::now() + stall;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let read = self.reading.iter().flat_map(ReadingSide::sockets);
            match poll_both(&sockets, read, left)? {
                Ready::Nothing => {
                    // The copy of the rest takes time, and the other end may be sending.
                    self.release();
                    return Ok(false);
                }
                Ready::Room => return Ok(true),
                Ready::Bytes if left.is_zero() => {
                    self.release();
                    return Ok(false);
                }
                Ready::Bytes => self.reading = self.reading.take().and_then(ReadingSide::read),
                Ready::Interrupted => {}
            }
        }
    }
}

impl<'a> ReadingSide<'a> {
    /// The reading side, unless another thread has it, or the link is not to be read by callers.
    fn try_take(link: &'a Link) -> Option<Self> {
        let owned = link.this.upgrade()?;
        if link.side_carrier().is_some() {
            return None;
        }
        let attended = AttendedLink::new(link);
        let input = link.take_input()?;
        let taken = ReadingSide {
            input,
            link: owned,
            _attended: attended,
        };
        // No event announces bytes that came after the handshake.
        taken.read()
    }

    fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        let epoll = self.link.streams_epoll().into_iter();
        epoll.chain([self.link.socket()]).map(|socket| &**socket)
    }

    /// Reads available bytes. `None` if the link is lost, and once a further stream has ended: its
    /// socket stays readable, so each poll would return at once.
    fn read(mut self) -> Option<Self> {
        if self.input.read(&self.link, &|| false).is_err() {
            self.link.hang_up();
            return None;
        }
        self.input.may_sleep().then_some(self)
    }
}

/// The result of a poll.
enum Ready {
    Nothing,
    Room,
    Bytes,
    /// A signal has come.
    Interrupted,
}

/// Waits until one of `write` takes bytes or one of `read` brings bytes, for at most `limit`.
fn poll_both<'s>(
    write: &[&OwnedFd],
    read: impl Iterator<Item = &'s OwnedFd>,
    limit: Duration,
) -> Result<Ready, LinkError> {
    let mut awaited: Vec<_> = write
        .iter()
        .map(|socket| PollFd::new(*socket, PollFlags::OUT))
        .collect();
    awaited.extend(read.map(|socket| PollFd::new(socket, PollFlags::IN)));
    match poll(&mut awaited, Some(&timespec(limit))) {
        Ok(0) => return Ok(Ready::Nothing),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Ready::Interrupted),
        Err(error) => return Err(error.into()),
    }
    let mut room = awaited[..write.len()].iter();
    Ok(match room.any(|socket| !socket.revents().is_empty()) {
        true => Ready::Room,
        false => Ready::Bytes,
    })
}
