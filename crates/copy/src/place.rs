//! Sources and destinations as users write them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A file or directory on this host or on another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The other host as `ssh` knows it, with a user's name if given; `None` for this host.
    pub host: Option<String>,
    /// The name there. On another host a relative one begins at the home directory.
    pub path: PathBuf,
}

impl Place {
    /// Reads `PATH` or `HOST:PATH`. As with `scp`, a colon behind a slash belongs to the name of a file.
    pub fn parse(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        let colon = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
        let host = colon
            .filter(|place| *place > 0 && bytes[*place] == b':')
            .and_then(|place| Some((place, str::from_utf8(&bytes[..place]).ok()?)));
        match host {
            Some((place, host)) => {
                let path = &bytes[place + 1..];
                // A relative name begins at the home directory anyway.
                let path = match path {
                    b"~" => b"",
                    _ => path.strip_prefix(b"~/").unwrap_or(path),
                };
                Place {
                    host: Some(host.to_owned()),
                    path: PathBuf::from(OsStr::from_bytes(path)),
                }
            }
            None => Place {
                host: None,
                path: PathBuf::from(text),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_comes_before_the_first_colon() {
        let place = |text: &str| {
            let Place { host, path } = Place::parse(OsStr::new(text));
            (
                host.unwrap_or_default(),
                path.to_string_lossy().into_owned(),
            )
        };
        let is = |host: &str, path: &str| (host.to_owned(), path.to_owned());
        assert_eq!(place("a/b"), is("", "a/b"));
        assert_eq!(place("me@far:a/b:c"), is("me@far", "a/b:c"));
        assert_eq!(place("far:"), is("far", ""));
        assert_eq!(place("far:~"), is("far", ""));
        assert_eq!(place("far:~/a"), is("far", "a"));
        assert_eq!(place("far:~a"), is("far", "~a"));
        assert_eq!(place("./a:b"), is("", "./a:b"));
        assert_eq!(place(":b"), is("", ":b"));
    }
}
