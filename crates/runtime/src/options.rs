//! How a program opens an instance.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use titin_model::{Checks, Operator};
use titin_wire::Secret;
use titin_wire::connection;
use titin_wire::connection::Connection;
use titin_wire::control::PortDeclaration;

use crate::communicator::Communicator;
use crate::filter::Functions;
use crate::non_blocking::ReadyListEntry;
use crate::{Error, Kind, Result};

/// The options of a program that opens an instance. By default all options come from the
/// environment.
#[derive(Default)]
pub struct Options {
    pub(crate) instance: Option<String>,
    pub(crate) manager: Option<String>,
    pub(crate) ports: Option<Vec<PortDeclaration>>,
    pub(crate) language: String,
    pub(crate) checks: Checks,
    pub(crate) overlays: OverlayUse,
    pub(crate) receiving: ReceivingRanks,
    pub(crate) functions: Functions,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) ready: Option<Arc<ReadyListEntry>>,
    pub(crate) communicator: Option<Box<dyn Communicator>>,
}

/// What the settings overlays of messages do at an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OverlayUse {
    /// The overlays of the F_INIT messages are merged. They hold for the use, and go with its messages.
    #[default]
    Inherited,
    /// An overlay is that of its message alone. It changes no setting of the instance, and goes only with messages
    /// to which the program gives it. For programs that pass on messages of several members, such as a load
    /// balancer. What comes on `muscle_settings_in` holds for the use all the same.
    Explicit,
}

/// The ranks of a parallel program that get the data of received messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReceivingRanks {
    /// All ranks.
    #[default]
    All,
    /// Rank 0. The other ranks get a message without data, with the timestamps and settings.
    RootOnly,
}

/// Whether the program wants a waiting call to end.
pub(crate) type Interrupt = Box<dyn Fn() -> bool + Send + Sync>;

impl Options {
    /// The instance to be, in place of `TITIN_INSTANCE`; for several instances in one process.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// The run to join, in place of `TITIN_MANAGER`: a connection file's path, or `tcp:host:port`.
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.manager = Some(manager.into());
        self
    }

    /// Declares a port; `name[]` is a vector port. Without declarations the instance has the ports
    /// of the description.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the name is no identifier, or was declared before.
    pub fn port(mut self, name: &str, operator: Operator) -> Result<Self> {
        let bare = bare(name);
        if !titin_model::is_identifier(bare) {
            let text = format!(
                "\"{name}\" cannot be the name of a port: it takes a letter or _, then letters, digits and _"
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let declaration = PortDeclaration {
            name: bare.to_owned(),
            operator: operator.key().to_owned(),
            vector: name.ends_with("[]"),
        };
        let ports = self.ports.get_or_insert_default();
        if ports.iter().any(|known| known.name == bare) {
            let text = format!(
                "port '{bare}' is declared twice; declare each port once, by a name of its own"
            );
            return Err(Error::new(Kind::Usage, text));
        }
        ports.push(declaration);
        Ok(self)
    }

    /// Declares ports as text: `"f_init: a, b; o_f: c"`.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the text is not of this form, or declares a port twice.
    pub fn ports(mut self, text: &str) -> Result<Self> {
        let wrong = |part: &str| {
            let text = format!(
                "ports are declared as \"f_init: a, b; o_i: c; s: d; o_f: e\" with identifiers as names; found \"{}\"",
                part.trim()
            );
            Error::new(Kind::Usage, text)
        };
        for group in text.split(';').filter(|group| !group.trim().is_empty()) {
            let (key, names) = group.split_once(':').ok_or_else(|| wrong(group))?;
            let operator = Operator::from_key(key.trim()).ok_or_else(|| wrong(group))?;
            for name in names
                .split([',', ' ', '\t', '\n'])
                .filter(|name| !name.is_empty())
            {
                if !titin_model::is_identifier(bare(name)) {
                    return Err(wrong(group));
                }
                self = self.port(name, operator)?;
            }
        }
        Ok(self)
    }

    /// The language of the program, for the log.
    pub fn language(mut self, language: &str) -> Self {
        self.language = language.to_owned();
        self
    }

    /// What becomes of calls out of order, unless the setting `muscle_checks` says it.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// What the settings overlays of messages do.
    pub fn overlays(mut self, overlays: OverlayUse) -> Self {
        self.overlays = overlays;
        self
    }

    /// The ranks that get the data of received messages. All ranks give the same. Fields are not
    /// affected.
    pub fn receiving(mut self, ranks: ReceivingRanks) -> Self {
        self.receiving = ranks;
        self
    }

    /// How the user's own filters are called.
    pub fn functions(mut self, functions: Functions) -> Self {
        self.functions = functions;
        self
    }

    /// Calls `interrupted` while a call waits, as
    /// [`Instance::on_interrupt`](crate::Instance::on_interrupt) does, and already while the
    /// instance is opened. An interrupted opening fails the run if the manager has heard of the
    /// opening.
    pub fn on_interrupt(mut self, interrupted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.interrupt = Some(Box::new(interrupted));
        self
    }

    /// Makes the instance non-blocking. Where a call would wait, the call comes back with
    /// [`Kind::Pending`], and titin puts the instance on the list once the call may go on. Then the
    /// program makes the same call again, with the same arguments.
    pub fn ready(mut self, entry: Arc<ReadyListEntry>) -> Self {
        self.ready = Some(entry);
        self
    }

    /// This process is one of many ranks of the instance. All ranks open the instance together.
    /// Titin uses the communicator on the opening thread, until the instance is open or the opening
    /// has failed.
    pub fn communicator(mut self, communicator: impl Communicator + 'static) -> Self {
        self.communicator = Some(Box::new(communicator));
        self
    }

    /// The instance to be: as given, else from the environment.
    pub(crate) fn find_instance(&self) -> Result<String> {
        let given = match &self.instance {
            Some(name) => Some(name.clone()),
            None => variable(&connection::INSTANCE)?,
        };
        given.ok_or_else(|| {
            Error::new(
                Kind::Connection,
                "this program does not know which instance it is: TITIN_INSTANCE is not set; start it with `titin run`, \
                 or set TITIN_INSTANCE and TITIN_MANAGER as `titin manager` prints them",
            )
        })
    }

    /// The run to join: as given, else from the environment.
    pub(crate) fn find_run(&self) -> Result<Connection> {
        let wrong = |text: String| Error::new(Kind::Connection, text);
        let given = match &self.manager {
            Some(manager) => Some(manager.clone()),
            None => variable(&connection::MANAGER)?,
        };
        let manager = given.ok_or_else(|| {
            wrong(
                "this program does not know its run: TITIN_MANAGER is not set; start it with `titin run`, or by hand \
                 beside `titin manager`, which prints what to set"
                    .to_owned(),
            )
        })?;
        if manager.starts_with("tcp:") {
            let secret = secret_for(&manager)?;
            let found = Connection::from_addresses(&manager, secret);
            return found.ok_or_else(|| {
                wrong(format!(
                    "TITIN_MANAGER is {manager}, expected tcp:host:port"
                ))
            });
        }
        let text = read(&manager).map_err(|error| unreadable(&manager, &error))?;
        Connection::from_json(&text)
            .map_err(|error| wrong(format!("{manager} (from TITIN_MANAGER): {error}")))
    }
}

/// The secret of the run at the given address. The secret leaves the environment once an instance
/// is opened, and stays here for further instances of the process.
fn secret_for(manager: &str) -> Result<Secret> {
    static KNOWN: Mutex<BTreeMap<String, Secret>> = Mutex::new(BTreeMap::new());
    let wrong = |text: String| Error::new(Kind::Connection, text);
    let mut known = KNOWN.lock().expect("nothing panics while it is locked");
    if let Ok(secret) = std::env::var(connection::SECRET) {
        let secret: Secret = secret
            .parse()
            .map_err(|error| wrong(format!("TITIN_SECRET: {error}")))?;
        known.insert(manager.to_owned(), secret.clone());
        return Ok(secret);
    }
    known.get(manager).cloned().ok_or_else(|| {
        wrong(format!(
            "TITIN_MANAGER is {manager}, so TITIN_SECRET must hold the run's secret, and is not set"
        ))
    })
}

/// The name of a port without the mark of a vector port.
fn bare(name: &str) -> &str {
    name.strip_suffix("[]").unwrap_or(name)
}

/// The error of a connection file that cannot be read.
fn unreadable(file: &str, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "only the user who has started the run may read it: have him give you a copy, or"
        }
        _ => "the run may be over, or this host does not share the file system: then",
    };
    let text = format!(
        "cannot read the run's connection file {file} (from TITIN_MANAGER): {error}; {why} set TITIN_MANAGER \
         to tcp:host:port and TITIN_SECRET"
    );
    Error::new(Kind::Connection, text)
}

