//! From a program of the description to the command that the guard or the user runs.
//!
//! A plain program is run without a shell. A shell is used only if the description needs a shell:
//! for a script, environment modules, or a login environment. The shell then runs a
//! `run_script.sh`. The script stays beside the output, so a user can read and repeat the start.

mod command;
mod context;
mod environment;
mod error;
mod mpi;
mod script;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use titin_wire::connection;

use crate::directory::{DirectoryError, at};
use crate::guard::Launch;
use crate::plan::{BaseEnv, Hosting, PlannedCommand, PlannedProgram};
use command::Invocation;

pub use context::LaunchContext;
pub use error::{LaunchError, StartError};

/// The name of the script in the instance's directory.
pub const SCRIPT: &str = "run_script.sh";

/// The name of the file with the functions of a host process, in the directory of the host process.
pub const HOSTING: &str = "host.json";

/// The first variables of a login.
const LOGIN_VARIABLES: [&str; 5] = ["TERM", "HOME", "SHELL", "USER", "LOGNAME"];

/// The variables by which launchers of MPI tell a process its rank.
const RANKS: [&str; 5] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

/// The environment of this process, without values that are not text.
pub fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// A command for the guard, and the text of `run_script.sh` if the command has a script.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCommand {
    /// The command.
    pub launch: Launch,
    /// The script, to be written to the instance's directory.
    pub script: Option<String>,
    /// Whether the command is the user's program alone, without a shell or a launcher.
    pub bare: bool,
}

/// The words of a command.
enum Words {
    /// The program alone.
    Direct(Vec<String>),
    /// A shell with a script of titin, for the environment.
    InShell(Vec<String>, String),
    /// A script of the user.
    UserScript(Vec<String>, String),
}

/// Prepares the start of a program as an instance.
///
/// # Errors
/// [`LaunchError`] if the program cannot be started.
pub fn prepare(
    instance: &str,
    program: &PlannedProgram,
    context: &LaunchContext<'_>,
) -> Result<PreparedCommand, LaunchError> {
    let invocation = Invocation::new(program, context)?;
    let words = invocation.words()?;
    let variables = invocation.variables(instance, &words);
    let (words, script) = match words {
        Words::Direct(words) => (words, None),
        Words::InShell(words, script) | Words::UserScript(words, script) => (words, Some(script)),
    };
    let is_executable = matches!(program.command, PlannedCommand::Executable { .. });
    let bare = script.is_none() && program.mpi.is_none() && is_executable;
    let mut words = words.into_iter();
    Ok(PreparedCommand {
        launch: Launch {
            program: words.next().unwrap_or_default().into(),
            args: words.collect(),
            clear: variables.clear,
            set: variables.set,
            unset: variables.unset,
            directory: context.directory.join("workdir"),
            stdout: context.directory.join("stdout.txt"),
            stderr: context.directory.join("stderr.txt"),
            input: None,
        },
        script,
        bare,
    })
}

/// As [`prepare`], and writes the files of the start to the instance's folder.
///
/// # Errors
/// [`StartError`] if the program cannot be started, or a file cannot be written.
pub fn prepare_with_files(
    instance: &str,
    program: &PlannedProgram,
    context: &LaunchContext<'_>,
) -> Result<PreparedCommand, StartError> {
    let prepared = prepare(instance, program, context)?;
    if let PlannedCommand::Host(hosting) = &program.command {
        write_hosting(&context.directory.join(HOSTING), hosting)?;
    }
    if let Some(text) = &prepared.script {
        write_script(&context.directory.join(SCRIPT), text)?;
    }
    Ok(prepared)
}

/// Writes a program's script.
fn write_script(path: &Path, text: &str) -> Result<(), DirectoryError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o755);
    let file = file.open(path);
    at(
        path,
        file.and_then(|mut file| file.write_all(text.as_bytes())),
    )
}

/// Writes the functions of a host process.
fn write_hosting(path: &Path, hosting: &Hosting) -> Result<(), DirectoryError> {
    let text = serde_json::to_vec(hosting).map_err(io::Error::from);
    at(path, text.and_then(|text| fs::write(path, text)))
}

/// The variables of a command, as a difference to the guard's.
struct CommandVariables {
    /// Whether the command starts without any variable of the guard.
    clear: bool,
    set: Vec<(String, String)>,
    unset: Vec<String>,
}

