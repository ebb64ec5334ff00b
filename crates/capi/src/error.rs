//! Errors at the C interface: a number, and a text for each thread. No panic unwinds into C.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use titin_runtime::{Error, Kind, Result};

use crate::language::{Getter, Language};

/// The status of a call without an error.
pub(crate) const OK: c_int = 0;

/// `TITIN_NO_SLOT`.
const NO_SLOT: c_int = -1;

/// Names of the errors, by the errors' numbers.
const NAMES: [&CStr; 20] = [
    c"TITIN_OK",
    c"TITIN_ERROR_USAGE",
    c"TITIN_ERROR_CALL_ORDER",
    c"TITIN_ERROR_SETTING",
    c"TITIN_ERROR_TYPE_MISMATCH",
    c"TITIN_ERROR_TIMEOUT",
    c"TITIN_ERROR_PORT_CLOSED",
    c"TITIN_ERROR_PEER_LOST",
    c"TITIN_ERROR_DEADLOCK",
    c"TITIN_ERROR_CONNECTION",
    c"TITIN_ERROR_NO_MEMORY",
    c"TITIN_ERROR_FORKED",
    c"TITIN_ERROR_INTERNAL",
    c"TITIN_ERROR_INTERRUPTED",
    c"TITIN_ERROR_FILTER",
    c"TITIN_ERROR_CLOSED",
    c"TITIN_PENDING",
    c"TITIN_ERROR_EVICTED",
    c"TITIN_ERROR_MESSAGE_LOST",
    c"TITIN_ERROR_MEMBER_FAILED",
];

thread_local! {
    /// The last error of this thread.
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
    /// Whether the program has dealt with the last error, and said so.
    static DEALT_WITH: Cell<bool> = const { Cell::new(false) };
}

/// An error with texts for C.
struct LastError {
    error: Error,
    text: CString,
    /// The name of the failed member of an ensemble.
    member: CString,
    /// Present where another call can read the data.
    mismatch: Option<Mismatch>,
    /// The text with the names of another language, from the last call of `titin_error_in`.
    translated: CString,
}

/// Data other than the program asked for.
#[derive(Debug, Clone)]
pub(crate) struct Mismatch {
    /// The error without the advice on the getter.
    error: Error,
    /// The call that reads the data, if there is such a call.
    getter: Option<Getter>,
}

impl From<Error> for Mismatch {
    fn from(error: Error) -> Self {
        Mismatch {
            error,
            getter: None,
        }
    }
}

impl Mismatch {
    pub(crate) fn readable(error: Error, getter: Getter) -> Self {
        Mismatch {
            error,
            getter: Some(getter),
        }
    }

    /// The error, with the names of calls in `language`.
    pub(crate) fn in_language(&self, language: Language) -> Error {
        let Error { kind, text, .. } = &self.error;
        match self.getter {
            Some(getter) => Error::new(
                *kind,
                format!("{text}: read it with {}", getter.name(language)),
            ),
            None => self.error.clone(),
        }
    }

    /// The same mismatch with a changed text.
    pub(crate) fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        Mismatch {
            error: change(self.error),
            getter: self.getter,
        }
    }
}

/// Makes `error` the last error of this thread. Returns the error's number.
pub(crate) fn keep(error: Error) -> c_int {
    let kind = error.kind as c_int;
    // A pending call is no error, and a thread may have thousands of pending calls in a second.
    if error.is_pending() {
        return kind;
    }
    set_last(error, None);
    kind
}

/// Makes a mismatch the last error of this thread.
pub(crate) fn keep_mismatch(mismatch: Mismatch) {
    set_last(mismatch.in_language(Language::C), Some(mismatch));
}

fn set_last(error: Error, mismatch: Option<Mismatch>) {
    let (text, translated) = (c_text(&error.text), CString::default());
    let member = error.member.as_ref();
    let last = LastError {
        member: member.map_or_else(CString::default, |member| c_text(&member.name)),
        error,
        text,
        mismatch,
        translated,
    };
    LAST.with_borrow_mut(|place| *place = Some(last));
    DEALT_WITH.set(false);
}

/// Notes that the program has dealt with this thread's last error: no later error follows from the
/// last error.
pub(crate) fn dealt_with() {
    DEALT_WITH.set(true);
}

