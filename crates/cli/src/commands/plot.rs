//! `titin plot`: pictures of a description.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_model::{Description, Model, ProblemReport, StartMode, array_description};

use super::check;
use crate::draw::{self, schedule::Drawn};
use crate::schedule::{self, Told, run::Alike};
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
    /// Draw who sends which part of a field to whom: FILE is a run directory, or has two sides in YAML, or is that itself, as
    /// 'from: {shape: [8, 12], grid: [4, 1]}' 'to: {grid: [2, 2]}'
    #[arg(long, conflicts_with_all = ["scales", "model"])]
    schedule: bool,
    /// Of a run, draw only the field that goes by this port of one of its two components
    #[arg(long, value_name = "COMPONENT.PORT", requires = "schedule")]
    field: Option<String>,
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
        let picture = self
            .sources
            .load(StartMode::ByHand, false)
            .and_then(|description| self.draw(&description));
        match picture {
            Ok(Ok(picture)) => self.put(&picture),
            Ok(Err(text)) => complain(&text),
            Err(report) => refuse(&report),
        }
    }

    fn put(&self, picture: &str) -> ExitCode {
        let Some(path) = &self.output else {
            return answer(picture);
        };
        let fits = if self.json {
            Ok(())
        } else {
            draw::check_ending(path)
        };
        match fits.and_then(|()| draw::write(path, picture)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => complain(&text),
        }
    }

    fn draw_schedule(&self) -> Result<String, ExitCode> {
        let fields = self.fields()?.into_iter().map(|Alike { coupling, more }| {
            Ok(Drawn {
                schedule: coupling.schedule()?,
                coupling,
                more,
            })
        });
        let fields: Vec<Drawn> = fields
            .collect::<Result<_, String>>()
            .map_err(|text| complain(&text))?;
        if !self.json {
            return Ok(draw::schedule::draw(&fields));
        }
        let told = |field: &Drawn| Told::of(&field.coupling, field.schedule.as_ref(), field.more);
        let told: Vec<Told> = fields.iter().map(told).collect();
        let text =
            serde_json::to_string_pretty(&told).map_err(|error| complain(&error.to_string()))?;
        Ok(text + "\n")
    }

    /// Those of a run, or the one that is given.
    fn fields(&self) -> Result<Vec<Alike>, ExitCode> {
        let files = &self.sources.files;
        if let Some(run) = files.iter().find(|path| schedule::run::is_run(path)) {
            if files.len() > 1 {
                return Err(complain(&format!(
                    "{} is a run, and it was given with other files: give one run, or files with two sides",
                    run.display()
                )));
            }
            return schedule::run::couplings(run, self.field.as_deref())
                .map_err(|text| complain(&text));
        }
        if self.field.is_some() {
            return Err(complain(
                "--field chooses among the fields of a run; two sides in YAML are one field: leave it out",
            ));
        }
        let given = array_description::read(files).map_err(|report| refuse(&report))?;
        let coupling = schedule::given::coupling(&given).map_err(|text| complain(&text))?;
        Ok(vec![Alike { coupling, more: 0 }])
    }

    fn draw(&self, description: &Description) -> Result<Result<String, String>, ProblemReport> {
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

fn refuse(report: &ProblemReport) -> ExitCode {
    // Standard output is for the picture.
    warn(&check::text(report, None, terminal::width()));
    ExitCode::from(REFUSED)
}
