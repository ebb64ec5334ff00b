//! Sources and destinations as users write them.

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
    pub fn parse(text: &str) -> Self {
        let (host, path) = match text.split_once(':') {
            Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                (Some(host.to_owned()), path)
            }
            _ => (None, text),
        };
        Place {
            host,
            path: PathBuf::from(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_comes_before_the_first_colon() {
        let place = |text| {
            let Place { host, path } = Place::parse(text);
            (
                host.unwrap_or_default(),
                path.to_string_lossy().into_owned(),
            )
        };
        let is = |host: &str, path: &str| (host.to_owned(), path.to_owned());
        assert_eq!(place("a/b"), is("", "a/b"));
        assert_eq!(place("me@far:a/b:c"), is("me@far", "a/b:c"));
        assert_eq!(place("far:"), is("far", ""));
        assert_eq!(place("./a:b"), is("", "./a:b"));
        assert_eq!(place(":b"), is("", ":b"));
    }
}
