//! Values of settings, in registrations and in overlays.

pub use titin_model::Setting;

use crate::Malformed;

/// Settings that go before those of the description, by their names in yMMSL. A look-up takes the
/// most specific name.
pub type Overlay = std::collections::BTreeMap<String, Setting>;

/// An overlay as MessagePack.
pub fn encode_overlay(overlay: &Overlay) -> Vec<u8> {
    rmp_serde::to_vec(overlay).expect("settings are plain data")
}

/// Reads an overlay.
///
/// # Errors
/// [`Malformed`] if the bytes are no MessagePack map of settings.
pub fn decode_overlay(bytes: &[u8]) -> Result<Overlay, Malformed> {
    rmp_serde::from_slice(bytes)
        .map_err(|error| Malformed::new("settings overlay", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives() {
        let settings = [
            Setting::Bool(true),
            Setting::Int(-3),
            Setting::Float(2.0),
            Setting::Str("10 ms".into()),
            Setting::Ints(vec![1, 2]),
            Setting::Floats(vec![1.0, 2.5]),
            Setting::Table(vec![vec![1.0], vec![2.0, 3.0]]),
        ];
        let overlay: Overlay = settings
            .into_iter()
            .enumerate()
            .map(|(index, value)| (format!("s{index}"), value))
            .collect();
        assert_eq!(decode_overlay(&encode_overlay(&overlay)).unwrap(), overlay);
        assert!(decode_overlay(&[0xc1]).is_err());
    }
}
