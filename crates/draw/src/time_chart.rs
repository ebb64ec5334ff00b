//! Where the time of a run went: a bar for each instance, or, if the run was traced, a row of a
//! timeline for each instance.

use std::collections::HashMap;

use crate::svg::{Ink, REGULAR, Style, Svg, TextAnchor, shorten, text_width};
use crate::{Result, units};
use titin_manager::profile::{Database, EventClass, RunProfile};

const WIDTH: i32 = 760;
const BORDER: i32 = 20;
const TOP: i32 = 84;
const ROW: i32 = 26;
const BAR: i32 = 16;
/// The widest column of names.
const NAMES: i32 = 220;

/// The activity of an instance in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Compute,
    Wait,
    Send,
    Receive,
    JoinOrLeave,
}

impl Activity {
    const ALL: [Activity; 5] = [
        Activity::Compute,
        Activity::Wait,
        Activity::Send,
        Activity::Receive,
        Activity::JoinOrLeave,
    ];

    /// The class of the activity in the picture.
    fn class(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Wait => "wait",
            Activity::Send => "send",
            Activity::Receive => "receive",
            Activity::JoinOrLeave => "set",
        }
    }

    /// The activity in the legend.
    fn label(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Wait => "wait to receive",
            Activity::Send => "send",
            Activity::Receive => "receive",
            Activity::JoinOrLeave => "join and leave",
        }
    }

    fn ink(self) -> Ink {
        match self {
            Activity::Compute => Ink::Green,
            Activity::Wait => Ink::Sky,
            Activity::Send => Ink::Orange,
            Activity::Receive => Ink::Purple,
            Activity::JoinOrLeave => Ink::Absent,
        }
    }

    /// The instance's activity during an event; `None` if other events cover the same time.
    fn of_event(class: EventClass) -> Option<Activity> {
        match class {
            EventClass::Send => Some(Activity::Send),
            EventClass::Wait => Some(Activity::Wait),
            EventClass::TakeIn => Some(Activity::Receive),
            EventClass::SetUp | EventClass::TakeDown => Some(Activity::JoinOrLeave),
            EventClass::Receive | EventClass::Region => None,
        }
    }
}

/// Draws a stacked bar for each instance.
pub fn draw_time_bars(profile: &RunProfile) -> String {
    let instances = &profile.instances;
    let totals = instances.iter().map(|instance| instance.total);
    let mut chart = TimeChart::new(profile, totals.fold(0.0, f64::max), "where the time went");
    let receives = instances.iter().any(|instance| instance.receiving > 0.0);
    chart.draw_legend(|activity| match activity {
        Activity::Receive => receives,
        other => other != Activity::JoinOrLeave,
    });
    for (row, instance) in instances.iter().enumerate() {
        let shares = [
            (Activity::Compute, instance.compute),
            (Activity::Wait, instance.waiting),
            (Activity::Send, instance.sending),
            (Activity::Receive, instance.receiving),
        ];
        let mut from = 0.0;
        chart.open_row(row, &instance.name);
        for (activity, share) in shares.into_iter().filter(|(_, share)| *share > 0.0) {
            let title = format!("{} {}", activity.label(), units::seconds(share));
            let pixels = (chart.x(from), chart.x(from + share));
            chart.draw_stretch(row, activity, pixels, &title);
            from += share;
        }
        chart.svg.end();
    }
    chart.svg.finish()
}

/// Draws a row of coloured stretches for each instance, from the first event to the last.
///
/// # Errors
/// The profile cannot be read.
pub fn draw_timeline(database: &Database, profile: &RunProfile) -> Result<String> {
    let instances = profile.instances.iter().enumerate();
    let rows = instances.map(|(row, instance)| (instance.oid, row));
    let rows: HashMap<i64, usize> = rows.collect();
    let spans = instance_spans(database, profile, &rows)?;
    let run = spans.iter().fold(TimeSpan::EMPTY, |run, span| {
        run.covering(span.start, span.stop)
    });
    let mut chart = TimeChart::new(profile, run.nanoseconds() as f64 * 1e-9, "timeline");
    let mut pixels = PixelTimes::new(run, chart.width as usize, rows.len());
    for (row, span) in spans.iter().enumerate() {
        if span.start <= span.stop {
            pixels.add(row, Activity::Compute, span.start, span.stop);
        }
    }
    let add_event = |event: titin_manager::profile::TraceEvent| {
        if let Some(activity) = Activity::of_event(event.class)
            && let Some(row) = rows.get(&event.instance)
        {
            pixels.add(*row, activity, event.start, event.stop);
        }
    };
    database.events(add_event)?;
    chart.draw_legend(|activity| pixels.has(activity));
    for (row, instance) in profile.instances.iter().enumerate() {
        chart.open_row(row, &instance.name);
        for (activity, from, to) in pixels.stretches(row) {
            chart.draw_stretch(row, activity, (from as i32, to as i32), "");
        }
        chart.svg.end();
    }
    Ok(chart.svg.finish())
}

