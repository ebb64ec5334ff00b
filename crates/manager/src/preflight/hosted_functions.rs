//! The check for the functions that host processes are to run as instances.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::launch::{LaunchContext, PreparedCommand, python};
use crate::plan::{Hosting, PlannedFunction};

/// A Python program that looks for functions without importing their modules.
const FIND_FUNCTIONS: &str = include_str!("hosted_functions.py");

/// The folders in which the system looks for libraries.
const LIBRARY_FOLDERS: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];

/// Why a function cannot be run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FunctionError {
    /// The library is not beside the description.
    #[error("there is no {library} in {folders}")]
    NotInFolders {
        /// The library.
        library: String,
        /// The folders of the description.
        folders: String,
    },
    /// The library is neither beside the description nor known to the system.
    #[error("there is no {library} in {folders}, nor where the system looks for libraries")]
    Nowhere {
        /// The library.
        library: String,
        /// The folders of the description.
        folders: String,
    },
    /// The file is no library.
    #[error("{0} is no shared library")]
    NoLibrary(String),
    /// The file cannot be read.
    #[error("{library} cannot be read: {error}")]
    Unreadable {
        /// The library.
        library: String,
        /// The system's answer.
        error: String,
    },
    /// The library has no such function.
    #[error("{library} has no function {function} with C linkage")]
    NoFunction {
        /// The library.
        library: String,
        /// The function.
        function: String,
    },
    /// Python cannot be started.
    #[error("{}, which would run it, cannot be started: {error}", .python.display())]
    NoPython {
        /// The file of the interpreter.
        python: PathBuf,
        /// The system's answer.
        error: String,
    },
    /// Python does not find the function, for a reason in words.
    #[error("{0}")]
    NotInPython(String),
}

/// A function, by library and name.
type FunctionKey<'h> = (Option<&'h str>, &'h str);

/// The missing functions, each by its first instance. If the host process starts in a shell, only
/// the shell knows the effect of environment modules and logins. Then no function counts as
/// missing.
pub(super) fn missing_functions<'h>(
    hosting: &'h Hosting,
    prepared: &PreparedCommand,
    context: &LaunchContext<'_>,
) -> Vec<(&'h PlannedFunction, FunctionError)> {
    if prepared.script.is_some() {
        return Vec::new();
    }
    let mut functions: BTreeMap<FunctionKey<'h>, &PlannedFunction> = BTreeMap::new();
    for function in &hosting.functions {
        let key = (function.library.as_deref(), function.function.as_str());
        functions.entry(key).or_insert(function);
    }
    let search = FunctionSearch {
        hosting,
        env: environment_of(prepared, context),
        titin: Path::new(context.titin),
    };
    let missing = match hosting.python {
        true => search.missing_in_python(functions.keys().copied()),
        false => search.missing_in_libraries(functions.keys().copied()),
    };
    let missing = missing.into_iter();
    missing
        .map(|(key, error)| (functions[&key], error))
        .collect()
}

/// The environment of a program.
pub(super) fn environment_of(
    prepared: &PreparedCommand,
    context: &LaunchContext<'_>,
) -> BTreeMap<String, String> {
    let mut env = context.env.clone();
    env.extend(prepared.launch.set.iter().cloned());
    for name in &prepared.launch.unset {
        env.remove(name);
    }
    env
}

/// A search for functions in the places where the host process looks.
struct FunctionSearch<'h> {
    hosting: &'h Hosting,
    env: BTreeMap<String, String>,
    titin: &'h Path,
}

impl<'h> FunctionSearch<'h> {
    fn missing_in_libraries(
        &self,
        functions: impl Iterator<Item = FunctionKey<'h>>,
    ) -> Vec<(FunctionKey<'h>, FunctionError)> {
        let mut files: BTreeMap<&str, Result<Vec<u8>, FunctionError>> = BTreeMap::new();
        let mut missing = Vec::new();
        for (library, function) in functions {
            let Some(name) = library else { continue };
            let file = files.entry(name).or_insert_with(|| self.read_library(name));
            let error = match file {
                Err(error) => error.clone(),
                Ok(bytes) if has_function(bytes, function) => continue,
                Ok(_) => FunctionError::NoFunction {
                    library: name.to_owned(),
                    function: function.to_owned(),
                },
            };
            missing.push(((library, function), error));
        }
        missing
    }

