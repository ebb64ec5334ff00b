//! `titin config`: the paths of the library, the headers and the modules, as flags for build
//! systems.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use titin_manager::shell::quote;

use crate::terminal::{answer, complain};

/// What compiles programs needs this file.
const HEADER: &str = "include/titin.h";

/// The system libraries needed by the static library.
const SYSTEM_LIBRARIES: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Prints the flags, source files and directories with which a Makefile compiles programs with
/// titin
///
/// Several options are answered in one line, in the order of this list. A word with letters that a
/// shell would interpret is quoted, as a Makefile's `$(shell titin config ...)` needs, or `eval` in
/// a shell. A single directory is never quoted. C, C++:
/// `cc $(titin config --cflags) program.c $(titin config --libs)`. Fortran compiles the module's
/// source beside the program:
/// `gfortran $(titin config --fortran) program.f90 $(titin config --libs)`. CMake:
/// `find_package(titin)` with `-Dtitin_DIR=$(titin config --cmake-dir)`.
#[derive(Args)]
pub(crate) struct Config {
    /// Answer for programs that were written for another library, which is here over titin
    #[arg(long, value_name = "LIBRARY")]
    compat: Option<Library>,
    #[command(flatten)]
    asked: Asked,
}

/// A library whose interface is here over titin.
#[derive(Clone, Copy, ValueEnum)]
enum Library {
    /// MUSCLE3 in C++ and Fortran; with it --fortran is the directory of the Makefile of its modules
    Muscle3,
    /// MUSCLE 2 in C, C++ and Fortran; with it --fortran is the source file of its constants
    Muscle2,
}

impl Library {
    /// The directory with `include`, `lib` and `fortran` of the library.
    fn prefix(self, prefix: &Path) -> PathBuf {
        match self {
            Library::Muscle3 => prefix.join("muscle3"),
            Library::Muscle2 => prefix.join("muscle2"),
        }
    }

    /// The name of the CMake package.
    fn cmake_package(self) -> &'static str {
        match self {
            Library::Muscle3 => "libmuscle",
            Library::Muscle2 => "muscle2",
        }
    }

    /// The library that programs link beside titin's own.
    fn archive(self, prefix: &Path) -> Option<PathBuf> {
        match self {
            Library::Muscle3 => None,
            Library::Muscle2 => Some(self.prefix(prefix).join("lib/libmuscle2.a")),
        }
    }

    /// What `--fortran` answers.
    fn fortran(self, prefix: &Path) -> PathBuf {
        let folder = self.prefix(prefix).join("fortran");
        match self {
            Library::Muscle3 => folder,
            Library::Muscle2 => folder.join("muscle2.f90"),
        }
    }
}

/// What the user asks for.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct Asked {
    /// Flags to compile C and C++ with
    #[arg(long)]
    cflags: bool,
    /// Source files of the Fortran module, in the order of compilation
    #[arg(long)]
    fortran: bool,
    /// Source files of the Fortran modules for MPI: titin_mpi, to compile after the files of
    /// --fortran
    #[arg(long)]
    fortran_mpi: bool,
    /// The same for programs that use mpi_f08: titin_mpi_f08
    #[arg(long)]
    fortran_mpi_f08: bool,
    /// The same for coarrays: titin_coarray
    #[arg(long)]
    fortran_coarray: bool,
    /// The same for Global Arrays: titin_ga, and a C file with the flags to compile the C file
    #[arg(long)]
    fortran_ga: bool,
    /// Flags to link with
    #[arg(long)]
    libs: bool,
    /// Flags to link with, for the static library
    #[arg(long = "static")]
    archive: bool,
    /// The directory with all the files
    #[arg(long)]
    prefix: bool,
    /// The directory of titin.h and titin.hpp
    #[arg(long)]
    include_dir: bool,
    /// The directory of libtitin.so and libtitin.a
    #[arg(long)]
    lib_dir: bool,
    /// The directory of the CMake package, for titin_DIR
    #[arg(long)]
    cmake_dir: bool,
    /// The directory of titin.pc, for PKG_CONFIG_PATH
    #[arg(long, alias = "pkgconfig")]
    pkg_config_dir: bool,
}

