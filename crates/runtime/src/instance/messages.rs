//! The calls that send, receive and begin a use, on all ranks of the instance.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_wire::meta::Layout;
use titin_wire::settings::Overlay;

use super::Instance;
use crate::field_mark::ordinary;
use crate::message::CallerLayout;
use crate::port::PortId;
use crate::ranks::unexpected;
use crate::serial::{NoteCall, Patience, PortChoice, ReceivedAtOnce, ReceivedFrom};
use crate::{IncomingMessage, Loan, Message, Payload, Result};

impl Instance {
    /// Begins the next use of the submodel: true if there is a next use.
    ///
    /// Without connected F_INIT ports there is one use. Else the call waits until every F_INIT port
    /// has a message, or is closed: true if all have a message, false if all are closed. Ports with
    /// the filter `repeat` or `pad` follow the others. The call fixes the settings overlay of the
    /// use.
    ///
    /// # Errors
    /// [`Kind::CallOrder`] if a message of the last use was not taken, or if some F_INIT ports are
    /// closed and others are not; [`Kind::Setting`] if overlays contradict each other;
    /// [`Kind::Usage`] if another thread is in this call; as [`Instance::receive`].
    pub fn reuse(&self) -> Result<bool> {
        let serial = &self.serial;
        serial.enter()?;
        let next = match &self.group {
            None => serial.next_use(),
            Some(group) => group.reuse(|| serial.next_use()),
        };
        let next = next.inspect_err(|error| serial.note_failure(error))?;
        Ok(next.map(|next| serial.begin(next)).is_some())
    }

    /// Sends a message. Returns when the caller may change the payload's memory. Waits only while
    /// the conduit's buffer is full, or until the receiver has come. Does nothing on a port without
    /// a conduit.
    ///
    /// `settings` is the overlay to go with the message; `None` means the overlay in force.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that receives, a slot that is not there or data that do not hold
    /// together; [`Kind::CallOrder`] out of the submodel execution loop; [`Kind::PortClosed`] if
    /// the receiver has finished; [`Kind::PeerLost`] or [`Kind::Deadlock`] if the run has failed.
    pub fn send(
        &self,
        port: PortId,
        slot: Option<u32>,
        payload: &Payload<'_>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        settings: Option<&Overlay>,
    ) -> Result<()> {
        let serial = &self.serial;
        if serial.table.ports[port.0].has_field.load(Ordering::Relaxed) {
            serial.enter()?;
            self.fields.refuse_send("send", port)?;
        }
        let times = (timestamp, next_timestamp);
        let sent = serial.send(port, slot, payload, times, settings, None);
        sent.inspect_err(|error| serial.note_failure(error))
    }

