//! Several instances in one process: each on a thread of its own, or many light instances on a few
//! threads.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use libloading::os::unix::Library;
use serde::Deserialize;
use titin_runtime::{Error, Kind, ReadyList, Result};

use crate::error::{caught, last, save_last_error, status, usage};
use crate::filter::{LibraryError, find, load};
use crate::handle::Handle;
use crate::input;
use crate::instance::{OpeningHandle, begin, close};
use crate::options::Options;
use crate::pointer::Pointer;

/// The status of the entry function of a light instance, if the function is to be called again.
const PENDING: c_int = Kind::Pending as c_int;

/// The most threads for the light instances of a description. With more threads, handing messages
/// from core to core costs more than the further cores gain.
const MOST_THREADS: usize = 2;

/// The allocator of a process of light instances asks the system for this many bytes at once:
/// thousands of instances allocate in small amounts.
const ALLOCATOR_GROWTH: c_int = 4 << 20;

/// `titin_entry` of the header.
type EntryFunction = unsafe extern "C" fn(instance: *mut Handle, data: *mut c_void) -> c_int;

thread_local! {
    /// The instance whose entry function this thread calls. Without a destructor, so that functions
    /// called by `exit` can read the value.
    static RUNNING: Cell<*const Handle> = const { Cell::new(std::ptr::null()) };
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Notes the instance whose entry function this thread calls from now on. Returns the instance
/// noted before.
fn note_running(handle: &Handle) -> *const Handle {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may be called at any time. If `atexit` cannot register the function,
        // the error names no instance.
        unsafe { atexit(fail_running_instance) };
    });
    RUNNING.replace(handle)
}

/// Runs when the process ends. If an entry function has called `exit`, or `stop` in Fortran, the
/// function's instance fails: from outside the process, nothing tells which instance ended the
/// process.
extern "C" fn fail_running_instance() {
    // SAFETY: the entry function has not returned, so the instance is still there.
    let Some(handle) = (unsafe { RUNNING.replace(std::ptr::null()).as_ref() }) else {
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

/// An instance of a host: name, ports if the program gives ports, and entry function.
struct HostedInstance<'a> {
    name: &'a str,
    ports: Option<&'a str>,
    entry: EntryFunction,
    data: Pointer,
}

/// # Safety
/// `names` and `entries` point to `count` items. `ports` and `data` are NULL or point to `count`
/// items. Texts end with a NUL; a text in `ports` may be NULL. Each entry may be called with the
/// entry's data. `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    entries: *const Option<EntryFunction>,
    data: *const *mut c_void,
    options: *const Options,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let instances = unsafe { hosted_instances(count, names, ports, entries, data) }?;
        let standard = Options::default();
        // SAFETY: as the caller promises.
        host(&instances, unsafe { options.as_ref() }.unwrap_or(&standard))
    })
}

/// # Safety
/// As [`titin_host`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host_steps(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    steps: *const Option<EntryFunction>,
    data: *const *mut c_void,
    threads: c_int,
    options: *const Options,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let instances = unsafe { hosted_instances(count, names, ports, steps, data) }?;
        let threads = usize::try_from(threads).ok().filter(|threads| *threads > 0);
        let threads = threads
            .ok_or_else(|| usage("instances run on one thread at least; give 1, or more"))?;
        let standard = Options::default();
        // SAFETY: as the caller promises.
        host_light(
            &instances,
            threads,
            unsafe { options.as_ref() }.unwrap_or(&standard),
        )
    })
}

/// An instance in the manager's file for `titin-host`.
#[derive(Deserialize)]
struct FileEntry {
    instance: String,
    library: String,
    function: String,
    #[serde(rename = "steps")]
    is_light: bool,
}

/// The manager's file for `titin-host`.
#[derive(Deserialize)]
struct HostFile {
    #[serde(rename = "guests")]
    functions: Vec<FileEntry>,
}

/// # Safety
/// `path` is NULL or ends with a NUL; the functions named in the file may be called.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_host_file(path: *const c_char) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let path = unsafe { input::text(path, "path of what to host") }?;
        let text =
            std::fs::read(path).map_err(|error| usage(format!("cannot read {path}: {error}")))?;
        let hosting: HostFile = serde_json::from_slice(&text)
            .map_err(|error| usage(format!("{path} does not say what to host: {error}")))?;
        if hosting.functions.iter().all(|entry| entry.is_light) {
            fit_allocator();
        }
        // SAFETY: as the caller promises.
        let hosted = unsafe { HostedFunctions::load(&hosting) }?;
        let mut program_data = vec![std::ptr::null_mut(); hosting.functions.len()];
        hosted.run(&mut program_data)
    })
}