impl Config {
    pub(crate) fn run(&self) -> ExitCode {
        match prefix_with(HEADER) {
            Ok(prefix) => answer(&(self.answer(&prefix) + "\n")),
            Err(error) => complain(error),
        }
    }

    fn answer(&self, prefix: &Path) -> String {
        let (flags, folders) = (self.flags(prefix), self.folders(prefix));
        match (&flags[..], &folders[..]) {
            // A single directory is not quoted: users write `"$(titin config --prefix)"`.
            ([], [alone]) => alone.display().to_string(),
            _ => {
                let folders = folders.iter().map(|path| quoted(path));
                let words: Vec<String> = flags.into_iter().chain(folders).collect();
                words.join(" ")
            }
        }
    }

    /// The flags and source files that the user asks for.
    fn flags(&self, prefix: &Path) -> Vec<String> {
        let Config { compat, asked } = self;
        let lib = prefix.join("lib");
        let headers = compat.map(|library| library.prefix(prefix).join("include"));
        let headers = headers.into_iter().chain([prefix.join("include")]);
        let headers: Vec<String> = headers.map(|folder| option("-I", &folder)).collect();
        let rpath = quote(&format!("-Wl,-rpath,{}", lib.to_string_lossy()));
        // The archive stands before titin's library, whose functions it calls.
        let archive = compat.and_then(|library| library.archive(prefix));
        let archive = archive.map_or(String::new(), |path| quoted(&path) + " ");
        let module = |name: &str| quoted(&prefix.join("fortran").join(name));
        wanted([
            (asked.cflags, headers.join(" ")),
            (asked.fortran && compat.is_none(), fortran(prefix)),
            (
                asked.fortran_mpi || asked.fortran_mpi_f08,
                module("titin_mpi.f90"),
            ),
            (asked.fortran_mpi_f08, module("titin_mpi_f08.f90")),
            (asked.fortran_coarray, module("titin_coarray.f90")),
            (asked.fortran_ga, arrays(prefix)),
            (
                asked.libs && !asked.archive,
                format!("{archive}{} {rpath} -ltitin", option("-L", &lib)),
            ),
            (
                asked.archive,
                format!(
                    "{archive}{} {SYSTEM_LIBRARIES}",
                    quoted(&lib.join("libtitin.a"))
                ),
            ),
        ])
    }

    /// The directories that the user asks for.
    fn folders(&self, prefix: &Path) -> Vec<PathBuf> {
        let Config { compat, asked } = self;
        let lib = prefix.join("lib");
        let own_lib = compat.map(|library| library.prefix(prefix).join("lib"));
        let modules = compat.iter().map(|library| library.fortran(prefix));
        let package = compat.map_or("titin", Library::cmake_package);
        let cmake = own_lib.as_ref().unwrap_or(&lib).join("cmake").join(package);
        let mut pkg_config = OsString::new();
        for folder in own_lib.iter().chain([&lib]) {
            if !pkg_config.is_empty() {
                pkg_config.push(":");
            }
            pkg_config.push(folder.join("pkgconfig"));
        }
        wanted([
            (asked.prefix, prefix.to_path_buf()),
            (asked.include_dir, prefix.join("include")),
            (asked.lib_dir, lib.clone()),
            (asked.cmake_dir, cmake),
            (asked.pkg_config_dir, pkg_config.into()),
        ])
        .into_iter()
        .chain(modules.filter(|_| asked.fortran))
        .collect()
    }
}

/// The answers to the options that are set.
fn wanted<T, const N: usize>(answers: [(bool, T); N]) -> Vec<T> {
    let answers = answers.into_iter();
    answers
        .filter_map(|(wanted, answer)| wanted.then_some(answer))
        .collect()
}

/// No directory of an installation has the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PrefixError {
    #[error("TITIN_PREFIX is {}, where there is no {file}", .place.display())]
    Given { place: PathBuf, file: &'static str },
    #[error("{file}, which belongs to {}, was not found beside it; install titin with pip, or titin's package for \
             development of your distribution, or set TITIN_PREFIX to the directory that has {file}", .command.display())]
    NotFound {
        command: PathBuf,
        file: &'static str,
    },
}

