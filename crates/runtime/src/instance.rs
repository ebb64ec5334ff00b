//! An instance: the handle of a program while the program takes part in a run.
//!
//! An instance has layers: the [serial instance](crate::serial), the [group of ranks](crate::ranks)
//! of a parallel program above, and the [fields](crate::field) above both. This module composes the
//! calls of the program from calls of the layers.

mod close;
mod closing;
mod end_of_use;
mod fields;
mod layers;
mod messages;
mod open;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use titin_wire::control::{Event, Scale};
use titin_wire::settings::{Overlay, Setting};

use self::layers::Layers;
use crate::field::InstanceFields;
use crate::non_blocking::PendingCalls;
use crate::port::{Port, PortId};
use crate::process::forked;
use crate::profile::{ProfileRegion, event};
use crate::ranks::RankGroup;
use crate::serial::{PortChoice, SETTINGS_IN, Serial};
use crate::{Error, Kind, PortInfo, Result, SettingValue};

pub use open::Opening;

/// One running copy of a program in a run.
///
/// Calls on different ports may run in different threads at once. Dropping an instance that was not
/// closed fails the run: a program that ends in the middle must not look as if the program were
/// done.
pub struct Instance {
    serial: Arc<Serial>,
    /// The ranks of a parallel program.
    group: Option<Arc<RankGroup>>,
    fields: Arc<InstanceFields>,
    /// All layers, as the process knows the layers.
    layers: Arc<Layers>,
    /// The ports of the last call on any of several ports.
    last_choice: Mutex<Option<Arc<PortChoice>>>,
}

impl Instance {
    /// The name of the instance, as users write the name: `macro[3]`.
    pub fn name(&self) -> &str {
        &self.serial.core.name
    }

    /// The rank of this process, from 0; 0 for a serial program.
    pub fn rank(&self) -> u32 {
        self.group.as_ref().map_or(0, |group| group.place().rank)
    }

    /// How many ranks the instance has; 1 for a serial program.
    pub fn ranks(&self) -> u32 {
        self.group.as_ref().map_or(1, |group| group.place().count)
    }

    /// All ports, except `muscle_settings_in`: [`Instance::reuse`] takes the messages of
    /// `muscle_settings_in`.
    pub fn ports(&self) -> Vec<PortInfo> {
        self.serial.own_ports().map(Port::info).collect()
    }

    /// The numbers and names of the ports that [`Instance::ports`] lists.
    pub fn port_ids(&self) -> impl Iterator<Item = (PortId, &str)> {
        let ports = self
            .serial
            .table
            .ports
            .iter()
            .enumerate()
            .filter(|(_, port)| port.is_own());
        ports.map(|(number, port)| (PortId(number), &*port.name))
    }

    /// Whether the program is to make a call of this non-blocking instance again.
    pub fn is_pending(&self) -> bool {
        self.serial
            .reporter
            .pending
            .as_ref()
            .is_some_and(PendingCalls::is_pending)
    }

    /// Gives up pending calls of this non-blocking instance, in place of making the calls again:
    /// the calls on a port, or on a slot of the port, or all calls. A call of
    /// [`Instance::receive_any`] is on the first of its ports. The calls have not happened, with
    /// one exception: a send may have reached some receivers, so the slot can send nothing else.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a slot that is not there.
    pub fn cancel(&self, port: Option<PortId>, slot: Option<u32>) -> Result<()> {
        let port = port.map(|port| &self.serial.table.ports[port.0]);
        let place = match (port, slot) {
            (Some(port), Some(_)) => Some(port.find(slot)?.0),
            _ => None,
        };
        self.serial.give_up(port, place);
        Ok(())
    }

    /// Leaves the instance out of the search for deadlocks from here on, for programs of several
    /// tasks: while one task waits the others may go on.
    pub fn skip_deadlocks(&self) {
        self.serial.leave_search();
    }

