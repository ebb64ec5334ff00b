//! The connections of the process, by the numbers of their channels and paths.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use titin_path::Path;
use titin_runtime::Result;

use crate::error::usage;
use crate::mpwide::connection::{Connection, Route};

static TABLE: Mutex<Table> = Mutex::new(Table {
    connections: BTreeMap::new(),
    paths: BTreeMap::new(),
    pacing: None,
});

/// The table. No call holds it while it waits.
pub(super) fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table, unless another thread has it.
pub(super) fn free_table() -> Option<MutexGuard<'static, Table>> {
    TABLE.try_lock().ok()
}

pub(super) struct Table {
    /// The connections, by their first channels. A path has as many channels as streams.
    pub(super) connections: BTreeMap<c_int, Connection>,
    /// The first channels of paths, by the numbers of the paths.
    paths: BTreeMap<c_int, c_int>,
    /// The most bytes per second for each stream.
    pub(super) pacing: Option<f64>,
}

/// An open connection, for a call.
#[derive(Clone)]
pub(super) struct Carrier {
    pub(super) path: Arc<Path>,
    /// The connection, as errors name it.
    pub(super) label: String,
}

impl Table {
    /// The number of the next channel. The numbers of connections that are gone are used again, once all later ones are gone.
    pub(super) fn channels(&self) -> c_int {
        let last = self.connections.last_key_value();
        last.map_or(0, |(first, connection)| {
            first + connection.route.streams as c_int
        })
    }

    /// Adds a channel of `MPW_Init`. Returns its number.
    pub(super) fn add_channel(&mut self, route: Route) -> c_int {
        let first = self.channels();
        self.connections.insert(first, Connection::new(route, None));
        first
    }

    /// Adds a path. Returns its number and its first channel.
    pub(super) fn add_path(&mut self, route: Route) -> (c_int, c_int) {
        let first = self.channels();
        let number = self.paths.last_key_value().map_or(0, |(last, _)| last + 1);
        self.connections
            .insert(first, Connection::new(route, Some(number)));
        self.paths.insert(number, first);
        (number, first)
    }

    /// Removes a connection, by its first channel.
    pub(super) fn remove(&mut self, first: c_int) -> Option<Connection> {
        let connection = self.connections.remove(&first)?;
        if let Some(number) = connection.path_number {
            self.paths.remove(&number);
        }
        Some(connection)
    }

    /// Removes all connections that are not open.
    pub(super) fn remove_closed(&mut self) {
        self.connections
            .retain(|_, connection| connection.path.is_some());
        let Table {
            connections, paths, ..
        } = self;
        paths.retain(|_, first| connections.contains_key(first));
    }

    /// The first channel of a path.
    pub(super) fn first_of_path(&self, number: c_int) -> Result<c_int> {
        let first = self.paths.get(&number).copied();
        first.ok_or_else(|| {
            usage(format!(
                "there is no path {number}: give a number that MPW_CreatePath has returned"
            ))
        })
    }

    /// The first channel of the connection with this channel.
    pub(super) fn first_of_channel(&self, channel: c_int) -> Result<c_int> {
        let before = self.connections.range(..=channel).next_back();
        let found = before
            .filter(|(first, connection)| channel - **first < connection.route.streams as c_int);
        found.map(|(first, _)| *first).ok_or_else(|| {
            usage(match self.channels() {
                0 => {
                    format!("there is no channel {channel}: MPW_Init and MPW_CreatePath make some")
                }
                count => format!(
                    "there is no channel {channel}: the last one is {}",
                    count - 1
                ),
            })
        })
    }

    /// The connections of a list of channels, by their first channels: one path, or channels of `MPW_Init`.
    pub(super) fn firsts(&self, channels: &[c_int]) -> Result<Vec<c_int>> {
        let Some(&channel) = channels.first() else {
            return Err(usage("the list of channels is empty"));
        };
        let first = self.first_of_channel(channel)?;
        if self.connections[&first].path_number.is_some() {
            self.check_whole_path(first, channels)?;
            return Ok(vec![first]);
        }
        let mut known = BTreeSet::new();
        for &channel in channels {
            let first = self.first_of_channel(channel)?;
            if self.connections[&first].path_number.is_some() {
                self.check_whole_path(first, channels)?;
            }
            if !known.insert(channel) {
                return Err(usage(format!("channel {channel} is in the list twice")));
            }
        }
        Ok(channels.to_vec())
    }

    /// Fails unless a list has all channels of a path, in their order, and no others.
    fn check_whole_path(&self, first: c_int, channels: &[c_int]) -> Result<()> {
        let connection = &self.connections[&first];
        let end = first + connection.route.streams as c_int;
        if channels.iter().copied().eq(first..end) {
            return Ok(());
        }
        let (label, last) = (connection.label(first), end - 1);
        Err(usage(match last - first {
            0 => format!("channel {first} is that of {label}: give it alone, or give the path"),
            _ => format!(
                "a list of channels has some of {label}: give all of them in their order, {first} to {last}, and no others; or give the path"
            ),
        }))
    }

