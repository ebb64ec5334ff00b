//! `titin profile`: where the time of a run went.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_draw::units::{bytes, percent, seconds};
use titin_draw::{DrawError, draw_time_bars, draw_timeline, write_trace_events};
use titin_manager::profile::{
    ConduitTotals, Database, InstanceTotals, ReadError, RegionTotals, RunProfile, SiteTotals,
};

use crate::table::{Column, table};
use crate::terminal::{self, BOLD, FAINT, answer, complain, harmless};

/// The rows of a table, unless all are asked for.
const MOST_ROWS: usize = 40;

/// The place of the column `compressed` of conduits: behind the column `bytes`.
const BEHIND_BYTES: usize = 5;

/// Shows where the time of a run went
#[derive(Args)]
pub(crate) struct ProfileOf {
    /// A run directory, or the performance.sqlite within; those of MUSCLE3 serve too
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Print every row of long tables
    #[arg(long)]
    all: bool,
    /// Write a timeline for Perfetto or Chrome; needs a run with --trace
    #[arg(long, value_name = "JSON")]
    timeline: Option<PathBuf>,
    /// Draw where the time went: as a timeline if the run was traced, else as bars
    #[arg(long, value_name = "SVG")]
    plot: Option<PathBuf>,
}

impl ProfileOf {
    pub(crate) fn run(&self) -> ExitCode {
        match self.work() {
            Ok(None) => ExitCode::SUCCESS,
            Ok(Some(text)) => answer(&text),
            Err(error) => complain(error),
        }
    }

    /// Writes the files requested by the user. Returns the text to print, if any.
    fn work(&self) -> Result<Option<String>, ProfileError> {
        self.plot
            .as_deref()
            .map_or(Ok(()), titin_draw::check_ending)?;
        let database = Database::open(&self.run)?;
        let profile = database.profile()?;
        if let Some(path) = &self.timeline {
            if !profile.traced {
                return Err(ProfileError::NotTraced(self.run.clone()));
            }
            write_trace_events(&database, &profile, path)?;
        }
        if let Some(path) = &self.plot {
            titin_draw::write(path, &draw(&database, &profile)?)?;
        }
        if self.json {
            return Ok(Some(serde_json::to_string_pretty(&profile)? + "\n"));
        }
        let most = if self.all { usize::MAX } else { MOST_ROWS };
        let quiet = self.timeline.is_some() || self.plot.is_some();
        Ok((!quiet).then(|| text(&profile, most, terminal::width())))
    }
}

fn draw(database: &Database, profile: &RunProfile) -> Result<String, DrawError> {
    match profile.traced {
        true => draw_timeline(database, profile),
        false => Ok(draw_time_bars(profile)),
    }
}

