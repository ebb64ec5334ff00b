//! What is printed, and for whom: a person at a terminal, or another program.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Effects, Style};
use titin_manager::log::is_command;

/// The exit code of a command that refuses its input.
pub(crate) const REFUSED: u8 = 2;

/// Text that leads the eye.
pub(crate) const BOLD: Style = Style::new().effects(Effects::BOLD);
/// Text that stands back.
pub(crate) const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// What stops the run.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// What may be wrong.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
/// Where something stands, and what to do.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().effects(Effects::BOLD);

/// The width to fit output into; `None` if nobody reads it at a terminal.
pub(crate) fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 20)
}

/// Writes to standard output, without colours where they would not be seen. A reader that has gone away, such as `head`, is no
/// trouble. If it cannot be written, as to a full disk, that is told, and the exit code for it is the error.
pub(crate) fn print(text: &str) -> Result<(), ExitCode> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(complain(&format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Prints all that a command has to say; its exit code.
pub(crate) fn answer(text: &str) -> ExitCode {
    print(text).err().unwrap_or(ExitCode::SUCCESS)
}

/// Writes to standard error, for people who wait for something else on standard output.
pub(crate) fn warn(text: &str) {
    // There is nobody left to tell if this fails.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Whether colours are seen on standard error.
pub(crate) fn colours_in_messages() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// The height of the terminal that messages go to.
pub(crate) fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows >= 4)
}

/// Tells on standard error what failed, and gives the exit code for it.
pub(crate) fn complain(text: &str) -> ExitCode {
    warn(&format!("{ERROR}error:{ERROR:#} {}\n", harmless(text)));
    ExitCode::from(REFUSED)
}

/// Text from outside without anything that a terminal would obey.
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
