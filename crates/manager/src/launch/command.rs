//! The command of a program: the words, and the file to run.

use std::path::{Path, PathBuf};

use super::HOSTING;
use super::context::{LaunchContext, beside_description};
use super::environment::{ProgramEnvironment, expand};
use super::error::LaunchError;
use crate::plan::{PlannedCommand, PlannedProgram};

/// A program, with the context and the environment of the start.
pub(super) struct Invocation<'a> {
    pub(super) program: &'a PlannedProgram,
    pub(super) context: &'a LaunchContext<'a>,
    pub(super) env: ProgramEnvironment,
}

impl<'a> Invocation<'a> {
    pub(super) fn new(
        program: &'a PlannedProgram,
        context: &'a LaunchContext<'a>,
    ) -> Result<Self, LaunchError> {
        Ok(Invocation {
            program,
            context,
            env: ProgramEnvironment::new(program, context)?,
        })
    }

    pub(super) fn needs_shell(&self) -> bool {
        self.context.needs_shell(self.program)
    }

    /// The command with arguments, behind the launcher of MPI processes if the program has a
    /// launcher.
    pub(super) fn command(&self) -> Result<Vec<String>, LaunchError> {
        let own = self.own_command()?;
        let mut command = match self.program.mpi {
            None => own,
            Some(mpi) => self.launched(mpi, &own)?,
        };
        let is_launcher_by_name =
            |first: &&String| self.program.mpi.is_some() && !first.contains('/');
        if let Some(launcher) = command.first().filter(is_launcher_by_name)
            && !self.needs_shell()
        {
            command[0] = self.find(launcher)?;
        }
        Ok(command)
    }

    /// The command without a launcher.
    fn own_command(&self) -> Result<Vec<String>, LaunchError> {
        match &self.program.command {
            PlannedCommand::Executable { path, args } => self.executable(path, args),
            PlannedCommand::BuiltIn { name, folders } => Ok(self.built_in(name, folders)),
            PlannedCommand::Host(hosting) => {
                let language = if hosting.python { "python" } else { "c" };
                let file = self.context.directory.join(HOSTING);
                let file = file.to_string_lossy().into_owned();
                Ok(vec![self.titin(), "host".into(), language.into(), file])
            }
            PlannedCommand::Script(_) => Ok(Vec::new()),
        }
    }

    /// The command that runs a component of titin's.
    fn built_in(&self, name: &str, folders: &[PathBuf]) -> Vec<String> {
        let mut command = vec![self.titin(), "component".into(), name.to_owned()];
        for folder in folders {
            command.push("--folder".into());
            command.push(folder.to_string_lossy().into_owned());
        }
        command
    }

    fn titin(&self) -> String {
        self.context.titin.to_string_lossy().into_owned()
    }

    fn executable(&self, path: &str, args: &[String]) -> Result<Vec<String>, LaunchError> {
        let path = expand(path, self.context.env)?;
        // If modules bring the program, only the shell can find the program.
        let file = match self.needs_shell() && !path.contains('/') {
            true => path,
            false => self.find(&path)?,
        };
        let mut command = vec![file];
        for arg in args {
            command.push(expand(arg, self.context.env)?);
        }
        Ok(command)
    }

    /// The first command with a file in `PATH`, or else the last command. Where several MPIs are
    /// installed, as on Debian, each launcher has a special name beside the usual name.
    pub(super) fn first_in_path<'n>(&self, names: &[&'n str]) -> &'n str {
        let first = names.iter().find(|name| self.find(name).is_ok());
        first.or(names.last()).copied().unwrap_or_default()
    }

    /// The executable file with a name: beside the description if the name has a slash, otherwise
    /// in a folder of `PATH`.
    fn find(&self, name: &str) -> Result<String, LaunchError> {
        match name.contains('/') {
            true => self.find_beside_description(name),
            false => self.find_in_path(name),
        }
    }

    fn find_beside_description(&self, name: &str) -> Result<String, LaunchError> {
        let file = beside_description(name, self.program);
        match is_executable(&file) {
            Ok(()) => Ok(file.to_string_lossy().into_owned()),
            Err(why) => Err(LaunchError::NotExecutable {
                file,
                why,
                description: (!name.starts_with('/')).then(|| self.program.folder.clone()),
            }),
        }
    }

    fn find_in_path(&self, name: &str) -> Result<String, LaunchError> {
        let path = self.env.get("PATH", self.context).unwrap_or_default();
        let mut files = path.split(':').map(|folder| Path::new(folder).join(name));
        if let Some(file) = files.find(|file| is_executable(file).is_ok()) {
            return Ok(file.to_string_lossy().into_owned());
        }
        let beside = self.program.folder.join(name);
        Err(LaunchError::NotInPath {
            name: name.to_owned(),
            path: path.to_owned(),
            beside: beside.exists().then_some(beside),
        })
    }
}

/// Checks that a file can be run. The error says why not, in words.
pub(super) fn is_executable(file: &Path) -> Result<(), &'static str> {
    match std::fs::metadata(file) {
        Err(_) => Err("does not exist"),
        Ok(metadata) if metadata.is_dir() => Err("is a folder"),
        Ok(_) => rustix::fs::access(file, rustix::fs::Access::EXEC_OK)
            .map_err(|_| "is not executable (chmod +x)"),
    }
}
