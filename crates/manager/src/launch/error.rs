//! Why a program cannot be started. Each printed error says how to go on.

use std::path::PathBuf;

use crate::directory::DirectoryError;

/// Why the start of a program cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A file of the start cannot be written.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The folder is no Python virtual environment.
    #[error(
        "virtual_env {} has no bin folder: is it a Python virtual environment? Relative paths begin in {}",
        .folder.display(), .description.display()
    )]
    NoVirtualEnv {
        /// The folder in the description.
        folder: PathBuf,
        /// The folder of the description.
        description: PathBuf,
    },
    /// The file cannot be run.
    #[error("{} {why}{}", .file.display(), relative_path_hint(.description.as_ref()))]
    NotExecutable {
        /// The file.
        file: PathBuf,
        /// The mistake, in words.
        why: &'static str,
        /// The folder of the description, if the path is relative to the folder.
        description: Option<PathBuf>,
    },
    /// `PATH` has no such program.
    #[error("there is no program {name} in PATH{}", path_hint(.name, .path, .beside.as_ref()))]
    NotInPath {
        /// The name of the program.
        name: String,
        /// The variable.
        path: String,
        /// A file of the same name beside the description, if such a file exists.
        beside: Option<PathBuf>,
    },
    /// `srun` needs an allocation.
    #[error(
        "execution_model srunmpi works inside a Slurm allocation only, and this is none \
         (SLURM_JOB_ID is not set): use openmpi, mpich or intelmpi here"
    )]
    NoAllocation,
    /// The job has fewer nodes than the description wants.
    #[error(
        "its resources want {wanted} nodes, and the Slurm job has {nodes} for it: ask Slurm for more nodes, or lower `nodes`"
    )]
    TooFewNodes {
        /// The number in the description.
        wanted: u32,
        /// The number in the job.
        nodes: u32,
    },
    /// An environment variable is not set.
    #[error(
        "{text} names the environment variable {name}, which is not set (write $$ for a dollar sign)"
    )]
    UnsetVariable {
        /// The text with the variable.
        text: String,
        /// The variable.
        name: String,
    },
}

fn relative_path_hint(description: Option<&PathBuf>) -> String {
    description.map_or_else(String::new, |folder| {
        format!(
            " (relative paths begin at the description, in {})",
            folder.display()
        )
    })
}

fn path_hint(name: &str, path: &str, beside: Option<&PathBuf>) -> String {
    match beside {
        Some(file) => format!("; there is {}: write ./{name} for it", file.display()),
        None => format!("; PATH is {path}"),
    }
}