/// The functions named in the manager's file, with their libraries.
struct HostedFunctions<'a> {
    functions: Vec<(&'a FileEntry, EntryFunction)>,
    /// Stay loaded until all instances have ended.
    _libraries: HashMap<&'a str, Library>,
}

impl<'a> HostedFunctions<'a> {
    /// # Safety
    /// The functions named in `file` are entry functions.
    unsafe fn load(file: &'a HostFile) -> Result<Self> {
        let mut libraries: HashMap<&str, Library> = HashMap::new();
        let mut functions = Vec::new();
        for entry in &file.functions {
            let (path, symbol) = (&*entry.library, &*entry.function);
            let wrong =
                |why: LibraryError| usage(format!("{} cannot be run: {why}", entry.instance));
            if !libraries.contains_key(path) {
                libraries.insert(path, load(path).map_err(wrong)?);
            }
            // SAFETY: the header prescribes the type of the function; the library stays loaded as
            // long as this value lives.
            let function = unsafe { find::<EntryFunction>(&libraries[path], path, symbol) };
            functions.push((entry, function.map_err(wrong)?));
        }
        Ok(HostedFunctions {
            functions,
            _libraries: libraries,
        })
    }

    /// Runs all functions: those of light instances on a few threads, every other function on a thread
    /// of its own. Each function gets a pointer from `program_data`, the data of the function's
    /// program.
    fn run(&self, program_data: &mut [*mut c_void]) -> Result<()> {
        let (mut light, mut threaded) = (Vec::new(), Vec::new());
        for ((described, entry), data) in self.functions.iter().zip(program_data) {
            let instances = match described.is_light {
                true => &mut light,
                false => &mut threaded,
            };
            instances.push(HostedInstance {
                name: &described.instance,
                ports: None,
                entry: *entry,
                data: Pointer(std::ptr::from_mut(data).cast()),
            });
        }
        let options = Options::default();
        let threads =
            std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let outcomes = std::thread::scope(|scope| {
            let light_thread = scope.spawn(|| caught(|| host_light(&light, threads, &options)));
            let threaded = caught(|| host(&threaded, &options));
            let light = light_thread.join().expect("panics are caught inside");
            vec![light, threaded]
        });
        first_error(outcomes)
    }
}

/// Fits the allocator to a process whose instances take turns on a few threads. The instances hand
/// each other messages, and with a single arena the memory of a message is reused at once.
/// Functions on threads of their own must not share an arena: they would wait for each other at
/// every allocation of their solvers.
fn fit_allocator() {
    // SAFETY: only later allocations are affected; no library of the user is loaded yet.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, ALLOCATOR_GROWTH);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// # Safety
/// As [`titin_host`].
unsafe fn hosted_instances<'a>(
    count: c_int,
    names: *const *const c_char,
    ports: *const *const c_char,
    entries: *const Option<EntryFunction>,
    data: *const *mut c_void,
) -> Result<Vec<HostedInstance<'a>>> {
    // SAFETY: as the caller promises.
    let (names, entries) = unsafe {
        (
            input::list(names, count, "names")?,
            input::list(entries, count, "entries")?,
        )
    };
    // SAFETY: as the caller promises.
    let (ports, data) = unsafe {
        (
            optional_items(ports, names.len()),
            optional_items(data, names.len()),
        )
    };
    names
        .iter()
        .zip(entries)
        .zip(ports.zip(data))
        .map(|((name, entry), (ports, data))| {
            // SAFETY: as the caller promises.
            let (name, ports) = unsafe {
                (
                    input::text(*name, "name of an instance")?,
                    input::optional_text(ports.unwrap_or(std::ptr::null()), "ports")?,
                )
            };
            let entry =
                entry.ok_or_else(|| usage(format!("NULL was given for the entry of {name}")))?;
            Ok(HostedInstance {
                name,
                ports,
                entry,
                data: Pointer(data.unwrap_or(std::ptr::null_mut())),
            })
        })
        .collect()
}

/// The items of a list that may be NULL: `count` items, or `count` times `None`.
///
/// # Safety
/// `items` is NULL or points to `count` items that do not change while the result is used.
unsafe fn optional_items<T: Copy>(
    items: *const T,
    count: usize,
) -> impl Iterator<Item = Option<T>> {
    // SAFETY: as the caller promises.
    (0..count).map(move |index| (!items.is_null()).then(|| unsafe { *items.add(index) }))
}