/// The first variables of a login environment. The variables of Slurm stay, because a launcher has
/// to find the manager's Slurm job.
fn login_variables(context: &LaunchContext<'_>) -> Vec<(String, String)> {
    let is_kept = |name: &str| LOGIN_VARIABLES.contains(&name) || name.starts_with("SLURM");
    let kept = context.env.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl Invocation<'_> {
    fn words(&self) -> Result<Words, LaunchError> {
        let script = self.context.directory.join(SCRIPT);
        let script = script.to_string_lossy().into_owned();
        if let PlannedCommand::Script(text) = &self.program.command {
            let words = match text.starts_with("#!") {
                true => vec![script],
                false => vec!["/bin/sh".to_owned(), script],
            };
            return Ok(Words::UserScript(words, text.clone()));
        }
        let command = self.command()?;
        if !self.needs_shell() {
            return Ok(Words::Direct(command));
        }
        let mut words = vec!["/bin/bash".to_owned(), script];
        words.extend(command);
        Ok(Words::InShell(words, self.script()))
    }

    /// The variables of the command. A script of titin sets the program's environment itself.
    fn variables(&self, instance: &str, words: &Words) -> CommandVariables {
        let mut variables = CommandVariables {
            clear: false,
            set: self.identity(instance),
            unset: self.not_for_programs(),
        };
        match words {
            Words::Direct(_) => {
                let own = self.env.set.iter();
                let own = own.map(|(name, value)| (name.clone(), value.clone()));
                variables.set.extend(own);
                variables.unset.extend(self.env.unset.iter().cloned());
            }
            Words::InShell(..) if self.program.base == BaseEnv::Login => {
                variables.clear = true;
                let login = login_variables(self.context);
                variables.set.splice(0..0, login);
            }
            Words::InShell(..) | Words::UserScript(..) => {}
        }
        variables
    }

    /// What the programs must not inherit: the secret, and titin's own rank. A program is no rank of the launcher that
    /// has started the agent or the manager, and some libraries would take it for one.
    fn not_for_programs(&self) -> Vec<String> {
        let inherited = |name: &&str| self.context.env.contains_key(*name);
        let ranks = RANKS.iter().copied().filter(inherited);
        let all = std::iter::once(connection::SECRET).chain(ranks);
        all.map(str::to_owned).collect()
    }

    /// The variables about the instance, the run, and the share of the cores.
    fn identity(&self, instance: &str) -> Vec<(String, String)> {
        let manager = self.context.connection.to_string_lossy();
        let mut set: Vec<(&str, String)> = Vec::new();
        set.extend(connection::MANAGER.map(|name| (name, manager.clone().into_owned())));
        set.extend(connection::INSTANCE.map(|name| (name, instance.to_owned())));
        set.extend(self.share_of_cores());
        if let Some(mpi) = self.program.mpi {
            set.push(("MUSCLE_MPI_PROCESSES", mpi.processes.to_string()));
            set.extend(self.launcher_settings(mpi.launcher, instance));
        }
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        set.into_iter().map(owned).collect()
    }

    /// The variables about threads and cores.
    fn share_of_cores(&self) -> Vec<(&'static str, String)> {
        let threads = self.program.threads.to_string();
        let cores: Vec<String> = self.context.cores.iter().map(ToString::to_string).collect();
        let mut set = vec![
            ("MUSCLE_THREADS", threads.clone()),
            ("MUSCLE_BIND_LIST", cores.join(",")),
        ];
        if self
            .context
            .given("OMP_NUM_THREADS", self.program)
            .is_none()
        {
            set.push(("OMP_NUM_THREADS", threads));
        }
        set
    }
}

