//! `titin view`: the page of a run, in a browser or as a file.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use titin_model::StartPolicy;
use titin_view::{Server, ViewError, ViewedRun};
use tokio::sync::oneshot;

use super::run::SignalsError;
use crate::sources::Sources;
use crate::terminal::{BOLD, FAINT, answer, complain, print, warn};

/// Shows a run in a browser, while it goes on and afterwards
///
/// Prints a link that works once, on this host alone, and serves the page until Ctrl-C. Over ssh the line
/// to type on your own machine is printed too.
#[derive(Args)]
pub(crate) struct View {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Write the page, with all its data, to a file that needs no server; - is standard output
    #[arg(long, value_name = "HTML", conflicts_with = "port")]
    save: Option<PathBuf>,
    /// The port of this host for the page [default: any that is free]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Signals(#[from] SignalsError),
    #[error("cannot write {path}: {why}", path = .path.display())]
    Save { path: PathBuf, why: io::Error },
}

impl View {
    pub(crate) fn run(&self) -> ExitCode {
        match self.work() {
            Ok(code) => code,
            Err(error) => complain(error),
        }
    }

    fn work(&self) -> Result<ExitCode, PageError> {
        let run = self.viewed_run()?;
        match &self.save {
            Some(path) if path.as_os_str() == "-" => Ok(answer(&titin_view::save(&run)?)),
            Some(path) => {
                let page = titin_view::save(&run)?;
                std::fs::write(path, page).map_err(|why| PageError::Save {
                    path: path.clone(),
                    why,
                })?;
                Ok(ExitCode::SUCCESS)
            }
            None => serve(Server::listen(run, self.port)?),
        }
    }

    fn viewed_run(&self) -> Result<ViewedRun, ViewError> {
        // Without the description the page has all but the picture.
        let sources = Sources::of_run(&self.run);
        let is_file = sources.files.iter().all(|file| file.is_file());
        let description = is_file.then(|| sources.load(StartPolicy::ByHand, false).ok());
        let description = description.flatten();
        ViewedRun::open(&self.run, description)
    }
}

/// Prints the link, and serves until the user ends the command.
fn serve(server: Server) -> Result<ExitCode, PageError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(SignalsError::from)?;
    if let Err(code) = print(&format!("{BOLD}{}{BOLD:#}\n", server.link())) {
        return Ok(code);
    }
    warn(&explanation(server.port()));
    let (sender, end) = oneshot::channel::<()>();
    let wait = move || {
        let _ = signals.forever().next();
        drop(sender);
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).map_err(SignalsError::from)?;
    server.serve(async { drop(end.await) })?;
    Ok(ExitCode::SUCCESS)
}

/// What to do with the link.
fn explanation(port: u16) -> String {
    let mut text = format!(
        "{FAINT}The link works once, in a browser on this machine. Ctrl-C ends the page.{FAINT:#}\n"
    );
    if let Some(host) = host_of_ssh() {
        text += &format!(
            "{FAINT}From the machine that you sit at, type this in another terminal first, then open the link there:{FAINT:#}\n\
             ssh -N -L {port}:127.0.0.1:{port} {host}\n"
        );
    }
    text
}

/// This host as the user's machine calls it, with the user's name, if the user has come by ssh.
fn host_of_ssh() -> Option<String> {
    // The addresses and ports of both ends, the client's first.
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let own: IpAddr = connection.split(' ').nth(2)?.parse().ok()?;
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let is_plain = |user: &String| {
        user.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    Some(match user.ok().filter(is_plain) {
        Some(user) => format!("{user}@{own}"),
        None => own.to_string(),
    })
}