/// This thread's last error while code of the user runs. Dropping the `SavedError` restores the
/// last error, with the text at the same address.
pub(crate) struct SavedError(Option<LastError>);

/// Takes the last error away for a while, to tell an error of the user's code from the last error.
pub(crate) fn save_last_error() -> SavedError {
    SavedError(LAST.take())
}

impl Drop for SavedError {
    fn drop(&mut self) {
        LAST.set(self.0.take());
    }
}

/// The last error of this thread.
pub(crate) fn last() -> Option<Error> {
    LAST.with_borrow(|last| last.as_ref().map(|last| last.error.clone()))
}

/// Runs the body of a call. A panic becomes an error with the panic's text.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let why = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without text".to_owned());
        Err(Error::new(
            Kind::Internal,
            format!("an error inside titin: {why}; please report this"),
        ))
    })
}

/// A call that returns a status and has no instance for errors to stick to.
pub(crate) fn status(body: impl FnOnce() -> Result<()>) -> c_int {
    caught(body).map_or_else(keep, |()| OK)
}

/// A call that returns a value, or on an error the fallback.
pub(crate) fn value<T>(fallback: T, body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(|error| {
        keep(error);
        fallback
    })
}

/// A call that returns the elements of an array, or on an error NULL.
pub(crate) fn elements(
    body: impl FnOnce() -> std::result::Result<*const c_void, Mismatch>,
) -> *const c_void {
    let outcome = caught(|| Ok(body()));
    outcome
        .unwrap_or_else(|panic| Err(panic.into()))
        .unwrap_or_else(|mismatch| {
            keep_mismatch(mismatch);
            std::ptr::null()
        })
}

/// The error for a handle that is NULL. Most often the reason is an earlier error that the program
/// did not look at.
pub(crate) fn null(what: &str, maker: &str) -> Error {
    const BEFORE: &str = "; the last error before was: ";
    const GIVEN: &str = "NULL was given where";
    // Programs expect these errors. The only handle that such an error leaves NULL is the message's
    // handle.
    let expected = |error: &Error| {
        let kinds = [
            Kind::Timeout,
            Kind::PortClosed,
            Kind::Interrupted,
            Kind::Evicted,
            Kind::MessageLost,
            Kind::MemberFailed,
        ];
        DEALT_WITH.get() || what != "message" && kinds.contains(&error.kind)
    };
    // Of errors that follow from each other the text names the first.
    let before = last().filter(|error| !expected(error)).and_then(|error| {
        match error.text.split_once(BEFORE) {
            Some((_, first)) => Some(format!("{BEFORE}{first}")),
            None if error.text.contains(GIVEN) => None,
            None => Some(format!("{BEFORE}{error}")),
        }
    });
    usage(format!(
        "no {what}: {GIVEN} {maker} gives one{}",
        before.unwrap_or_default()
    ))
}

pub(crate) fn usage(text: impl Into<String>) -> Error {
    Error::new(Kind::Usage, text)
}

/// Text for C. A NUL inside would end the text early, and is written as `\0`.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).expect("no NUL is left")
}

#[unsafe(no_mangle)]
extern "C" fn titin_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn titin_error_member() -> *const c_char {
    let name = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.member.as_ptr()));
    name.ok().flatten().unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn titin_error_slot() -> c_int {
    let slot = |last: &LastError| last.error.member.as_ref()?.slot;
    let slot = LAST.try_with(|last| last.borrow().as_ref().and_then(slot));
    let slot = slot.ok().flatten();
    slot.and_then(|slot| c_int::try_from(slot).ok())
        .unwrap_or(NO_SLOT)
}

#[unsafe(no_mangle)]
extern "C" fn titin_error_kind() -> c_int {
    LAST.try_with(|last| {
        last.borrow()
            .as_ref()
            .map_or(OK, |last| last.error.kind as c_int)
    })
    .unwrap_or(OK)
}

/// # Safety
/// `language` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_error_in(language: *const c_char) -> *const c_char {
    let language = if language.is_null() {
        Language::C
    } else {
        // SAFETY: the name ends with a NUL, as the caller promises.
        Language::named(&unsafe { CStr::from_ptr(language) }.to_string_lossy())
    };
    let translated = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let last = last.as_mut()?;
        let mismatch = last.mismatch.as_ref()?;
        last.translated = c_text(&mismatch.in_language(language).text);
        Some(last.translated.as_ptr())
    });
    translated.ok().flatten().unwrap_or_else(|| titin_error())
}