/// Opens all instances, then runs each on a thread, the first on the calling thread.
fn host(instances: &[HostedInstance<'_>], options: &Options) -> Result<()> {
    // A function of the program may keep the address of the function's handle beyond the end of the
    // function. So each handle is boxed.
    let handles = open_all(instances, options)?.into_iter().map(Box::new);
    let mut opened = instances.iter().zip(handles);
    let Some((first, handle)) = opened.next() else {
        return Ok(());
    };
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = opened
            .map(|(instance, handle)| {
                std::thread::Builder::new()
                    .name(instance.name.to_owned())
                    .spawn_scoped(scope, move || caught(|| instance.run(handle)))
                    .map_err(|error| usage(format!("no thread for {}: {error}", instance.name)))
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

/// Opens all instances. All ask to join before the first answer is waited for.
fn open_all(instances: &[HostedInstance<'_>], options: &Options) -> Result<Vec<Handle>> {
    let mut openings: VecDeque<OpeningHandle> = VecDeque::new();
    let mut handles = Vec::new();
    for instance in instances {
        match begin(instance.ports, options, Some(instance.name)) {
            Ok(one) => openings.push_back(one),
            Err(error) => return give_up(openings, &handles, error),
        }
    }
    while let Some(mut one) = openings.pop_front() {
        match one.end() {
            Ok(handle) => handles.push(handle.expect("it was waited for").hosted()),
            Err(error) => return give_up(openings, &handles, error),
        }
    }
    Ok(handles)
}

/// Fails all instances, since an instance cannot be opened. Otherwise the manager would wait for
/// the missing instance until the instance is late.
fn give_up<T>(openings: VecDeque<OpeningHandle>, handles: &[Handle], error: Error) -> Result<T> {
    handles
        .iter()
        .for_each(|handle| handle.shared.instance.fail(&error.text));
    openings.into_iter().for_each(|one| one.fail(&error.text));
    Err(error)
}

/// Runs light instances on `threads` threads, among them the calling thread, with as many instances
/// on each.
fn host_light(instances: &[HostedInstance<'_>], threads: usize, options: &Options) -> Result<()> {
    let mut shares = dealt(instances, threads.clamp(1, instances.len().max(1))).into_iter();
    let first = shares.next().unwrap_or_default();
    let outcomes: Vec<Vec<Result<()>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .map(|share| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || LightThread::of(&share, options).run())
                    .map_err(|error| usage(format!("no thread for instances: {error}")))
            })
            .collect();
        let mut outcomes = vec![LightThread::of(&first, options).run()];
        outcomes.extend(threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().expect("panics are caught inside"),
            Err(error) => vec![Err(error)],
        }));
        outcomes
    });
    first_error(outcomes.into_iter().flatten().collect())
}

/// Divides the instances evenly among the threads.
fn dealt<'a, 'b>(
    instances: &'a [HostedInstance<'b>],
    threads: usize,
) -> Vec<Vec<&'a HostedInstance<'b>>> {
    let mut shares = vec![Vec::new(); threads];
    for (index, instance) in instances.iter().enumerate() {
        shares[index % threads].push(instance);
    }
    shares
}

/// The first error that is not the consequence of another error.
fn first_error(outcomes: Vec<Result<()>>) -> Result<()> {
    let mut errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
    // An instance that comes late to a failed run finds the manager gone. Such an error says least.
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

/// The light instances of a thread.
struct LightThread<'a> {
    ready: Arc<ReadyList>,
    instances: Vec<LightInstance<'a>>,
    /// Instances that have yielded to others, though no call of the instance is pending.
    again: VecDeque<usize>,
}

/// A light instance, and how far it has come.
struct LightInstance<'a> {
    hosted: &'a HostedInstance<'a>,
    stage: LightStage,
}

/// The stage of a light instance.
enum LightStage {
    Opening(Box<OpeningHandle>),
    Open(Box<Handle>),
    /// The function has ended with the given outcome.
    Closing(Box<Handle>, Result<()>),
    Over(Result<()>),
}

impl<'a> LightThread<'a> {
    fn of(hosted: &[&'a HostedInstance<'a>], options: &Options) -> Self {
        let ready = ReadyList::new();
        let light = |(number, &hosted): (usize, &&'a HostedInstance<'a>)| {
            let options = Options {
                ready: Some((ready.clone(), number as u64)),
                ..options.clone()
            };
            let opening = caught(|| begin(hosted.ports, &options, Some(hosted.name)));
            ready.push(number as u64);
            let stage = match opening {
                Ok(opening) => LightStage::Opening(Box::new(opening)),
                Err(error) => LightStage::Over(Err(error)),
            };
            LightInstance { hosted, stage }
        };
        let instances = hosted.iter().enumerate().map(light).collect();
        LightThread {
            ready,
            instances,
            again: VecDeque::new(),
        }
    }