    /// The port of the given name.
    ///
    /// # Errors
    /// [`Kind::Usage`] if there is none; the text names the ports of the instance.
    pub fn port(&self, name: &str) -> Result<PortId> {
        let bare = name.strip_suffix("[]").unwrap_or(name);
        if bare == SETTINGS_IN {
            let text = format!(
                "messages on {SETTINGS_IN} are taken by reuse(); what they set is told by the settings"
            );
            return Err(Error::new(
                Kind::Usage,
                format!("{}: {text}", self.serial.core.name),
            ));
        }
        let is_it = |port: &Port| port.is_own() && *port.name == *bare;
        self.serial
            .table
            .ports
            .iter()
            .position(is_it)
            .map(PortId)
            .ok_or_else(|| {
                let known: Vec<&str> = self.serial.own_ports().map(|port| &*port.name).collect();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                Error::new(
                    Kind::Usage,
                    format!(
                        "{} has no port '{name}'; its ports are: {known}",
                        self.serial.core.name
                    ),
                )
            })
    }

    /// The properties of a port.
    pub fn info(&self, port: PortId) -> PortInfo {
        self.serial.table.ports[port.0].info()
    }

    /// The instance and port at the other end of a slot of a receiving port; `None` if unknown.
    pub fn sender(&self, port: PortId, slot: Option<u32>) -> Option<String> {
        let port = &self.serial.table.ports[port.0];
        let (place, _) = port.find(slot).ok()?;
        port.inlets
            .get(place)?
            .as_ref()
            .map(|inlet| inlet.end.other())
    }