    /// As [`Instance::send`], for an array with the layout of the last array that was sent on the
    /// slot, or for no data, without a settings overlay: the short way of most messages. `elements`
    /// gets the number of bytes of the last array, and gives the array's bytes; `None` if the program
    /// gave no memory. The call returns `None` if the message needs more; nothing has happened then, and the
    /// caller calls [`Instance::send`].
    #[inline(always)]
    pub fn send_repeated<'a>(
        &self,
        port: PortId,
        slot: Option<u32>,
        array: Option<&CallerLayout<'_>>,
        elements: impl FnOnce(usize) -> Option<&'a [u8]>,
        times: (f64, Option<f64>),
    ) -> Option<Result<()>> {
        let sent = self
            .serial
            .send_repeated(port, slot, array, elements, times)?;
        Some(sent.inspect_err(|error| self.serial.note_failure(error)))
    }

    /// As [`Instance::receive`], if the message is there or, with `waits`, comes within a moment: the
    /// short way of most messages. `message` is an earlier message, whose memory is used again. `None` if the call
    /// needs more; nothing has happened then, and the caller calls [`Instance::receive`].
    #[inline(always)]
    pub fn receive_repeated(
        &self,
        port: PortId,
        slot: Option<u32>,
        waits: bool,
        message: &mut IncomingMessage,
    ) -> Option<Result<ReceivedAtOnce>> {
        let fits =
            |message: &Message| ordinary(|| self.serial.table.ports[port.0].label(slot), message);
        self.receive_repeated_that(port, slot, waits, message, |_, note| note(), fits)
    }

    /// As [`Instance::receive_repeated`], for a caller with demands on the message. `takes` looks at a
    /// message of an array or without data, notes the call, and may copy the data then. It returns whether
    /// the caller takes the message. `fits` checks all other messages, as in [`Instance::receive_that`].
    #[inline(always)]
    pub fn receive_repeated_that(
        &self,
        port: PortId,
        slot: Option<u32>,
        waits: bool,
        message: &mut IncomingMessage,
        takes: impl FnOnce(&IncomingMessage, &mut NoteCall<'_>) -> bool,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Option<Result<ReceivedAtOnce>> {
        self.serial
            .receive_repeated(port, slot, waits, message, takes, fits)
    }

    /// As [`Instance::receive_from`], if a message is there or comes within a moment: the short way of most messages, as
    /// [`Instance::receive_repeated`].
    #[inline(always)]
    pub fn receive_from_repeated(
        &self,
        choice: &PortChoice,
        message: &mut IncomingMessage,
    ) -> Option<Result<ReceivedFrom>> {
        self.serial.receive_chosen_repeated(choice, message)
    }

    /// Memory for an array to be sent: peers on this host read the array in place. Does not wait.
    /// The program may send the memory on any port. The call takes the port so that a wrong name is
    /// noticed.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that receives, a slot that is not there, or more bytes than can
    /// be counted; [`Kind::NoMemory`] if there is none.
    pub fn loan(&self, port: PortId, slot: Option<u32>, layout: Layout) -> Result<Loan> {
        self.serial.enter()?;
        let refuse_field = || self.fields.refuse_send("loan", port);
        self.serial.loan(port, slot, layout, refuse_field)
    }

    /// Receives a message. Waits until a message is there.
    ///
    /// # Errors
    /// [`Kind::PortClosed`] if the sender has finished; [`Kind::Timeout`] if the patience ends;
    /// [`Kind::Usage`] for a port that sends or has no conduit; [`Kind::CallOrder`] out of the
    /// submodel execution loop (the message stays for a later call in order); [`Kind::PeerLost`] or
    /// [`Kind::Deadlock`] if the run has failed.
    pub fn receive(&self, port: PortId, slot: Option<u32>, patience: Patience) -> Result<Message> {
        self.receive_that(port, slot, patience, |message| {
            ordinary(|| self.serial.table.ports[port.0].label(slot), message)
        })
    }

    /// As [`Instance::receive`], if `fits` finds no fault with the message. Else the message stays
    /// for the next call.
    ///
    /// # Errors
    /// As [`Instance::receive`], and errors of `fits`.
    #[inline(always)]
    pub fn receive_that(
        &self,
        port: PortId,
        slot: Option<u32>,
        patience: Patience,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<Message> {
        let serial = &self.serial;
        self.refuse_fields(&[port])?;
        serial.enter()?;
        let received = match &self.group {
            None => {
                let received = serial.receive(port, slot, patience, fits);
                received.map(|(_, message)| message)
            }
            Some(group) => {
                let receive = |fits: &dyn Fn(&Message) -> Result<()>| {
                    let (slot, message) = serial.receive(port, slot, patience, fits)?;
                    Ok((port, slot, message))
                };
                let call = group.call_on("receive", port, slot);
                group.receive_on(&call, receive, fits)
            }
        };
        received.inspect_err(|error| serial.note_failure(error))
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    /// As [`Instance::receive`].
    pub fn try_receive(&self, port: PortId, slot: Option<u32>) -> Result<Option<Message>> {
        let serial = &self.serial;
        serial.enter()?;
        self.refuse_fields(&[port])?;
        let received = match &self.group {
            None => {
                let received = serial.try_receive(port, slot);
                received.map(|received| received.map(|(_, message)| message))
            }
            Some(group) => group.try_receive_on(port, slot),
        };
        received.inspect_err(|error| serial.note_failure(error))
    }

    /// Receives the next message of any of the given ports, and of all slots of vector ports. Ports
    /// take turns; closed ports are passed over. Gives the port and the slot (0 for ports without
    /// slots). Calls in a row with the same ports cost the same for any number of ports, except for
    /// a look at the list of ports.
    ///
    /// # Errors
    /// [`Kind::PortClosed`] once all are closed; as [`Instance::receive`].
    pub fn receive_any(
        &self,
        ports: &[PortId],
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        self.serial.enter()?;
        let mut last = self.last_choice.lock().expect("never poisoned");
        let choice = match last.clone().filter(|choice| choice.ports() == ports) {
            Some(choice) => choice,
            None => last.insert(self.choice(ports)?).clone(),
        };
        drop(last);
        self.receive_from(&choice, patience)
    }

    /// Ports for [`Instance::receive_from`].
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that sends, that nothing is connected to, or that is named twice,
    /// and for no port.
    pub fn choice(&self, ports: &[PortId]) -> Result<Arc<PortChoice>> {
        self.serial.choose_ports(ports)
    }

    /// As [`Instance::receive_any`], for ports chosen before.
    ///
    /// # Errors
    /// As [`Instance::receive_any`]; [`Kind::Usage`] if another thread is in a call on the same
    /// ports.
    pub fn receive_from(
        &self,
        choice: &PortChoice,
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        let serial = &self.serial;
        serial.enter()?;
        self.refuse_fields(choice.ports())?;
        let Some(group) = &self.group else {
            let received = serial.receive_chosen(choice, patience);
            return received.inspect_err(|error| serial.note_failure(error));
        };
        let names = choice
            .ports()
            .iter()
            .map(|port| &*serial.table.ports[port.0].name);
        let names: Vec<&str> = names.collect();
        let call = format!("receive_any on ports {}", names.join(", "));
        let received = group.receive(&call, || serial.receive_chosen(choice, patience).map(Some));
        let received = received.inspect_err(|error| serial.note_failure(error))?;
        received.ok_or_else(|| unexpected(&call))
    }

    /// Fails if one of the given ports carries a field.
    #[inline(always)]
    fn refuse_fields(&self, ports: &[PortId]) -> Result<()> {
        let has_field = |port: &&PortId| {
            let port = self.serial.table.ports.get(port.0);
            port.is_some_and(|port| port.has_field.load(Ordering::Relaxed))
        };
        match ports.iter().find(has_field) {
            None => Ok(()),
            Some(port) => self.fields.refuse_receive(*port),
        }
    }
}
