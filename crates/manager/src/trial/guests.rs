//! Whether the functions are there that hosts are to run as instances.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::launch::{Prepared, Surroundings, python};
use crate::plan::{Guest, Hosting};

/// What has modules found, by the Python that would run them.
const LOOK: &str = include_str!("guests.py");

/// The functions that are not there, each by its first instance and with why. What only a shell would know (modules of
/// the environment, logins) is taken to be there.
pub(super) fn lost<'h>(
    hosting: &'h Hosting,
    prepared: &Prepared,
    around: &Surroundings<'_>,
) -> Vec<(&'h Guest, String)> {
    if prepared.script.is_some() {
        return Vec::new();
    }
    let mut guests: BTreeMap<(Option<&str>, &str), &Guest> = BTreeMap::new();
    for guest in &hosting.guests {
        guests
            .entry((guest.library.as_deref(), &guest.function))
            .or_insert(guest);
    }
    let env = environment(prepared, around);
    if hosting.python {
        let functions = guests.keys().map(|(_, function)| *function).collect();
        let wrong = ask_python(functions, &hosting.folders, &env, Path::new(around.titin));
        return guests
            .into_iter()
            .filter_map(|((_, function), guest)| Some((guest, wrong.get(function)?.clone())))
            .collect();
    }
    let mut files: BTreeMap<&str, Result<Vec<u8>, String>> = BTreeMap::new();
    let wrong = |library: &'h str, function: &str, files: &mut BTreeMap<&'h str, _>| {
        let file = files
            .entry(library)
            .or_insert_with(|| read(library, hosting, &env));
        match file {
            Err(why) => Some(why.clone()),
            // A name that can be found stands in the file with a zero behind it.
            Ok(bytes) if bytes.is_empty() || has(bytes, &[function.as_bytes(), b"\0"].concat()) => {
                None
            }
            Ok(_) => Some(format!(
                "{library} has no function {function} with C linkage"
            )),
        }
    };
    let named = guests
        .into_iter()
        .filter_map(|((library, function), guest)| {
            Some((guest, wrong(library?, function, &mut files)?))
        });
    named.collect()
}

/// The variables that the host would have.
fn environment(prepared: &Prepared, around: &Surroundings<'_>) -> BTreeMap<String, String> {
    let mut env = around.env.clone();
    env.extend(prepared.launch.set.iter().cloned());
    prepared
        .launch
        .unset
        .iter()
        .for_each(|name| drop(env.remove(name)));
    env
}

/// What Python says of functions that it cannot find.
fn ask_python(
    functions: Vec<&str>,
    folders: &[PathBuf],
    env: &BTreeMap<String, String>,
    titin: &Path,
) -> BTreeMap<String, String> {
    let python = python(env.get("VIRTUAL_ENV").map(Path::new), Some(titin));
    let question = serde_json::json!({"folders": folders, "functions": functions}).to_string();
    let ask = || {
        let mut asked = Command::new(&python)
            .args(["-c", LOOK])
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        // It reads all before it answers.
        if let Some(mut stdin) = asked.stdin.take() {
            stdin.write_all(question.as_bytes())?;
        }
        asked.wait_with_output()
    };
    match ask() {
        // An answer that cannot be read says nothing about the functions.
        Ok(answer) => serde_json::from_slice(&answer.stdout).unwrap_or_default(),
        Err(error) => {
            let why = format!(
                "{}, which would run it, cannot be started: {error}",
                python.display()
            );
            functions
                .into_iter()
                .map(|function| (function.to_owned(), why.clone()))
                .collect()
        }
    }
}

/// The bytes of a library; none if only the loader knows where it is.
fn read(
    library: &str,
    hosting: &Hosting,
    env: &BTreeMap<String, String>,
) -> Result<Vec<u8>, String> {
    let path = Path::new(library);
    if path.is_relative() {
        let folders: Vec<_> = hosting
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let beside = format!("there is no {library} in {}", folders.join(", "));
        return match library.contains('/') {
            true => Err(beside),
            false if is_known_to_the_loader(library, env) => Ok(Vec::new()),
            false => Err(format!(
                "{beside}, nor where the system looks for libraries"
            )),
        };
    }
    match std::fs::read(path) {
        Ok(bytes) if bytes.starts_with(b"\x7fELF") => Ok(bytes),
        Ok(_) => Err(format!("{library} is no shared library")),
        Err(error) => Err(format!("{library} cannot be read: {error}")),
    }
}

/// Whether a library without a folder is found by its name alone.
fn is_known_to_the_loader(library: &str, env: &BTreeMap<String, String>) -> bool {
    let told = env
        .get("LD_LIBRARY_PATH")
        .map_or("", String::as_str)
        .split(':')
        .filter(|f| !f.is_empty());
    let mut folders = told
        .chain(["/lib", "/usr/lib", "/lib64", "/usr/lib64"])
        .map(Path::new);
    let cached = || {
        let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        has(&cache, format!("/{library}\0").as_bytes())
    };
    folders.any(|folder| folder.join(library).exists()) || cached()
}

/// Whether a file is a program that knows titin and surely not Python, be it linked with it or loaded as it runs. The folder of
/// titin's own library, which is below Python's, says nothing.
pub(super) fn is_without_python(path: &Path) -> bool {
    const PYTHON: [&[u8]; 4] = [
        b"libpython",
        b"Py_Initialize",
        b"Py_RunMain",
        b"Py_BytesMain",
    ];
    let Ok(bytes) = std::fs::read(path) else {
        return false;
    };
    bytes.starts_with(b"\x7fELF")
        && has(&bytes, b"titin")
        && !PYTHON.iter().any(|name| has(&bytes, name))
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