/// From the first nanosecond to the last.
#[derive(Clone, Copy)]
struct TimeSpan {
    start: i64,
    stop: i64,
}

impl TimeSpan {
    const EMPTY: TimeSpan = TimeSpan {
        start: i64::MAX,
        stop: i64::MIN,
    };

    fn covering(self, start: i64, stop: i64) -> TimeSpan {
        TimeSpan {
            start: self.start.min(start),
            stop: self.stop.max(stop),
        }
    }

    fn nanoseconds(self) -> i64 {
        self.stop.saturating_sub(self.start).max(1)
    }
}

/// From when to when each instance took part in the run.
fn instance_spans(
    database: &Database,
    profile: &RunProfile,
    rows: &HashMap<i64, usize>,
) -> Result<Vec<TimeSpan>> {
    let mut spans = vec![TimeSpan::EMPTY; rows.len()];
    for (span, instance) in spans.iter_mut().zip(&profile.instances) {
        if instance.total > 0.0 {
            *span = TimeSpan {
                start: (instance.start * 1e9) as i64,
                stop: ((instance.start + instance.total) * 1e9) as i64,
            };
        }
    }
    let extend = |event: titin_manager::profile::TraceEvent| {
        if let Some(row) = rows.get(&event.instance) {
            spans[*row] = spans[*row].covering(event.start, event.stop);
        }
    };
    database.events(extend)?;
    Ok(spans)
}

/// The time of each activity within a pixel, in pixels. The picture shows the longest activity of a
/// pixel.
type Times = [f64; Activity::ALL.len()];

/// How much of each activity falls into each pixel of a timeline.
struct PixelTimes {
    start: i64,
    /// Pixels per nanosecond.
    scale: f64,
    /// Pixels of a row.
    width: usize,
    /// Row by row.
    times: Vec<Times>,
}

impl PixelTimes {
    fn new(run: TimeSpan, width: usize, rows: usize) -> PixelTimes {
        PixelTimes {
            start: run.start,
            scale: width as f64 / run.nanoseconds() as f64,
            width,
            times: vec![Times::default(); width * rows],
        }
    }

    /// Spreads a stretch of time over the pixels of the stretch.
    fn add(&mut self, row: usize, activity: Activity, start: i64, stop: i64) {
        let from = (start - self.start) as f64 * self.scale;
        let to = (stop - self.start) as f64 * self.scale;
        for pixel in (from as usize)..=(to as usize).min(self.width - 1) {
            let time = (to.min(pixel as f64 + 1.0) - from.max(pixel as f64)).max(0.0);
            self.times[row * self.width + pixel][activity as usize] += time;
        }
    }

    /// Whether any pixel shows an activity.
    fn has(&self, activity: Activity) -> bool {
        let mut shown = self.times.iter().map(main_activity);
        shown.any(|shown| shown == Some(activity))
    }

    /// The stretches of a row, each with the first pixel and the pixel after the last.
    fn stretches(&self, row: usize) -> Vec<(Activity, usize, usize)> {
        let shown: Vec<Option<Activity>> = self.times[row * self.width..][..self.width]
            .iter()
            .map(main_activity)
            .collect();
        let mut stretches = Vec::new();
        let mut from = 0;
        for stretch in shown.chunk_by(|a, b| a == b) {
            let to = from + stretch.len();
            stretches.extend(stretch[0].map(|activity| (activity, from, to)));
            from = to;
        }
        stretches
    }
}

/// The activity to show in a pixel. An instance computes whenever the instance does nothing else,
/// so the times of all other activities are subtracted from the time of computing.
fn main_activity(times: &Times) -> Option<Activity> {
    let compute = times[0] - times[1..].iter().sum::<f64>();
    let longest = Activity::ALL[1..]
        .iter()
        .copied()
        .max_by(|a, b| times[*a as usize].total_cmp(&times[*b as usize]))
        .filter(|activity| times[*activity as usize] > 0.0);
    match longest {
        Some(activity) if times[activity as usize] >= compute => Some(activity),
        _ => (times[0] > 0.0).then_some(Activity::Compute),
    }
}