/// Why the profile is not shown.
#[derive(Debug, thiserror::Error)]
enum ProfileError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(
        "{} has no event rows, so there is no timeline: the run was not traced; run it with `titin run --trace`",
        .0.display()
    )]
    NotTraced(PathBuf),
    #[error(transparent)]
    Draw(#[from] DrawError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

fn text(profile: &RunProfile, most: usize, width: Option<usize>) -> String {
    let mut out = String::new();
    if let Some(run) = &profile.run {
        let [model, host, time, outcome] =
            [&run.model, &run.host, &seconds(run.seconds), &run.outcome].map(|part| harmless(part));
        out += &format!("{BOLD}{model}{BOLD:#} on {host}, {time} from start to end: {outcome}\n\n");
    }
    out += &instances(&profile.instances, most, width);
    if !profile.sites.is_empty() {
        out += &format!("\n{}", sites(&profile.sites, width));
    }
    if !profile.conduits.is_empty() {
        out += &format!("\n{}", conduits(&profile.conduits, most, width));
    }
    if !profile.regions.is_empty() {
        out += &format!("\n{}", regions(profile, most, width));
    }
    out
}

/// The rows to print, and a line about the other rows.
fn first<T>(
    rows: &[T],
    most: usize,
    what: &str,
    make: impl Fn(&T) -> Vec<String>,
) -> (Vec<Vec<String>>, String) {
    let shown = rows.iter().take(most).map(make).collect();
    let more = match rows.len().checked_sub(most) {
        Some(more @ 1..) => format!("{FAINT}and {more} more {what}; --all shows them{FAINT:#}\n"),
        _ => String::new(),
    };
    (shown, more)
}

fn instances(instances: &[InstanceTotals], most: usize, width: Option<usize>) -> String {
    let receives = instances.iter().any(|instance| instance.receiving > 0.0);
    let mut columns = vec![
        Column::name("instance"),
        Column::figure("total"),
        Column::figure("compute"),
        Column::spare(""),
        Column::figure("wait"),
        Column::spare(""),
        Column::figure("send"),
        Column::spare(""),
        Column::spare("blocked"),
    ];
    if receives {
        columns.push(Column::spare("receive"));
    }
    let (rows, more) = first(instances, most, "instances", |instance| {
        instance_row(instance, receives)
    });
    table(&columns, &rows, width) + &more
}

fn instance_row(instance: &InstanceTotals, receives: bool) -> Vec<String> {
    let share = |part| percent(part, instance.total);
    let mut row = vec![
        instance.name.clone(),
        seconds(instance.total),
        seconds(instance.compute),
        share(instance.compute),
        seconds(instance.waiting),
        share(instance.waiting),
        seconds(instance.sending),
        share(instance.sending),
        seconds(instance.blocked),
    ];
    row.extend(receives.then(|| seconds(instance.receiving)));
    row
}

/// The table of sites.
fn sites(sites: &[SiteTotals], width: Option<usize>) -> String {
    let columns = [
        Column::name("site"),
        Column::figure("instances"),
        Column::figure("total"),
        Column::figure("compute"),
        Column::spare(""),
        Column::figure("wait"),
        Column::spare(""),
        Column::figure("for other sites"),
        Column::spare(""),
    ];
    let rows: Vec<Vec<String>> = sites.iter().map(site_row).collect();
    table(&columns, &rows, width)
}

fn site_row(site: &SiteTotals) -> Vec<String> {
    let share = |part| percent(part, site.total);
    vec![
        site.site.clone(),
        site.instances.to_string(),
        seconds(site.total),
        seconds(site.compute),
        share(site.compute),
        seconds(site.waiting),
        share(site.waiting),
        seconds(site.for_other_sites),
        share(site.for_other_sites),
    ]
}

/// The table of conduits. If not all are printed, the busiest come first.
fn conduits(conduits: &[ConduitTotals], most: usize, width: Option<usize>) -> String {
    let compresses = conduits.iter().any(|conduit| conduit.compressed > 0);
    let mut columns = vec![
        Column::name("from"),
        Column::name("to"),
        Column::name("medium"),
        Column::figure("messages"),
        Column::figure("bytes"),
        Column::spare("receiver waits"),
        Column::spare("sender waits"),
        Column::spare("copied"),
        Column::spare("buffer"),
    ];
    if compresses {
        columns.insert(BEHIND_BYTES, Column::spare("compressed"));
    }
    let has_addresses = conduits.iter().any(|conduit| conduit.addresses.is_some());
    if has_addresses {
        columns.push(Column::spare("addresses"));
    }
    let mut sorted: Vec<&ConduitTotals> = conduits.iter().collect();
    if sorted.len() > most {
        sorted.sort_by_key(|conduit| std::cmp::Reverse((conduit.bytes, conduit.messages)));
    }
    let (rows, more) = first(&sorted, most, "conduits", |conduit| {
        let mut row = conduit_row(conduit, compresses);
        row.extend(has_addresses.then(|| addresses(conduit)));
        row
    });
    table(&columns, &rows, width) + &more + &detours(&sorted) + &shortages(&sorted)
}

fn conduit_row(conduit: &ConduitTotals, compresses: bool) -> Vec<String> {
    let size = |count: i64| bytes(u64::try_from(count).unwrap_or(0));
    let buffer = match conduit.raised {
        0 => conduit.buffer.to_string(),
        times => format!("{}, raised {times}×", conduit.buffer),
    };
    let medium = match conduit.streams {
        Some(streams) => format!("{}, {streams} streams", conduit.medium),
        None => conduit.medium.clone(),
    };
    let mut row = vec![
        conduit.from.clone(),
        conduit.to.clone(),
        medium,
        conduit.messages.to_string(),
        size(conduit.bytes),
        seconds(conduit.receiver_waited),
        seconds(conduit.sender_waited),
        size(conduit.copied),
        buffer,
    ];
    if compresses {
        row.insert(BEHIND_BYTES, compression(conduit));
    }
    row
}

/// The addresses of the sender and of the receiver, if messages travelled by tcp between them.
fn addresses(conduit: &ConduitTotals) -> String {
    let ends = conduit.addresses.as_ref();
    ends.map_or_else(String::new, |[sender, receiver]| {
        format!("{sender} - {receiver}")
    })
}

/// How many messages of a conduit were compressed, unless all were, and the ratio of the bytes before to
/// the bytes that travelled.
fn compression(conduit: &ConduitTotals) -> String {
    if conduit.compressed == 0 {
        return String::new();
    }
    let ratio = conduit.uncompressed_bytes as f64 / conduit.bytes.max(1) as f64;
    let count = match conduit.messages - conduit.compressed {
        0 => String::new(),
        _ => format!("{} of {}, ", conduit.compressed, conduit.messages),
    };
    format!("{count}{ratio:.1}:1")
}

/// A line for each reason why conduits do not use shared memory, with the number of conduits.
fn detours(conduits: &[&ConduitTotals]) -> String {
    let mut reasons: BTreeMap<&str, Vec<&ConduitTotals>> = BTreeMap::new();
    // A conduit with only some messages by socket is in the lines of `shortages`.
    for conduit in conduits.iter().filter(|conduit| conduit.by_socket == 0) {
        if let Some(why) = &conduit.detour {
            reasons.entry(why).or_default().push(conduit);
        }
    }
    let line = |(why, conduits): (&&str, &Vec<&ConduitTotals>)| {
        let (ends, medium) = (ends(conduits), &conduits[0].medium);
        let text = harmless(&format!("{ends} by {medium}, not by shared memory: {why}"));
        format!("{FAINT}{text}{FAINT:#}\n")
    };
    reasons.iter().map(line).collect()
}

/// A line for each instance that sent messages by a socket for lack of shared memory.
fn shortages(conduits: &[&ConduitTotals]) -> String {
    let mut senders: BTreeMap<&str, Vec<&ConduitTotals>> = BTreeMap::new();
    for conduit in conduits.iter().filter(|conduit| conduit.by_socket > 0) {
        let sender = conduit.from.rsplit_once('.');
        let sender = sender.map_or(&*conduit.from, |(sender, _)| sender);
        senders.entry(sender).or_default().push(conduit);
    }
    let line = |(sender, conduits): (&&str, &Vec<&ConduitTotals>)| shortage(sender, conduits);
    senders.iter().map(line).collect()
}

fn shortage(sender: &str, conduits: &[&ConduitTotals]) -> String {
    let short: i64 = conduits.iter().map(|conduit| conduit.by_socket).sum();
    let all: i64 = conduits.iter().map(|conduit| conduit.messages).sum();
    let why = conduits[0].detour.clone().unwrap_or_else(|| {
        format!(
            "no shared memory was left for them: arrays that receivers keep, or loans, held all that there may be. \
             TITIN_SHARED_MEMORY in the environment of {sender} sets how much that is"
        )
    });
    let text = format!(
        "{}: {short} of {all} messages went by a socket, copied, since {why}",
        ends(conduits)
    );
    format!("{FAINT}{}{FAINT:#}\n", harmless(&text))
}

/// The ends of the first conduit, and how many more conduits there are.
fn ends(conduits: &[&ConduitTotals]) -> String {
    let ConduitTotals { from, to, .. } = conduits[0];
    match conduits.len() {
        1 => format!("{from} to {to}"),
        count => format!("{from} to {to} and {} more", count - 1),
    }
}

fn regions(profile: &RunProfile, most: usize, width: Option<usize>) -> String {
    let columns = [
        Column::name("instance"),
        Column::name("region"),
        Column::figure("time"),
        Column::spare(""),
        Column::figure("uses"),
        Column::spare("per use"),
    ];
    let total = |name: &str| {
        let mut instances = profile.instances.iter();
        let instance = instances.find(|instance| instance.name == name);
        instance.map_or(0.0, |instance| instance.total)
    };
    let (rows, more) = first(&profile.regions, most, "regions", |region| {
        region_row(region, total(&region.instance))
    });
    table(&columns, &rows, width) + &more
}

/// The row of a region in an instance with the given total time.
fn region_row(region: &RegionTotals, total: f64) -> Vec<String> {
    vec![
        region.instance.clone(),
        region.name.clone(),
        seconds(region.seconds),
        percent(region.seconds, total),
        region.uses.to_string(),
        seconds(region.seconds / region.uses.max(1) as f64),
    ]
}
