//! How a program interrupts its waiting calls.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

    /// What a waiting call asks whether to go on.
    pub(crate) fn watch(&self) -> InterruptWatch<'_> {
        InterruptWatch {
            interrupt: self,
            polled: Instant::now(),
        }
    }

    /// How long a call may sleep until it polls again, of the time that is `left` to it.
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

/// Polls the function of an [`Interrupt`] for one waiting call.
pub(crate) struct InterruptWatch<'a> {
    interrupt: &'a Interrupt,
    /// When the call began, or last polled the function.
    polled: Instant,
}

impl InterruptWatch<'_> {
    /// Whether the function interrupts the call. Calls the function once in [`INTERVAL`] at most.
    pub(crate) fn is_wanted(&mut self) -> bool {
        if self.interrupt.0.is_none() || self.polled.elapsed() < INTERVAL {
            return false;
        }
        self.polled = Instant::now();
        self.interrupt.is_wanted()
    }
}

/// How often a waiting call polls the function.
const INTERVAL: Duration = Duration::from_millis(100);
