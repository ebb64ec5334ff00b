//! The schedule of a field as a picture: both arrays in pieces, in the colours of the ranks that send them, and below a table of who
//! sends how much to whom.

mod array;
mod frame;
mod table;

use super::coupling::shorten;
use titin_model::{Pattern, Steps};

use super::svg::{Anchor, BOLD, Ink, Style, Svg, text_width};
use crate::schedule::{Coupling, End, Schedule};
use crate::table::bytes;
use crate::terminal::count;

const WIDTH: i32 = 760;
const BORDER: i32 = 20;
/// Between the parts of a picture.
const GAP: i32 = 28;
const LINE: i32 = 17;
/// The height of what stands above the arrays of a field, and of the lines below them.
const HEAD: i32 = 56;
/// Arrays are drawn for so many ranks of a side; the table alone for more.
const MOST_RANKS: u32 = 64;
/// Ranks take these in turn, and then again, fainter.
const HUES: [Ink; 6] = [
    Ink::Blue,
    Ink::Orange,
    Ink::Green,
    Ink::Purple,
    Ink::Sky,
    Ink::Yellow,
];
const STRENGTHS: [&str; 3] = [".58", ".34", ".17"];

/// A field that is drawn.
pub(crate) struct Drawn {
    pub(crate) coupling: Coupling,
    /// `None` if only the ranks know it.
    pub(crate) schedule: Option<Schedule>,
    /// How many others are the same between other instances.
    pub(crate) more: usize,
}

/// Draws fields, one below the other.
pub(crate) fn draw(fields: &[Drawn]) -> String {
    let title = match fields {
        [field] => format!("schedule: {}", heading(field)),
        _ => format!("schedules of {} fields", fields.len()),
    };
    let sections: Vec<Section> = fields.iter().map(Section::of).collect();
    let height = 60 + sections.iter().map(|section| section.height).sum::<i32>();
    let mut svg = Svg::new(WIDTH, height, &spoken(&title, fields), &style());
    svg.text(
        "title",
        (BORDER, 32),
        Anchor::Start,
        shorten(&title, WIDTH - 2 * BORDER, 18),
    );
    let mut y = 48;
    for section in &sections {
        section.draw(&mut svg, y);
        y += section.height;
    }
    svg.finish()
}

/// For those who cannot see it.
fn spoken(title: &str, fields: &[Drawn]) -> String {
    let lines = fields.iter().map(|field| {
        let sums = field
            .schedule
            .as_ref()
            .map(|schedule| sums(&field.coupling, schedule));
        heading(field) + &sums.map_or_else(String::new, |sums| format!(", {sums}"))
    });
    format!("{title}: {}", lines.collect::<Vec<_>>().join("; "))
}

/// `macro.out to micro.in`, `4 ranks to 2 ranks`.
fn heading(field: &Drawn) -> String {
    let name = |end: &End| {
        end.port
            .clone()
            .unwrap_or_else(|| count(end.ranks().into(), "rank"))
    };
    let more = if field.more > 0 {
        format!(", and {} more alike", field.more)
    } else {
        String::new()
    };
    format!(
        "{} to {}{more}",
        name(&field.coupling.from),
        name(&field.coupling.to)
    )
}

/// How many messages and bytes, and how many partners a rank has.
fn sums(coupling: &Coupling, schedule: &Schedule) -> String {
    let range = |(least, most): (u32, u32)| {
        if least == most {
            most.to_string()
        } else {
            format!("{least} to {most}")
        }
    };
    let (from, to) = (coupling.from.ranks(), coupling.to.ranks());
    let (sends, receives) = (
        schedule.partners(from, |message| message.from),
        schedule.partners(to, |message| message.to),
    );
    let arrays = if coupling.arrays > 1 {
        format!(" in {} arrays", coupling.arrays)
    } else {
        String::new()
    };
    format!(
        "{} with {}{arrays} in all; a rank sends to {} and receives from {}",
        count(schedule.messages.len() as u64, "message"),
        bytes(schedule.elements().saturating_mul(coupling.bytes)),
        range(sends),
        range(receives),
    )
}

/// A field with what is drawn of it, and how high that is.
struct Section<'a> {
    field: &'a Drawn,
    arrays: Option<array::Pair>,
    table: Option<table::Table>,
    notes: Vec<String>,
    height: i32,
}

