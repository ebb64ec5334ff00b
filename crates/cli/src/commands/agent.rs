//! `titin agent`: starts, watches and ends the programs of a run on another host.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use titin_manager::agent::{AgentError, AgentInput, AgentSetup, InputError, serve};

use super::submit::JobOptions;
use crate::terminal::{complain, harmless, warn};

/// Starts, watches and ends programs of a run on this host, for a manager on another host
///
/// A run starts its agents by itself, and gives each agent the address and the secret of the manager by
/// standard input. For an agent that is started by hand the run prints the command, with a token that
/// serves once.
#[derive(Args)]
pub(crate) struct AgentCommand {
    /// The name of this host under `titin: hosts`. By default that of the token, or else Slurm's name of
    /// this node, or else the system name
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Read a token from standard input, which the run has printed for this host, or has given to the
    /// command that submits the job of this agent
    #[arg(long, conflicts_with = "connection")]
    token: bool,
    /// The file connection.json in the run directory, instead of standard input, on a host that has the
    /// directory
    connection: Option<PathBuf>,
    #[command(flatten)]
    job: JobOptions,
}

/// Why an agent has not served to the end.
#[derive(Debug, thiserror::Error)]
enum AgentFailure {
    #[error("cannot find this command's own file: {0}")]
    OwnFile(io::Error),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl AgentCommand {
    pub(crate) fn run(self) -> ExitCode {
        if let Some(system) = self.job.system() {
            return match self.host.as_deref().filter(|_| self.token) {
                Some(host) => self.job.run_agent(system, host),
                None => complain(
                    "--submit needs --host NAME, and --token with a token on standard input",
                ),
            };
        }
        match self.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => complain(failure),
        }
    }

    fn serve(self) -> Result<(), AgentFailure> {
        let in_slurm = || std::env::var("SLURMD_NODENAME").ok();
        let (input, host) = match &self.connection {
            Some(file) => (AgentInput::of_file(file)?, self.host.or_else(in_slurm)),
            None if self.token => {
                let (input, host) = AgentInput::of_token(io::stdin().lock(), self.host)?;
                (input, Some(host))
            }
            None => {
                let input = AgentInput::of_stream(io::stdin().lock())?;
                (input, self.host.or_else(in_slurm))
            }
        };
        let titin = std::env::current_exe().map_err(AgentFailure::OwnFile)?;
        let tell = |text: &str| warn(&format!("{}\n", harmless(text)));
        Ok(serve(AgentSetup {
            input,
            host,
            titin,
            tell,
        })?)
    }
}