/// The text of a connection file. Reads no more bytes than such a file can have, also from an
/// endless file.
fn read(path: &str) -> std::io::Result<String> {
    const LONGEST: u64 = 1 << 20;
    let mut text = String::new();
    let length = File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    match length as u64 > LONGEST {
        true => Err(std::io::Error::other("it is too large to be one")),
        false => Ok(text),
    }
}

/// The first of the given environment variables that is set and not empty.
///
/// # Errors
/// [`Kind::Connection`] if the value is not UTF-8.
fn variable(names: &[&str]) -> Result<Option<String>> {
    let set = names.iter().find_map(|name| {
        Some((
            name,
            std::env::var_os(name).filter(|value| !value.is_empty())?,
        ))
    });
    set.map(|(name, value)| {
        value.into_string().map_err(|value| {
            let text = format!("{name} is {value:?}, which is not UTF-8: names, and the path of the run directory, have to be");
            Error::new(Kind::Connection, text)
        })
    })
    .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_declared_as_text() {
        let options = Options::default().ports("f_init: a b[]; o_f: c,").unwrap();
        let ports = options.ports.unwrap();
        let found: Vec<_> = ports
            .iter()
            .map(|p| (p.name.as_str(), p.operator.as_str(), p.vector))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "f_init", false),
                ("b", "f_init", true),
                ("c", "o_f", false)
            ]
        );
        for wrong in ["f_int: a", "a, b", "o_i: 1a"] {
            let error = Options::default().ports(wrong).err().unwrap();
            assert!(error.text.contains(wrong), "{error}");
        }
    }

    #[test]
    fn no_more_of_a_connection_file_is_read_than_one_can_have() {
        let error = Options::default()
            .manager("/dev/zero")
            .find_run()
            .unwrap_err();
        assert!(
            error.text.contains("/dev/zero") && error.text.contains("too large"),
            "{error}"
        );
    }

    #[test]
    fn a_port_is_declared_once() {
        for twice in ["f_init: a a", "f_init: a; s: a", "o_i: a, a[]"] {
            let error = Options::default().ports(twice).err().unwrap();
            assert!(error.text.contains("port 'a' is declared twice"), "{error}");
        }
    }
}
