//! Several instances in one process: each in a thread of its own, or many light ones on a few threads.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use libloading::os::unix::Library;
use serde::Deserialize;
use titin_runtime::{Error, Kind, ReadyList, Result};

use crate::error::{caught, last, set_aside, status, usage};
use crate::filter::{find, load};
use crate::handle::Handle;
use crate::input;
use crate::instance::{Asked, Pointer, begin, close};
use crate::options::Options;

/// What a step returns that is to be called again.
const PENDING: c_int = Kind::Pending as c_int;

/// The threads that run steps of a description. What passes between them costs more than a second core gains soon.
const MOST_THREADS: usize = 2;

/// How much memory a process of steps asks the system for at once: thousands of instances take it in small pieces.
const PIECE: c_int = 4 << 20;

/// `titin_entry` of the header.
type Entry = unsafe extern "C" fn(instance: *mut Handle, data: *mut c_void) -> c_int;

thread_local! {
    /// The instance whose entry this thread calls. It has no destructor, so it is there for what `exit` calls.
    static AT_WORK: Cell<*const Handle> = const { Cell::new(std::ptr::null()) };
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Notes whose entry this thread calls from now on; what it called before.
fn at_work(handle: &Handle) -> *const Handle {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may be called at any time. Without it the instance is not told from others, that is all.
        unsafe { atexit(exits) };
    });
    AT_WORK.replace(handle)
}

/// The process ends. If an entry has called `exit`, or a Fortran `stop`, its instance is told to have failed: from outside nobody
/// can know which one of the process that was.
extern "C" fn exits() {
    // SAFETY: the entry has not returned, so its instance is still there.
    let Some(handle) = (unsafe { AT_WORK.replace(std::ptr::null()).as_ref() }) else {
        return;
    };
    if titin_runtime::not_forked().is_err() {
        return;
    }
    let instance = &handle.shared.instance;
    drop(caught(|| {
        instance.fail(
            "its function ended the whole process, by exit() or what calls that: return from it",
        );
        Ok(())
    }));
}

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
        // SAFETY: as the caller promises.
        let guests = unsafe { guests(count, names, ports, entries, data) }?;
        let standard = Options::default();
        // SAFETY: as the caller promises.
        host(&guests, unsafe { options.as_ref() }.unwrap_or(&standard))
    })
}

/// # Safety
/// As [`titin_host`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host_steps(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    steps: *const Option<Entry>,
    data: *const *mut c_void,
    threads: c_int,
    options: *const Options,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let guests = unsafe { guests(count, names, ports, steps, data) }?;
        let threads = usize::try_from(threads).ok().filter(|threads| *threads > 0);
        let threads = threads
            .ok_or_else(|| usage("instances run on one thread at least; give 1, or more"))?;
        let standard = Options::default();
        // SAFETY: as the caller promises.
        host_steps(
            &guests,
            threads,
            unsafe { options.as_ref() }.unwrap_or(&standard),
        )
    })
}

/// What the manager says of a guest.
#[derive(Deserialize)]
struct Described {
    instance: String,
    library: String,
    function: String,
    steps: bool,
}

/// What a host runs, as the manager writes it.
#[derive(Deserialize)]
struct Hosting {
    guests: Vec<Described>,
}

/// # Safety
/// `path` is NULL or ends with a NUL; the functions that the file names may be called.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host_file(path: *const c_char) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let path = unsafe { input::text(path, "path of what to host") }?;
        let text =
            std::fs::read(path).map_err(|error| usage(format!("cannot read {path}: {error}")))?;
        let hosting: Hosting = serde_json::from_slice(&text)
            .map_err(|error| usage(format!("{path} does not say what to host: {error}")))?;
        if hosting.guests.iter().all(|described| described.steps) {
            fit_allocator();
        }
        let mut libraries: HashMap<&str, Library> = HashMap::new();
        let mut places: Vec<*mut c_void> = vec![std::ptr::null_mut(); hosting.guests.len()];
        let (mut stepping, mut entering) = (Vec::new(), Vec::new());
        for (described, place) in hosting.guests.iter().zip(&mut places) {
            let (name, path, symbol) = (
                &*described.instance,
                &*described.library,
                &*described.function,
            );
            let wrong = |why: String| usage(format!("{name} cannot be run: {why}"));
            if !libraries.contains_key(path) {
                libraries.insert(path, load(path).map_err(wrong)?);
            }
            // SAFETY: the header says which type the function must have; its library stays loaded until all have ended.
            let entry = unsafe { find::<Entry>(&libraries[path], path, symbol) }.map_err(wrong)?;
            let data = Pointer(std::ptr::from_mut(place).cast());
            let guests = if described.steps {
                &mut stepping
            } else {
                &mut entering
            };
            guests.push(Guest {
                name,
                ports: None,
                entry,
                data,
            });
        }
        let options = Options::default();
        let threads =
            std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let outcomes = std::thread::scope(|scope| {
            let steps = scope.spawn(|| caught(|| host_steps(&stepping, threads, &options)));
            let entered = caught(|| host(&entering, &options));
            vec![steps.join().expect("panics are caught inside"), entered]
        });
        first_error(outcomes)
    })
}