impl Section<'_> {
    fn of(field: &Drawn) -> Section<'_> {
        let Drawn {
            coupling, schedule, ..
        } = field;
        let few = coupling.from.ranks().max(coupling.to.ranks()) <= MOST_RANKS;
        let arrays = if few {
            array::Pair::of(coupling, WIDTH - 2 * BORDER)
        } else {
            None
        };
        let table = schedule
            .as_ref()
            .map(|schedule| table::Table::of(coupling, schedule, WIDTH - 2 * BORDER));
        let mut notes: Vec<String> = schedule
            .iter()
            .map(|schedule| sums(coupling, schedule))
            .collect();
        notes.extend(coupling.pattern.as_ref().and_then(pattern));
        if field.more > 0 {
            notes.push(format!(
                "The same goes for {} of ports of the same components.",
                count(field.more as u64, "other pair")
            ));
        }
        for (end, who) in [(&coupling.from, "sender"), (&coupling.to, "receiver")] {
            if !end.is_known() {
                let spread = end.spread();
                notes.push(format!(
                    "The {who} is spread by {spread}: only its ranks know who owns what, so it is not known here who sends to whom."
                ));
            }
        }
        notes.extend(arrays.iter().flat_map(array::Pair::notes));
        let height = HEAD
            + arrays.as_ref().map_or(0, |arrays| arrays.height + GAP)
            + notes.len() as i32 * LINE
            + table.as_ref().map_or(0, |table| table.height + GAP);
        Section {
            field,
            arrays,
            table,
            notes,
            height,
        }
    }

    fn draw(&self, svg: &mut Svg, top: i32) {
        let Drawn { coupling, .. } = self.field;
        svg.group("field", &[("field", &heading(self.field))], "");
        let mut y = top + 16;
        let half = WIDTH / 2 + 16;
        for (x, end, who) in [
            (BORDER, &coupling.from, "sender"),
            (half, &coupling.to, "receiver"),
        ] {
            let name = end.port.clone().unwrap_or_else(|| who.into());
            let ranks = count(end.ranks().into(), "rank");
            let name = shorten(
                &name,
                WIDTH / 2 - BORDER - 40 - text_width(&ranks, 13, BOLD),
                15,
            );
            svg.text("name", (x, y), Anchor::Start, format!("{name}: {ranks}"));
            let shape = end.side.decomposition.shape();
            let text = format!("{shape}, {}", end.spread());
            svg.text(
                "faint",
                (x, y + LINE),
                Anchor::Start,
                shorten(&text, WIDTH / 2 - BORDER - 20, 11),
            );
        }
        y = top + HEAD;
        if let Some(arrays) = &self.arrays {
            arrays.draw(svg, coupling, [(BORDER, y), (half, y)]);
            y += arrays.height + GAP;
        }
        for note in &self.notes {
            svg.text("faint", (BORDER, y), Anchor::Start, note);
            y += LINE;
        }
        if let Some(table) = &self.table {
            table.draw(svg, coupling, (BORDER, y));
        }
        svg.end();
    }
}

/// What the description says of when the field goes, if that is not whenever it is sent.
fn pattern(pattern: &Pattern) -> Option<String> {
    let steps = |steps: &Steps| {
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
    };
    let mut words = Vec::new();
    for (end, who) in [(&pattern.sender, "sender"), (&pattern.receiver, "receiver")] {
        if end.steps != Steps::default() {
            words.push(format!("at {} of the {who}", steps(&end.steps)));
        }
    }
    if let Some(cache) = pattern.cache() {
        words.push(format!(
            "pulled by the receiver from {} that the sender keeps",
            count(cache.versions.into(), "version")
        ));
    }
    (!words.is_empty()).then(|| format!("By the description: {}.", words.join(", ")))
}

/// The class of a sender's colour.
fn colour(rank: u32) -> String {
    format!("r{}", rank as usize % (HUES.len() * STRENGTHS.len()))
}

fn style() -> Style {
    let mut style = Style::new();
    style.add(".name", "font-size:13px;font-weight:600", &[]);
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
    style.add(".rank", "font-weight:600", &[]);
    style.add(".cell", "", &[("fill", Ink::Blue)]);
    style.add(".none", "", &[("fill", Ink::Paper)]);
    for (step, strength) in table::SHADES.iter().enumerate() {
        style.add(
            &format!(".s{step}"),
            &format!("fill-opacity:{strength}"),
            &[],
        );
    }
    for (number, strength) in STRENGTHS.iter().enumerate() {
        for (hue, ink) in HUES.into_iter().enumerate() {
            let rank = number * HUES.len() + hue;
            style.add(
                &format!(".r{rank}"),
                &format!("fill-opacity:{strength}"),
                &[("fill", ink)],
            );
            style.add(&format!(".h{rank}"), "", &[("stroke", ink)]);
        }
    }
    style
}
