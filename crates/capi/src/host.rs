//! Several instances in one process, each in a thread of its own.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::{Error, Kind, Result};

use crate::error::{caught, last, set_aside, status, usage};
use crate::handle::Handle;
use crate::input;
use crate::instance::{Pointer, close, open};
use crate::options::Options;

/// `titin_entry` of the header.
type Entry = unsafe extern "C" fn(instance: *mut Handle, data: *mut c_void) -> c_int;

struct Guest<'a> {
    name: &'a str,
    ports: Option<&'a str>,
    entry: Entry,
    data: Pointer,
}

/// # Safety
/// `names` and `entries` point to `count` items, `ports` and `data` are NULL or do too; texts end with a NUL or, of
/// `ports`, are NULL; entries may be called with their data; `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    entries: *const Option<Entry>,
    data: *const *mut c_void,
    options: *const Options,
) -> c_int {
    status(|| {
        let mut guests = Vec::new();
        // SAFETY: as the caller promises.
        let (names, entries) =
            unsafe { (input::list(names, count, "names")?, input::list(entries, count, "entries")?) };
        for (index, (name, entry)) in names.iter().zip(entries).enumerate() {
            // SAFETY: as the caller promises.
            let name = unsafe { input::text(*name, "name of an instance") }?;
            let entry = entry.ok_or_else(|| usage(format!("NULL was given for the entry of {name}")))?;
            let ports = if ports.is_null() {
                None
            } else {
                // SAFETY: as the caller promises.
                unsafe { input::optional_text(*ports.add(index), "ports") }?
            };
            // SAFETY: as the caller promises.
            let data = if data.is_null() { std::ptr::null_mut() } else { unsafe { *data.add(index) } };
            guests.push(Guest { name, ports, entry, data: Pointer(data) });
        }
        let standard = Options::default();
        // SAFETY: as the caller promises.
        let options = unsafe { options.as_ref() }.unwrap_or(&standard);
        host(&guests, options)
    })
}

/// Opens all, then runs them, the first in this thread; the first error that is not the consequence of another.
fn host(guests: &[Guest<'_>], options: &Options) -> Result<()> {
    let mut handles = Vec::new();
    for guest in guests {
        match open(guest.ports, options, Some(guest.name)) {
            Ok(handle) => handles.push(Box::new(handle.hosted())),
            Err(error) => {
                // The others need not wait for it until it is late.
                handles.iter().for_each(|handle| handle.shared.instance.fail(&error.text));
                return Err(error);
            }
        }
    }
    let mut all = guests.iter().zip(handles);
    let Some((first, handle)) = all.next() else { return Ok(()) };
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .map(|(guest, handle)| {
                std::thread::Builder::new()
                    .name(guest.name.to_owned())
                    .spawn_scoped(scope, move || caught(|| guest.run(&handle)))
                    .map_err(|error| usage(format!("no thread for {}: {error}", guest.name)))
            })
            .collect();
        let mut outcomes = vec![caught(|| first.run(&handle))];
        outcomes.extend(threads.into_iter().map(|thread| thread?.join().expect("panics are caught inside")));
        outcomes
    });
    let mut errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
    // Who comes late to a run that has failed finds its manager gone, which says least of all.
    errors.sort_by_key(|error| (error.kind == Kind::Connection, error.is_echo()));
    errors.into_iter().next().map_or(Ok(()), Err)
}

impl Guest<'_> {
    fn run(&self, handle: &Handle) -> Result<()> {
        let _before = set_aside();
        let place = std::ptr::from_ref(handle).cast_mut();
        // SAFETY: the caller of `titin_host` promises that the entry may be called with its data.
        let returned = unsafe { (self.entry)(place, self.data.raw()) };
        if returned != 0 {
            // What sticks with the instance is the reason; else what the entry said last.
            let stuck = handle.shared.stuck().clone();
            let error = stuck.or_else(last).unwrap_or_else(|| {
                Error::new(Kind::Closed, format!("the entry of {} returned {returned}", self.name))
            });
            if error.is_echo() {
                handle.shared.instance.note(&error);
            } else {
                handle.shared.instance.fail(&error.text);
            }
            let _ = close(handle);
            return Err(error);
        }
        close(handle)
    }
}
