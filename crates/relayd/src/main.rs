//! The relay of a site: a daemon without privileges that passes the bytes of admitted runs between
//! the processes of its site and the relays of other sites.
//!
//! A process of a run asks the relay of its site for a **circuit** to a listener at another site
//! ([`titin_wire::circuit`]). The relays connect the two, hop by hop, and pass the bytes on as they
//! are. They do not look inside, and keep nothing that the two ends could not send again: the ends
//! have sessions ([`titin_wire::session`]). So a relay may be stopped and started at any time.
//!
//! Between relays there is TLS 1.3, and both prove themselves by pinned keys. A relay serves the
//! runs that a manager has had it admit with the relay's own key, and the runs of the relays that
//! it trusts.

#![forbid(unsafe_code)]

mod admission;
mod circuits;
mod log_limit;
mod messages;
mod peers;
mod refused_runs;
mod server;
mod status;
mod strangers;
mod tls;

use std::process::ExitCode;

use titin_relay::RelayFolder;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("titin-relayd: give the folder of the relay; `titin relay run` does");
        return ExitCode::from(2);
    };
    match server::serve(&RelayFolder::at(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