    /// An open connection, by its first channel.
    pub(super) fn carrier(&self, first: c_int) -> Result<Carrier> {
        let connection = &self.connections[&first];
        let label = connection.label(first);
        match &connection.path {
            Some(path) => Ok(Carrier {
                path: path.clone(),
                label,
            }),
            None => Err(usage(format!(
                "{label} is not open: call {}",
                connection.opener()
            ))),
        }
    }

    /// The open connections of a list of channels.
    pub(super) fn carriers(&self, channels: &[c_int]) -> Result<Vec<Carrier>> {
        let firsts = self.firsts(channels)?;
        firsts
            .into_iter()
            .map(|first| self.carrier(first))
            .collect()
    }

    /// The open connection of a path.
    pub(super) fn carrier_of_path(&self, number: c_int) -> Result<Carrier> {
        self.carrier(self.first_of_path(number)?)
    }

    /// One line for each connection.
    pub(super) fn description(&self) -> String {
        let line = |(first, connection): (&c_int, &Connection)| {
            let state = match connection.path {
                Some(_) => "open",
                None => "closed",
            };
            let label = connection.label(*first);
            match (connection.path_number, connection.route.streams as c_int) {
                (None, _) => format!("{label}: {state}\n"),
                (_, 1) => format!("{label}: {state}, channel {first}\n"),
                (_, streams) => format!(
                    "{label}: {state}, {streams} streams, channels {first} to {}\n",
                    first + streams - 1
                ),
            }
        };
        self.connections.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Channels 0 and 1, path 0 with the channels 2 to 4, channel 5, path 1 with channel 6.
    fn filled() -> Table {
        let mut table = Table {
            connections: BTreeMap::new(),
            paths: BTreeMap::new(),
            pacing: None,
        };
        let channel = |port| Route::of_channel("host", port).unwrap();
        let path = |streams| Route::of_path("host", 7000, streams).unwrap();
        assert_eq!(table.add_channel(channel(6000)), 0);
        assert_eq!(table.add_channel(channel(6001)), 1);
        assert_eq!(table.add_path(path(3)), (0, 2));
        assert_eq!(table.add_channel(channel(6002)), 5);
        assert_eq!(table.add_path(path(1)), (1, 6));
        table
    }

    #[test]
    fn a_list_is_a_whole_path_or_channels_of_their_own() {
        let table = filled();
        assert_eq!(table.firsts(&[2, 3, 4]).unwrap(), [2]);
        assert_eq!(table.firsts(&[5, 0]).unwrap(), [5, 0]);
        assert_eq!(table.firsts(&[6]).unwrap(), [6]);
        let refused = |channels: &[c_int]| table.firsts(channels).unwrap_err().text;
        for some in [&[2][..], &[2, 3], &[4, 3, 2], &[2, 3, 4, 5], &[1, 2, 3, 4]] {
            let why = refused(some);
            assert!(why.contains("in their order, 2 to 4"), "{some:?}: {why}");
        }
        assert!(refused(&[0, 6]).contains("channel 6 is that of path 1"));
        assert!(refused(&[0, 1, 0]).contains("channel 0 is in the list twice"));
        assert!(refused(&[]).contains("empty"));
        assert!(refused(&[0, 7]).contains("no channel 7: the last one is 6"));
        assert!(refused(&[-1]).contains("no channel -1"));
    }

    #[test]
    fn numbers_are_used_again_once_later_ones_are_gone() {
        let mut table = filled();
        table.remove(2);
        assert!(table.first_of_path(0).is_err() && table.first_of_channel(3).is_err());
        assert_eq!(table.channels(), 7);
        table.remove(6);
        assert_eq!(table.channels(), 6);
        let path = Route::of_path("host", 7000, 2).unwrap();
        assert_eq!(table.add_path(path), (0, 6));
        assert_eq!(table.first_of_channel(7).unwrap(), 6);
        assert_eq!(table.first_of_path(0).unwrap(), 6);
    }

    #[test]
    fn a_closed_connection_names_the_call_that_opens_it() {
        let table = filled();
        let why = |channel| table.carriers(&[channel]).err().unwrap().text;
        assert_eq!(
            why(0),
            "channel 0 (host:6000) is not open: call MPW_ReOpenChannels"
        );
        assert_eq!(
            why(6),
            "path 1 (host:7000) is not open: call MPW_ConnectPath"
        );
        let lines = table.description();
        assert!(lines.contains("path 0 (host:7000): closed, 3 streams, channels 2 to 4\n"));
        assert_eq!(lines.lines().count(), 5);
    }
}
