//! The schedule of a field. Both arrays are divided into pieces, in the colours of the sending
//! ranks. A table has the amounts that each rank of the sender sends to each rank of the receiver.

mod arrays;
mod faces;
mod projection;
mod table;
mod tiles;

use titin_model::{Pattern, Steps};

use self::arrays::ArrayPair;
use self::table::Table;
use crate::schedule::{FieldCoupling, FieldSchedule, FieldSide, RankMessages};
use crate::svg::{BOLD, Ink, Style, Svg, TextAnchor, shorten, text_width};
use crate::units::{bytes, count};

const WIDTH: i32 = 760;
const BORDER: i32 = 20;
/// The gap between arrays, notes and table.
const GAP: i32 = 28;
/// The height of a line of text.
const LINE: i32 = 17;
/// The height of the headings above the arrays of a field.
const HEAD: i32 = 56;
/// The left edge of the receiver's half of the picture.
const RIGHT_HALF: i32 = WIDTH / 2 + 16;
/// The arrays are drawn if neither side has more ranks than `MOST_RANKS`. With more ranks, a row or
/// a column of the table stands for several ranks.
const MOST_RANKS: u32 = 64;
/// The hues of ranks. With more ranks the hues repeat, fainter.
const HUES: [Ink; 6] = [
    Ink::Blue,
    Ink::Orange,
    Ink::Green,
    Ink::Purple,
    Ink::Sky,
    Ink::Yellow,
];
const OPACITIES: [&str; 3] = [".58", ".34", ".17"];

/// Draws fields, one below the other.
pub fn draw_schedules(fields: &[FieldSchedule]) -> String {
    let title = match fields {
        [field] => format!("schedule: {}", heading(&field.coupling)),
        _ => format!("schedules of {} fields", fields.len()),
    };
    let sections: Vec<Section> = fields.iter().map(Section::of).collect();
    let height = 60 + sections.iter().map(|section| section.height).sum::<i32>();
    let mut svg = Svg::new(WIDTH, height, &spoken(&title, fields), &style());
    let text = shorten(&title, WIDTH - 2 * BORDER, 18);
    svg.text("title", (BORDER, 32), TextAnchor::Start, text);
    let mut y = 48;
    for section in &sections {
        section.draw(&mut svg, y);
        y += section.height;
    }
    svg.finish()
}

/// The fields and the sums of each field, for screen readers.
fn spoken(title: &str, fields: &[FieldSchedule]) -> String {
    let lines = fields.iter().map(|FieldSchedule { coupling, messages }| {
        let sums = messages.as_ref().map(|messages| sums(coupling, messages));
        heading(coupling) + &sums.map_or_else(String::new, |sums| format!(", {sums}"))
    });
    format!("{title}: {}", lines.collect::<Vec<_>>().join("; "))
}

/// `macro.out to micro.in`, or `4 ranks to 2 ranks` without ports.
fn heading(coupling: &FieldCoupling) -> String {
    let name = |side: &FieldSide| {
        let port = side.port.clone();
        port.unwrap_or_else(|| count(side.ranks().into(), "rank"))
    };
    let more = match coupling.more {
        0 => String::new(),
        more => format!(", and {more} more alike"),
    };
    format!("{} to {}{more}", name(&coupling.from), name(&coupling.to))
}

/// The number of messages and bytes, and of the partners of a rank.
fn sums(coupling: &FieldCoupling, messages: &RankMessages) -> String {
    let range = |(fewest, most): (u32, u32)| {
        if fewest == most {
            most.to_string()
        } else {
            format!("{fewest} to {most}")
        }
    };
    let sends = messages.partners(coupling.from.ranks(), |message| message.from);
    let receives = messages.partners(coupling.to.ranks(), |message| message.to);
    let arrays = if coupling.arrays > 1 {
        format!(" in {} arrays", coupling.arrays)
    } else {
        String::new()
    };
    format!(
        "{} with {}{arrays} in all; a rank sends to {} and receives from {}",
        count(messages.0.len() as u64, "message"),
        bytes(messages.elements().saturating_mul(coupling.bytes)),
        range(sends),
        range(receives),
    )
}

/// The part of the picture for a single field.
struct Section<'a> {
    coupling: &'a FieldCoupling,
    arrays: Option<ArrayPair>,
    table: Option<Table>,
    notes: Vec<String>,
    height: i32,
}

impl Section<'_> {
    fn of(field: &FieldSchedule) -> Section<'_> {
        let FieldSchedule { coupling, messages } = field;
        let width = WIDTH - 2 * BORDER;
        let few = coupling.from.ranks().max(coupling.to.ranks()) <= MOST_RANKS;
        let arrays = few.then(|| ArrayPair::of(coupling, width)).flatten();
        let table = messages
            .as_ref()
            .map(|messages| Table::of(coupling, messages, width));
        let notes = notes(coupling, messages.as_ref(), arrays.as_ref());
        let height = HEAD
            + arrays.as_ref().map_or(0, |arrays| arrays.height + GAP)
            + notes.len() as i32 * LINE
            + table.as_ref().map_or(0, |table| table.height + GAP);
        Section {
            coupling,
            arrays,
            table,
            notes,
            height,
        }
    }

    fn draw(&self, svg: &mut Svg, top: i32) {
        let coupling = self.coupling;
        svg.group("field", &[("field", &heading(coupling))], "");
        draw_head(svg, (BORDER, top + 16), &coupling.from, "sender");
        draw_head(svg, (RIGHT_HALF, top + 16), &coupling.to, "receiver");
        let mut y = top + HEAD;
        if let Some(arrays) = &self.arrays {
            arrays.draw(svg, [(BORDER, y), (RIGHT_HALF, y)]);
            y += arrays.height + GAP;
        }
        for note in &self.notes {
            svg.text("faint", (BORDER, y), TextAnchor::Start, note);
            y += LINE;
        }
        if let Some(table) = &self.table {
            table.draw(svg, (BORDER, y));
        }
        svg.end();
    }
}

