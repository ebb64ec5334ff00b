//! Where the time of a run went, as a picture: a bar for each instance, or a row of a timeline if there are event rows.

use std::collections::{HashMap, HashSet};

use super::coupling::shorten;
use super::svg::{Anchor, Ink, SMALL, Style, Svg, text_width};
use crate::table;
use titin_manager::profile::{Activity, Database, ReadError, RunProfile};

const WIDTH: i32 = 760;
const BORDER: i32 = 20;
const TOP: i32 = 84;
const ROW: i32 = 26;
const BAR: i32 = 16;
/// The widest column of names.
const NAMES: i32 = 220;

/// What a stretch of time is drawn as. Of several within one pixel the longest is seen.
const KINDS: [(&str, &str, Ink); 5] = [
    ("compute", "compute", Ink::Green),
    ("wait", "wait to receive", Ink::Sky),
    ("send", "send", Ink::Orange),
    ("receive", "receive", Ink::Purple),
    ("set", "join and leave", Ink::Absent),
];
const COMPUTE: usize = 0;
const WAIT: usize = 1;
const SEND: usize = 2;
const RECEIVE: usize = 3;
const SET: usize = 4;

/// A stacked bar for each instance.
pub(crate) fn bars(profile: &RunProfile) -> String {
    let longest = profile
        .instances
        .iter()
        .map(|instance| instance.total)
        .fold(0.0, f64::max);
    let mut chart = Chart::new(profile, longest, "where the time went");
    let receives = profile
        .instances
        .iter()
        .any(|instance| instance.receiving > 0.0);
    chart.draw_legend(|kind| kind < RECEIVE || kind == RECEIVE && receives);
    for (row, instance) in profile.instances.iter().enumerate() {
        let shares = [
            instance.compute,
            instance.waiting,
            instance.sending,
            instance.receiving,
        ];
        let mut from = 0.0;
        chart.open_row(row, &instance.name);
        for (kind, share) in shares
            .into_iter()
            .enumerate()
            .filter(|(_, share)| *share > 0.0)
        {
            let title = format!("{} {}", KINDS[kind].1, table::seconds(share));
            chart.stretch(row, kind, chart.at(from), chart.at(from + share), &title);
            from += share;
        }
        chart.svg.end();
    }
    chart.svg.finish()
}

/// A row of coloured stretches for each instance, from the first event to the last.
pub(crate) fn timeline(database: &Database, profile: &RunProfile) -> Result<String, ReadError> {
    let rows: HashMap<i64, usize> = profile
        .instances
        .iter()
        .enumerate()
        .map(|(row, i)| (i.oid, row))
        .collect();
    let begins = |start: i64, stop: i64, span: &mut (i64, i64)| {
        *span = (span.0.min(start), span.1.max(stop))
    };
    let nothing = (i64::MAX, i64::MIN);
    let mut spans = vec![nothing; rows.len()];
    for (span, instance) in spans.iter_mut().zip(&profile.instances) {
        if instance.total > 0.0 {
            *span = (
                (instance.start * 1e9) as i64,
                ((instance.start + instance.total) * 1e9) as i64,
            );
        }
    }
    database.events(|event| {
        if let Some(row) = rows.get(&event.instance) {
            begins(event.start, event.stop, &mut spans[*row]);
        }
    })?;
    let whole = spans.iter().fold(nothing, |whole, span| {
        (whole.0.min(span.0), whole.1.max(span.1))
    });
    let length = (whole.1.saturating_sub(whole.0)).max(1);
    let mut chart = Chart::new(profile, length as f64 * 1e-9, "timeline");
    let pixels = chart.width as usize;
    // For each row and pixel, how many nanoseconds of each kind fall into it.
    let mut shares = vec![[0.0f64; KINDS.len()]; pixels * rows.len()];
    let scale = pixels as f64 / length as f64;
    let mut add = |row: usize, kind: usize, start: i64, stop: i64| {
        let (from, to) = (
            (start - whole.0) as f64 * scale,
            (stop - whole.0) as f64 * scale,
        );
        for pixel in (from as usize)..=(to as usize).min(pixels - 1) {
            let share = (to.min(pixel as f64 + 1.0) - from.max(pixel as f64)).max(0.0);
            shares[row * pixels + pixel][kind] += share;
        }
    };
    for (row, span) in spans
        .iter()
        .enumerate()
        .filter(|(_, span)| span.0 <= span.1)
    {
        add(row, COMPUTE, span.0, span.1);
    }
    database.events(|event| {
        let kind = match event.class {
            Activity::Send => SEND,
            Activity::Wait => WAIT,
            Activity::TakeIn => RECEIVE,
            Activity::SetUp | Activity::TakeDown => SET,
            Activity::Receive | Activity::Region => return,
        };
        if let Some(row) = rows.get(&event.instance) {
            add(*row, kind, event.start, event.stop);
        }
    })?;
    let kinds: HashSet<usize> = shares.iter().filter_map(seen).collect();
    chart.draw_legend(|kind| kinds.contains(&kind));
    for (row, instance) in profile.instances.iter().enumerate() {
        chart.open_row(row, &instance.name);
        let seen = |pixel: &usize| seen(&shares[row * pixels + pixel]);
        let columns: Vec<usize> = (0..pixels).collect();
        let mut from = 0;
        for run in columns.chunk_by(|a, b| seen(a) == seen(b)) {
            if let Some(kind) = seen(&run[0]) {
                chart.stretch(row, kind, from as i32, (from + run.len()) as i32, "");
            }
            from += run.len();
        }
        chart.svg.end();
    }
    Ok(chart.svg.finish())
}

