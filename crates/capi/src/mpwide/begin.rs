//! Making connections, opening them, and opening them again.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use titin_path::{KEY_VARIABLE, Key, Path, usual_key};
use titin_runtime::Result;

use crate::error::usage;
use crate::mpwide::calls::channel_list;
use crate::mpwide::connection::Route;
use crate::mpwide::meeting::{Meeting, MeetingGroup};
use crate::mpwide::table::table;
use crate::mpwide::{end, ending, number};
use crate::path::translated;
use crate::{fork, input};

/// Opens connections, all at once, by their first channels.
fn open(call: &'static str, firsts: &[c_int], listens: bool) -> Result<()> {
    fork::prepare();
    titin_runtime::not_forked()?;
    end::close_at_exit();
    let key = key()?;
    let group = MeetingGroup::default();
    let mut meetings = Vec::new();
    let known = table();
    for &first in firsts {
        let connection = &known.connections[&first];
        if connection.path.is_some() {
            return Err(usage(format!("{} is open", connection.label(first))));
        }
        if connection.route.host.is_none() && !listens {
            return Err(usage(format!(
                "{} has no host to call: give one, or wait for the other end with server_wait = true",
                connection.label(first)
            )));
        }
        meetings.push(Meeting {
            call,
            route: connection.route.clone(),
            settings: connection.settings(known.pacing),
            key: &key,
            listens,
            group: &group,
        });
    }
    drop(known);
    for (first, met) in firsts.iter().zip(meet_all(&meetings)?) {
        let mut table = table();
        match table.connections.get_mut(first) {
            Some(connection) if connection.path.is_none() => connection.path = Some(Arc::new(met)),
            _ => {
                return Err(usage(
                    "another thread has opened or removed the connection meanwhile",
                ));
            }
        }
    }
    Ok(())
}

/// Waits for the other ends of all meetings. Any of them may come first, so each has a thread.
fn meet_all(meetings: &[Meeting<'_>]) -> Result<Vec<Path>> {
    let met: Vec<Result<Option<Path>>> = match meetings {
        [meeting] => vec![meeting.meet()],
        meetings => thread::scope(|scope| {
            let start = |meeting| scope.spawn(move || Meeting::meet(meeting));
            let threads: Vec<_> = meetings.iter().map(start).collect();
            let end = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(met) => met,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(end).collect()
        }),
    };
    // Where one has failed, the others may have no path.
    let met: Vec<Option<Path>> = met.into_iter().collect::<Result<_>>()?;
    Ok(met.into_iter().flatten().collect())
}

/// The key of both ends.
fn key() -> Result<Key> {
    if std::env::var_os(KEY_VARIABLE).is_none_or(|file| file.is_empty()) {
        return Err(usage(format!(
            "no key is given: make one with `titin path key FILE`, copy it to the other host, and at both ends set {KEY_VARIABLE}=FILE"
        )));
    }
    usual_key().map_err(translated)
}

/// # Safety
/// `hosts` is NULL or points to `count` texts that end with a NUL; `ports` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_init(
    hosts: *const *const c_char,
    ports: *const c_int,
    count: c_int,
) {
    const CALL: &str = "MPW_Init";
    ending(CALL, || {
        // SAFETY: as the caller promises.
        let (hosts, ports) = unsafe {
            (
                input::list(hosts, count, "hosts")?,
                input::list(ports, count, "ports")?,
            )
        };
        let routes = hosts.iter().zip(ports).map(|(host, port)| {
            // SAFETY: as the caller promises.
            Route::of_channel(unsafe { input::text(*host, "host") }?, *port)
        });
        let routes = routes.collect::<Result<Vec<_>>>()?;
        if routes.is_empty() {
            return Ok(());
        }
        let mut known = table();
        let added: Vec<c_int> = routes
            .into_iter()
            .map(|route| known.add_channel(route))
            .collect();
        drop(known);
        open(CALL, &added, true)
    });
}

/// # Safety
/// `host` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_create_path_without_connect(
    host: *const c_char,
    port: c_int,
    streams: c_int,
) -> c_int {
    number("MPW_CreatePathWithoutConnect", || {
        // SAFETY: as the caller promises.
        let host = unsafe { input::text(host, "host") }?;
        let route = Route::of_path(host, port, streams)?;
        Ok(table().add_path(route).0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_connect_path(path: c_int, server_wait: c_int) -> c_int {
    const CALL: &str = "MPW_ConnectPath";
    number(CALL, || {
        let first = table().first_of_path(path)?;
        open(CALL, &[first], server_wait != 0)?;
        Ok(0)
    })
}

/// # Safety
/// `host` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_create_path(
    host: *const c_char,
    port: c_int,
    streams: c_int,
) -> c_int {
    const CALL: &str = "MPW_CreatePath";
    number(CALL, || {
        // SAFETY: as the caller promises.
        let host = unsafe { input::text(host, "host") }?;
        let route = Route::of_path(host, port, streams)?;
        let (path, first) = table().add_path(route);
        let opened = open(CALL, &[first], true);
        if opened.is_err() {
            table().remove(first);
        }
        opened.map(|()| path)
    })
}

/// # Safety
/// `channels` is NULL or points to `count` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_reopen_channels(channels: *const c_int, count: c_int) {
    const CALL: &str = "MPW_ReOpenChannels";
    ending(CALL, || {
        // SAFETY: as the caller promises.
        let channels = unsafe { channel_list(channels, count) }?;
        let firsts = table().firsts(&channels)?;
        open(CALL, &firsts, true)
    });
}
