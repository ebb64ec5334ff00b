//! Handles of instances and ports, and the errors that stick to them.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use titin_runtime::{Error, Instance, Kind, PortId, Result};

use crate::error::{OK, c_text, caught, keep, null};
use crate::message::Origin;
use crate::ready::Enlisted;
use crate::receive::Chosen;
use crate::text::Text;
use crate::value::Value;

/// What `titin_instance` points to.
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    /// Never changed, so that pointers to them stay.
    pub(crate) ports: Vec<Port>,
    pub(crate) name: CString,
    pub(crate) workdir: CString,
    pub(crate) scale: Value,
    /// Whether `titin_host` frees it, and not `titin_close`.
    pub(crate) hosted: bool,
    texts: Mutex<HashSet<CString>>,
}

/// What `titin_port` points to.
pub struct Port {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: PortId,
    /// Its place among the ports.
    pub(crate) place: u32,
}

/// The instance that a message came to, as the message knows it, which may outlive it.
pub(crate) struct Recipient {
    shared: Weak<Shared>,
    /// Names of its ports, by their places.
    ports: Vec<Arc<Text>>,
}

/// An instance, and the first error that a program may not have looked at.
pub(crate) struct Shared {
    pub(crate) instance: Instance,
    /// The place on a list of an instance that does not wait. After the instance, which may still come there as it ends.
    pub(crate) enlisted: Option<Enlisted>,
    /// This, for messages.
    pub(crate) recipient: Arc<Recipient>,
    /// What the last call on several ports was given.
    chosen: Mutex<Option<Arc<Chosen>>>,
    sticky: bool,
    stuck: Mutex<Option<Error>>,
    /// Whether there may be one: calls look at this first.
    is_stuck: AtomicBool,
}

impl Shared {
    fn new(instance: Instance, enlisted: Option<Enlisted>, sticky: bool) -> Arc<Self> {
        let (chosen, stuck) = (Mutex::default(), Mutex::default());
        let ports = instance
            .port_ids()
            .map(|(_, name)| Text::shared(name))
            .collect();
        Arc::new_cyclic(|shared| {
            let recipient = Arc::new(Recipient {
                shared: shared.clone(),
                ports,
            });
            Shared {
                instance,
                enlisted,
                recipient,
                chosen,
                sticky,
                stuck,
                is_stuck: AtomicBool::new(false),
            }
        })
    }

    pub(crate) fn chosen(&self) -> MutexGuard<'_, Option<Arc<Chosen>>> {
        self.chosen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn stuck(&self) -> MutexGuard<'_, Option<Error>> {
        self.stuck
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs a call's body, but in a forked child; its error sticks.
    pub(crate) fn run(&self, body: impl FnOnce() -> Result<()>) -> c_int {
        let outcome = titin_runtime::not_forked().and_then(|()| caught(body));
        outcome.map_or_else(|error| self.stick(error), |()| OK)
    }

    /// As [`Shared::run`], for calls that are not made any more once an error has stuck.
    pub(crate) fn run_unless_stuck(&self, body: impl FnOnce() -> Result<()>) -> c_int {
        let stuck = self
            .is_stuck
            .load(Ordering::Acquire)
            .then(|| self.stuck().clone())
            .flatten();
        stuck.map_or_else(|| self.run(body), keep)
    }

    pub(crate) fn stick(&self, error: Error) -> c_int {
        let passes = matches!(
            error.kind,
            Kind::Timeout | Kind::PortClosed | Kind::Interrupted | Kind::Pending | Kind::Evicted
        );
        if !passes {
            self.hold(&error);
        }
        keep(error)
    }

    /// Keeps an error that the program may not look at, if it is the first one.
    pub(crate) fn hold(&self, error: &Error) {
        if self.sticky {
            self.stuck().get_or_insert_with(|| error.clone());
            self.is_stuck.store(true, Ordering::Release);
        }
    }
}

impl Port {
    #[inline(always)]
    pub(crate) fn name(&self) -> &Arc<Text> {
        self.shared.recipient.port(self.place)
    }

    /// Where a message of this slot is from.
    #[inline(always)]
    pub(crate) fn origin(&self, slot: Option<u32>) -> Origin {
        Origin::Received {
            recipient: self.shared.recipient.clone(),
            port: self.place,
            slot,
        }
    }
}

