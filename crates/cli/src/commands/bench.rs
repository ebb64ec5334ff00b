//! `titin bench`: how fast this machine, or a pair of hosts, can couple.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use titin_draw::units::{bytes, count, message_size, percent, seconds};
use titin_draw::{MediumSpeed, draw_latencies};
use titin_model::Medium;
use titin_runtime::{Instance, Options};

use super::run::{ended, signals};
use crate::listen::own_address;
use crate::speed::{self, BenchError, BenchPeer, Effort, SIZES, Scratch};
use crate::table::{Column, table};
use crate::terminal::{self, BOLD, FAINT, GOOD, PLACE, WARNING, complain, harmless, print, warn};

/// The exit code of a benchmark that the user ended.
const INTERRUPTED: u8 = 130;

/// Measures how fast messages are here, or between two hosts
///
/// Two instances send arrays to and fro, by each available medium; half a round trip is the time of
/// a message. To measure between two hosts, run the command with --listen on the first host and
/// with --connect on the second.
#[derive(Args)]
pub(crate) struct Bench {
    /// Measure to another host; ADDRESS is this host's address for the other host
    #[arg(long, value_name = "ADDRESS", conflicts_with = "connect")]
    listen: Option<String>,
    /// Be the other host; TITIN_SECRET holds the secret printed by --listen
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["json", "plot", "seconds"])]
    connect: Option<String>,
    /// About how long to take for each medium
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Draw time over size
    #[arg(long, value_name = "SVG")]
    plot: Option<PathBuf>,
}

/// The other side of `titin bench`
#[derive(Args)]
pub(crate) struct EchoCommand {}

/// The results of the measurements.
#[derive(Serialize)]
struct BenchResults {
    host: String,
    release: &'static str,
    /// The load average over the minute before the measurement, and the number of cores.
    load: f64,
    cores: usize,
    media: Vec<MediumSpeed>,
}

impl BenchResults {
    /// The facts about this host, before the measurements.
    fn at_begin() -> Self {
        BenchResults {
            host: own_name(),
            release: env!("CARGO_PKG_VERSION"),
            load: load(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            media: Vec::new(),
        }
    }
}

impl Bench {
    pub(crate) fn run(&self) -> ExitCode {
        if let Some(address) = &self.connect {
            return connect(address);
        }
        self.measure_all().unwrap_or_else(|code| code)
    }

    /// Measures all media, and prints the results. The error is the exit code of a measurement that
    /// cannot begin or was ended.
    fn measure_all(&self) -> Result<ExitCode, ExitCode> {
        let peers = self.peers()?;
        // Each run handles signals itself. `signals` serves the time before and between runs.
        let mut signals = signals().map_err(complain)?;
        let scratch = Scratch::new().map_err(complain)?;
        let mut results = BenchResults::at_begin();
        let mut worst = ExitCode::SUCCESS;
        let bar = bar(peers.len() * SIZES.len());
        for (number, peer) in peers.iter().enumerate() {
            let found = match ended(&mut signals) {
                true => Err(BenchError::Interrupted),
                false => self.measure(peer, &scratch, &bar, number * SIZES.len()),
            };
            match found {
                Ok(speed) => results.media.push(speed),
                Err(BenchError::Interrupted) => {
                    bar.finish_and_clear();
                    return Err(ExitCode::from(INTERRUPTED));
                }
                // Other media may still be measured.
                Err(failed) => {
                    let key = peer.medium().key();
                    let text = format!("{key} cannot be measured: {failed}");
                    worst = bar.suspend(|| complain(text));
                }
            }
        }
        bar.finish_and_clear();
        if !results.media.is_empty() {
            self.tell(&results)?;
        }
        Ok(worst)
    }

