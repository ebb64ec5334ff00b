//! `titin plot`: pictures of a description.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_model::{Description, Model, Report, Start};

use super::check;
use crate::draw;
use crate::sources::Sources;
use crate::terminal::{self, REFUSED, answer, complain, warn};

/// The largest model that is drawn.
const MOST_COMPONENTS: usize = 2_000;
const MOST_CONDUITS: usize = 8_000;

/// Draws the coupling graph, or the map of scales, as SVG
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
}

impl Plot {
    pub(crate) fn run(&self) -> ExitCode {
        // Nothing is started, so the programs may be described elsewhere.
        let picture = self.sources.load(Start::ByHand, false).and_then(|description| self.draw(&description));
        match (picture, &self.output) {
            (Ok(Ok(picture)), None) => return answer(&picture),
            (Ok(Ok(picture)), Some(path)) => {
                if let Err(error) = std::fs::write(path, picture) {
                    return complain(&format!("{} cannot be written: {error}", path.display()));
                }
            }
            (Ok(Err(text)), _) => return complain(&text),
            (Err(report), _) => {
                // Standard output is for the picture.
                warn(&check::text(&report, None, terminal::width()));
                return ExitCode::from(REFUSED);
            }
        }
        ExitCode::SUCCESS
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
