//! `titin plot`: pictures of a description.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_model::{Description, Model, Report, Start, exchange};

use super::check;
use crate::draw::{self, schedule::Drawn};
use crate::schedule::{self, Told};
use crate::sources::Sources;
use crate::terminal::{self, REFUSED, answer, complain, warn};

/// The largest model that is drawn.
const MOST_COMPONENTS: usize = 2_000;
const MOST_CONDUITS: usize = 8_000;

/// Draws the coupling graph, the map of scales, or the schedule of a field, as SVG
#[derive(Args)]
pub(crate) struct Plot {
    #[command(flatten)]
    sources: Sources,
    /// Where to write the picture; standard output without it
    #[arg(short, long, value_name = "SVG")]
    output: Option<PathBuf>,
    /// Draw the map of scales: time against space, from `titin: scales`
    #[arg(long)]
    scales: bool,
    /// Draw who sends which part of a field to whom: FILE has two sides, or is YAML itself, as 'from: {shape: [8, 12], grid: [4, 1]}'
    /// 'to: {grid: [2, 2]}'
    #[arg(long, conflicts_with_all = ["scales", "model"])]
    schedule: bool,
    /// Print the schedule as JSON
    #[arg(long, requires = "schedule")]
    json: bool,
}

impl Plot {
    pub(crate) fn run(&self) -> ExitCode {
        if self.schedule {
            return match self.draw_schedule() {
                Ok(picture) => self.put(&picture),
                Err(refused) => refused,
            };
        }
        // Nothing is started, so the programs may be described elsewhere.
        let picture = self.sources.load(Start::ByHand, false).and_then(|description| self.draw(&description));
        match picture {
            Ok(Ok(picture)) => self.put(&picture),
            Ok(Err(text)) => complain(&text),
            Err(report) => refuse(&report),
        }
    }

    fn put(&self, picture: &str) -> ExitCode {
        match &self.output {
            None => answer(picture),
            Some(path) => match std::fs::write(path, picture) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => complain(&format!("{} cannot be written: {error}", path.display())),
            },
        }
    }

    fn draw_schedule(&self) -> Result<String, ExitCode> {
        let given = exchange::read(&self.sources.files).map_err(|report| refuse(&report))?;
        let coupling = schedule::given::coupling(&given).map_err(|text| complain(&text))?;
        let schedule = coupling.schedule().map_err(|text| complain(&text))?;
        if self.json {
            let told = Told::of(&coupling, schedule.as_ref());
            let text = serde_json::to_string_pretty(&[told]).map_err(|error| complain(&error.to_string()))?;
            return Ok(text + "\n");
        }
        Ok(draw::schedule::draw(&[Drawn { coupling, schedule, more: 0 }]))
    }

    fn draw(&self, description: &Description) -> Result<Result<String, String>, Report> {
        let network = description.network(self.sources.model.as_deref())?;
        if self.scales {
            return Ok(draw::scales::draw(&network));
        }
        let model: &Model = &description.models[&network.model];
        if model.conduits.len() > MOST_CONDUITS || model.components.len() > MOST_COMPONENTS {
            return Ok(Err(format!(
                "model \"{}\" is not drawn: it has {} components and {} conduits, and with more than {MOST_COMPONENTS} or \
                 {MOST_CONDUITS} a picture cannot be read; draw a model inside it with -m",
                model.name,
                model.components.len(),
                model.conduits.len()
            )));
        }
        Ok(Ok(draw::coupling::draw(description, model)))
    }
}

fn refuse(report: &Report) -> ExitCode {
    // Standard output is for the picture.
    warn(&check::text(report, None, terminal::width()));
    ExitCode::from(REFUSED)
}
