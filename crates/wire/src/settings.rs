//! Values of settings, as the manager hands them out and as overlays carry them.

use serde::{Deserialize, Serialize};

use crate::Malformed;

/// A setting's value: the types of yMMSL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// Text, also a quantity such as "10 ms".
    Text(String),
    /// A list of whole numbers.
    Ints(Vec<i64>),
    /// A list of real numbers.
    Floats(Vec<f64>),
    /// A table of real numbers.
    Table(Vec<Vec<f64>>),
}

/// Settings in force over those of the description: names as in yMMSL, more specific ones first when looked up.
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
    rmp_serde::from_slice(bytes).map_err(|error| Malformed::new("settings overlay", error.to_string()))
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
            Setting::Text("10 ms".into()),
            Setting::Ints(vec![1, 2]),
            Setting::Floats(vec![1.0, 2.5]),
            Setting::Table(vec![vec![1.0], vec![2.0, 3.0]]),
        ];
        let overlay: Overlay =
            settings.into_iter().enumerate().map(|(index, value)| (format!("s{index}"), value)).collect();
        assert_eq!(decode_overlay(&encode_overlay(&overlay)).unwrap(), overlay);
        assert!(decode_overlay(&[0xc1]).is_err());
    }
}