    /// Calls each instance whenever the instance can go on, until all have ended.
    fn run(mut self) -> Vec<Result<()>> {
        let instances = self.instances.iter();
        let mut left = instances.filter(|light| !light.is_over()).count();
        while left > 0 {
            let index = self.next();
            let light = &mut self.instances[index];
            if light.is_over() {
                continue;
            }
            let goes_on = caught(|| Ok(light.go_on())).unwrap_or_else(|error| {
                light.stage = LightStage::Over(Err(error));
                false
            });
            left -= usize::from(light.is_over());
            if goes_on {
                // An instance that can go on at once takes turns with instances that have got a
                // message.
                self.again.push_back(index);
                if let Some(next) = self.ready.next(Some(std::time::Duration::ZERO)) {
                    self.again.push_front(next as usize);
                }
            }
        }
        let outcome = |light: LightInstance<'_>| match light.stage {
            LightStage::Over(outcome) => outcome,
            _ => Ok(()),
        };
        self.instances.into_iter().map(outcome).collect()
    }

    /// The index of the instance to call next; waits until an instance can go on.
    fn next(&mut self) -> usize {
        self.again.pop_front().unwrap_or_else(|| {
            let ready = self.ready.next(None);
            ready.expect("it waits as long as it takes") as usize
        })
    }
}

impl LightInstance<'_> {
    fn is_over(&self) -> bool {
        matches!(self.stage, LightStage::Over(_))
    }

    /// Goes on as far as possible. True if the instance could go on now, and has only yielded to
    /// others.
    fn go_on(&mut self) -> bool {
        loop {
            self.stage = match std::mem::replace(&mut self.stage, LightStage::Over(Ok(()))) {
                LightStage::Opening(mut opening) => match opening.end() {
                    Ok(None) => {
                        self.stage = LightStage::Opening(opening);
                        return false;
                    }
                    Ok(Some(handle)) => LightStage::Open(Box::new(handle.hosted())),
                    Err(error) => LightStage::Over(Err(error)),
                },
                LightStage::Open(handle) => match self.hosted.call(&handle) {
                    Err(error) if error.is_pending() => {
                        let pending = handle.shared.instance.is_pending();
                        self.stage = LightStage::Open(handle);
                        return !pending;
                    }
                    outcome => LightStage::Closing(handle, outcome),
                },
                LightStage::Closing(handle, outcome) => match close(&handle) {
                    Err(error) if error.is_pending() => {
                        self.stage = LightStage::Closing(handle, outcome);
                        return false;
                    }
                    closed => LightStage::Over(outcome.and(closed)),
                },
                LightStage::Over(outcome) => {
                    self.stage = LightStage::Over(outcome);
                    return false;
                }
            };
        }
    }
}

impl HostedInstance<'_> {
    fn run(&self, handle: Box<Handle>) -> Result<()> {
        let outcome = self.call(&handle);
        let closed = close(&handle);
        if handle.shared.instance.was_in_use() {
            // A call on a thread of the function's own still uses the instance, so the instance
            // stays for ever.
            Box::leak(handle);
        }
        outcome.and(closed)
    }

    /// Calls the entry function. If the entry function returns an error, the instance has failed
    /// with the error.
    fn call(&self, handle: &Handle) -> Result<()> {
        let _before = save_last_error();
        let pointer = std::ptr::from_ref(handle).cast_mut();
        let outer = note_running(handle);
        // SAFETY: the caller of `titin_host` promises that the entry may be called with the entry's
        // data.
        let returned = unsafe { (self.entry)(pointer, self.data.raw()) };
        RUNNING.set(outer);
        match returned {
            0 => Ok(()),
            PENDING => Err(Error::pending()),
            returned => Err(self.failed(handle, returned)),
        }
    }

    /// Fails the instance, since the entry function has returned an error. The reason is the error
    /// that sticks to the instance, or else the last error of the function's thread.
    fn failed(&self, handle: &Handle, returned: c_int) -> Error {
        let instance = &handle.shared.instance;
        let stuck = handle.shared.stuck().clone();
        let known = stuck.or_else(|| instance.failure()).or_else(last);
        let error = known.unwrap_or_else(|| {
            let text = format!("the entry of {} returned {returned}", self.name);
            Error::new(Kind::Closed, text)
        });
        if error.is_echo() {
            instance.note(&error);
        } else {
            instance.fail(&error.text);
        }
        error
    }
}
