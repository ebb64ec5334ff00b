//! From a program of the description to the command that the guard runs, or the user.
//!
//! A plain program is run as it is. A shell comes in only where the description asks for what only a shell can do: a
//! script, environment modules, or a login environment. It then runs a `run_script.sh` that is kept beside the
//! output, so that one can see, and repeat, what was done.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};

use titin_wire::connection;

use crate::guard::Launch;
use crate::plan::{BaseEnv, InstanceId, MpiStart, Plan, Program, Ranks, What};

/// What a program is started with, beside itself.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// The environment of the manager.
    pub env: &'a BTreeMap<String, String>,
    /// The connection file.
    pub connection: &'a Path,
    /// This same binary, which has titin's own components.
    pub titin: &'a OsStr,
    /// The instance's directory, with its `workdir`.
    pub directory: &'a Path,
    /// The cores that it may count on.
    pub cores: &'a [u32],
    /// Whether it has to share them with another program that computes at the same time.
    pub crowded: bool,
    /// A folder of this host that goes with the run.
    pub passing: Option<&'a Path>,
}

/// The environment of this process, as far as it is text.
pub fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// What the guard is to run, and the text of `run_script.sh` if it needs one.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The command.
    pub launch: Launch,
    /// The script, to be written to the instance's directory.
    pub script: Option<String>,
    /// Whether the command is the user's program itself, with nothing around it.
    pub bare: bool,
}

/// Name of the script in the instance's directory.
pub const SCRIPT: &str = "run_script.sh";

/// Name of the file in a host's directory that says what it runs.
pub const HOSTING: &str = "host.json";

/// Prepares the start of an instance's program.
///
/// # Errors
/// Why it cannot be started, and what to do.
pub fn prepare(
    plan: &Plan,
    id: InstanceId,
    program: &Program,
    around: &Surroundings<'_>,
) -> Result<Prepared, String> {
    let env = Environment::new(program, around)?;
    let mut set = identity(&plan.instances[id].name, program, around);
    let mut unset = vec![connection::SECRET.to_owned()];
    let script_path = around.directory.join(SCRIPT);
    let script_name = script_path.to_string_lossy().into_owned();

    let (command, script) = match &program.what {
        What::Script(text) if text.starts_with("#!") => (vec![script_name], Some(text.clone())),
        What::Script(text) => (vec!["/bin/sh".into(), script_name], Some(text.clone())),
        what => {
            let command = env.command(what, program, around)?;
            if needs_shell(program, around) {
                let mut shell = vec!["/bin/bash".to_owned(), script_name];
                shell.extend(command);
                (shell, Some(env.shell_script(program, around)))
            } else {
                set.extend(
                    env.plain
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone())),
                );
                unset.extend(env.unset.iter().cloned());
                (command, None)
            }
        }
    };
    let clear = script.is_some()
        && program.base == BaseEnv::Login
        && !matches!(program.what, What::Script(_));
    if clear {
        // What a login begins with.
        let kept = ["TERM", "HOME", "SHELL", "USER", "LOGNAME"];
        // A launcher has to find the job that it is in.
        let is_kept = |name: &str| kept.contains(&name) || name.starts_with("SLURM");
        let found = around.env.iter().filter(|(name, _)| is_kept(name));
        set.splice(
            0..0,
            found.map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    let mut command = command.into_iter();
    let launch = Launch {
        program: command.next().unwrap_or_default().into(),
        args: command.collect(),
        clear,
        set,
        unset,
        directory: around.directory.join("workdir"),
        stdout: around.directory.join("stdout.txt"),
        stderr: around.directory.join("stderr.txt"),
    };
    let bare = script.is_none()
        && program.mpi.is_none()
        && matches!(program.what, What::Executable { .. });
    Ok(Prepared {
        launch,
        script,
        bare,
    })
}

/// The Python of hosted functions: that of the active environment, else of the one that the command `titin` belongs to,
/// else any.
pub fn python(active: Option<&Path>, titin: Option<&Path>) -> PathBuf {
    let folders = [
        active.map(|venv| venv.join("bin")),
        titin.and_then(Path::parent).map(Path::to_owned),
    ];
    let found = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.join("python3"))
        .find(|path| path.exists());
    found.unwrap_or_else(|| "python3".into())
}