/// Fits the allocator to a process whose instances all take turns on a few threads: an arena for each of these would only
/// spread what they hand each other. Not where functions run on threads of their own, which would wait for each other at
/// every allocation of their solvers.
fn fit_allocator() {
    // SAFETY: it only changes what the allocator does from here on; no library of the user's is loaded yet.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, PIECE);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// # Safety
/// As [`titin_host`].
unsafe fn guests<'a>(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    entries: *const Option<Entry>,
    data: *const *mut c_void,
) -> Result<Vec<Guest<'a>>> {
    // SAFETY: as the caller promises.
    let (names, entries) = unsafe {
        (
            input::list(names, count, "names")?,
            input::list(entries, count, "entries")?,
        )
    };
    let guest = |(index, (name, entry)): (usize, (&*const c_char, &Option<Entry>))| {
        // SAFETY: as the caller promises.
        let name = unsafe { input::text(*name, "name of an instance") }?;
        let entry =
            entry.ok_or_else(|| usage(format!("NULL was given for the entry of {name}")))?;
        let ports = if ports.is_null() {
            None
        } else {
            // SAFETY: as the caller promises.
            unsafe { input::optional_text(*ports.add(index), "ports") }?
        };
        let data = if data.is_null() {
            std::ptr::null_mut()
        } else {
            // SAFETY: as the caller promises.
            unsafe { *data.add(index) }
        };
        Ok(Guest {
            name,
            ports,
            entry,
            data: Pointer(data),
        })
    };
    names.iter().zip(entries).enumerate().map(guest).collect()
}

/// Opens all, then runs them, the first in this thread.
fn host(guests: &[Guest<'_>], options: &Options) -> Result<()> {
    // All ask before the first answer is waited for.
    let mut asked: VecDeque<Asked> = VecDeque::new();
    let mut handles: Vec<Box<Handle>> = Vec::new();
    // The others need not wait for one that cannot be opened until it is late.
    let give_up = |asked: VecDeque<Asked>, handles: Vec<Box<Handle>>, error: Error| {
        handles
            .iter()
            .for_each(|handle| handle.shared.instance.fail(&error.text));
        asked.into_iter().for_each(|asked| asked.fail(&error.text));
        Err(error)
    };
    for guest in guests {
        match begin(guest.ports, options, Some(guest.name)) {
            Ok(one) => asked.push_back(one),
            Err(error) => return give_up(asked, handles, error),
        }
    }
    while let Some(mut one) = asked.pop_front() {
        match one.end() {
            Ok(handle) => handles.push(Box::new(handle.expect("it was waited for").hosted())),
            Err(error) => return give_up(asked, handles, error),
        }
    }
    let mut all = guests.iter().zip(handles);
    let Some((first, handle)) = all.next() else {
        return Ok(());
    };
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .map(|(guest, handle)| {
                std::thread::Builder::new()
                    .name(guest.name.to_owned())
                    .spawn_scoped(scope, move || caught(|| guest.run(handle)))
                    .map_err(|error| usage(format!("no thread for {}: {error}", guest.name)))
            })
            .collect();
        let mut outcomes = vec![caught(|| first.run(handle))];
        outcomes.extend(
            threads
                .into_iter()
                .map(|thread| thread?.join().expect("panics are caught inside")),
        );
        outcomes
    });
    first_error(outcomes)
}

/// Deals light instances out to so many threads, this one among them.
fn host_steps(guests: &[Guest<'_>], threads: usize, options: &Options) -> Result<()> {
    let mut shares: Vec<Vec<&Guest<'_>>> = vec![Vec::new(); threads.clamp(1, guests.len().max(1))];
    let count = shares.len();
    guests
        .iter()
        .enumerate()
        .for_each(|(index, guest)| shares[index % count].push(guest));
    let mut shares = shares.into_iter();
    let first = shares.next().unwrap_or_default();
    let outcomes: Vec<Vec<Result<()>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .map(|share| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || Share::of(&share, options).run())
                    .map_err(|error| usage(format!("no thread for instances: {error}")))
            })
            .collect();
        let mut outcomes = vec![Share::of(&first, options).run()];
        outcomes.extend(threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().expect("panics are caught inside"),
            Err(error) => vec![Err(error)],
        }));
        outcomes
    });
    first_error(outcomes.into_iter().flatten().collect())
}

/// The first error that is not the consequence of another.
fn first_error(outcomes: Vec<Result<()>>) -> Result<()> {
    let mut errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
    // Who comes late to a run that has failed finds its manager gone, which says least of all.
    let is_closed = |error: &Error| error.kind == Kind::PortClosed;
    errors.sort_by_key(|error| {
        (
            error.kind == Kind::Connection,
            error.is_echo(),
            is_closed(error),
        )
    });
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// The light instances of one thread.
struct Share<'a> {
    ready: Arc<ReadyList>,
    places: Vec<Place<'a>>,
    /// Those that have given way to others, without a call that is pending.
    again: VecDeque<usize>,
}