/// A picture with a row for each instance and a time axis.
struct TimeChart {
    svg: Svg,
    /// The left edge of the bars.
    left: i32,
    /// The width of the longest bar in pixels.
    width: i32,
    /// The length of the longest bar in seconds.
    longest: f64,
}

impl TimeChart {
    fn new(profile: &RunProfile, longest: f64, subject: &str) -> TimeChart {
        let names = profile
            .instances
            .iter()
            .map(|instance| text_width(&instance.name, 11, REGULAR))
            .max()
            .unwrap_or(0);
        let left = BORDER + names.min(NAMES) + 10;
        let height = TOP + profile.instances.len() as i32 * ROW + 40;
        let model = profile.run.as_ref().map_or("run", |run| run.model.as_str());
        let title = format!(
            "{model}: {subject} of {} instances",
            profile.instances.len()
        );
        let longest = if longest > 0.0 { longest } else { 1.0 };
        let mut svg = Svg::new(WIDTH, height, &title, &style());
        svg.text(
            "title",
            (BORDER, 32),
            TextAnchor::Start,
            format!("{model}: {subject}"),
        );
        let mut chart = TimeChart {
            svg,
            left,
            width: WIDTH - left - BORDER - 20,
            longest,
        };
        chart.draw_axis(height - 40);
        chart
    }

    /// The pixels from the left edge of the bars to a time.
    fn x(&self, seconds: f64) -> i32 {
        (seconds / self.longest * f64::from(self.width)).round() as i32
    }

    /// Explains the colours of the activities in the picture.
    fn draw_legend(&mut self, is_drawn: impl Fn(Activity) -> bool) {
        let mut x = BORDER;
        self.svg.group("legend", &[], "");
        for activity in Activity::ALL.into_iter().filter(|a| is_drawn(*a)) {
            let text = activity.label();
            self.svg.rect(activity.class(), (x, 48), (14, 12), 2);
            self.svg
                .text("faint", (x + 20, 58), TextAnchor::Start, text);
            x += 20 + text_width(text, 11, REGULAR) + 22;
        }
        self.svg.end();
    }

    fn draw_axis(&mut self, bottom: i32) {
        let step = axis_step(self.longest);
        self.svg.group("axis", &[], "");
        for mark in (0..)
            .map(|n| f64::from(n) * step)
            .take_while(|mark| *mark <= self.longest * 1.0001)
        {
            let x = self.left + self.x(mark);
            self.svg.path("grid", &format!("M{x} {}V{bottom}", TOP - 6));
            self.svg.text(
                "mark faint",
                (x, bottom + 18),
                TextAnchor::Middle,
                units::seconds(mark),
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
            TextAnchor::End,
            shorten(name, NAMES, 11),
        );
    }

    /// Draws a stretch of a row, from pixel to pixel. A viewer shows `title` beside the mouse.
    fn draw_stretch(
        &mut self,
        row: usize,
        activity: Activity,
        (from, to): (i32, i32),
        title: &str,
    ) {
        if to <= from {
            return;
        }
        let corner = (self.left + from, TOP + row as i32 * ROW);
        if title.is_empty() {
            return self.svg.rect(activity.class(), corner, (to - from, BAR), 0);
        }
        self.svg.group("", &[], title);
        self.svg.rect(activity.class(), corner, (to - from, BAR), 0);
        self.svg.end();
    }
}

/// The distance between the marks of an axis: a round number that gives four to nine marks.
fn axis_step(longest: f64) -> f64 {
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
    for activity in Activity::ALL {
        let selector = format!(".{}", activity.class());
        style.fill(&selector, activity.ink());
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_neither_few_nor_many() {
        for longest in [0.001, 0.37, 1.0, 2.5, 9.9, 10.0, 3600.0] {
            let marks = longest / axis_step(longest);
            assert!((4.0..=10.0).contains(&marks), "{longest}: {marks}");
        }
    }

    #[test]
    fn a_pixel_shows_what_takes_most_of_it() {
        assert_eq!(main_activity(&[0.0; 5]), None);
        assert_eq!(
            main_activity(&[1.0, 0.0, 0.0, 0.0, 0.0]),
            Some(Activity::Compute)
        );
        assert_eq!(
            main_activity(&[1.0, 0.6, 0.1, 0.0, 0.0]),
            Some(Activity::Wait)
        );
        assert_eq!(
            main_activity(&[1.0, 0.1, 0.2, 0.0, 0.0]),
            Some(Activity::Compute)
        );
    }
}
