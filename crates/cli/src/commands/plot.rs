//! `titin plot`: pictures of a description or of a run's fields.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_draw::{
    DrawError, FieldCoupling, FieldSchedule, described_field, draw_coupling_graph, draw_scale_map,
    draw_schedules, is_run, recorded_fields, schedules_to_json,
};
use titin_model::{Description, Model, ProblemReport, StartPolicy, array_description};

use super::check;
use crate::sources::Sources;
use crate::terminal::{self, REFUSED, answer, complain, warn};

/// The most components and conduits in the picture of a model.
const MOST_COMPONENTS: usize = 2_000;
const MOST_CONDUITS: usize = 8_000;

/// Draws the coupling graph, the map of scales, or the schedule of a field, as SVG
#[derive(Args)]
pub(crate) struct Plot {
    #[command(flatten)]
    sources: Sources,
    /// Where to write the picture; standard output if not given
    #[arg(short, long, value_name = "SVG")]
    output: Option<PathBuf>,
    /// Draw the map of scales: time against space, from `titin: scales`
    #[arg(long)]
    scales: bool,
    /// Draw which rank sends which part of a field to which rank: FILE is a run directory, or a
    /// file with two sides in YAML, or the YAML itself, as
    /// 'from: {shape: [8, 12], grid: [4, 1]}' 'to: {grid: [2, 2]}'
    #[arg(long, conflicts_with_all = ["scales", "model"])]
    schedule: bool,
    /// Of a run, draw only the field with this port at either end
    #[arg(long, value_name = "COMPONENT.PORT", requires = "schedule")]
    field: Option<String>,
    /// Print the schedule as JSON
    #[arg(long, requires = "schedule")]
    json: bool,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
enum PlotError {
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// The description has errors.
    #[error(transparent)]
    Description(#[from] ProblemReport),
    #[error(
        "model \"{model}\" is not drawn: it has {components} components and {conduits} conduits, and with more than \
         {MOST_COMPONENTS} or {MOST_CONDUITS} a picture cannot be read; draw a model inside it with -m"
    )]
    TooLarge {
        model: String,
        components: usize,
        conduits: usize,
    },
    #[error(
        "{} is a run, and it was given with other files: give one run, or files with two sides",
        .0.display()
    )]
    RunAmongFiles(PathBuf),
    #[error(
        "--field chooses among the fields of a run; two sides in YAML are one field: leave it out"
    )]
    FieldWithoutRun,
}

impl Plot {
    pub(crate) fn run(&self) -> ExitCode {
        let picture = if self.schedule {
            self.draw_schedules()
        } else {
            self.draw_model()
        };
        match picture {
            Ok(picture) => self.put(&picture),
            Err(PlotError::Description(report)) => {
                // Standard output is for the picture.
                warn(&check::text(&report, None, terminal::width()));
                ExitCode::from(REFUSED)
            }
            Err(error) => complain(error),
        }
    }

    /// Writes the picture to the file named by the user, or else to standard output.
    fn put(&self, picture: &str) -> ExitCode {
        let Some(path) = &self.output else {
            return answer(picture);
        };
        let ending = if self.json {
            Ok(())
        } else {
            titin_draw::check_ending(path)
        };
        match ending.and_then(|()| titin_draw::write(path, picture)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(error),
        }
    }

    fn draw_schedules(&self) -> Result<String, PlotError> {
        let couplings = self.couplings()?.into_iter();
        let fields: Vec<FieldSchedule> = couplings
            .map(FieldSchedule::new)
            .collect::<Result<_, DrawError>>()?;
        if self.json {
            return Ok(schedules_to_json(&fields)?);
        }
        Ok(draw_schedules(&fields))
    }

    /// The fields of a run, or the single field whose sides the user gives.
    fn couplings(&self) -> Result<Vec<FieldCoupling>, PlotError> {
        let files = &self.sources.files;
        if let Some(run) = files.iter().find(|path| is_run(path)) {
            if files.len() > 1 {
                return Err(PlotError::RunAmongFiles(run.clone()));
            }
            return Ok(recorded_fields(run, self.field.as_deref())?);
        }
        if self.field.is_some() {
            return Err(PlotError::FieldWithoutRun);
        }
        Ok(vec![described_field(&array_description::read(files)?)?])
    }

    fn draw_model(&self) -> Result<String, PlotError> {
        // No program is started, so components without a program are no error.
        let description: Description = self.sources.load(StartPolicy::ByHand, false)?;
        let network = description.network(self.sources.model.as_deref())?;
        if self.scales {
            return Ok(draw_scale_map(&network)?);
        }
        let model: &Model = &description.models[&network.model];
        if model.conduits.len() > MOST_CONDUITS || model.components.len() > MOST_COMPONENTS {
            return Err(PlotError::TooLarge {
                model: model.name.to_string(),
                components: model.components.len(),
                conduits: model.conduits.len(),
            });
        }
        Ok(draw_coupling_graph(&description, model))
    }
}
