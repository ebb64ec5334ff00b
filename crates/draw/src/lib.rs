//! Pictures of models, schedules, runs and measurements. Each is an SVG text that needs no other
//! file.
//!
//! | from | picture |
//! | --- | --- |
//! | a description | [`draw_coupling_graph`], [`draw_scale_map`] |
//! | the two sides of a field, or a run's profile | [`draw_schedules`] |
//! | a run's profile | [`draw_time_bars`], [`draw_timeline`] |
//! | the figures of `titin bench` | [`draw_latencies`] |
//! | the figures of `titin path --test` | [`draw_rates`] |
//!
//! [`write_trace_events`] and [`schedules_to_json`] give the same facts to other programs. This
//! crate never prints, and opens no file but a run's profile and the picture itself.
//!
//! ```
//! let bytes = titin_draw::units::bytes(1_500_000);
//! assert_eq!(bytes, "1.50 MB");
//! ```

#![forbid(unsafe_code)]

mod coupling_graph;
mod error;
mod latency_chart;
mod rate_chart;
mod scale_map;
mod schedule;
mod schedule_picture;
mod size_chart;
mod svg;
mod time_chart;
mod trace_events;
pub mod units;

use std::path::Path;

pub use coupling_graph::draw_coupling_graph;
pub use error::{DrawError, Result};
pub use latency_chart::{MediumSpeed, MessageTime, draw_latencies};
pub use rate_chart::{StreamsSpeed, draw_rates};
pub use scale_map::draw_scale_map;
pub use schedule::described::described_field;
pub use schedule::recorded::{is_run, recorded_fields};
pub use schedule::{
    FieldCoupling, FieldSchedule, FieldSide, RankMessage, RankMessages, schedules_to_json,
};
pub use schedule_picture::draw_schedules;
pub use time_chart::{draw_time_bars, draw_timeline};
pub use trace_events::write_trace_events;

/// Refuses the name of a picture that does not end in `.svg`: no program would open the file.
///
/// # Errors
/// The name has another ending.
pub fn check_ending(path: &Path) -> Result<()> {
    match path.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => {
            Err(DrawError::NoSvg(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Writes a picture, or the JSON it is drawn from.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, picture: &str) -> Result<()> {
    std::fs::write(path, picture).map_err(|error| DrawError::write(path, error))
}
