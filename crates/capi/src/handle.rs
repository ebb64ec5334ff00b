//! Handles of instances and ports, and the errors that stick to instances.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use titin_runtime::{Error, Instance, Kind, PortId, Result};

use crate::error::{OK, c_text, caught, keep, null};
use crate::port_set::PortSet;
use crate::ready::ReadyEntry;
use crate::text::Text;
use crate::value::Value;

/// The `titin_instance` of the header.
pub struct Handle {
    pub(crate) shared: Arc<StickyInstance>,
    /// Never changed, since C has pointers to the ports.
    pub(crate) ports: Vec<Port>,
    pub(crate) name: CString,
    pub(crate) workdir: CString,
    pub(crate) time_unit: CString,
    pub(crate) scale: Value,
    /// Whether `titin_host` frees the instance, and not `titin_close`.
    pub(crate) hosted: bool,
    texts: Mutex<HashSet<CString>>,
}

/// The `titin_port` of the header.
pub struct Port {
    pub(crate) shared: Arc<StickyInstance>,
    pub(crate) id: PortId,
    pub(crate) recipient: Recipient,
}

/// The port that received a message. A message may outlive the instance. The message names the
/// instance by a number: a share of the instance would cost two atomic operations for each message.
#[derive(Clone, Copy)]
pub(crate) struct Recipient {
    /// The number of the instance in [`OPEN_INSTANCES`].
    instance: u64,
    /// The index of the port among the instance's ports.
    index: u32,
    name: &'static Text,
}

/// The open instances, by numbers that are never used again.
static OPEN_INSTANCES: Mutex<BTreeMap<u64, Weak<StickyInstance>>> = Mutex::new(BTreeMap::new());

/// An instance with the first error that the program may have ignored.
pub(crate) struct StickyInstance {
    pub(crate) instance: Instance,
    /// The entry of a light instance on the instance's ready list. Dropped after the instance,
    /// since the instance may use the entry while closing.
    pub(crate) enlisted: Option<ReadyEntry>,
    /// The number in [`OPEN_INSTANCES`], by which received messages know this instance.
    number: u64,
    /// The ports of the last call on several ports.
    last_ports: Mutex<Option<Arc<PortSet>>>,
    sticky: bool,
    stuck: Mutex<Option<Error>>,
    /// Whether `stuck` may hold an error. Calls look at this flag first, without the lock.
    is_stuck: AtomicBool,
}

impl StickyInstance {
    fn new(instance: Instance, enlisted: Option<ReadyEntry>, sticky: bool) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(StickyInstance {
            instance,
            enlisted,
            number,
            last_ports: Mutex::default(),
            sticky,
            stuck: Mutex::default(),
            is_stuck: AtomicBool::new(false),
        });
        let mut open = OPEN_INSTANCES
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.insert(number, Arc::downgrade(&shared));
        drop(open);
        shared
    }

    pub(crate) fn last_ports(&self) -> MutexGuard<'_, Option<Arc<PortSet>>> {
        self.last_ports
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn stuck(&self) -> MutexGuard<'_, Option<Error>> {
        self.stuck
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs the body of a call, unless in a forked child. An error sticks.
    pub(crate) fn run(&self, body: impl FnOnce() -> Result<()>) -> c_int {
        let outcome = titin_runtime::not_forked().and_then(|()| caught(body));
        outcome.map_or_else(|error| self.stick(error), |()| OK)
    }

    /// As [`StickyInstance::run`], for calls that fail at once after an error has stuck.
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
            Kind::Timeout
                | Kind::PortClosed
                | Kind::MemberFailed
                | Kind::Interrupted
                | Kind::Pending
                | Kind::Evicted
        );
        if !passes {
            self.hold(&error);
        }
        keep(error)
    }

    /// Keeps an error that the program might ignore, if the error is the first.
    pub(crate) fn hold(&self, error: &Error) {
        if self.sticky {
            self.stuck().get_or_insert_with(|| error.clone());
            self.is_stuck.store(true, Ordering::Release);
        }
    }
}

impl Drop for StickyInstance {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may hold the lock for ever.
        if titin_runtime::not_forked().is_ok() {
            let mut open = OPEN_INSTANCES
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            open.remove(&self.number);
        }
    }
}

impl Port {
    #[inline(always)]
    pub(crate) fn name(&self) -> &'static Text {
        self.recipient.name
    }
}

impl Recipient {
    pub(crate) fn name(&self) -> &'static Text {
        self.name
    }

    /// The instance, if the instance is open; `None` in a forked child, where a thread of the
    /// parent may hold the lock for ever.
    fn instance(&self) -> Option<Arc<StickyInstance>> {
        titin_runtime::not_forked().ok()?;
        let open = OPEN_INSTANCES
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.get(&self.instance)?.upgrade()
    }

    /// An error about a message of the port and of a slot, with the origin of the message.
    pub(crate) fn located(&self, slot: Option<u32>, error: Error) -> Error {
        let origin = self.origin(slot);
        Error::new(error.kind, format!("{origin}: {}", error.text))
    }

    /// The port, a slot and the sender of the messages: `port 'in[0]', message from micro.out`.
    pub(crate) fn origin(&self, slot: Option<u32>) -> String {
        let sender = self.instance().and_then(|shared| {
            let (id, _) = shared.instance.port_ids().nth(self.index as usize)?;
            shared.instance.sender(id, slot)
        });
        let sender = sender
            .map(|sender| format!(", message from {sender}"))
            .unwrap_or_default();
        let slot = slot.map(|slot| format!("[{slot}]")).unwrap_or_default();
        format!("port '{}{slot}'{sender}", self.name.as_str())
    }

    /// Keeps an error about a message while the instance is open, since the program might ignore
    /// the error.
    pub(crate) fn hold(&self, error: &Error) {
        if let Some(shared) = self.instance() {
            shared.hold(error);
        }
    }
}

impl Handle {
    pub(crate) fn new(instance: Instance, enlisted: Option<ReadyEntry>, sticky: bool) -> Self {
        let workdir = std::env::current_dir().unwrap_or_default();
        let shared = StickyInstance::new(instance, enlisted, sticky);
        let port = |(index, (id, name))| Port {
            shared: shared.clone(),
            id,
            recipient: Recipient {
                instance: shared.number,
                index,
                name: Text::shared(name),
            },
        };
        Handle {
            ports: (0..).zip(shared.instance.port_ids()).map(port).collect(),
            name: c_text(shared.instance.name()),
            workdir: c_text(&workdir.to_string_lossy()),
            time_unit: c_text(shared.instance.time_unit()),
            scale: scale_of(&shared.instance),
            hosted: false,
            texts: Mutex::default(),
            shared,
        }
    }

    /// The instance, to be freed by `titin_host`.
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
        let pointer = text.as_ptr();
        texts.insert(text);
        pointer
    }
}

/// The description's scales of an instance's component, as a map.
fn scale_of(instance: &Instance) -> Value {
    let number = |name, value: Option<f64>| value.map(|value| (name, Value::float(value)));
    let list = |name, values: &[f64]| (!values.is_empty()).then(|| (name, Value::floats(values)));
    Value::map(instance.scale().into_iter().flat_map(|scale| {
        let entries = [
            number("dt", scale.dt),
            number("total", scale.total),
            list("dx", &scale.dx),
            list("extent", &scale.extent),
        ];
        entries.into_iter().flatten()
    }))
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
