//! Ordinary calls on the port of a field.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::Role;

use super::{Field, InstanceFields};
use crate::port::PortId;
use crate::{Error, Kind, Result};

impl InstanceFields {
    /// Fails if an ordinary call is to receive on the port of a field: the call would take the
    /// header, or wait for a version though no rank has asked the sender for a version.
    #[cold]
    pub(crate) fn refuse_receive(&self, port: PortId) -> Result<()> {
        self.serial.enter()?;
        let fields = self.fields.read().expect("never poisoned");
        let Some(field) = fields.iter().find(|field| field.port == port) else {
            return Ok(());
        };
        let pulls = field.conduits.iter().any(|conduit| conduit.is_pulled());
        let (is, why) = match pulls {
            _ if field.role == Role::Sender => return Ok(()),
            true => ("is pulled", ", which asks for a version"),
            false => ("comes from rank to rank", ""),
        };
        let text = format!(
            "{}: the field on port '{}' {is}: receive it by the field{why}",
            self.serial.core.name, field.name
        );
        Err(Error::new(Kind::Usage, text))
    }

    /// Fails if an ordinary call, `send` or `loan`, is to send on the port of a field: the receiver
    /// could not tell the message from a header. A withdrawn field passes here: the port is closed
    /// then, and the call itself reports the closed port.
    #[cold]
    pub(crate) fn refuse_send(&self, call: &str, port: PortId) -> Result<()> {
        let fields = self.fields.read().expect("never poisoned");
        let sent = |field: &&Arc<Field>| {
            field.port == port
                && field.role == Role::Sender
                && !field.withdrawn.load(Ordering::Relaxed)
        };
        let Some(field) = fields.iter().find(sent) else {
            return Ok(());
        };
        let text = format!(
            "{}: {call} on port '{}', which carries a field: send by the field, or on a port of its own",
            self.serial.core.name, field.name
        );
        Err(Error::new(Kind::Usage, text))
    }
}