/// The directory with `include`, `lib` and `fortran` that has `file`. A distribution may have put
/// what is in the directory into several packages, and only some of them may be installed.
///
/// # Errors
/// [`PrefixError`] if there is no such directory.
pub(super) fn prefix_with(file: &'static str) -> Result<PathBuf, PrefixError> {
    let executable = std::env::current_exe().unwrap_or_default();
    let given = std::env::var_os("TITIN_PREFIX").map(PathBuf::from);
    find(&executable, given, file)
}

/// The directory with `file` for a command: in a Python environment the package `titin`, in a
/// distribution with a directory for each architecture the directory `titin` there, in a build
/// tree the sources of the package, else the prefix of the command.
fn find(
    command: &Path,
    given: Option<PathBuf>,
    file: &'static str,
) -> Result<PathBuf, PrefixError> {
    if let Some(place) = given {
        return match place.join(file).is_file() {
            true => Ok(place),
            false => Err(PrefixError::Given { place, file }),
        };
    }
    let built = command.ancestors().skip(2);
    let built = built.map(|folder| folder.join("bindings/python/titin"));
    let mut places = installed_places(command).into_iter().chain(built);
    let found = places.find(|place| place.join(file).is_file());
    found.ok_or_else(|| PrefixError::NotFound {
        command: command.to_owned(),
        file,
    })
}

/// Where the files of an installed command may be.
fn installed_places(executable: &Path) -> Vec<PathBuf> {
    let Some(prefix) = executable.parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    for lib in ["lib", "lib64", "local/lib"] {
        for python in listing(&prefix.join(lib), "python3") {
            places.push(python.join("site-packages/titin"));
            places.push(python.join("dist-packages/titin"));
        }
    }
    places.push(prefix.join("lib").join(multiarch()).join("titin"));
    // The layout of `pip install --target`, and an ordinary prefix.
    places.push(prefix.join("titin"));
    places.push(prefix.to_path_buf());
    places
}

/// Debian's name of the directory for this architecture.
fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// The entries of a directory whose names begin with `begins`, the newest version first.
fn listing(folder: &Path, begins: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let version = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.rsplit('.')
            .next()
            .and_then(|minor| minor.parse::<u32>().ok())
    };
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begins))
        .map(|entry| entry.path())
        .collect();
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

