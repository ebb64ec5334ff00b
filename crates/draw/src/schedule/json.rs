//! Schedules as JSON, for other programs.

use serde::Serialize;
use titin_array::Side;
use titin_model::Pattern;

use super::{FieldSchedule, FieldSide, RankMessage, spread_text};
use crate::Result;

#[derive(Serialize)]
struct JsonSchedule<'a> {
    from: JsonSide<'a>,
    to: JsonSide<'a>,
    /// The bytes of one element, summed over all arrays that travel together.
    element_bytes: u64,
    arrays: usize,
    pattern: Option<&'a Pattern>,
    /// How many other fields between the same two components are alike.
    more: usize,
    /// `None` if only the ranks know which elements they own.
    messages: Option<Vec<JsonMessage>>,
}

#[derive(Serialize)]
struct JsonSide<'a> {
    port: Option<&'a str>,
    shape: Vec<u64>,
    region: [Vec<u64>; 2],
    ranks: u32,
    owned: &'static str,
    grid: Option<Vec<u64>>,
    spread: Option<Vec<String>>,
}

#[derive(Serialize)]
struct JsonMessage {
    #[serde(flatten)]
    message: RankMessage,
    bytes: u64,
}

/// The schedules of several fields as a JSON array.
///
/// # Errors
/// The text cannot be made.
pub fn schedules_to_json(fields: &[FieldSchedule]) -> Result<String> {
    let schedules: Vec<JsonSchedule<'_>> = fields.iter().map(JsonSchedule::new).collect();
    Ok(serde_json::to_string_pretty(&schedules)? + "\n")
}

impl JsonSchedule<'_> {
    fn new(field: &FieldSchedule) -> JsonSchedule<'_> {
        let FieldSchedule { coupling, messages } = field;
        let json = |message: &RankMessage| JsonMessage {
            message: *message,
            bytes: message.elements * coupling.bytes,
        };
        JsonSchedule {
            from: JsonSide::new(&coupling.from),
            to: JsonSide::new(&coupling.to),
            element_bytes: coupling.bytes,
            arrays: coupling.arrays,
            pattern: coupling.pattern.as_ref(),
            more: coupling.more,
            messages: messages
                .as_ref()
                .map(|messages| messages.0.iter().map(json).collect()),
        }
    }
}

impl JsonSide<'_> {
    fn new(side: &FieldSide) -> JsonSide<'_> {
        let Side {
            decomposition,
            region,
            ..
        } = &side.side;
        let grid = decomposition
            .processes()
            .map(|processes| processes.to_vec());
        JsonSide {
            port: side.port.as_deref(),
            shape: decomposition.shape().to_vec(),
            region: [region.lower().to_vec(), region.upper().to_vec()],
            ranks: decomposition.ranks(),
            owned: match (&grid, decomposition.is_by_boxes()) {
                (Some(_), _) => "grid",
                (None, true) => "boxes",
                (None, false) => "indices",
            },
            spread: grid
                .is_some()
                .then(|| decomposition.spreads().map(spread_text).collect()),
            grid,
        }
    }
}