impl Recipient {
    pub(crate) fn port(&self, place: u32) -> &Arc<Text> {
        &self.ports[place as usize]
    }

    /// What is wrong with a message of this port and slot, with where it came by and from.
    pub(crate) fn located(&self, place: u32, slot: Option<u32>, error: Error) -> Error {
        let origin = self.origin(place, slot);
        Error::new(error.kind, format!("{origin}: {}", error.text))
    }

    /// A port and slot, and the sender whose messages come there: `port 'in[0]', message from micro.out`.
    pub(crate) fn origin(&self, place: u32, slot: Option<u32>) -> String {
        let sender = self.shared.upgrade().and_then(|shared| {
            let (id, _) = shared.instance.port_ids().nth(place as usize)?;
            shared.instance.sender(id, slot)
        });
        let sender = sender
            .map(|sender| format!(", message from {sender}"))
            .unwrap_or_default();
        let (name, slot) = (
            self.port(place).as_str(),
            slot.map(|slot| format!("[{slot}]")).unwrap_or_default(),
        );
        format!("port '{name}{slot}'{sender}")
    }

    /// Keeps an error about a message, which the program may not look at, while the instance is open.
    pub(crate) fn hold(&self, error: &Error) {
        // In a forked child somebody who does not exist any more may have the lock.
        if let (Some(shared), Ok(())) = (self.shared.upgrade(), titin_runtime::not_forked()) {
            shared.hold(error);
        }
    }
}

impl Handle {
    pub(crate) fn new(instance: Instance, enlisted: Option<Enlisted>, sticky: bool) -> Self {
        let scale = Value::map(instance.scale().into_iter().flat_map(|scale| {
            let number = |name, value: Option<f64>| {
                value.map(|value| (name, Value(crate::value::Node::Float(value))))
            };
            let list =
                |name, values: &[f64]| (!values.is_empty()).then(|| (name, Value::floats(values)));
            let all = [
                number("dt", scale.dt),
                number("total", scale.total),
                list("dx", &scale.dx),
                list("extent", &scale.extent),
            ];
            all.into_iter().flatten()
        }));
        let workdir = std::env::current_dir().unwrap_or_default();
        let shared = Shared::new(instance, enlisted, sticky);
        let port = |(place, (id, _))| Port {
            shared: shared.clone(),
            id,
            place,
        };
        Handle {
            ports: (0..).zip(shared.instance.port_ids()).map(port).collect(),
            name: c_text(shared.instance.name()),
            workdir: c_text(&workdir.to_string_lossy()),
            scale,
            hosted: false,
            texts: Mutex::default(),
            shared,
        }
    }

    /// The same, to be freed by `titin_host`.
    pub(crate) fn hosted(mut self) -> Self {
        self.hosted = true;
        self
    }

    /// Text for C that lives as long as the instance.
    pub(crate) fn keep_text(&self, text: &str) -> *const std::ffi::c_char {
        let mut texts = self
            .texts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = c_text(text);
        if let Some(known) = texts.get::<CStr>(&text) {
            return known.as_ptr();
        }
        let place = text.as_ptr();
        texts.insert(text);
        place
    }
}

/// The instance behind a handle.
///
/// # Safety
/// `handle` is NULL or an instance that is not closed while the result is used.
pub(crate) unsafe fn instance<'a>(handle: *const Handle) -> Result<&'a Handle> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("instance", "titin_open"))
}

/// The port behind a handle.
///
/// # Safety
/// `handle` is NULL or a port of an instance that is not closed while the result is used.
pub(crate) unsafe fn port<'a>(handle: *const Port) -> Result<&'a Port> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("port", "titin_port_find"))
}

/// A call on an instance that returns a status.
///
/// # Safety
/// As [`instance`].
pub(crate) unsafe fn on_instance(
    handle: *const Handle,
    body: impl FnOnce(&Handle) -> Result<()>,
) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { instance(handle) } {
        Ok(handle) => handle.shared.run(|| body(handle)),
        Err(error) => keep(error),
    }
}

/// A call on a port that sends or receives.
///
/// # Safety
/// As [`port`].
pub(crate) unsafe fn on_port(handle: *const Port, body: impl FnOnce(&Port) -> Result<()>) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { port(handle) } {
        Ok(port) => port.shared.run_unless_stuck(|| body(port)),
        Err(error) => keep(error),
    }
}
