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
//!
//! The same program passes the connections of paths on, without keys ([`forward`]).

#![forbid(unsafe_code)]

mod admission;
mod circuits;
mod daemon;
mod forward;
mod log_limit;
mod messages;
mod peers;
mod refused_runs;
mod server;
mod status;
mod strangers;
mod tls;

use std::ffi::OsString;
use std::process::ExitCode;

use titin_relay::RelayFolder;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let served = match &arguments[..] {
        [folder] => server::serve(&RelayFolder::at(folder)).map_err(|error| error.to_string()),
        [word, from, to] if word == "forward" => {
            let served = forward::serve(&from.to_string_lossy(), &to.to_string_lossy());
            served.map_err(|error| error.to_string())
        }
        _ => {
            eprintln!(
                "titin-relayd: give the folder of the relay, or `forward FROM TO`; `titin relay run` and `titin forward` do"
            );
            return ExitCode::from(2);
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