    /// The other ends to measure to. The choices of the user are checked first, so that the user
    /// need not wait for a refusal.
    fn peers(&self) -> Result<Vec<BenchPeer>, ExitCode> {
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(complain("--seconds is more than 0 and at most 3600"));
        }
        if let Some(path) = &self.plot {
            titin_draw::check_ending(path).map_err(complain)?;
        }
        match &self.listen {
            // Relays are between sites.
            None => {
                let here = Medium::ALL.into_iter();
                let here = here.filter(|medium| *medium != Medium::Relay);
                Ok(here.map(BenchPeer::Here).collect())
            }
            Some(address) => {
                let own = own_address(address).map_err(complain)?;
                Ok(vec![BenchPeer::Elsewhere(own)])
            }
        }
    }

    /// Measures one medium. `done` is the number of steps of the bar before the measurement.
    fn measure(
        &self,
        peer: &BenchPeer,
        scratch: &Scratch,
        bar: &ProgressBar,
        done: usize,
    ) -> Result<MediumSpeed, BenchError> {
        let key = peer.medium().key();
        let progress = |size: u64| {
            let step = SIZES.iter().position(|known| *known == size).unwrap_or(0);
            bar.set_position((done + step) as u64);
            bar.set_message(format!("{key}, {}", message_size(size)));
        };
        let effort = Effort {
            time: Duration::from_secs_f64(self.seconds / SIZES.len() as f64),
            progress: &progress,
        };
        speed::measure(peer, scratch, &effort, &invite)
    }

    fn tell(&self, found: &BenchResults) -> Result<(), ExitCode> {
        if let Some(path) = &self.plot {
            let picture = draw_latencies(&found.host, &found.media);
            titin_draw::write(path, &picture).map_err(complain)?;
        }
        print(&match self.json {
            true => terminal::json(found, "the figures")?,
            false => text(found, terminal::width()),
        })
    }
}

impl EchoCommand {
    pub(crate) fn run(&self) -> ExitCode {
        join(Options::default()).map_or_else(complain, |()| ExitCode::SUCCESS)
    }
}

/// Joins the run as the other side, and echoes messages until the first side ends.
fn join(options: Options) -> titin_runtime::Result<()> {
    let instance = Instance::open(options.language("Rust").ports("o_i: out; s: in")?)?;
    speed::echo(&instance)?;
    instance.close()
}

/// Joins the measurement of another host.
fn connect(address: &str) -> ExitCode {
    let lines = "paste both lines that `titin bench --listen` prints on the first host";
    if !address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    {
        return complain(format!("--connect {address} is no HOST:PORT: {lines}"));
    }
    if std::env::var_os("TITIN_SECRET").is_none() {
        return complain(format!(
            "TITIN_SECRET is not set, which lets this host in: {lines}"
        ));
    }
    let options = Options::default().manager(format!("tcp:{address}"));
    match join(options.instance("there")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let why = why_not_joined(error.text, lines);
            complain(format!("{address} cannot be measured: {why}"))
        }
    }
}

/// Why this host could not join the measurement. The runtime's hint about the environment is for
/// programs of a run, so the hint is cut off.
fn why_not_joined(error: String, lines: &str) -> String {
    if error.contains("does not know this run's secret") {
        return format!("TITIN_SECRET is not that of this measurement: {lines}");
    }
    match error.split_once("; the run may be over") {
        Some((why, _)) => format!(
            "{why}; is `titin bench --listen` still waiting there, and does every firewall let one of the two through?"
        ),
        None => error,
    }
}

/// Prints the commands for the other host.
fn invite(address: &str, secret: &str) {
    warn(&format!(
        "On the other host:\n\n  {PLACE}export TITIN_SECRET={secret}\n  titin bench --connect {address}{PLACE:#}\n\n"
    ));
}

/// A progress bar of so many steps.
pub(super) fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan} {msg}") {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar
}

fn text(found: &BenchResults, width: Option<usize>) -> String {
    let host = harmless(&found.host);
    let mut out = format!("{BOLD}{host}{BOLD:#}: the time of a message, one way\n\n");
    out += &times(&found.media, width);
    out.push('\n');
    out.extend(found.media.iter().map(summary));
    if found.load > found.cores as f64 {
        let (load, cores) = (found.load, count(found.cores as u64, "core"));
        out += &format!(
            "\n{WARNING}This machine was busy: a load of {load:.1} on {cores} when it began. So the figures say little; \
             measure again when it is quiet.{WARNING:#}\n"
        );
    }
    out
}

