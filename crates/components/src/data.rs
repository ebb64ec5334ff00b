//! The data of messages as components pass the data on, with times and settings.

use titin_runtime::structure::{self, Value as Tree};
use titin_runtime::{Instance, Kind, Message, Overlay, Payload, PortId};

use crate::{Error, Result};

/// The data of a message, in memory of its own.
pub(crate) type Value = Tree<Vec<u8>>;

/// The data of a message, in borrowed memory.
pub(crate) type View<'a> = Tree<&'a [u8]>;

/// The times and the settings of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MessageMeta {
    pub(crate) timestamp: f64,
    pub(crate) next: Option<f64>,
    /// The settings overlay; `None` means the overlay in force.
    pub(crate) settings: Option<Overlay>,
}

/// The data of a message, without a copy.
pub(crate) fn view(message: &Message) -> View<'_> {
    let bytes = message.bytes();
    message.structure().map_bytes(&|span| &bytes[span])
}

/// Sends data. On a port without a conduit, `send` does nothing.
pub(crate) fn send<B: AsRef<[u8]>>(
    instance: &Instance,
    port: PortId,
    slot: Option<u32>,
    value: &Tree<B>,
    meta: &MessageMeta,
) -> Result<()> {
    let send = |payload: &Payload<'_>| {
        instance.send(
            port,
            slot,
            payload,
            meta.timestamp,
            meta.next,
            meta.settings.as_ref(),
        )
    };
    match value {
        Tree::Nil => send(&Payload::nil())?,
        Tree::Array(layout, elements) => send(&Payload::array(layout, elements.as_ref()))?,
        value => {
            let encoded = structure::encode(value)
                .map_err(|error| titin_runtime::Error::new(Kind::Usage, error.to_string()))?;
            send(&Payload::structure(&encoded))?;
        }
    }
    Ok(())
}

/// The kind of the data, for error messages.
pub(crate) fn describe<B>(value: &Tree<B>) -> String {
    match value {
        Tree::Nil => "nil".to_owned(),
        Tree::Bool(_) => "true or false".to_owned(),
        Tree::Int(_) | Tree::UInt(_) => "a whole number".to_owned(),
        Tree::Float(_) | Tree::Float32(_) => "a real number".to_owned(),
        Tree::Text(_) => "text".to_owned(),
        Tree::Bytes(_) => "bytes".to_owned(),
        Tree::Array(layout, _) => {
            format!(
                "an array of {} with shape {:?}",
                layout.dtype.name(),
                layout.shape
            )
        }
        Tree::List(values) => format!("a list of {}", values.len()),
        Tree::Map(entries) => format!("a map of {} entries", entries.len()),
        Tree::Settings(entries) => format!("{} settings", entries.len()),
    }
}

/// Merges the overlays of several messages for the single message that takes their place.
///
/// # Errors
/// Two overlays have different values for a setting.
pub(crate) fn merge_overlays<'a>(
    mut merged: Overlay,
    overlays: impl IntoIterator<Item = (&'a str, &'a Overlay)>,
) -> Result<Overlay> {
    let mut seen: Overlay = Overlay::new();
    for (port, overlay) in overlays {
        for (name, value) in overlay {
            match seen.insert(name.clone(), value.clone()) {
                Some(other) if other != *value => {
                    let text = format!(
                        "the settings overlays of messages that should become one differ: '{name}' is {other}, and \
                         {value} on port '{port}'; send the same overlay with both, or none"
                    );
                    return Err(Error::Data(text));
                }
                _ => drop(merged.insert(name.clone(), value.clone())),
            }
        }
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_runtime::Setting;

    fn overlay(entries: &[(&str, i64)]) -> Overlay {
        entries
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Setting::Int(*value)))
            .collect()
    }

    #[test]
    fn overlays_are_joined_and_contradictions_named() {
        let (a, b) = (
            overlay(&[("k", 1), ("n", 2)]),
            overlay(&[("n", 2), ("m", 3)]),
        );
        let force = overlay(&[("k", 7), ("z", 0)]);
        let merged = merge_overlays(force, [("left", &a), ("right", &b)]).unwrap();
        assert_eq!(merged, overlay(&[("k", 1), ("n", 2), ("m", 3), ("z", 0)]));

        let other = overlay(&[("n", 5)]);
        let error = merge_overlays(Overlay::new(), [("left", &a), ("right", &other)]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("'n' is 2, and 5 on port 'right'"),
            "{error}"
        );
    }
}
