//! What a user may set of a path.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use titin_wire::LinkSettings;

/// The settings of a path, which the opening end makes for both. For a setting that is `None`, titin
/// or the operating system chooses.
#[derive(Debug, Clone)]
pub struct PathSettings {
    /// The number of streams for large messages. If there are several, all other messages go by a
    /// stream of their own.
    pub streams: Option<u32>,
    /// The most bytes per second that each end sends.
    pub pacing: Option<u64>,
    /// The size of the send buffer of each socket, in bytes.
    pub send_buffer: Option<u64>,
    /// The size of the receive buffer of each socket, in bytes.
    pub receive_buffer: Option<u64>,
    /// How long the other end may take to be there and to answer.
    pub patience: Duration,
    /// What interrupts calls at this end.
    pub interrupt: Interrupt,
}

/// Interrupts waiting calls: a function that is called ten times a second in the thread that waits, until it returns true.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Interrupt {
    /// An interrupt by this function.
    pub fn by(function: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Interrupt(Some(Arc::new(function)))
    }

    /// Whether the function interrupts a call now.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|wanted| wanted())
    }

    /// The looks of one call at the function.
    pub(crate) fn watch(&self) -> InterruptWatch<'_> {
        InterruptWatch {
            interrupt: self,
            looked: Instant::now(),
        }
    }

    /// How long a call may sleep until it looks again, of the time that is `left` to it.
    pub(crate) fn sleep(&self, left: Option<Duration>) -> Option<Duration> {
        match &self.0 {
            None => left,
            Some(_) => Some(left.map_or(INTERVAL, |left| left.min(INTERVAL))),
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Interrupt(set)"
        } else {
            "Interrupt(none)"
        })
    }
}

/// The looks of one waiting call at the function of an [`Interrupt`].
pub(crate) struct InterruptWatch<'a> {
    interrupt: &'a Interrupt,
    looked: Instant,
}

impl InterruptWatch<'_> {
    /// Whether the function interrupts the call. Asks the function only once in a while.
    pub(crate) fn is_wanted(&mut self) -> bool {
        if self.interrupt.0.is_none() || self.looked.elapsed() < INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        self.interrupt.is_wanted()
    }
}

/// How often a waiting call looks for an interrupt.
const INTERVAL: Duration = Duration::from_millis(100);

/// The time limit of a call.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit(Option<(Instant, Duration)>);

impl TimeLimit {
    /// A limit that begins now.
    pub(crate) fn begin(limit: Option<Duration>) -> Self {
        TimeLimit(limit.map(|limit| (Instant::now(), limit)))
    }

    /// The time that is left.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0
            .map(|(begun, limit)| limit.saturating_sub(begun.elapsed()))
    }

    /// The limit, if its time is over.
    pub(crate) fn exceeded(self) -> Option<Duration> {
        let (_, limit) = self.0?;
        (self.left() == Some(Duration::ZERO)).then_some(limit)
    }
}

impl Default for PathSettings {
    fn default() -> Self {
        PathSettings {
            streams: None,
            pacing: None,
            send_buffer: None,
            receive_buffer: None,
            patience: Duration::from_secs(60),
            interrupt: Interrupt::default(),
        }
    }
}

impl PathSettings {
    pub(crate) fn of_link(&self) -> LinkSettings {
        LinkSettings {
            streams: self.streams,
            pacing: self.pacing,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            compress: None,
        }
    }
}
