//! `titin forward`: passes the connections of paths on.

use std::process::ExitCode;

use clap::Args;

use super::relay::become_relayd;

/// Passes the connections of paths on to another host, for a host in the middle of a line
///
/// Programs open their paths to FROM, and reach the program that listens at TO. This host needs no key, and cannot read
/// what passes of sessions (of `tcp:` paths it could). Each half of the line recovers from its own losses, in its own
/// round trip. Several such hosts may follow each other. Ctrl-C, or SIGTERM, ends it; sessions go on if it is there
/// again within 3 s, or at another of their addresses.
#[derive(Args)]
pub(crate) struct Forward {
    /// Where to listen; 0.0.0.0 as the host is for all networks of this host
    #[arg(value_name = "FROM")]
    from: String,
    /// The address of the program that listens, or of the next host in the middle
    #[arg(value_name = "TO")]
    to: String,
}

impl Forward {
    pub(crate) fn run(&self) -> ExitCode {
        become_relayd(["forward", &self.from, &self.to])
    }
}
