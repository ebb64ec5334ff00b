//! The launchers of MPI programs: commands, and settings for several launchers side by side.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::command::{Invocation, is_executable};
use super::error::LaunchError;
use crate::plan::{MpiLauncher, MpiProcesses};
use crate::slurm::JobPart;

/// Options of Open MPI's launcher. Without `--noprefix`, a launcher called by its whole path would
/// put its own folder first in the `PATH` of the ranks. Another Python may be in the folder.
const OPEN_MPI_OPTIONS: [&str; 5] = ["--oversubscribe", "--noprefix", "--bind-to", "none", "-np"];

/// The variables by which waiting ranks let other processes run.
const YIELD: [(MpiLauncher, &str, &str); 3] = [
    (MpiLauncher::OpenMpi, "OMPI_MCA_mpi_yield_when_idle", "1"),
    (MpiLauncher::Mpich, "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
    (MpiLauncher::IntelMpi, "I_MPI_THREAD_YIELD", "2"),
];

/// The folder for session folders of Open MPI 4. Later releases use another name.
const OPEN_MPI_BASE: &str = "OMPI_MCA_orte_tmpdir_base";

impl Invocation<'_> {
    /// The command `own`, behind the launcher of the ranks.
    pub(super) fn launched(
        &self,
        mpi: MpiProcesses,
        own: &[String],
    ) -> Result<Vec<String>, LaunchError> {
        let parts = self.context.job_parts;
        if mpi.launcher == MpiLauncher::Srun && !parts.is_empty() {
            return self.launched_in_parts(mpi, parts, own);
        }
        let mut command = self.launcher(mpi)?;
        command.extend_from_slice(own);
        Ok(command)
    }

    /// The command `own` for each part of a heterogeneous job, behind one `srun`.
    fn launched_in_parts(
        &self,
        mpi: MpiProcesses,
        parts: &[JobPart],
        own: &[String],
    ) -> Result<Vec<String>, LaunchError> {
        let nodes: u32 = parts.iter().map(|part| part.nodes).sum();
        if let Some(wanted) = mpi.nodes.filter(|wanted| *wanted != nodes) {
            return Err(LaunchError::TooFewNodes { wanted, nodes });
        }
        let mut command = vec!["srun".to_owned()];
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                command.push(":".to_owned());
            }
            command.push(format!("--het-group={}", part.het_group));
            command.extend(self.options_of_srun(part.processes));
            if mpi.nodes.is_some() {
                let each = part.processes / part.nodes;
                command.extend(node_options(mpi.launcher, part.nodes, each));
            }
            command.extend_from_slice(own);
        }
        Ok(command)
    }

    /// The launcher of the ranks, with options.
    fn launcher(&self, mpi: MpiProcesses) -> Result<Vec<String>, LaunchError> {
        let processes = mpi.processes;
        let in_slurm = self.context.is_in_slurm();
        let first = |names: &[&'static str]| self.first_in_path(names).to_owned();
        let (launcher, mut options) = match mpi.launcher {
            MpiLauncher::OpenMpi => (
                first(&["mpirun.openmpi", "mpirun"]),
                words(&OPEN_MPI_OPTIONS, processes),
            ),
            MpiLauncher::Mpich => (
                first(&["mpiexec.mpich", "mpiexec.hydra", "mpiexec"]),
                words(&["-n"], processes),
            ),
            MpiLauncher::IntelMpi => (self.launcher_of_intel_mpi(), words(&["-n"], processes)),
            MpiLauncher::Srun if in_slurm => ("srun".to_owned(), self.options_of_srun(processes)),
            MpiLauncher::Srun => return Err(LaunchError::NoAllocation),
        };
        // Outside of Slurm the launcher chooses the nodes.
        if let Some(nodes) = mpi.nodes.filter(|_| in_slurm) {
            options.extend(node_options(mpi.launcher, nodes, processes / nodes));
        }
        options.insert(0, launcher);
        Ok(options)
    }

    fn options_of_srun(&self, processes: u32) -> Vec<String> {
        let threads = self.program.threads;
        let mut options = words(&["--kill-on-bad-exit=1", "--cpus-per-task"], threads);
        options.extend(words(&["--ntasks"], processes));
        options
    }

    /// Intel's `mpirun` runs the first `mpiexec.hydra` in `PATH`. The first may be MPICH's. So
    /// titin calls Intel's own `mpiexec.hydra`, unless environment modules bring another.
    fn launcher_of_intel_mpi(&self) -> String {
        let root = self.env.get("I_MPI_ROOT", self.context);
        let own = root.filter(|_| !self.needs_shell()).and_then(|root| {
            let files = ["bin", "intel64/bin"].map(|bin| format!("{root}/{bin}/mpiexec.hydra"));
            let mut files = files.into_iter();
            files.find(|file| is_executable(Path::new(file)).is_ok())
        });
        own.unwrap_or_else(|| "mpirun".to_owned())
    }

    /// The variables that let launchers work side by side.
    ///
    /// titin assigns the cores. Two programs run at the same time even if one program waits for the
    /// other. A launcher that wanted cores for its program alone would wait for ever for free
    /// cores. A launcher that bound ranks to cores would bind the ranks of every program to the
    /// first cores.
    pub(super) fn launcher_settings(
        &self,
        launcher: MpiLauncher,
        instance: &str,
    ) -> Vec<(&'static str, String)> {
        let mut set: Vec<(&str, String)> = Vec::new();
        if self.context.is_in_slurm() {
            // Launchers of the MPIs call `srun`, too.
            set.push(("SLURM_OVERLAP", "1".into()));
            set.push(("SLURM_CPU_BIND", "none".into()));
        }
        if launcher == MpiLauncher::IntelMpi {
            set.push(("I_MPI_PIN", "off".into()));
        }
        if self.context.crowded {
            set.extend(self.not_given(yield_settings(launcher)));
        }
        set.extend(self.not_given(self.ucx_folder(launcher)));
        if launcher == MpiLauncher::OpenMpi {
            set.extend(self.not_given(self.open_mpi_folders(instance)));
        }
        set
    }

    /// The settings without a value in the description or the environment.
    fn not_given(
        &self,
        settings: impl IntoIterator<Item = (&'static str, String)>,
    ) -> impl Iterator<Item = (&'static str, String)> {
        let settings = settings.into_iter();
        settings.filter(|(name, _)| self.context.given(name, self.program).is_none())
    }

    /// The folder for memory that ranks share by UCX. In another folder, a rank killed at its start
    /// would leave the memory behind.
    fn ucx_folder(&self, launcher: MpiLauncher) -> Option<(&'static str, String)> {
        let folder = self.context.temporary?;
        let is_on_this_host = launcher != MpiLauncher::Srun && !self.context.is_in_slurm();
        is_on_this_host.then(|| ("UCX_POSIX_DIR", folder.to_string_lossy().into_owned()))
    }

    /// Folders of Open MPI for each instance. By default every `mpirun` of a user, or of a Slurm
    /// job, uses the same session folder. An `mpirun` may remove the folder while another `mpirun`
    /// begins.
    fn open_mpi_folders(&self, instance: &str) -> Vec<(&'static str, String)> {
        let Some(temporary) = self.context.temporary else {
            return Vec::new();
        };
        let folders: Vec<(&str, PathBuf)> = match self.context.is_in_slurm() {
            true => vec![self.session_folder_on_each_host(temporary, instance)],
            // The folders are removed with the run, and with them the memory that ranks share. A
            // killed rank would leave folders and memory behind.
            false => vec![
                (OPEN_MPI_BASE, temporary.join(instance)),
                ("PRTE_MCA_prte_tmpdir_base", temporary.join(instance)),
                ("OMPI_MCA_btl_vader_backing_directory", temporary.to_owned()),
                ("OMPI_MCA_btl_sm_backing_directory", temporary.to_owned()),
            ],
        };
        let text = |(name, folder): (_, PathBuf)| (name, folder.to_string_lossy().into_owned());
        folders.into_iter().map(text).collect()
    }

    /// A session folder that each host of a Slurm job has. `mpirun` removes the folder.
    fn session_folder_on_each_host(
        &self,
        temporary: &Path,
        instance: &str,
    ) -> (&'static str, PathBuf) {
        let given = |name| self.context.given(name, self.program);
        let base = given(OPEN_MPI_BASE).or_else(|| given("TMPDIR"));
        let run = temporary.file_name().unwrap_or_default().to_string_lossy();
        let folder = Path::new(base.unwrap_or("/tmp")).join(format!("{run}-{instance}"));
        ("OMPI_MCA_orte_top_session_dir", folder)
    }
}

/// The settings for shared cores: waiting ranks let other processes run. Without the settings, each
/// MPI treats the cores as its own.
fn yield_settings(launcher: MpiLauncher) -> impl Iterator<Item = (&'static str, String)> {
    // A program under `srun` may be linked with any MPI.
    let fits = move |mpi| mpi == launcher || launcher == MpiLauncher::Srun;
    let settings = YIELD.into_iter().filter(move |(mpi, ..)| fits(*mpi));
    settings.map(|(_, name, value)| (name, value.to_owned()))
}

/// Options for a number of nodes, with `each` processes on each node.
fn node_options(launcher: MpiLauncher, nodes: u32, each: u32) -> Vec<String> {
    match launcher {
        MpiLauncher::OpenMpi => words(&["--map-by"], format!("ppr:{each}:node")),
        MpiLauncher::Mpich | MpiLauncher::IntelMpi => words(&["-ppn"], each),
        MpiLauncher::Srun => {
            let mut options = words(&["--nodes"], nodes);
            options.extend(words(&["--ntasks-per-node"], each));
            options
        }
    }
}

/// Options, and the value of the last option.
fn words(options: &[&str], last: impl Display) -> Vec<String> {
    let options = options.iter().map(ToString::to_string);
    options.chain([last.to_string()]).collect()
}
