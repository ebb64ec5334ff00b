//! Pictures: from a description or a profile to an SVG text that needs nothing else.

pub(crate) mod chart;
pub(crate) mod coupling;
pub(crate) mod graph;
mod layout;
pub(crate) mod scales;
pub(crate) mod schedule;
pub(crate) mod speed;
mod svg;

use std::path::Path;

/// Refuses a file whose ending says that it is no SVG: under it, nobody could open the picture.
pub(crate) fn check_ending(path: &Path) -> Result<(), String> {
    match path.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => Err(format!(
            "{} would be no .{}: titin draws SVG. Write {}, which every browser shows; `rsvg-convert`, `inkscape` and the print \
             dialog of a browser make PDF or PNG of it",
            path.display(),
            ending.display(),
            path.with_extension("svg").display()
        )),
        _ => Ok(()),
    }
}

/// Writes a picture, or what it is drawn from.
pub(crate) fn write(path: &Path, picture: &str) -> Result<(), String> {
    std::fs::write(path, picture)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
