//! `titin path`: keys of paths, and how fast a path is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use serde::Serialize;
use titin_draw::units::{bytes, count, message_size, percent, seconds};
use titin_draw::{MessageTime, StreamsSpeed, draw_rates};
use titin_path::{
    KEY_VARIABLE, Key, Listener, Path, PathError, PathSettings, make_key, parse_addresses,
    read_key, usual_key,
};

use super::bench::bar;
use crate::speed::median_and_spread;
use crate::table::{Column, table};
use crate::terminal::{self, BOLD, FAINT, GOOD, PLACE, complain, harmless, print, warn};

/// The name of the paths of a measurement.
const NAME: &str = "titin path --test";

/// The sizes of messages in a measurement.
const SIZES: [u64; 6] = [8, 1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26];

/// The largest size whose time is all latency, and says nothing of the next size.
const SMALL: u64 = 1 << 14;

/// The fewest round trips of a size.
const FEWEST: usize = 3;

/// Makes keys of paths, and measures a path
///
/// A path carries messages between two programs without a run (see docs/paths.md). Both ends need
/// the same key: make it with `titin path key FILE`, copy the file to the other host, and set
/// TITIN_PATH_KEY to its name on both.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct PathCommand {
    #[command(subcommand)]
    command: Option<PathSubcommand>,
    /// Where to listen, or the address of the other end; `session:` before it measures an encrypted path on this host, and
    /// `tcp:` a plain one to another
    #[arg(value_name = "HOST:PORT", requires = "end")]
    address: Option<String>,
    #[command(flatten)]
    end: Option<End>,
    /// The file with the key, in place of TITIN_PATH_KEY
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The numbers of streams to measure
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4,16",
        value_parser = clap::value_parser!(u32).range(1..=256), conflicts_with = "listen")]
    streams: Vec<u32>,
    /// About how long to take for each number of streams
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10.0,
        conflicts_with = "listen"
    )]
    seconds: f64,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "listen")]
    json: bool,
    /// Draw bytes per second over size
    #[arg(long, value_name = "SVG", conflicts_with = "listen")]
    plot: Option<PathBuf>,
}

#[derive(Subcommand)]
enum PathSubcommand {
    /// Makes a key for both ends of paths, in a new file that only you may read
    Key {
        /// The file
        file: PathBuf,
    },
}

/// The end of the path.
#[derive(Args)]
#[group(id = "end", multiple = false)]
struct End {
    /// Be the end that answers, for any number of measurements, until Ctrl-C
    #[arg(long)]
    listen: bool,
    /// Measure the path to the end that listens
    #[arg(long)]
    test: bool,
}

impl PathCommand {
    pub(crate) fn run(&self) -> ExitCode {
        let done = match (&self.command, &self.address, &self.end) {
            (Some(PathSubcommand::Key { file }), ..) => new_key(file),
            (None, Some(address), Some(end)) if end.listen => self.listen(address),
            (None, Some(address), Some(_)) => self.test(address),
            _ => Err(complain(
                "give an address and what to do: titin path HOST:PORT --listen at one end, and \
                 titin path HOST:PORT --test at the other",
            )),
        };
        done.err().unwrap_or(ExitCode::SUCCESS)
    }

    fn key(&self) -> Result<Key, ExitCode> {
        match &self.key {
            Some(file) => read_key(file),
            None => usual_key(),
        }
        .map_err(complain)
    }

    fn listen(&self, place: &str) -> Result<(), ExitCode> {
        let listener = Listener::start(place, &self.key()?).map_err(complain)?;
        let address = listener.place();
        // This address is of no use on the other host.
        let there =
            address
                .replacen("0.0.0.0:", "THIS-HOST:", 1)
                .replacen("[::]:", "THIS-HOST:", 1);
        warn(&format!(
            "{BOLD}listens at {address}{BOLD:#}; on the other host: {PLACE}titin path {there} --test{PLACE:#}\n"
        ));
        std::thread::scope(|scope| {
            loop {
                let path = listener.accept(None).map_err(complain)?;
                scope.spawn(move || serve(&path));
            }
        })
    }

