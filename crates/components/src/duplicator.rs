//! `titin.duplicator`: sends each message on by all out ports.
//!
//! A conduit can lead to several receivers without a duplicator (multicast). A duplicator has a
//! port for each copy, so each copy may have filters of its own, and each slot of a vector port
//! gets a copy.

use titin_runtime::{BuiltIn, Instance};

use crate::mapper::{self, to_all};
use crate::settings::ComponentSettings;
use crate::{Error, Result};

pub(crate) fn run(instance: &Instance) -> Result<()> {
    ComponentSettings::new(instance, BuiltIn::Duplicator)?;
    mapper::run(instance, |instance, out, received, meta| match received {
        [one] => to_all(instance, out, &crate::data::view(&one.message), meta),
        several => {
            let ports: Vec<String> = several.iter().map(mapper::ReceivedMessage::label).collect();
            let text = format!(
                "{}: a duplicator has one in port without slots, this one receives on {}; titin.merger makes one message \
                 of several",
                instance.name(),
                ports.join(", ")
            );
            Err(Error::Setting(text))
        }
    })
}
