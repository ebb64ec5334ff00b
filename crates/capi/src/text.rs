//! Text for C: with a NUL at the end, and perhaps others inside.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

/// Text with a NUL after the last character.
#[derive(Clone)]
pub(crate) struct Text(String);

impl Text {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.push('\0');
        Text(text)
    }

    /// The copy of a port's name for all instances of the process: thousands of instances may have
    /// the same ports. The copy lives as long as the process, since messages outlive instances.
    pub(crate) fn shared(name: &str) -> &'static Text {
        static NAMES: Mutex<BTreeMap<&str, &Text>> = Mutex::new(BTreeMap::new());
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = names.get(name) {
            return text;
        }
        let text: &Text = Box::leak(Box::new(Text::new(name)));
        names.insert(text.as_str(), text);
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0[..self.0.len() - 1]
    }

    /// A pointer that lives as long as the text, wherever the text is moved to.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
