//! Text that C can read: it ends with a NUL, and may hold others.

use std::ffi::c_char;

/// Text with a NUL behind it.
#[derive(Clone)]
pub(crate) struct Text(String);

impl Text {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.push('\0');
        Text(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0[..self.0.len() - 1]
    }

    /// Lives as long as the text, wherever the text is moved to.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