/// The variables that tell a program who it is and where its run is, and how many threads to use.
fn identity(instance: &str, program: &Program, around: &Surroundings<'_>) -> Vec<(String, String)> {
    let manager = around.connection.to_string_lossy();
    let mut set: Vec<(String, String)> = Vec::new();
    set.extend(connection::MANAGER.map(|name| (name.to_owned(), manager.clone().into_owned())));
    set.extend(connection::INSTANCE.map(|name| (name.to_owned(), instance.to_owned())));
    set.push(("MUSCLE_THREADS".into(), program.threads.to_string()));
    let list: Vec<String> = around.cores.iter().map(ToString::to_string).collect();
    set.push(("MUSCLE_BIND_LIST".into(), list.join(",")));
    if given("OMP_NUM_THREADS", program, around).is_none() {
        set.push(("OMP_NUM_THREADS".into(), program.threads.to_string()));
    }
    if let Some(ranks) = program.mpi {
        set.push(("MUSCLE_MPI_PROCESSES".into(), ranks.processes.to_string()));
        set.extend(launcher_settings(ranks.start, instance, program, around));
    }
    set
}

/// The variables that let several launchers work side by side. The cores are titin's to share out, and instances of which one
/// waits for the other are there at once: a launcher that took the cores for its program alone would wait for ever, and one
/// that bound its ranks would bind those of all programs to the first cores. Where cores are shared by what computes at the same
/// time, ranks that wait have to let others run: each MPI takes the cores to be its own unless it is told.
fn launcher_settings(
    start: MpiStart,
    instance: &str,
    program: &Program,
    around: &Surroundings<'_>,
) -> Vec<(String, String)> {
    let mut set: Vec<(&str, String)> = Vec::new();
    if is_in_slurm(around) {
        // The launchers of the MPIs call `srun`, too.
        set.extend([
            ("SLURM_OVERLAP", "1".into()),
            ("SLURM_CPU_BIND", "none".into()),
        ]);
    }
    if start == MpiStart::IntelMpi {
        set.push(("I_MPI_PIN", "off".into()));
    }
    if around.crowded {
        let all = [
            (MpiStart::OpenMpi, "OMPI_MCA_mpi_yield_when_idle", "1"),
            (MpiStart::Mpich, "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
            (MpiStart::IntelMpi, "I_MPI_THREAD_YIELD", "2"),
        ];
        // What `srun` starts may be linked with any.
        let fits = all
            .iter()
            .filter(|(mpi, ..)| [*mpi, MpiStart::Srun].contains(&start));
        let free = fits.filter(|(_, name, _)| given(name, program, around).is_none());
        set.extend(free.map(|(_, name, value)| (*name, (*value).to_owned())));
    }
    if let Some(run) = around.passing
        && start != MpiStart::Srun
        && !is_in_slurm(around)
        && given("UCX_POSIX_DIR", program, around).is_none()
    {
        // The memory that ranks share by way of UCX stays where one is killed while it begins.
        set.push(("UCX_POSIX_DIR", run.to_string_lossy().into_owned()));
    }
    if let (MpiStart::OpenMpi, Some(run)) = (start, around.passing) {
        // All `mpirun` of a user, or of a Slurm job, share a session folder otherwise, which one may remove as another one begins. The
        // names are those of Open MPI 4, and below of later ones, too.
        const BASE: &str = "OMPI_MCA_orte_tmpdir_base";
        let places = if is_in_slurm(around) {
            // Each host of the job has one, which `mpirun` removes; nobody else would.
            let base = [BASE, "TMPDIR"]
                .into_iter()
                .find_map(|name| given(name, program, around));
            let name = format!(
                "{}-{instance}",
                run.file_name().unwrap_or_default().to_string_lossy()
            );
            vec![(
                "OMPI_MCA_orte_top_session_dir",
                Path::new(base.unwrap_or("/tmp")).join(name),
            )]
        } else {
            // It goes with the run, and so does the memory that ranks share: both stay where one is killed.
            vec![
                (BASE, run.join(instance)),
                ("PRTE_MCA_prte_tmpdir_base", run.join(instance)),
                ("OMPI_MCA_btl_vader_backing_directory", run.to_owned()),
                ("OMPI_MCA_btl_sm_backing_directory", run.to_owned()),
            ]
        };
        let free = places
            .into_iter()
            .filter(|(name, _)| given(name, program, around).is_none());
        set.extend(free.map(|(name, place)| (name, place.to_string_lossy().into_owned())));
    }
    set.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// A variable as the description or the environment has it.
fn given<'a>(name: &str, program: &'a Program, around: &'a Surroundings<'_>) -> Option<&'a str> {
    let own = program
        .env
        .iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value);
    own.or_else(|| around.env.get(name)).map(String::as_str)
}