    fn test(&self, address: &str) -> Result<(), ExitCode> {
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            return Err(complain("--seconds is more than 0 and at most 3600"));
        }
        if let Some(path) = &self.plot {
            titin_draw::check_ending(path).map_err(complain)?;
        }
        let key = self.key()?;
        let bar = bar(self.streams.len() * SIZES.len());
        let mut found = PathSpeed {
            address: address.to_owned(),
            release: env!("CARGO_PKG_VERSION"),
            streams: Vec::new(),
        };
        for streams in &self.streams {
            let speed = self.measure(address, &key, *streams, &bar);
            let speed = speed.map_err(|why| {
                bar.finish_and_clear();
                complain(why)
            })?;
            found.streams.push(speed);
        }
        bar.finish_and_clear();
        if let Some(path) = &self.plot {
            let picture = draw_rates(address, &found.streams);
            titin_draw::write(path, &picture).map_err(complain)?;
        }
        print(&match self.json {
            true => terminal::json(&found, "the figures")?,
            false => found.text(terminal::width()),
        })
    }

    /// Measures messages of all sizes on a path with this number of streams. Stops at the first large size that takes
    /// longer than `--seconds`.
    fn measure(
        &self,
        address: &str,
        key: &Key,
        streams: u32,
        bar: &ProgressBar,
    ) -> Result<StreamsSpeed, PathError> {
        let settings = PathSettings {
            streams: Some(streams),
            ..PathSettings::default()
        };
        let path = Path::open(&parse_addresses(address)?, NAME, key, &settings)?;
        let time = Duration::from_secs_f64(self.seconds / SIZES.len() as f64);
        let mut sizes = Vec::new();
        for size in SIZES {
            bar.set_message(format!(
                "{}, {}",
                count(streams.into(), "stream"),
                message_size(size)
            ));
            let trips = round_trips(&path, size, time)?;
            bar.inc(1);
            // A single round trip may be late for a reason that is not the line.
            let fastest = trips.iter().copied().fold(f64::INFINITY, f64::min);
            sizes.push(message_time(size, trips));
            // The next size takes sixteen times as long on a line that is full.
            if size > SMALL && fastest * FEWEST as f64 > self.seconds {
                break;
            }
        }
        path.close(Some(Duration::from_secs(10)))?;
        Ok(StreamsSpeed {
            streams: streams as usize,
            sizes,
        })
    }
}

/// The results of a measurement.
#[derive(Serialize)]
struct PathSpeed {
    address: String,
    release: &'static str,
    streams: Vec<StreamsSpeed>,
}

impl PathSpeed {
    fn text(&self, width: Option<usize>) -> String {
        let place = harmless(&self.address);
        let columns = [
            Column::name("streams"),
            Column::figure("message"),
            Column::figure("one way"),
            Column::spare("±"),
            Column::figure("per second"),
        ];
        let row = |speed: &StreamsSpeed, time: &MessageTime| {
            vec![
                speed.streams.to_string(),
                message_size(time.bytes),
                seconds(time.seconds),
                percent(time.spread, 1.0),
                bytes(time.bandwidth() as u64),
            ]
        };
        let rows: Vec<Vec<String>> = (self.streams.iter())
            .flat_map(|speed| speed.sizes.iter().map(|time| row(speed, time)))
            .collect();
        let best = (self.streams.iter())
            .filter_map(|speed| Some((speed.streams, speed.sizes.last()?.bandwidth())))
            .max_by(|(_, left), (_, right)| left.total_cmp(right));
        let mut out = format!("{BOLD}{place}{BOLD:#}: half a round trip\n\n");
        out += &table(&columns, &rows, width);
        if let Some((streams, rate)) = best {
            let (streams, rate) = (count(streams as u64, "stream"), bytes(rate as u64));
            out += &format!(
                "\n{GOOD}{rate}{GOOD:#} per second with {streams}  {FAINT}each way in turn{FAINT:#}\n"
            );
        }
        out
    }
}

/// Makes a key.
fn new_key(file: &std::path::Path) -> Result<(), ExitCode> {
    make_key(file).map_err(complain)?;
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = whole.display();
    warn(&format!(
        "{BOLD}{name}{BOLD:#} is the key for both ends: copy it to the other host by scp, and at both ends \
         {PLACE}export {KEY_VARIABLE}={name}{PLACE:#}\n"
    ));
    Ok(())
}

/// Sends each message back, until the other end closes the path.
fn serve(path: &Path) {
    let mut answered = 0;
    let ended = loop {
        let sent = path
            .receive(None)
            .and_then(|message| path.send(&message.bytes, None));
        match sent {
            Ok(()) => answered += 1,
            Err(why) => break why,
        }
    };
    let streams = count(path.streams() as u64, "stream");
    let answered = count(answered, "message");
    match ended {
        PathError::Closed => warn(&format!("{streams}: {answered} answered\n")),
        why => warn(&format!("{streams}: {answered} answered; {why}\n")),
    }
}

/// The times of round trips of messages of a size, in seconds: as many as there is `time` for, and a few at least.
fn round_trips(path: &Path, size: u64, time: Duration) -> Result<Vec<f64>, PathError> {
    let message = vec![b'.'; size as usize];
    let mut memory = message.clone();
    let (begin, mut trips) = (Instant::now(), Vec::new());
    while trips.len() < FEWEST || begin.elapsed() < time {
        let sent = Instant::now();
        path.send(&message, None)?;
        path.receive_into(&mut memory, None)?;
        trips.push(sent.elapsed().as_secs_f64());
    }
    Ok(trips)
}

/// The time of a message, one way, from the times of round trips.
fn message_time(bytes: u64, mut trips: Vec<f64>) -> MessageTime {
    let (median, spread) = median_and_spread(&mut trips);
    MessageTime {
        bytes,
        seconds: median / 2.0,
        spread,
        trips: trips.len() as u64,
    }
}