/// What a pixel shows: whatever is not computing is taken from the computing around it.
fn seen(shares: &[f64; KINDS.len()]) -> Option<usize> {
    let others: f64 = shares[1..].iter().sum();
    let compute = shares[COMPUTE] - others;
    let best = (1..KINDS.len())
        .max_by(|a, b| shares[*a].total_cmp(&shares[*b]))
        .filter(|kind| shares[*kind] > 0.0);
    match best {
        Some(kind) if shares[kind] >= compute => Some(kind),
        _ => (shares[COMPUTE] > 0.0).then_some(COMPUTE),
    }
}

struct Chart {
    svg: Svg,
    /// Where bars begin.
    left: i32,
    /// The pixels of the longest.
    width: i32,
    /// Its seconds.
    longest: f64,
}

impl Chart {
    fn new(profile: &RunProfile, longest: f64, what: &str) -> Chart {
        let names = profile
            .instances
            .iter()
            .map(|instance| text_width(&instance.name, 11, SMALL))
            .max()
            .unwrap_or(0);
        let left = BORDER + names.min(NAMES) + 10;
        let height = TOP + profile.instances.len() as i32 * ROW + 40;
        let model = profile.run.as_ref().map_or("run", |run| run.model.as_str());
        let title = format!("{model}: {what} of {} instances", profile.instances.len());
        let longest = if longest > 0.0 { longest } else { 1.0 };
        let mut svg = Svg::new(WIDTH, height, &title, &style());
        svg.text(
            "title",
            (BORDER, 32),
            Anchor::Start,
            format!("{model}: {what}"),
        );
        let mut chart = Chart {
            svg,
            left,
            width: WIDTH - left - BORDER - 20,
            longest,
        };
        chart.draw_axis(height - 40);
        chart
    }

    /// Pixels right of where bars begin.
    fn at(&self, seconds: f64) -> i32 {
        (seconds / self.longest * f64::from(self.width)).round() as i32
    }

    /// Says what the colours mean that are seen.
    fn draw_legend(&mut self, is_seen: impl Fn(usize) -> bool) {
        let mut x = BORDER;
        self.svg.group("legend", &[], "");
        for (_, (class, text, _)) in KINDS.iter().enumerate().filter(|(kind, _)| is_seen(*kind)) {
            self.svg.rect(class, (x, 48), (14, 12), 2);
            self.svg.text("faint", (x + 20, 58), Anchor::Start, text);
            x += 20 + text_width(text, 11, SMALL) + 22;
        }
        self.svg.end();
    }

    fn draw_axis(&mut self, bottom: i32) {
        let step = step(self.longest);
        self.svg.group("axis", &[], "");
        for mark in (0..)
            .map(|n| f64::from(n) * step)
            .take_while(|mark| *mark <= self.longest * 1.0001)
        {
            let x = self.left + self.at(mark);
            self.svg.path("grid", &format!("M{x} {}V{bottom}", TOP - 6));
            self.svg.text(
                "mark faint",
                (x, bottom + 18),
                Anchor::Middle,
                table::seconds(mark),
            );
        }
        self.svg.end();
    }

    fn open_row(&mut self, row: usize, name: &str) {
        let y = TOP + row as i32 * ROW;
        self.svg.group("instance", &[("name", name)], name);
        self.svg.text(
            "",
            (self.left - 10, y + 12),
            Anchor::End,
            shorten(name, NAMES, 11),
        );
    }

    fn stretch(&mut self, row: usize, kind: usize, from: i32, to: i32, title: &str) {
        if to <= from {
            return;
        }
        let at = (self.left + from, TOP + row as i32 * ROW);
        if title.is_empty() {
            return self.svg.rect(KINDS[kind].0, at, (to - from, BAR), 0);
        }
        self.svg.group("", &[], title);
        self.svg.rect(KINDS[kind].0, at, (to - from, BAR), 0);
        self.svg.end();
    }
}

/// From mark to mark: a round number, four to nine of them.
fn step(longest: f64) -> f64 {
    let decade = 10f64.powf((longest / 4.0).log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|n| n * decade)
        .find(|step| longest / step >= 4.0)
        .unwrap_or(decade)
}

fn style() -> Style {
    let mut style = Style::new();
    style.add(".grid", "stroke-opacity:.35", &[("stroke", Ink::Absent)]);
    for (class, _, ink) in KINDS {
        style.add(&format!(".{class}"), "", &[("fill", ink)]);
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_neither_few_nor_many() {
        for longest in [0.001, 0.37, 1.0, 2.5, 9.9, 10.0, 3600.0] {
            let marks = longest / step(longest);
            assert!((4.0..=10.0).contains(&marks), "{longest}: {marks}");
        }
    }

    #[test]
    fn a_pixel_shows_what_takes_most_of_it() {
        assert_eq!(seen(&[0.0; 5]), None);
        assert_eq!(seen(&[1.0, 0.0, 0.0, 0.0, 0.0]), Some(COMPUTE));
        assert_eq!(seen(&[1.0, 0.6, 0.1, 0.0, 0.0]), Some(WAIT));
        assert_eq!(seen(&[1.0, 0.1, 0.2, 0.0, 0.0]), Some(COMPUTE));
    }
}