#[unsafe(no_mangle)]
extern "C" fn titin_error_name(kind: c_int) -> *const c_char {
    usize::try_from(kind)
        .ok()
        .and_then(|kind| NAMES.get(kind))
        .map_or(std::ptr::null(), |name| name.as_ptr())
}

/// # Safety
/// `stream` is NULL or open for writing.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_explain(stream: *mut libc::FILE) -> c_int {
    if !stream.is_null() {
        for text in [c"titin: ".as_ptr(), titin_error(), c"\n".as_ptr()] {
            // SAFETY: the stream is open, as the caller promises; the texts end with a NUL and
            // outlive the call.
            unsafe { libc::fputs(text, stream) };
        }
    }
    titin_error_kind().max(1)
}

/// # Safety
/// `text` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_set_error(text: *const c_char) {
    let text = if text.is_null() {
        String::new()
    } else {
        // SAFETY: the text ends with a NUL, as the caller promises.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    keep(Error::new(Kind::Filter, text));
}

#[unsafe(no_mangle)]
extern "C" fn titin_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_runtime::ElementValue;

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        let kind = status(|| panic!("seven is not eight"));
        assert_eq!(kind, Kind::Internal as c_int);
        assert!(last().unwrap().text.contains("seven is not eight"));
        assert_eq!(titin_error_kind(), kind);
    }

    #[test]
    fn an_error_names_the_call_that_reads_the_data_in_each_language() {
        let text = |language: &CStr| {
            // SAFETY: the language is a constant, and the text lives until the next call.
            let text = unsafe { CStr::from_ptr(titin_error_in(language.as_ptr())) };
            text.to_str().unwrap().to_owned()
        };
        let found = Error::new(Kind::TypeMismatch, "found 1");
        keep_mismatch(Mismatch::readable(
            found.clone(),
            Getter::of_value(ElementValue::Whole(1)),
        ));
        assert_eq!(text(c"C"), "found 1: read it with titin_value_i64");
        assert_eq!(text(c"C++"), "found 1: read it with as<std::int64_t>()");
        assert_eq!(text(c"Fortran"), "found 1: read it with read(x)");
        assert_eq!(last().unwrap().text, text(c"Python"));
        let getter = Getter::of_message(ElementValue::Whole(1));
        keep_mismatch(
            Mismatch::readable(found, getter)
                .map(|error| Error::new(error.kind, format!("port 'in': {}", error.text))),
        );
        assert_eq!(
            text(c"C++"),
            "port 'in': found 1: read it with value().as<std::int64_t>()"
        );
        keep(usage("no port 'x'"));
        assert_eq!(text(c"C++"), "no port 'x'");
    }

    #[test]
    fn of_errors_that_follow_from_each_other_the_first_is_told() {
        status(|| Err(usage("no port 'x'")));
        for _ in 0..3 {
            status(|| Err(null("port", "titin_port_find")));
        }
        let text = last().unwrap().text;
        assert_eq!(text.matches("the last error before").count(), 1, "{text}");
        assert!(text.contains("no port 'x'"), "{text}");
    }

    #[test]
    fn what_a_program_has_dealt_with_is_no_reason_for_a_later_null() {
        let text = |what| {
            status(|| Err(null(what, "a call")));
            last().unwrap().text
        };
        keep(Error::new(Kind::Timeout, "no message yet"));
        assert!(!text("port").contains("no message yet"));
        keep(Error::new(Kind::Timeout, "no message yet"));
        assert!(text("message").contains("no message yet"));
        keep(Error::new(Kind::Setting, "no setting"));
        dealt_with();
        assert!(!text("value").contains("no setting"));
        keep(Error::new(Kind::Setting, "no setting"));
        assert!(text("value").contains("no setting"));
    }

    #[test]
    fn every_number_has_a_name() {
        assert_eq!(NAMES.len(), Kind::MemberFailed as usize + 1);
        for kind in 0..NAMES.len() as c_int {
            assert!(!titin_error_name(kind).is_null());
        }
        assert!(titin_error_name(20).is_null() && titin_error_name(-1).is_null());
    }
}
