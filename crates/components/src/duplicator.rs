//! `titin.duplicator`: what comes in goes out by every port.
//!
//! A conduit may lead to several receivers by itself (multicast). The duplicator is for what that cannot do: it has
//! ports, so each copy may have its filters, and a vector port's slots get a copy each.

use titin_runtime::{BuiltIn, Instance};

use crate::mapper::{self, to_all};
use crate::settings::ComponentSettings;
use crate::{Error, Result};

pub(crate) fn run(instance: &Instance) -> Result<()> {
    ComponentSettings::new(instance, BuiltIn::Duplicator)?;
    mapper::run(instance, |instance, out, taken, stamp| match taken {
        [one] => to_all(instance, out, &crate::data::view(&one.message), stamp),
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