/// Whether the manager runs in what Slurm has allocated.
fn is_in_slurm(around: &Surroundings<'_>) -> bool {
    around.env.contains_key("SLURM_JOB_ID")
}

/// Modules and logins are matters of a shell.
fn needs_shell(program: &Program, around: &Surroundings<'_>) -> bool {
    let loaded = around
        .env
        .get("LOADEDMODULES")
        .is_some_and(|modules| !modules.is_empty());
    !program.modules.is_empty()
        || program.base == BaseEnv::Login
        || program.base == BaseEnv::Clean && loaded
}

/// The environment of a program, as far as it differs from the manager's.
struct Environment {
    plain: BTreeMap<String, String>,
    unset: Vec<String>,
    venv: Option<PathBuf>,
}

impl Environment {
    fn new(program: &Program, around: &Surroundings<'_>) -> Result<Self, String> {
        let mut env = Environment {
            plain: BTreeMap::new(),
            unset: Vec::new(),
            venv: None,
        };
        let path = |env: &Environment| {
            env.plain
                .get("PATH")
                .or_else(|| around.env.get("PATH"))
                .cloned()
                .unwrap_or_default()
        };
        if let Some(active) = around.env.get("VIRTUAL_ENV")
            && (program.base == BaseEnv::Clean || program.virtual_env.is_some())
        {
            let bin = format!("{active}/bin");
            let rest: Vec<String> = path(&env)
                .split(':')
                .filter(|folder| **folder != bin)
                .map(Into::into)
                .collect();
            env.plain.insert("PATH".into(), rest.join(":"));
            env.unset.push("VIRTUAL_ENV".into());
        }
        if let Some(venv) = &program.virtual_env {
            let venv = place(&expand(&venv.to_string_lossy(), around.env)?, program);
            if !venv.join("bin").is_dir() {
                return Err(format!(
                    "virtual_env {} has no bin folder: is it a Python virtual environment? Relative paths begin in {}",
                    venv.display(),
                    program.folder.display()
                ));
            }
            let path = format!("{}/bin:{}", venv.display(), path(&env));
            env.plain.insert("PATH".into(), path);
            env.plain
                .insert("VIRTUAL_ENV".into(), venv.to_string_lossy().into_owned());
            env.unset.retain(|name| name != "VIRTUAL_ENV");
            env.unset.push("PYTHONHOME".into());
            env.venv = Some(venv);
        }
        for (name, value) in &program.env {
            match name.strip_prefix('+') {
                Some(name) => {
                    let before = env
                        .plain
                        .get(name)
                        .or_else(|| around.env.get(name))
                        .cloned();
                    env.plain
                        .insert(name.to_owned(), before.unwrap_or_default() + value);
                }
                None => {
                    env.plain.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(env)
    }

    /// The command with its arguments, and with what starts its MPI processes.
    fn command(
        &self,
        what: &What,
        program: &Program,
        around: &Surroundings<'_>,
    ) -> Result<Vec<String>, String> {
        let mut command = match program.mpi {
            None => Vec::new(),
            Some(ranks) => self.launcher(ranks, program, around)?,
        };
        match what {
            What::Executable { path, args } => {
                let asked = expand(path, around.env)?;
                // Modules may bring the program; then only the shell can find it.
                let file = match needs_shell(program, around) && !asked.contains('/') {
                    true => asked,
                    false => self.find(&asked, program, around)?,
                };
                command.push(file);
                for arg in args {
                    command.push(expand(arg, around.env)?);
                }
            }
            What::BuiltIn { name, folders } => {
                let titin = around.titin.to_string_lossy().into_owned();
                command.extend([titin, "component".into(), name.clone()]);
                for folder in folders {
                    command.extend(["--folder".into(), folder.to_string_lossy().into_owned()]);
                }
            }
            What::Host(hosting) => {
                let language = if hosting.python { "python" } else { "c" };
                let file = around
                    .directory
                    .join(HOSTING)
                    .to_string_lossy()
                    .into_owned();
                command.extend([
                    around.titin.to_string_lossy().into_owned(),
                    "host".into(),
                    language.into(),
                    file,
                ]);
            }
            What::Script(_) => {}
        }
        if let Some(launcher) = command
            .first()
            .filter(|first| !first.contains('/') && program.mpi.is_some())
            && !needs_shell(program, around)
        {
            command[0] = self.find(&launcher.clone(), program, around)?;
        }
        Ok(command)
    }

    /// The launcher of the ranks, with its options.
    fn launcher(
        &self,
        ranks: Ranks,
        program: &Program,
        around: &Surroundings<'_>,
    ) -> Result<Vec<String>, String> {
        let Ranks {
            start,
            processes,
            nodes,
        } = ranks;
        let first = |names| self.first(names, program, around).to_owned();
        let (launcher, mut options) = match start {
            // Called by its whole path, it would put its own folder before the PATH of the ranks: another Python than that of the PATH.
            MpiStart::OpenMpi => (
                first(&["mpirun.openmpi", "mpirun"]),
                words(
                    &["--oversubscribe", "--noprefix", "--bind-to", "none", "-np"],
                    processes,
                ),
            ),
            MpiStart::Mpich => (
                first(&["mpiexec.mpich", "mpiexec.hydra", "mpiexec"]),
                words(&["-n"], processes),
            ),
            // Its mpirun takes the mpiexec.hydra that comes first in PATH, which may be that of MPICH.
            MpiStart::IntelMpi => {
                let root = self
                    .plain
                    .get("I_MPI_ROOT")
                    .or_else(|| around.env.get("I_MPI_ROOT"));
                let below = |root: &String| {
                    let mut files = ["bin", "intel64/bin"]
                        .map(|folder| format!("{root}/{folder}/mpiexec.hydra"))
                        .into_iter();
                    files.find(|file| is_executable(Path::new(file)).is_ok())
                };
                // Modules may bring another.
                let own = root
                    .filter(|_| !needs_shell(program, around))
                    .and_then(below);
                (own.unwrap_or("mpirun".into()), words(&["-n"], processes))
            }
            MpiStart::Srun if is_in_slurm(around) => (
                "srun".into(),
                [
                    words(
                        &["--kill-on-bad-exit=1", "--cpus-per-task"],
                        program.threads,
                    ),
                    words(&["--ntasks"], processes),
                ]
                .concat(),
            ),
            MpiStart::Srun => {
                return Err(
                    "execution_model srunmpi works inside a Slurm allocation only, and this is none \
                            (SLURM_JOB_ID is not set): use openmpi, mpich or intelmpi here"
                        .into(),
                );
            }
        };
        // Elsewhere the launcher puts them where it does.
        if let Some(nodes) = nodes.filter(|_| is_in_slurm(around)) {
            let each = processes / nodes;
            options.extend(match start {
                MpiStart::OpenMpi => words(&["--map-by"], format!("ppr:{each}:node")),
                MpiStart::Mpich | MpiStart::IntelMpi => words(&["-ppn"], each),
                MpiStart::Srun => [
                    words(&["--nodes"], nodes),
                    words(&["--ntasks-per-node"], each),
                ]
                .concat(),
            });
        }
        Ok(std::iter::once(launcher).chain(options).collect())
    }

    /// The first of these commands that is in PATH, else the last: where several MPIs are installed, Debian's for one, each has
    /// a name of its own beside the usual one.
    fn first<'n>(
        &self,
        names: &[&'n str],
        program: &Program,
        around: &Surroundings<'_>,
    ) -> &'n str {
        let found = names
            .iter()
            .find(|name| self.find(name, program, around).is_ok());
        found.or(names.last()).copied().unwrap_or_default()
    }

    /// The executable file that is meant: beside the description if its name has a slash, else somewhere in `PATH`.
    fn find(
        &self,
        asked: &str,
        program: &Program,
        around: &Surroundings<'_>,
    ) -> Result<String, String> {
        if asked.contains('/') {
            let file = place(asked, program);
            return match is_executable(&file) {
                Ok(()) => Ok(file.to_string_lossy().into_owned()),
                Err(why) => Err(format!(
                    "{} {why}{}",
                    file.display(),
                    self.told(asked, program)
                )),
            };
        }
        let empty = String::new();
        let path = self
            .plain
            .get("PATH")
            .or_else(|| around.env.get("PATH"))
            .unwrap_or(&empty);
        let found = path
            .split(':')
            .map(|folder| Path::new(folder).join(asked))
            .find(|file| is_executable(file).is_ok());
        found
            .map(|file| file.to_string_lossy().into_owned())
            .ok_or_else(|| {
                let beside = program.folder.join(asked);
                let hint = match beside.exists() {
                    true => format!("; there is {}: write ./{asked} for it", beside.display()),
                    false => format!("; PATH is {path}"),
                };
                format!("there is no program {asked} in PATH{hint}")
            })
    }

    fn told(&self, asked: &str, program: &Program) -> String {
        match asked.starts_with('/') {
            true => String::new(),
            false => format!(
                " (relative paths begin at the description, in {})",
                program.folder.display()
            ),
        }
    }

    /// A script that prepares the environment and becomes the command in its arguments.
    fn shell_script(&self, program: &Program, around: &Surroundings<'_>) -> String {
        let mut text = String::from(
            "#!/bin/bash\n# Written by titin: prepares the environment, then runs its arguments.\n",
        );
        if program.base == BaseEnv::Login {
            text.push_str(
                "for file in /etc/environment /etc/profile; do [ -f \"$file\" ] && . \"$file\"; done\n\
                 for file in ~/.bash_profile ~/.bash_login ~/.profile; do\n    \
                 [ -f \"$file\" ] && . \"$file\" && break\ndone\n",
            );
        }
        let modules = !program.modules.is_empty() || program.base == BaseEnv::Clean;
        if modules {
            text.push_str(
                "type module >/dev/null 2>&1 || { [ -f /etc/profile ] && . /etc/profile; }\n\
                 if ! type module >/dev/null 2>&1; then\n    \
                 echo \"titin: the description asks for environment modules, but this host has no 'module' command\" >&2\n    \
                 exit 1\nfi\n",
            );
        }
        if program.base == BaseEnv::Clean {
            text.push_str("module purge\n");
        }
        for module in &program.modules {
            let quoted = quote(module);
            let _ = writeln!(
                text,
                "module load {quoted} || {{ echo titin: cannot load module {quoted} >&2; exit 1; }}"
            );
        }
        match &self.venv {
            Some(venv) => {
                let _ = writeln!(
                    text,
                    ". {}",
                    quote(&venv.join("bin/activate").to_string_lossy())
                );
            }
            None if self.unset.iter().any(|name| name == "VIRTUAL_ENV") => {
                text.push_str(
                    "PATH=$(printf %s \"$PATH\" | sed \"s|$VIRTUAL_ENV/bin:||g\")\nunset VIRTUAL_ENV\n",
                );
            }
            None => {}
        }
        for (name, value) in &program.env {
            let _ = match name.strip_prefix('+') {
                Some(name) => writeln!(text, "export {name}=\"${{{name}}}\"{}", quote(value)),
                None => writeln!(text, "export {name}={}", quote(value)),
            };
        }
        let _ = writeln!(
            text,
            "cd {} || exit 1",
            quote(&around.directory.join("workdir").to_string_lossy())
        );
        text.push_str("exec \"$@\"\n");
        text
    }
}

/// A path of the description, which begins in the folder of the file that has it.
fn place(path: &str, program: &Program) -> PathBuf {
    program.folder.join(path).components().collect()
}

fn is_executable(file: &Path) -> Result<(), &'static str> {
    match std::fs::metadata(file) {
        Err(_) => Err("does not exist"),
        Ok(found) if found.is_dir() => Err("is a folder"),
        Ok(_) => rustix::fs::access(file, rustix::fs::Access::EXEC_OK)
            .map_err(|_| "is not executable (chmod +x)"),
    }
}

/// Puts in environment variables (`$NAME`, `${NAME}`; `$$` is a dollar sign) and a home directory (`~/`).
fn expand(text: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let home = text
        .strip_prefix("~/")
        .and_then(|rest| Some(format!("{}/{rest}", env.get("HOME")?)));
    let text = home.as_deref().unwrap_or(text);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let braced = rest
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            rest.split_at(end)
        });
        if name.is_empty() {
            out.push('$');
            continue;
        }
        let value = env.get(name).ok_or_else(|| {
            format!(
                "{text} names the environment variable {name}, which is not set (write $$ for a dollar sign)"
            )
        })?;
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// A word as a shell reads it back unchanged; in quotes only where it needs them.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Options of a launcher, of which the last one is a number or the like.
fn words(options: &[&str], last: impl Display) -> Vec<String> {
    options
        .iter()
        .map(ToString::to_string)
        .chain([last.to_string()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn around<'a>(env: &'a BTreeMap<String, String>, directory: &'a Path) -> Surroundings<'a> {
        let connection = Path::new("/run/connection.json");
        Surroundings {
            env,
            connection,
            titin: OsStr::new("/bin/titin"),
            directory,
            cores: &[0, 3],
            crowded: false,
            passing: None,
        }
    }

    fn executable(path: &str, args: &[&str]) -> Program {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let what = What::Executable {
            path: path.into(),
            args,
        };
        Program {
            what,
            threads: 2,
            folder: "/".into(),
            ..Program::default()
        }
    }

    fn prepared(
        program: &Program,
        env: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<Prepared, String> {
        let text = "ymmsl_version: v0.2\nmodels: {m: {components: {a: {description: x, implementation: p}}}}\n\
                    programs: {p: {executable: p}}";
        let description = titin_model::load_texts(&[("m", text)], &Default::default()).unwrap();
        let plan = crate::compile::compile(
            &description.network(None).unwrap(),
            &[],
            &Default::default(),
        )
        .unwrap();
        prepare(&plan, InstanceId(0), program, &around(env, directory))
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
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(quote("/opt/titin-0.1/lib"), "/opt/titin-0.1/lib");
        for word in [
            "", "a b", "it's", "$HOME", "a\\b", "*", "~", "micro[3]", "a;b", "ü\n",
        ] {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
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
        let program = |path: &str, folder: &Path| Program {
            folder: folder.into(),
            ..executable(path, &[])
        };
        let error = |path: &str, folder: &Path| {
            prepared(&program(path, folder), &host, Path::new("/r")).unwrap_err()
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("solver"), "").unwrap();
        assert!(error("solver", folder.path()).contains("write ./solver for it"));
        assert!(error("./solver", folder.path()).contains("is not executable (chmod +x)"));
        assert!(
            error("bin/other", folder.path())
                .contains("does not exist (relative paths begin at the description")
        );
        assert!(error("/", folder.path()).contains("is a folder"));
        assert!(error("nothing-like-this", folder.path()).contains("PATH is /bin"));
        assert!(error("$NOT/x", folder.path()).contains("NOT, which is not set"));
        let venv = Program {
            virtual_env: Some("venv".into()),
            ..executable("sh", &[])
        };
        assert!(
            prepared(&venv, &host, Path::new("/r"))
                .unwrap_err()
                .contains("no bin folder")
        );
    }

    #[test]
    fn a_virtual_environment_goes_before_the_rest_and_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("venv/bin")).unwrap();
        let host = env(&[
            ("PATH", "/old/bin:/bin"),
            ("VIRTUAL_ENV", "/old"),
            ("LD", "x"),
        ]);
        let program = Program {
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

        let clean = Program {
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
        let script = |text: &str| Program {
            what: What::Script(text.into()),
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

    fn ranks(start: MpiStart) -> Option<Ranks> {
        Some(Ranks {
            start,
            processes: 4,
            nodes: Some(2),
        })
    }

    #[test]
    fn mpi_programs_are_started_by_their_launcher() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mpirun", "mpiexec", "srun"] {
            std::fs::copy("/bin/true", folder.path().join(name)).unwrap();
        }
        let path = folder.path().to_string_lossy();
        let launched = |start: MpiStart, more: &[(&str, &str)]| {
            let host = env(&[&[("PATH", &*path)], more].concat());
            let program = Program {
                mpi: ranks(start),
                ..executable("/bin/sh", &["-x"])
            };
            prepared(&program, &host, Path::new("/r")).map(|prepared| prepared.launch)
        };
        let command =
            |launch: &Launch| format!("{} {}", launch.program.display(), launch.args.join(" "));
        let beside = |words: &str| format!("{}/{words} /bin/sh -x", folder.path().display());

        let one_host = launched(MpiStart::OpenMpi, &[]).unwrap();
        assert_eq!(
            command(&one_host),
            beside("mpirun --oversubscribe --noprefix --bind-to none -np 4")
        );
        assert_eq!(variable(&one_host, "MUSCLE_MPI_PROCESSES"), Some("4"));
        assert_eq!(variable(&one_host, "SLURM_OVERLAP"), None);
        assert_eq!(
            command(&launched(MpiStart::IntelMpi, &[]).unwrap()),
            beside("mpirun -n 4")
        );
        assert!(launched(MpiStart::Srun, &[]).unwrap_err().contains("Slurm"));
        let root = folder.path().join("intel");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::copy("/bin/true", root.join("bin/mpiexec.hydra")).unwrap();
        let intel = launched(
            MpiStart::IntelMpi,
            &[("I_MPI_ROOT", &root.to_string_lossy())],
        )
        .unwrap();
        assert_eq!(intel.program, root.join("bin/mpiexec.hydra"));
        assert_eq!(variable(&intel, "I_MPI_PIN"), Some("off"));

        for (start, words) in [
            (
                MpiStart::OpenMpi,
                "mpirun --oversubscribe --noprefix --bind-to none -np 4 --map-by ppr:2:node",
            ),
            (MpiStart::Mpich, "mpiexec -n 4 -ppn 2"),
            (
                MpiStart::Srun,
                "srun --kill-on-bad-exit=1 --cpus-per-task 2 --ntasks 4 --nodes 2 --ntasks-per-node 2",
            ),
        ] {
            let launch = launched(start, &[("SLURM_JOB_ID", "7")]).unwrap();
            assert_eq!(command(&launch), beside(words));
            assert_eq!(variable(&launch, "SLURM_OVERLAP"), Some("1"));
        }
    }

    #[test]
    fn each_mpirun_has_a_folder_of_its_own_unless_the_user_says_where() {
        let place = |given: &[(&str, &str)], passing: Option<&str>| {
            let program = Program {
                mpi: ranks(MpiStart::OpenMpi),
                ..executable("sh", &[])
            };
            let env = env(given);
            let around = Surroundings {
                passing: passing.map(Path::new),
                ..around(&env, Path::new("/run"))
            };
            let set = identity("micro[3]", &program, &around);
            let names = ["OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_orte_top_session_dir"];
            let mut found = set.into_iter().filter(|(name, _)| names.contains(&&**name));
            found
                .next()
                .map(|(name, value)| format!("{}: {value}", &name["OMPI_MCA_orte_".len()..]))
        };
        let (passing, slurm) = (Some("/dev/shm/titin-0"), ("SLURM_JOB_ID", "7"));
        let own_base = ("OMPI_MCA_orte_tmpdir_base", "/scratch");
        for (given, passing, expected) in [
            (&[][..], None, None),
            (&[], passing, Some("tmpdir_base: /dev/shm/titin-0/micro[3]")),
            (&[own_base], passing, None),
            (
                &[slurm],
                passing,
                Some("top_session_dir: /tmp/titin-0-micro[3]"),
            ),
            (
                &[slurm, ("TMPDIR", "/local")],
                passing,
                Some("top_session_dir: /local/titin-0-micro[3]"),
            ),
            (
                &[slurm, own_base],
                passing,
                Some("top_session_dir: /scratch/titin-0-micro[3]"),
            ),
        ] {
            assert_eq!(place(given, passing).as_deref(), expected);
        }
    }

    #[test]
    fn ranks_that_share_cores_let_others_run_when_they_wait() {
        let yields = |start: MpiStart, given: &[(&str, &str)], crowded: bool| {
            let program = Program {
                mpi: ranks(start),
                ..executable("sh", &[])
            };
            let env = env(given);
            let around = Surroundings {
                crowded,
                ..around(&env, Path::new("/run"))
            };
            let set = identity("micro", &program, &around);
            let names = [
                "OMPI_MCA_mpi_yield_when_idle",
                "MPIR_CVAR_POLLS_BEFORE_YIELD",
                "I_MPI_THREAD_YIELD",
            ];
            let found = set.into_iter().filter(|(name, _)| names.contains(&&**name));
            found
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (start, expected) in [
            (MpiStart::OpenMpi, "OMPI_MCA_mpi_yield_when_idle=1"),
            (MpiStart::Mpich, "MPIR_CVAR_POLLS_BEFORE_YIELD=1"),
            (MpiStart::IntelMpi, "I_MPI_THREAD_YIELD=2"),
            (
                MpiStart::Srun,
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
                MpiStart::OpenMpi,
                &[("OMPI_MCA_mpi_yield_when_idle", "0")],
                true
            ),
            "",
            "the user's stays"
        );
    }

    #[test]
    fn memory_that_ranks_share_by_ucx_goes_with_the_run() {
        let place = |start: MpiStart, given: &[(&str, &str)]| {
            let program = Program {
                mpi: ranks(start),
                ..executable("sh", &[])
            };
            let env = env(given);
            let passing = Some(Path::new("/dev/shm/titin-0"));
            let set = identity(
                "a",
                &program,
                &Surroundings {
                    passing,
                    ..around(&env, Path::new("/run"))
                },
            );
            set.into_iter()
                .find(|(name, _)| name == "UCX_POSIX_DIR")
                .map(|(_, value)| value)
        };
        assert_eq!(
            place(MpiStart::Mpich, &[]).as_deref(),
            Some("/dev/shm/titin-0")
        );
        assert_eq!(place(MpiStart::Srun, &[]), None, "it may be on other hosts");
        assert_eq!(
            place(MpiStart::Mpich, &[("SLURM_JOB_ID", "7")]),
            None,
            "so may these"
        );
        assert_eq!(
            place(MpiStart::Mpich, &[("UCX_POSIX_DIR", "/x")]),
            None,
            "the user's stays"
        );
    }

    #[test]
    fn modules_are_loaded_by_a_script_that_works() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("it's a");
        std::fs::create_dir_all(directory.join("workdir")).unwrap();
        let host = env(&[("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")]);
        let program = Program {
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
        std::fs::write(&script, found.script.unwrap()).unwrap();
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
