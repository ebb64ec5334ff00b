//! Printing for people at a terminal, and for other programs.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Effects, Style};
use titin_manager::log::is_command;

/// The exit code of a command that refuses its input.
pub(crate) const REFUSED: u8 = 2;

/// Important text.
pub(crate) const BOLD: Style = Style::new().effects(Effects::BOLD);
/// Less important text.
pub(crate) const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// Errors.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// Warnings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
/// Positions in files, and hints.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().effects(Effects::BOLD);

/// The width of the terminal; `None` if standard output is no terminal.
pub(crate) fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 20)
}

/// Writes to standard output, in colour only on a terminal. If a reader such as `head` has closed
/// the pipe, `print` reports no error.
///
/// # Errors
/// The text cannot be written, to a full disk for instance. `print` reports the failure on standard
/// error, and the `Err` is the exit code.
pub(crate) fn print(text: &str) -> Result<(), ExitCode> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(complain(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// The text of a value as JSON; `what` names the value for an error.
///
/// # Errors
/// The value cannot be written as JSON. `json` reports the failure on standard error, and the `Err`
/// is the exit code.
pub(crate) fn json(value: &impl serde::Serialize, what: &str) -> Result<String, ExitCode> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Ok(text + "\n"),
        Err(error) => Err(complain(format!(
            "{what} cannot be written as JSON: {error}"
        ))),
    }
}

/// Prints the output of a command. Returns the exit code.
pub(crate) fn answer(text: &str) -> ExitCode {
    print(text).err().unwrap_or(ExitCode::SUCCESS)
}

/// Writes to standard error. Standard output is for the result of the command.
pub(crate) fn warn(text: &str) {
    // If the write fails, there is no other place to write to.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Whether colours are seen on standard error.
pub(crate) fn colours_in_messages() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// The height of the terminal on standard error.
pub(crate) fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows >= 4)
}

/// Prints an error on standard error. Returns the exit code.
pub(crate) fn complain(why: impl Display) -> ExitCode {
    let why = harmless(&why.to_string());
    warn(&format!("{ERROR}error:{ERROR:#} {why}\n"));
    ExitCode::from(REFUSED)
}

/// Replaces control characters in text from outside: a terminal would obey such characters.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| {
            if is_command(c) && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
