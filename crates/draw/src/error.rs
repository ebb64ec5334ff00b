//! Why there is no picture.

use std::io;
use std::path::{Path, PathBuf};

/// The result of drawing.
pub type Result<T> = std::result::Result<T, DrawError>;

/// Why there is no picture. The texts are for users: each text says how to get a picture.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The file's name promises another format.
    #[error(
        "{} would be no .{}: titin draws SVG. Write {}, which every browser shows; `rsvg-convert`, `inkscape` and the print \
         dialog of a browser make PDF or PNG of it",
        .0.display(), .0.extension().unwrap_or_default().display(), .0.with_extension("svg").display()
    )]
    NoSvg(PathBuf),
    /// A file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The figures cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The profile of the run cannot be read.
    #[error(transparent)]
    Profile(#[from] titin_manager::profile::ReadError),
    /// No component of the model has a time scale.
    #[error(
        "model \"{model}\" cannot be drawn on a map of scales: no component has a time scale; give them, for instance\n\
         titin:\n  scales:\n    {component}: {{dt: 1 s, total: 1 h, dx: 1 mm, extent: 10 cm}}"
    )]
    NoScales {
        /// The model.
        model: String,
        /// A component of the model, for the example in the text.
        component: String,
    },
    /// The two sides of a field do not fit together, or a side is wrong.
    #[error(transparent)]
    Array(#[from] titin_array::Error),
    /// A side given by the user is wrong.
    #[error("\"{key}\": {error}")]
    Side {
        /// `from` or `to`.
        key: &'static str,
        /// The mistake.
        error: Box<DrawError>,
    },
    /// Neither side of a field says how large the array is.
    #[error(
        "the array has no extents: write \"shape\" at one side, for example 'from: {{shape: [8, 12], grid: [4, 1]}}'"
    )]
    NoExtents,
    /// The product of a grid's extents is no rank count.
    #[error("its grid has more than 2³² processes; give fewer")]
    GridTooLarge,
    /// A list has neither a single element nor an element for each dimension.
    #[error("{given} {noun} for an array of {dims} dimensions: give one for all, or one for each")]
    PerDimension {
        /// How many elements the list has.
        given: usize,
        /// The noun for the elements, in the plural.
        noun: &'static str,
        /// How many dimensions the array has.
        dims: usize,
    },
    /// A side has too many ranks.
    #[error(
        "a side has {ranks} ranks, and of more than {most} none is drawn or listed; give fewer"
    )]
    TooManyRanks {
        /// How many.
        ranks: u32,
        /// How many are allowed.
        most: u32,
    },
    /// The sides list too many indices.
    #[error(
        "the sides have {indices} indices, and more than {most} are not looked at; give fewer, or boxes"
    )]
    TooManyIndices {
        /// How many.
        indices: u64,
        /// How many are allowed.
        most: u64,
    },
    /// The schedule has too many messages.
    #[error(
        "the schedule has more than {most} messages, which are too many to list; give fewer ranks"
    )]
    TooManyMessages {
        /// How many are allowed.
        most: usize,
    },
    /// A run without fields.
    #[error(
        "{} has no fields: at no conduit both ends have declared one. To draw a schedule before there is a program, give \
         both sides: titin plot --schedule 'from: {{shape: [8, 12], grid: [4, 1]}}' 'to: {{grid: [2, 2]}}'",
        .0.display()
    )]
    NoFields(PathBuf),
    /// A run with too many fields for a single picture.
    #[error(
        "{} has {count} fields that are not alike, too many for one picture: choose one with --field COMPONENT.PORT",
        run.display()
    )]
    TooManyFields {
        /// The run.
        run: PathBuf,
        /// How many fields.
        count: usize,
    },
    /// No field of a run uses the port named by the user.
    #[error("no field goes by a port \"{port}\" of {}: there are {ports}{hint}", run.display())]
    NoSuchPort {
        /// The run.
        run: PathBuf,
        /// The port named by the user.
        port: String,
        /// The ports of fields.
        ports: String,
        /// A question after a similar name, or nothing.
        hint: String,
    },
    /// The profile's record of a field cannot be read.
    #[error("the profile has no good field at {port}: {error}")]
    BadField {
        /// The port.
        port: String,
        /// The mistake.
        error: titin_array::Error,
    },
}

impl DrawError {
    pub(crate) fn write(path: &Path, error: io::Error) -> DrawError {
        let path = path.to_owned();
        DrawError::Write { path, error }
    }
}