/// The table of times, with a row for each size of messages.
fn times(media: &[MediumSpeed], width: Option<usize>) -> String {
    // If there is no room for both, times are more important than spreads.
    let spreads = width.is_none_or(|width| width >= 24 * (media.len() + 1));
    let mut columns = vec![Column::name("message")];
    for speed in media {
        columns.push(Column::figure(speed.medium));
        columns.extend(spreads.then(|| Column::spare("±")));
        columns.push(Column::spare("per second"));
    }
    let row = |size: &u64| {
        let mut row = vec![message_size(*size)];
        for speed in media {
            let [time, spread, rate] = cells(speed, *size);
            row.push(time);
            row.extend(spreads.then_some(spread));
            row.push(rate);
        }
        row
    };
    let rows: Vec<Vec<String>> = SIZES.iter().map(row).collect();
    table(&columns, &rows, width)
}

/// The time of a message by a medium, the spread of the time, and the bytes per second.
fn cells(speed: &MediumSpeed, size: u64) -> [String; 3] {
    let figure = speed.sizes.iter().find(|figure| figure.bytes == size);
    let Some(figure) = figure else {
        return Default::default();
    };
    // Three times or fewer have no meaningful spread.
    let spread = (figure.trips > 3).then(|| percent(figure.spread, 1.0));
    let rate = (size > 0).then(|| bytes(figure.bandwidth() as u64));
    [
        seconds(figure.seconds),
        spread.unwrap_or_default(),
        rate.unwrap_or_default(),
    ]
}

/// A line about a medium.
fn summary(speed: &MediumSpeed) -> String {
    let (latency, bandwidth) = (seconds(speed.latency), bytes(speed.bandwidth as u64));
    format!(
        "{BOLD}{:<6}{BOLD:#}  {GOOD}{latency}{GOOD:#} for a small message, {GOOD}{bandwidth}{GOOD:#} per second for the largest  {FAINT}{}{FAINT:#}\n",
        speed.medium,
        between(speed.medium)
    )
}

/// The name of this host.
fn own_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// The load average over the last minute; 0 if the system has none.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

/// The places between which a medium carries messages.
fn between(medium: &str) -> &'static str {
    match medium {
        "inproc" => "between instances in one process",
        "shm" => "between processes on one host",
        "file" => {
            "between hosts with a file system in common and no network; here, its folder is among the temporary files"
        }
        _ => "between hosts, or where there is nothing better",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_draw::MessageTime;

    #[test]
    fn a_medium_that_was_too_slow_for_large_messages_leaves_cells_empty() {
        let figure = |bytes, seconds| MessageTime {
            bytes,
            seconds,
            spread: 0.02,
            trips: 30,
        };
        let full = SIZES
            .iter()
            .map(|size| figure(*size, 1e-6 + *size as f64 * 1e-9))
            .collect();
        let slow = vec![figure(0, 2e-3), figure(1 << 10, 0.25)];
        let speed = |medium, sizes: Vec<MessageTime>| MediumSpeed {
            medium,
            latency: 1e-6,
            bandwidth: 1e9,
            sizes,
        };
        let media = vec![speed("inproc", full), speed("tcp", slow)];
        let mut found = BenchResults {
            host: "h".into(),
            release: "0",
            load: 0.5,
            cores: 2,
            media,
        };
        let plain =
            |found: &BenchResults| anstream::adapter::strip_str(&text(found, None)).to_string();
        assert!(!plain(&found).contains("busy"));
        found.load = 2.5;
        assert!(plain(&found).contains("busy: a load of 2.5 on 2 cores"));
        let plain = plain(&found);
        let row = |name: &str| {
            plain
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap()
                .to_owned()
        };
        assert!(
            row("1 KiB ").ends_with("250 ms  2 %     4.10 kB"),
            "{plain}"
        );
        assert_eq!(row("64 MiB").split_whitespace().count(), 8, "{plain}");
        assert!(
            plain.contains("between instances in one process"),
            "{plain}"
        );
    }
}