/// Draws the heading of a side: port and ranks, extents and decomposition.
fn draw_head(svg: &mut Svg, (x, y): (i32, i32), side: &FieldSide, role: &str) {
    let name = side.port.clone().unwrap_or_else(|| role.into());
    let ranks = count(side.ranks().into(), "rank");
    let room = WIDTH / 2 - BORDER - 40 - text_width(&ranks, 13, BOLD);
    let name = shorten(&name, room, 15);
    let text = format!("{name}: {ranks}");
    svg.text("name", (x, y), TextAnchor::Start, text);
    let shape = side.side.decomposition.shape();
    let text = format!("{shape}, {}", side.decomposition_text());
    let text = shorten(&text, WIDTH / 2 - BORDER - 20, 11);
    svg.text("faint", (x, y + LINE), TextAnchor::Start, text);
}

/// The sentences below the arrays.
fn notes(
    coupling: &FieldCoupling,
    messages: Option<&RankMessages>,
    arrays: Option<&ArrayPair>,
) -> Vec<String> {
    let sums = messages.map(|messages| sums(coupling, messages));
    let mut notes: Vec<String> = sums.into_iter().collect();
    notes.extend(coupling.pattern.as_ref().and_then(pattern_text));
    if coupling.more > 0 {
        notes.push(format!(
            "The same goes for {} of ports of the same components.",
            count(coupling.more as u64, "other pair")
        ));
    }
    for (side, role) in [(&coupling.from, "sender"), (&coupling.to, "receiver")] {
        if !side.is_known() {
            let decomposition = side.decomposition_text();
            notes.push(format!(
                "The {role} is spread by {decomposition}: only its ranks know who owns what, so it is not known here who sends to whom."
            ));
        }
    }
    notes.extend(arrays.map(ArrayPair::notes).unwrap_or_default());
    notes
}

/// When the field goes by the description; `None` if the field goes whenever the program sends.
fn pattern_text(pattern: &Pattern) -> Option<String> {
    let mut clauses = Vec::new();
    for (share, role) in [(&pattern.sender, "sender"), (&pattern.receiver, "receiver")] {
        if share.steps != Steps::default() {
            clauses.push(format!("at {} of the {role}", steps_text(&share.steps)));
        }
    }
    if let Some(cache) = pattern.cache() {
        clauses.push(format!(
            "pulled by the receiver from {} that the sender keeps",
            count(cache.versions.into(), "version")
        ));
    }
    (!clauses.is_empty()).then(|| format!("By the description: {}.", clauses.join(", ")))
}

/// `every 2 steps from 3 to 9`.
fn steps_text(steps: &Steps) -> String {
    let every = if steps.every > 1 {
        format!("every {} steps", steps.every)
    } else {
        "every step".into()
    };
    match (steps.from, steps.until) {
        (1, None) => every,
        (from, None) => format!("{every} from {from} on"),
        (from, Some(until)) => format!("{every} from {from} to {until}"),
    }
}

/// The number of a sender's colour.
fn colour(rank: u32) -> usize {
    rank as usize % (HUES.len() * OPACITIES.len())
}

fn style() -> Style {
    let mut style = Style::new();
    style.fixed(".name", "font-size:13px;font-weight:600");
    style.add(
        ".array",
        "",
        &[("fill", Ink::Paper), ("stroke", Ink::Absent)],
    );
    style.add(".piece", "stroke-width:1", &[("stroke", Ink::Ground)]);
    style.add(
        ".part",
        "fill:none;stroke-width:1.5",
        &[("stroke", Ink::Edge)],
    );
    style.add(
        ".region",
        "fill:none;stroke-width:2",
        &[("stroke", Ink::Text)],
    );
    style.add(
        ".halo",
        "fill:none;stroke-width:1.5;stroke-dasharray:4 3",
        &[("stroke", Ink::Edge)],
    );
    style.fixed(".rank", "font-weight:600");
    style.fill(".cell", Ink::Blue);
    style.fill(".none", Ink::Paper);
    add_colours(&mut style);
    style
}

/// Adds the shades of the table and the colours of the ranks.
fn add_colours(style: &mut Style) {
    for (step, opacity) in table::SHADES.iter().enumerate() {
        style.fixed(&format!(".s{step}"), &format!("fill-opacity:{opacity}"));
    }
    for (number, opacity) in OPACITIES.iter().enumerate() {
        for (hue, ink) in HUES.into_iter().enumerate() {
            let rank = number * HUES.len() + hue;
            style.add(
                &format!(".r{rank}"),
                &format!("fill-opacity:{opacity}"),
                &[("fill", ink)],
            );
            style.stroke(&format!(".h{rank}"), ink);
        }
    }
}