struct Place<'a> {
    guest: &'a Guest<'a>,
    stage: Stage,
}

/// How far a light instance has come.
enum Stage {
    Asked(Box<Asked>),
    Open(Box<Handle>),
    /// Its step has come to an end, with this.
    Closing(Box<Handle>, Result<()>),
    Over(Result<()>),
}

impl<'a> Share<'a> {
    fn of(guests: &[&'a Guest<'a>], options: &Options) -> Self {
        let ready = ReadyList::new();
        let place = |(number, &guest): (usize, &&'a Guest<'a>)| {
            let options = Options {
                ready: Some((ready.clone(), number as u64)),
                ..options.clone()
            };
            let asked = caught(|| begin(guest.ports, &options, Some(guest.name)));
            ready.push(number as u64);
            Place {
                guest,
                stage: asked.map_or_else(
                    |error| Stage::Over(Err(error)),
                    |asked| Stage::Asked(Box::new(asked)),
                ),
            }
        };
        let places = guests.iter().enumerate().map(place).collect();
        Share {
            ready,
            places,
            again: VecDeque::new(),
        }
    }

    /// Calls each whenever it can go on, until all have ended.
    fn run(mut self) -> Vec<Result<()>> {
        let mut left = self
            .places
            .iter()
            .filter(|place| !matches!(place.stage, Stage::Over(_)))
            .count();
        while left > 0 {
            let index = match self.again.pop_front() {
                Some(index) => index,
                None => self.ready.next(None).expect("it waits as long as it takes") as usize,
            };
            let place = &mut self.places[index];
            if let Stage::Over(_) = place.stage {
                continue;
            }
            let goes_on = caught(|| Ok(place.go_on())).unwrap_or_else(|error| {
                place.stage = Stage::Over(Err(error));
                false
            });
            left -= usize::from(matches!(place.stage, Stage::Over(_)));
            if goes_on {
                // Whoever can go on at once takes turns with those that others have rung for.
                self.again.push_back(index);
                if let Some(next) = self.ready.next(Some(std::time::Duration::ZERO)) {
                    self.again.push_front(next as usize);
                }
            }
        }
        let outcome = |place: Place<'_>| match place.stage {
            Stage::Over(outcome) => outcome,
            _ => Ok(()),
        };
        self.places.into_iter().map(outcome).collect()
    }
}

impl Place<'_> {
    /// Goes on as far as it can; true if it could go on now, and has only given way to others.
    fn go_on(&mut self) -> bool {
        loop {
            self.stage = match std::mem::replace(&mut self.stage, Stage::Over(Ok(()))) {
                Stage::Asked(mut asked) => match asked.end() {
                    Ok(None) => {
                        self.stage = Stage::Asked(asked);
                        return false;
                    }
                    Ok(Some(handle)) => Stage::Open(Box::new(handle.hosted())),
                    Err(error) => Stage::Over(Err(error)),
                },
                Stage::Open(handle) => match self.guest.call(&handle) {
                    Err(error) if error.is_pending() => {
                        let pending = handle.shared.instance.is_pending();
                        self.stage = Stage::Open(handle);
                        return !pending;
                    }
                    outcome => Stage::Closing(handle, outcome),
                },
                Stage::Closing(handle, outcome) => match close(&handle) {
                    Err(error) if error.is_pending() => {
                        self.stage = Stage::Closing(handle, outcome);
                        return false;
                    }
                    closed => Stage::Over(outcome.and(closed)),
                },
                Stage::Over(outcome) => {
                    self.stage = Stage::Over(outcome);
                    return false;
                }
            };
        }
    }
}

impl Guest<'_> {
    fn run(&self, handle: Box<Handle>) -> Result<()> {
        let outcome = self.call(&handle);
        let closed = close(&handle);
        if handle.shared.instance.was_in_use() {
            // What a call of a thread of the entry's own uses stays for ever.
            Box::leak(handle);
        }
        outcome.and(closed)
    }

    /// Calls the entry; what it returned as an error, which the instance has then failed with.
    fn call(&self, handle: &Handle) -> Result<()> {
        let _before = set_aside();
        let place = std::ptr::from_ref(handle).cast_mut();
        let outer = at_work(handle);
        // SAFETY: the caller of `titin_host` promises that the entry may be called with its data.
        let returned = unsafe { (self.entry)(place, self.data.raw()) };
        AT_WORK.set(outer);
        match returned {
            0 => return Ok(()),
            PENDING => return Err(Error::pending()),
            _ => {}
        }
        // What sticks with the instance is the reason; else what the entry said last.
        let stuck = handle
            .shared
            .stuck()
            .clone()
            .or_else(|| handle.shared.instance.failure());
        let error = stuck.or_else(last).unwrap_or_else(|| {
            Error::new(
                Kind::Closed,
                format!("the entry of {} returned {returned}", self.name),
            )
        });
        if error.is_echo() {
            handle.shared.instance.note(&error);
        } else {
            handle.shared.instance.fail(&error.text);
        }
        Err(error)
    }
}