    /// Sets the number of slots of a sending port with slots counted at run time. Receivers learn
    /// the number with the next message.
    ///
    /// # Errors
    /// [`Kind::Usage`] for ports with a fixed number of slots, and for ports that receive.
    pub fn set_slots(&self, port: PortId, slots: u32) -> Result<()> {
        let port = &self.serial.table.ports[port.0];
        let free = port.vector && (port.resizable || !port.connected()) && port.operator.sends();
        if !free {
            let why = match (port.vector, port.operator.sends()) {
                (false, _) => "it is no vector port",
                (true, false) => "it receives, and learns their number from the sender",
                (true, true) => "the multiplicity of its peers sets it",
            };
            let text = format!(
                "the number of slots of port '{}' cannot be set: {why}",
                port.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if slots > titin_wire::meta::MAX_SLOTS {
            let most = titin_wire::meta::MAX_SLOTS;
            let text = format!("{slots} slots for port '{}', at most {most}", port.name);
            return Err(Error::new(Kind::Usage, text));
        }
        port.set_slots(slots);
        Ok(())
    }

    /// A setting: the most specific setting of the overlay in force and the description. Of two
    /// settings with the same full name, the setting of the overlay.
    ///
    /// # Errors
    /// [`Kind::Setting`] if there is none of the given name; the text names a similar setting.
    pub fn setting(&self, name: &str) -> Result<SettingValue> {
        let serial = &self.serial;
        let missing = || {
            let known = serial
                .overlays
                .settings
                .iter()
                .map(|(path, _)| path.as_str().rsplit('.').next().unwrap_or_default());
            let hint =
                titin_model::nearest(name, known).map(|near| format!(" (did you mean '{near}'?)"));
            let text = format!(
                "setting '{name}' is not set for {}{}; set it under `settings:`, or give a default in the program",
                serial.core.name,
                hint.unwrap_or_default()
            );
            Error::new(Kind::Setting, text)
        };
        let value = self.find_setting(name).ok_or_else(missing)?;
        Ok(SettingValue {
            name: name.to_owned(),
            value,
        })
    }

    /// The value of a setting, if there is such a setting.
    pub fn find_setting(&self, name: &str) -> Option<Setting> {
        let serial = &self.serial;
        let overlay = self.overlay();
        serial
            .overlays
            .settings
            .find_overlaid(&overlay, &serial.core.path, name)
            .cloned()
    }

    /// All settings of the description and of the overlay in force, with full names.
    pub fn settings(&self) -> Overlay {
        let serial = &self.serial;
        let mut all: Overlay = serial
            .overlays
            .settings
            .iter()
            .map(|(path, value)| (path.as_str().to_owned(), value.clone()))
            .collect();
        let overlay = self.overlay();
        all.extend(
            overlay
                .iter()
                .map(|(path, value)| (path.clone(), value.clone())),
        );
        all
    }

    /// The overlay in force, as fixed by the last [`Instance::reuse`].
    pub fn overlay(&self) -> Arc<Overlay> {
        self.serial.overlays.in_force().1
    }

    /// The scales of this component in the description.
    pub fn scale(&self) -> Option<&Scale> {
        self.serial.core.scale.as_ref()
    }

    /// The unit of timestamps in the description; `s` by default.
    pub fn time_unit(&self) -> &str {
        &self.serial.core.time_unit
    }

    /// Switches the check of the order of calls off from here on, unless the setting `muscle_checks`
    /// says what becomes of such calls. The log of the run keeps the reason.
    pub fn skip_checks(&self, reason: &str) {
        if self.serial.core.habits.checks.is_none() {
            self.serial.execution_loop().uncheck();
            self.log(20, &format!("the order of calls is not checked: {reason}"));
        } else {
            let text = format!(
                "the setting muscle_checks says what becomes of calls out of order, and not the program: {reason}"
            );
            self.log(20, &text);
        }
    }

    /// Sends a record to the log of the run. Levels are the levels of Python's `logging`: 10 debug,
    /// 20 info, 30 warning, 40 error, 50 critical.
    pub fn log(&self, level: u8, text: &str) {
        self.serial.log(level, text);
    }

    /// Calls `interrupted` whenever a signal ends a sleep, and at least ten times a second while a
    /// call waits. Once `interrupted` returns true the call returns [`Kind::Interrupted`].
    /// `interrupted` runs on the waiting thread.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the instance has such a function already.
    pub fn on_interrupt(
        &self,
        interrupted: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<()> {
        let text =
            "the instance has a function to ask about interruptions already; it can be set once";
        self.serial
            .core
            .interrupt
            .set(Box::new(interrupted))
            .map_err(|_| Error::new(Kind::Usage, text))
    }

    /// Begins a region of the user's own in the profile.
    pub fn begin_region(&self, name: &str) -> ProfileRegion {
        ProfileRegion {
            name: name.to_owned(),
            start: self.serial.profile.trace.now(),
        }
    }

    /// Ends a region.
    pub fn end_region(&self, region: ProfileRegion) {
        let serial = &self.serial;
        let stop = serial.profile.trace.now();
        serial
            .profile
            .trace
            .region(&region.name, (stop - region.start) as f64 * 1e-9);
        if serial.profile.trace.on {
            serial.row(Event {
                region: true,
                ..event(&region.name, region.start, stop)
            });
        }
    }

    /// Fails the run, with this instance as the culprit. The instance is closed.
    pub fn fail(&self, text: &str) {
        self.serial.fail(&Error::new(Kind::Closed, text));
    }

    /// The error by which the instance has failed, if the instance has failed.
    pub fn failure(&self) -> Option<Error> {
        self.serial.first_error().clone()
    }

    /// Keeps the first error of a program that may not look at the results of calls:
    /// [`Instance::close`] fails with the error.
    pub fn note(&self, error: &Error) {
        self.serial
            .first_error()
            .get_or_insert_with(|| error.clone());
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let serial = &self.serial;
        if !forked() && !serial.core.over.load(Ordering::Acquire) {
            // A program that unwinds because the run has failed is not the cause of the failure.
            let noted = serial.first_error().clone();
            let error = noted
                .or_else(|| serial.check().err())
                .unwrap_or_else(|| serial.let_go());
            serial.fail(&error);
        }
        // The user's filters go with the instance, on this thread. The background thread may hold
        // the instance for a moment, so this thread waits.
        while !forked()
            && (Arc::strong_count(&self.layers) > 1 || Arc::strong_count(&self.fields) > 2)
        {
            std::thread::yield_now();
        }
    }
}
