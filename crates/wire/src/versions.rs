//! The versions of the formats that this release speaks, lowest and highest.
//!
//! In a build with debug assertions, for tests of unlike releases, an environment variable sets the
//! versions of a format: `TITIN_DATA_VERSIONS="2 3"`.

/// Versions of the control messages.
pub fn control() -> (u16, u16) {
    of("TITIN_CONTROL_VERSIONS", (1, 1))
}

/// Versions of the data frames.
pub fn data() -> (u16, u16) {
    of("TITIN_DATA_VERSIONS", (1, 1))
}

/// Versions of the messages between relays.
pub fn relay() -> (u16, u16) {
    of("TITIN_RELAY_VERSIONS", (1, 1))
}

#[cfg(not(debug_assertions))]
fn of(_variable: &str, own: (u16, u16)) -> (u16, u16) {
    own
}

#[cfg(debug_assertions)]
fn of(variable: &str, own: (u16, u16)) -> (u16, u16) {
    let Ok(text) = std::env::var(variable) else {
        return own;
    };
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(lowest)), Some(Ok(highest)), None) => (lowest, highest),
        _ => panic!("{variable} is {text:?}, and not the lowest and the highest version"),
    }
}