    fn missing_in_python(
        &self,
        functions: impl Iterator<Item = FunctionKey<'h>>,
    ) -> Vec<(FunctionKey<'h>, FunctionError)> {
        let keys: Vec<FunctionKey<'h>> = functions.collect();
        let names: Vec<&str> = keys.iter().map(|(_, function)| *function).collect();
        let active = self.env.get("VIRTUAL_ENV").map(Path::new);
        let python = python(active, Some(self.titin));
        let answer = match self.ask_python(&python, &names) {
            Ok(answer) => answer,
            Err(error) => {
                let error = FunctionError::NoPython {
                    python,
                    error: error.to_string(),
                };
                return keys.into_iter().map(|key| (key, error.clone())).collect();
            }
        };
        let error = |name: &str| Some(FunctionError::NotInPython(answer.get(name)?.clone()));
        let keys = keys.into_iter();
        keys.filter_map(|key| Some((key, error(key.1)?))).collect()
    }

    /// Python's answers about functions that Python cannot find: a reason for each. An unreadable
    /// answer says nothing about the functions.
    fn ask_python(
        &self,
        python: &Path,
        functions: &[&str],
    ) -> io::Result<BTreeMap<String, String>> {
        let question = serde_json::json!({"folders": self.hosting.folders, "functions": functions})
            .to_string();
        let mut asked = Command::new(python)
            .args(["-c", FIND_FUNCTIONS])
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        // Python reads the whole question before answering, so the write cannot block for ever.
        if let Some(mut stdin) = asked.stdin.take() {
            stdin.write_all(question.as_bytes())?;
        }
        let answer = asked.wait_with_output()?;
        Ok(serde_json::from_slice(&answer.stdout).unwrap_or_default())
    }

    /// The bytes of a library; empty if only the loader knows the library's place.
    fn read_library(&self, library: &str) -> Result<Vec<u8>, FunctionError> {
        let path = Path::new(library);
        if path.is_relative() {
            return self.check_relative(library).map(|()| Vec::new());
        }
        match std::fs::read(path) {
            Ok(bytes) if bytes.starts_with(b"\x7fELF") => Ok(bytes),
            Ok(_) => Err(FunctionError::NoLibrary(library.to_owned())),
            Err(error) => Err(FunctionError::Unreadable {
                library: library.to_owned(),
                error: error.to_string(),
            }),
        }
    }

    /// Fails for a library with a relative name, which is in no folder of the description, unless
    /// the loader finds the library.
    fn check_relative(&self, library: &str) -> Result<(), FunctionError> {
        let folders = self.hosting.folders.iter();
        let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
        let (library, folders) = (library.to_owned(), folders.join(", "));
        match library.contains('/') {
            true => Err(FunctionError::NotInFolders { library, folders }),
            false if self.is_known_to_loader(&library) => Ok(()),
            false => Err(FunctionError::Nowhere { library, folders }),
        }
    }

    /// Whether the loader finds a library by its name alone.
    fn is_known_to_loader(&self, library: &str) -> bool {
        let given = self.env.get("LD_LIBRARY_PATH").map_or("", String::as_str);
        let given = given.split(':').filter(|folder| !folder.is_empty());
        let mut folders = given.chain(LIBRARY_FOLDERS).map(Path::new);
        folders.any(|folder| folder.join(library).exists()) || is_in_loader_cache(library)
    }
}

fn is_in_loader_cache(library: &str) -> bool {
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    contains(&cache, format!("/{library}\0").as_bytes())
}

/// Whether a library may have a function: an exported name stands in the file, with a zero byte
/// behind the name. Empty bytes say nothing about the function, so the answer is yes.
fn has_function(bytes: &[u8], function: &str) -> bool {
    bytes.is_empty() || contains(bytes, format!("{function}\0").as_bytes())
}

/// Whether a file is a program that uses titin and surely not Python, neither linked nor loaded at
/// run time. The word python says nothing, because the folder of titin's own library is below
/// Python's.
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
        && contains(&bytes, b"titin")
        && !PYTHON.iter().any(|name| contains(&bytes, name))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