/// The source files of the Fortran modules, in the order of compilation given by `sources.txt`.
fn fortran(prefix: &Path) -> String {
    let folder = prefix.join("fortran");
    let names = std::fs::read_to_string(folder.join("sources.txt")).unwrap_or_default();
    names
        .split_whitespace()
        .map(|name| quoted(&folder.join(name)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The module for Global Arrays, and the module's C file with the flag for the directory of
/// headers.
fn arrays(prefix: &Path) -> String {
    let below = [
        option("-I", &prefix.join("include")),
        quoted(&prefix.join("fortran/titin_ga.c")),
    ];
    format!(
        "{} {}",
        below.join(" "),
        quoted(&prefix.join("fortran/titin_ga.f90"))
    )
}

fn option(flag: &str, path: &Path) -> String {
    quote(&format!("{flag}{}", path.to_string_lossy()))
}

/// A path, quoted for a shell.
fn quoted(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(root: &Path, prefix: &str) -> PathBuf {
        let prefix = root.join(prefix);
        std::fs::create_dir_all(prefix.join("include")).unwrap();
        std::fs::write(prefix.join(HEADER), "").unwrap();
        prefix
    }

    #[test]
    fn an_environment_has_it_in_the_newest_python() {
        let root = tempfile::tempdir().unwrap();
        installed(root.path(), "lib/python3.9/site-packages/titin");
        let newest = installed(root.path(), "lib/python3.11/site-packages/titin");
        assert_eq!(
            find(&root.path().join("bin/titin"), None, HEADER),
            Ok(newest)
        );
    }

    #[test]
    fn a_prefix_a_target_and_a_build_tree_are_found() {
        for (prefix, command) in [
            ("usr/lib/../", "usr/bin/titin"),
            ("target/titin", "target/bin/titin"),
            ("tree/bindings/python/titin", "tree/target/debug/titin"),
        ] {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join("usr/lib")).unwrap();
            let expected = installed(root.path(), prefix).canonicalize().unwrap();
            let found = find(&root.path().join(command), None, HEADER).unwrap();
            assert_eq!(found.canonicalize().unwrap(), expected, "{prefix}");
        }
    }

    #[test]
    fn a_distribution_may_leave_the_headers_to_another_package() {
        const HOST: &str = "lib/titin-host";
        let root = tempfile::tempdir().unwrap();
        let command = root.path().join("usr/bin/titin");
        let own = root.path().join("usr/lib").join(multiarch()).join("titin");
        std::fs::create_dir_all(own.join("lib")).unwrap();
        std::fs::write(own.join(HOST), "").unwrap();
        assert_eq!(find(&command, None, HOST), Ok(own.clone()));
        let error = find(&command, None, HEADER).unwrap_err().to_string();
        assert!(
            error.contains(HEADER) && error.contains("package for development"),
            "{error}"
        );
        installed(&own, "");
        // The headers of the system are there, too.
        installed(root.path(), "usr");
        assert_eq!(find(&command, None, HEADER), Ok(own));
    }

    #[test]
    fn nothing_there_says_where_to_look() {
        let root = tempfile::tempdir().unwrap();
        let error = find(&root.path().join("bin/titin"), None, HEADER)
            .unwrap_err()
            .to_string();
        assert!(error.contains("TITIN_PREFIX"), "{error}");
        let given = Some(root.path().into());
        let error = find(&root.path().join("bin/titin"), given, HEADER)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no include/titin.h"), "{error}");
    }

    #[test]
    fn words_are_quoted_for_a_makefile_and_a_directory_alone_is_not() {
        let config = |option: &str| {
            #[derive(clap::Parser)]
            struct Command {
                #[command(flatten)]
                config: Config,
            }
            let words = std::iter::once("titin").chain(option.split(' '));
            <Command as clap::Parser>::parse_from(words).config
        };
        let prefix = Path::new("/opt/it's $5");
        assert_eq!(
            config("--cflags").answer(prefix),
            r"'-I/opt/it'\''s $5/include'"
        );
        assert_eq!(config("--prefix").answer(prefix), "/opt/it's $5");
        assert_eq!(
            config("--fortran-coarray --fortran-ga").answer(Path::new("/opt/titin")),
            "/opt/titin/fortran/titin_coarray.f90 -I/opt/titin/include /opt/titin/fortran/titin_ga.c \
             /opt/titin/fortran/titin_ga.f90"
        );
        assert_eq!(
            config("--cflags --libs").answer(Path::new("/opt/titin")),
            "-I/opt/titin/include -L/opt/titin/lib -Wl,-rpath,/opt/titin/lib -ltitin"
        );
        for (options, answer) in [
            (
                "--cflags --libs",
                "-I/t/muscle3/include -I/t/include -L/t/lib -Wl,-rpath,/t/lib -ltitin",
            ),
            ("--fortran", "/t/muscle3/fortran"),
            ("--pkgconfig", "/t/muscle3/lib/pkgconfig:/t/lib/pkgconfig"),
            ("--cmake-dir", "/t/muscle3/lib/cmake/libmuscle"),
        ] {
            let asked = format!("--compat muscle3 {options}");
            assert_eq!(config(&asked).answer(Path::new("/t")), answer);
        }
        for (options, answer) in [
            (
                "--cflags --libs",
                "-I/t/muscle2/include -I/t/include /t/muscle2/lib/libmuscle2.a -L/t/lib -Wl,-rpath,/t/lib -ltitin",
            ),
            ("--fortran", "/t/muscle2/fortran/muscle2.f90"),
            ("--pkgconfig", "/t/muscle2/lib/pkgconfig:/t/lib/pkgconfig"),
            ("--cmake-dir", "/t/muscle2/lib/cmake/muscle2"),
        ] {
            let asked = format!("--compat muscle2 {options}");
            assert_eq!(config(&asked).answer(Path::new("/t")), answer);
        }
    }

    #[test]
    fn modules_are_listed_before_what_uses_them() {
        let root = tempfile::tempdir().unwrap();
        let prefix = installed(root.path(), "a b");
        std::fs::create_dir_all(prefix.join("fortran")).unwrap();
        std::fs::write(
            prefix.join("fortran/sources.txt"),
            "titin_c.f90\ntitin.f90\n",
        )
        .unwrap();
        let folder = prefix.join("fortran").display().to_string();
        assert_eq!(
            fortran(&prefix),
            format!("'{folder}/titin_c.f90' '{folder}/titin.f90'")
        );
    }
}
