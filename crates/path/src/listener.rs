//! Where other programs open paths to this one.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::{Address, Secret};

use crate::address::place_of;
use crate::context::Context;
use crate::error::{PathError, Result};
use crate::interrupt::Interrupt;
use crate::path::Path;

/// A port where other programs with the key open any number of paths, of any number of streams each. A dropped listener
/// ends the paths that were not accepted; accepted paths live on. The port is free once paths from other hosts, which
/// come back by it after a cut, are closed too.
pub struct Listener {
    context: Arc<Context>,
    address: Address,
}

impl Listener {
    /// Listens at `HOST:PORT`. For port 0 the system chooses a port. The host `0.0.0.0` or `::` stands for all
    /// networks of the host.
    ///
    /// # Errors
    /// [`PathError::System`] if the place is not known, or is in use.
    pub fn start(place: &str, key: &Secret) -> Result<Self> {
        Self::start_with(place, key, Interrupt::default())
    }

    /// As [`Listener::start`]. The interrupt ends waiting calls on the listener and on accepted paths.
    ///
    /// # Errors
    /// As [`Listener::start`].
    pub fn start_with(place: &str, key: &Secret, interrupt: Interrupt) -> Result<Self> {
        let no_place = |why: &dyn std::fmt::Display| {
            PathError::System(format!("cannot listen at {place}: {why}"))
        };
        let found = place.to_socket_addrs().map_err(|error| no_place(&error))?;
        let mut refusal = None;
        for address in found {
            match Context::to_listen(address, key, &interrupt) {
                Ok((context, address)) => return Ok(Listener { context, address }),
                Err(why) => refusal = Some(why),
            }
        }
        Err(refusal.unwrap_or_else(|| no_place(&"the host has no address")))
    }

    /// The address at which the listener was started, with the port.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// As [`Listener::address`], as users write it: `HOST:PORT`.
    pub fn place(&self) -> String {
        place_of(&self.address)
    }

    /// The next path that another program has opened. Waits for at most `limit`. Several threads may call.
    ///
    /// # Errors
    /// [`PathError::Late`] after `limit`.
    pub fn accept(&self, limit: Option<Duration>) -> Result<Path> {
        let end = self.context.accept(limit)?;
        Ok(Path::new(end, self.context.clone()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.context.stop_listening();
    }
}
