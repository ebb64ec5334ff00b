//! A connection to another program: a channel of `MPW_Init`, or a path.

use std::ffi::c_int;
use std::sync::Arc;

use titin_path::{MOST_STREAMS, Path, PathSettings};
use titin_runtime::Result;

use crate::error::usage;

/// Where a connection goes, and by what streams.
#[derive(Clone)]
pub(super) struct Route {
    /// The other host. `None`: this end only listens.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    pub(super) streams: u32,
    /// The name of titin's path.
    pub(super) name: String,
}

impl Route {
    /// The route of a channel of `MPW_Init`.
    pub(super) fn of_channel(host: &str, port: c_int) -> Result<Self> {
        let port = checked_port(port)?;
        Ok(Route {
            host: other_host(host),
            port,
            streams: 1,
            name: port.to_string(),
        })
    }

    /// The route of a path.
    pub(super) fn of_path(host: &str, port: c_int, streams: c_int) -> Result<Self> {
        let port = checked_port(port)?;
        let in_range = |streams: &u32| (1..=MOST_STREAMS as u32).contains(streams);
        let streams = u32::try_from(streams)
            .ok()
            .filter(in_range)
            .ok_or_else(|| {
                usage(format!(
                    "{streams} streams: give 1 to {MOST_STREAMS} streams"
                ))
            })?;
        Ok(Route {
            host: other_host(host),
            port,
            streams,
            name: format!("{port}+{streams}"),
        })
    }

    /// The place, as users write it.
    pub(super) fn place(&self) -> String {
        match &self.host {
            Some(host) if host.contains(':') => format!("[{host}]:{}", self.port),
            Some(host) => format!("{host}:{}", self.port),
            None => format!("port {}", self.port),
        }
    }
}

/// The number of streams in the name of a path; `None` for a name that no program of MPWide gives.
pub(super) fn streams_in(name: &str) -> Option<u32> {
    let (port, streams) = name.split_once('+').unwrap_or((name, "1"));
    port.parse::<u16>().ok()?;
    streams.parse().ok()
}

fn checked_port(port: c_int) -> Result<u16> {
    let valid = u16::try_from(port).ok().filter(|port| *port > 0);
    valid.ok_or_else(|| usage(format!("there is no port {port}: give one of 1 to 65535")))
}

fn other_host(host: &str) -> Option<String> {
    let nobody = ["", "0", "0.0.0.0", "::"];
    (!nobody.contains(&host)).then(|| host.to_owned())
}

/// A connection.
pub(super) struct Connection {
    pub(super) route: Route,
    /// The number of the path; `None` for a channel of `MPW_Init`.
    pub(super) path_number: Option<c_int>,
    /// The size of the buffers of each socket in the operating system, once the connection is opened.
    pub(super) buffers: Option<u64>,
    /// The path of titin while the connection is open.
    pub(super) path: Option<Arc<Path>>,
}

impl Connection {
    pub(super) fn new(route: Route, path_number: Option<c_int>) -> Self {
        Connection {
            route,
            path_number,
            buffers: None,
            path: None,
        }
    }

    /// The settings with which this end opens the path of titin.
    pub(super) fn settings(&self, pacing: Option<f64>) -> PathSettings {
        let streams = self.route.streams;
        PathSettings {
            streams: Some(streams),
            pacing: pacing.map(|rate| ((rate * f64::from(streams)) as u64).max(1)),
            send_buffer: self.buffers,
            receive_buffer: self.buffers,
            ..PathSettings::default()
        }
    }

    /// The connection, as errors name it. `first` is its first channel.
    pub(super) fn label(&self, first: c_int) -> String {
        let place = self.route.place();
        match self.path_number {
            Some(number) => format!("path {number} ({place})"),
            None => format!("channel {first} ({place})"),
        }
    }

    /// How a program opens the connection.
    pub(super) fn opener(&self) -> &'static str {
        match self.path_number {
            Some(_) => "MPW_ConnectPath",
            None => "MPW_ReOpenChannels",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_streams() {
        let path = Route::of_path("host", 16256, 3).unwrap();
        assert_eq!(path.name, "16256+3");
        assert_eq!(streams_in(&path.name), Some(3));
        let channel = Route::of_channel("host", 6000).unwrap();
        assert_eq!(
            (channel.name.as_str(), streams_in(&channel.name)),
            ("6000", Some(1))
        );
        for stranger in ["", "mesh", "mesh+3", "6000+", "70000"] {
            assert_eq!(streams_in(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn wrong_ports_and_streams_are_refused() {
        for (port, streams) in [(0, 1), (65536, 1), (-1, 1), (6000, 0), (6000, 257)] {
            assert!(Route::of_path("host", port, streams).is_err());
        }
        assert!(Route::of_path("host", 65535, 256).is_ok());
    }

    #[test]
    fn pacing_is_for_each_stream() {
        let route = Route::of_path("0", 6000, 4).unwrap();
        assert_eq!(route.host, None);
        let connection = Connection::new(route, Some(0));
        assert_eq!(connection.settings(Some(1e6)).pacing, Some(4_000_000));
        assert_eq!(connection.settings(None).pacing, None);
    }
}