/// The Python for hosted functions: of the active environment, or of the environment with the
/// command `titin`, or any Python.
pub fn python(active: Option<&Path>, titin: Option<&Path>) -> PathBuf {
    let folders = [
        active.map(|venv| venv.join("bin")),
        titin.and_then(Path::parent).map(Path::to_owned),
    ];
    let files = folders.into_iter().flatten();
    let mut files = files.map(|folder| folder.join("python3"));
    files
        .find(|path| path.exists())
        .unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::*;
    use crate::plan::{MpiLauncher, MpiProcesses};
    use crate::slurm::JobPart;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn around<'a>(env: &'a BTreeMap<String, String>, directory: &'a Path) -> LaunchContext<'a> {
        let connection = Path::new("/run/connection.json");
        LaunchContext {
            env,
            connection,
            titin: OsStr::new("/bin/titin"),
            directory,
            cores: &[0, 3],
            crowded: false,
            temporary: None,
            job_parts: &[],
        }
    }

    fn executable(path: &str, args: &[&str]) -> PlannedProgram {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let command = PlannedCommand::Executable {
            path: path.into(),
            args,
        };
        PlannedProgram {
            command,
            threads: 2,
            folder: "/".into(),
            ..PlannedProgram::default()
        }
    }

    /// The variables about the instance, the run and the cores.
    fn identity(
        instance: &str,
        program: &PlannedProgram,
        context: &LaunchContext<'_>,
    ) -> Vec<(String, String)> {
        Invocation::new(program, context)
            .unwrap()
            .identity(instance)
    }

    fn prepared(
        program: &PlannedProgram,
        env: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<PreparedCommand, LaunchError> {
        prepare("a", program, &around(env, directory))
    }

    fn variable<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
        launch
            .set
            .iter()
            .rev()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_program_is_run_without_a_shell_and_told_who_it_is() {
        let host = env(&[("PATH", "/nowhere:/bin"), ("DATA", "/data")]);
        let found = prepared(
            &executable("sh", &["$DATA/x", "a b", "$$1"]),
            &host,
            Path::new("/r/a"),
        )
        .unwrap();
        assert_eq!(found.script, None);
        let launch = found.launch;
        assert_eq!(launch.program, Path::new("/bin/sh"));
        assert_eq!(launch.args, ["/data/x", "a b", "$1"]);
        assert_eq!(launch.directory, Path::new("/r/a/workdir"));
        for name in ["TITIN_MANAGER", "MUSCLE_MANAGER"] {
            assert_eq!(variable(&launch, name), Some("/run/connection.json"));
        }
        assert_eq!(variable(&launch, "TITIN_INSTANCE"), Some("a"));
        assert_eq!(variable(&launch, "OMP_NUM_THREADS"), Some("2"));
        assert_eq!(variable(&launch, "MUSCLE_BIND_LIST"), Some("0,3"));
        assert_eq!(launch.unset, ["TITIN_SECRET"]);
        assert!(!launch.clear);
    }

    #[test]
    fn a_program_is_no_rank_of_the_launcher_that_has_started_titin() {
        let host = env(&[
            ("PATH", "/bin"),
            ("PMI_RANK", "3"),
            ("OMPI_COMM_WORLD_RANK", "0"),
        ]);
        let launch = prepared(&executable("sh", &[]), &host, Path::new("/r"))
            .unwrap()
            .launch;
        assert_eq!(
            launch.unset,
            ["TITIN_SECRET", "OMPI_COMM_WORLD_RANK", "PMI_RANK"]
        );
    }

    #[test]
    fn the_number_of_threads_is_left_to_a_user_who_has_set_it() {
        let host = env(&[("PATH", "/bin"), ("OMP_NUM_THREADS", "8")]);
        let launch = prepared(&executable("sh", &[]), &host, Path::new("/r"))
            .unwrap()
            .launch;
        assert_eq!(variable(&launch, "OMP_NUM_THREADS"), None);
    }

    #[test]
    fn what_cannot_be_found_is_explained() {
        let host = env(&[("PATH", "/bin")]);
        let program = |path: &str, folder: &Path| PlannedProgram {
            folder: folder.into(),
            ..executable(path, &[])
        };
        let error = |path: &str, folder: &Path| {
            prepared(&program(path, folder), &host, Path::new("/r"))
                .unwrap_err()
                .to_string()
        };
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("solver"), "").unwrap();
        assert!(error("solver", folder.path()).contains("write ./solver for it"));
        assert!(error("./solver", folder.path()).contains("is not executable (chmod +x)"));
        assert!(
            error("bin/other", folder.path())
                .contains("does not exist (relative paths begin at the description")
        );
        assert!(error("/", folder.path()).contains("is a folder"));
        assert!(error("nothing-like-this", folder.path()).contains("PATH is /bin"));
        assert!(error("$NOT/x", folder.path()).contains("NOT, which is not set"));
        let venv = PlannedProgram {
            virtual_env: Some("venv".into()),
            ..executable("sh", &[])
        };
        assert!(
            prepared(&venv, &host, Path::new("/r"))
                .unwrap_err()
                .to_string()
                .contains("no bin folder")
        );
    }

    #[test]
    fn a_virtual_environment_goes_before_the_rest_and_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("venv/bin")).unwrap();
        let host = env(&[
            ("PATH", "/old/bin:/bin"),
            ("VIRTUAL_ENV", "/old"),
            ("LD", "x"),
        ]);
        let program = PlannedProgram {
            virtual_env: Some("venv".into()),
            env: vec![("+LD".into(), ":y".into()), ("A".into(), "b".into())],
            folder: folder.path().into(),
            ..executable("sh", &[])
        };
        let launch = prepared(&program, &host, Path::new("/r")).unwrap().launch;
        let venv = folder.path().join("venv").to_string_lossy().into_owned();
        assert_eq!(
            variable(&launch, "PATH"),
            Some(format!("{venv}/bin:/bin").as_str())
        );
        assert_eq!(variable(&launch, "VIRTUAL_ENV"), Some(venv.as_str()));
        assert_eq!(variable(&launch, "LD"), Some("x:y"));
        assert_eq!(variable(&launch, "A"), Some("b"));

        let clean = PlannedProgram {
            base: BaseEnv::Clean,
            ..executable("sh", &[])
        };
        let launch = prepared(&clean, &host, Path::new("/r")).unwrap().launch;
        assert_eq!(variable(&launch, "PATH"), Some("/bin"));
        assert!(launch.unset.contains(&"VIRTUAL_ENV".to_owned()));
    }

    #[test]
    fn scripts_are_kept_and_run() {
        let host = env(&[("PATH", "/bin")]);
        let script = |text: &str| PlannedProgram {
            command: PlannedCommand::Script(text.into()),
            ..executable("", &[])
        };
        let found = prepared(
            &script("#!/usr/bin/env python3\n"),
            &host,
            Path::new("/r/a"),
        )
        .unwrap();
        assert_eq!(found.launch.program, Path::new("/r/a/run_script.sh"));
        let found = prepared(&script("exec ./a"), &host, Path::new("/r/a")).unwrap();
        assert_eq!(
            (found.launch.program, found.launch.args),
            ("/bin/sh".into(), vec!["/r/a/run_script.sh".into()])
        );
        assert_eq!(found.script.as_deref(), Some("exec ./a"));
    }

    /// A program with ranks on two nodes.
    fn with_ranks(launcher: MpiLauncher, program: PlannedProgram) -> PlannedProgram {
        let mpi = MpiProcesses {
            launcher,
            processes: 4,
            nodes: Some(2),
        };
        PlannedProgram {
            mpi: Some(mpi),
            ..program
        }
    }

    /// Those of the variables `names` that the ranks of an instance get, in the environment `given`.
    fn rank_variables(
        launcher: MpiLauncher,
        instance: &str,
        names: &[&str],
        given: &[(&str, &str)],
        change: impl FnOnce(&mut LaunchContext<'_>),
    ) -> Vec<(String, String)> {
        let env = env(given);
        let mut context = around(&env, Path::new("/run"));
        change(&mut context);
        let program = with_ranks(launcher, executable("sh", &[]));
        let mut set = identity(instance, &program, &context);
        set.retain(|(name, _)| names.contains(&name.as_str()));
        set
    }

    fn command(launch: &Launch) -> String {
        format!("{} {}", launch.program.display(), launch.args.join(" "))
    }

    #[test]
    fn mpi_programs_are_started_by_their_launcher() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mpirun", "mpiexec", "srun"] {
            fs::copy("/bin/true", folder.path().join(name)).unwrap();
        }
        let path = folder.path().to_string_lossy();
        let launched = |start: MpiLauncher, more: &[(&str, &str)]| {
            let host = env(&[&[("PATH", &*path)], more].concat());
            let program = with_ranks(start, executable("/bin/sh", &["-x"]));
            prepared(&program, &host, Path::new("/r")).map(|prepared| prepared.launch)
        };
        let beside = |words: &str| format!("{}/{words} /bin/sh -x", folder.path().display());

        let one_host = launched(MpiLauncher::OpenMpi, &[]).unwrap();
        assert_eq!(
            command(&one_host),
            beside("mpirun --oversubscribe --noprefix --bind-to none -np 4")
        );
        assert_eq!(variable(&one_host, "MUSCLE_MPI_PROCESSES"), Some("4"));
        assert_eq!(variable(&one_host, "SLURM_OVERLAP"), None);
        assert_eq!(
            command(&launched(MpiLauncher::IntelMpi, &[]).unwrap()),
            beside("mpirun -n 4")
        );
        assert!(
            launched(MpiLauncher::Srun, &[])
                .unwrap_err()
                .to_string()
                .contains("Slurm")
        );
        let root = folder.path().join("intel");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy("/bin/true", root.join("bin/mpiexec.hydra")).unwrap();
        let intel = launched(
            MpiLauncher::IntelMpi,
            &[("I_MPI_ROOT", &root.to_string_lossy())],
        )
        .unwrap();
        assert_eq!(intel.program, root.join("bin/mpiexec.hydra"));
        assert_eq!(variable(&intel, "I_MPI_PIN"), Some("off"));

        for (start, words) in [
            (
                MpiLauncher::OpenMpi,
                "mpirun --oversubscribe --noprefix --bind-to none -np 4 --map-by ppr:2:node",
            ),
            (MpiLauncher::Mpich, "mpiexec -n 4 -ppn 2"),
            (
                MpiLauncher::Srun,
                "srun --kill-on-bad-exit=1 --cpus-per-task 2 --ntasks 4 --nodes 2 --ntasks-per-node 2",
            ),
        ] {
            let launch = launched(start, &[("SLURM_JOB_ID", "7")]).unwrap();
            assert_eq!(command(&launch), beside(words));
            assert_eq!(variable(&launch, "SLURM_OVERLAP"), Some("1"));
        }
    }

    #[test]
    fn one_srun_starts_the_ranks_in_all_parts_of_a_job() {
        let folder = tempfile::tempdir().unwrap();
        fs::copy("/bin/true", folder.path().join("srun")).unwrap();
        let path = folder.path().to_string_lossy();
        let host = env(&[("PATH", &*path), ("SLURM_JOB_ID", "7")]);
        let command_of = |parts: &[JobPart], nodes: Option<u32>| {
            let mut program = with_ranks(MpiLauncher::Srun, executable("/bin/sh", &["-x"]));
            program.mpi = program.mpi.map(|mpi| MpiProcesses { nodes, ..mpi });
            let mut context = around(&host, Path::new("/r"));
            context.job_parts = parts;
            prepare("a", &program, &context).map(|prepared| command(&prepared.launch))
        };
        let srun = |words: &str| format!("{path}/srun {words}");
        let part = |het_group, nodes, processes| JobPart {
            het_group,
            nodes,
            processes,
        };
        let each = "--kill-on-bad-exit=1 --cpus-per-task 2 --ntasks";
        assert_eq!(
            command_of(&[part(0, 1, 2), part(2, 2, 4)], Some(3)).unwrap(),
            srun(&format!(
                "--het-group=0 {each} 2 --nodes 1 --ntasks-per-node 2 /bin/sh -x : \
                 --het-group=2 {each} 4 --nodes 2 --ntasks-per-node 2 /bin/sh -x"
            ))
        );
        assert_eq!(
            command_of(&[part(1, 2, 3)], None).unwrap(),
            srun(&format!("--het-group=1 {each} 3 /bin/sh -x"))
        );
        let refused = command_of(&[part(0, 1, 2), part(2, 1, 2)], Some(4)).unwrap_err();
        assert!(refused.to_string().contains("want 4 nodes"), "{refused}");
    }

    #[test]
    fn each_mpirun_has_a_folder_of_its_own_unless_the_user_says_where() {
        let place = |given: &[(&str, &str)], temporary: Option<&'static str>| {
            let names = ["OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_orte_top_session_dir"];
            let set = rank_variables(MpiLauncher::OpenMpi, "micro[3]", &names, given, |context| {
                context.temporary = temporary.map(Path::new);
            });
            let (name, value) = set.first()?;
            Some(format!("{}: {value}", &name["OMPI_MCA_orte_".len()..]))
        };
        let (temporary, slurm) = (Some("/dev/shm/titin-0"), ("SLURM_JOB_ID", "7"));
        let own_base = ("OMPI_MCA_orte_tmpdir_base", "/scratch");
        for (given, temporary, expected) in [
            (&[][..], None, None),
            (
                &[],
                temporary,
                Some("tmpdir_base: /dev/shm/titin-0/micro[3]"),
            ),
            (&[own_base], temporary, None),
            (
                &[slurm],
                temporary,
                Some("top_session_dir: /tmp/titin-0-micro[3]"),
            ),
            (
                &[slurm, ("TMPDIR", "/local")],
                temporary,
                Some("top_session_dir: /local/titin-0-micro[3]"),
            ),
            (
                &[slurm, own_base],
                temporary,
                Some("top_session_dir: /scratch/titin-0-micro[3]"),
            ),
        ] {
            assert_eq!(place(given, temporary).as_deref(), expected);
        }
    }

    #[test]
    fn ranks_that_share_cores_let_others_run_when_they_wait() {
        let yields = |start: MpiLauncher, given: &[(&str, &str)], crowded: bool| {
            let names = [
                "OMPI_MCA_mpi_yield_when_idle",
                "MPIR_CVAR_POLLS_BEFORE_YIELD",
                "I_MPI_THREAD_YIELD",
            ];
            let set = rank_variables(start, "micro", &names, given, |context| {
                context.crowded = crowded;
            });
            let set = set.iter().map(|(name, value)| format!("{name}={value}"));
            set.collect::<Vec<_>>().join(" ")
        };
        for (start, expected) in [
            (MpiLauncher::OpenMpi, "OMPI_MCA_mpi_yield_when_idle=1"),
            (MpiLauncher::Mpich, "MPIR_CVAR_POLLS_BEFORE_YIELD=1"),
            (MpiLauncher::IntelMpi, "I_MPI_THREAD_YIELD=2"),
            (
                MpiLauncher::Srun,
                "OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_POLLS_BEFORE_YIELD=1 I_MPI_THREAD_YIELD=2",
            ),
        ] {
            assert_eq!(yields(start, &[], true), expected);
            assert_eq!(
                yields(start, &[], false),
                "",
                "whoever has cores waits for nobody"
            );
        }
        assert_eq!(
            yields(
                MpiLauncher::OpenMpi,
                &[("OMPI_MCA_mpi_yield_when_idle", "0")],
                true
            ),
            "",
            "the user's stays"
        );
    }

    #[test]
    fn memory_that_ranks_share_by_ucx_goes_with_the_run() {
        let place = |start: MpiLauncher, given: &[(&str, &str)]| {
            let set = rank_variables(start, "a", &["UCX_POSIX_DIR"], given, |context| {
                context.temporary = Some(Path::new("/dev/shm/titin-0"));
            });
            Some(set.into_iter().next()?.1)
        };
        assert_eq!(
            place(MpiLauncher::Mpich, &[]).as_deref(),
            Some("/dev/shm/titin-0")
        );
        assert_eq!(
            place(MpiLauncher::Srun, &[]),
            None,
            "it may be on other hosts"
        );
        assert_eq!(
            place(MpiLauncher::Mpich, &[("SLURM_JOB_ID", "7")]),
            None,
            "so may these"
        );
        assert_eq!(
            place(MpiLauncher::Mpich, &[("UCX_POSIX_DIR", "/x")]),
            None,
            "the user's stays"
        );
    }

    #[test]
    fn modules_are_loaded_by_a_script_that_works() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("it's a");
        fs::create_dir_all(directory.join("workdir")).unwrap();
        let host = env(&[("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")]);
        let program = PlannedProgram {
            modules: vec!["gcc/13".into()],
            env: vec![
                ("GREETING".into(), "it's".into()),
                ("+GREETING".into(), " on".into()),
            ],
            ..executable(
                "sh",
                &["-c", "echo $$LOADED-$$GREETING-$$1; pwd", "x", "a b"],
            )
        };
        let found = prepared(&program, &host, &directory).unwrap();
        let script = directory.join(SCRIPT);
        fs::write(&script, found.script.unwrap()).unwrap();
        assert_eq!(found.launch.program, Path::new("/bin/bash"));
        let run = |module: &str| {
            let mut command = Command::new("/bin/bash");
            command
                .arg("-c")
                .arg(format!("{module}\n\"$@\""))
                .arg("bash")
                .arg("/bin/bash")
                .args(&found.launch.args);
            command.env_clear().envs(&host).output().unwrap()
        };
        let output = run("module() { [ \"$1\" = load ] && export LOADED=$2; }; export -f module");
        let expected = format!(
            "gcc/13-it's on-a b\n{}\n",
            directory.join("workdir").display()
        );
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            expected,
            "{:?}",
            output.stderr
        );
        let output = run("module() { false; }; export -f module");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("cannot load module gcc/13")
        );
        assert_eq!(output.status.code(), Some(1));
    }
}
