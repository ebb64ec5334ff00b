//! The other end of a copy, on another host: started by `ssh`, as `scp` does, and reached by a path of its own.
//!
//! This end gives the key of the path by the standard input of `ssh`, and the other end answers with its port. If the port
//! cannot be reached, because of a firewall say, the path goes through a tunnel of `ssh`.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use titin_os::host;
use titin_path::{Key, Listener, Path as MessagePath, PathError, PathSettings, parse_addresses};

use crate::destination::Destination;
use crate::error::{CopyError, Result, malformed};
use crate::keep::{keep_receiving, keep_sending};
use crate::receiver::receive;
use crate::report::{CopyProgress, CopyReport};
use crate::sender::send;
use crate::settings::CopySettings;
use crate::sources::{FileIdentity, Source, SourceKind, Sources, has_slash};

/// The line of the other end begins with this word. What the shell of the other host prints before is left out.
const ANSWER: &str = "titin-copy";

/// The most bytes of a request.
const MOST_REQUEST: u64 = 64 << 20;

/// The most bytes that the shell of the other host may print before the answer, with the answer.
const MOST_NOISE: u64 = 1 << 20;

/// How long the port of the other host may take to answer, before the tunnel is tried.
const STRAIGHT_TIME: Duration = Duration::from_secs(6);

/// How long a path by relays may take to open, before the next address is tried.
const RELAYED_TIME: Duration = Duration::from_secs(20);

/// How long a path may take to open, and how long the other end waits for it.
const OPENING_TIME: Duration = Duration::from_secs(120);

/// The exit code of an other end that cannot do its part, for another reason than the path.
pub const FAR_FAILED: u8 = 2;

/// How often the other end looks whether the end that has asked is still there.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// How long the other end may take to end.
const ENDING_TIME: Duration = Duration::from_secs(20);

/// How to reach the other host, and how to copy.
#[derive(Debug, Clone)]
pub struct FarSettings {
    /// `ssh` and its arguments, without the host.
    pub ssh: Vec<String>,
    /// The command `titin` on the other host.
    pub titin: String,
    /// The site of the other host, if relays lead to it.
    pub site: Option<String>,
    /// The settings of the path.
    pub path: PathSettings,
    /// What the copy does.
    pub copy: CopySettings,
}

/// What the other end does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FarRole {
    /// It sends these sources.
    Send(Vec<FarName>),
    /// It receives these sources, at this destination.
    Receive(FarName, Vec<FarSource>),
}

/// A source, as the receiving end knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FarSource {
    name: FarName,
    kind: SourceKind,
    identity: FileIdentity,
    above: Vec<FileIdentity>,
}

impl From<Source> for FarSource {
    fn from(source: Source) -> Self {
        FarSource {
            name: PathBuf::from(source.name).into(),
            kind: source.kind,
            identity: source.identity,
            above: source.above.clone(),
        }
    }
}

impl From<&FarSource> for Source {
    fn from(source: &FarSource) -> Self {
        Source {
            name: PathBuf::from(&source.name).into_os_string(),
            kind: source.kind,
            identity: source.identity,
            above: source.above.clone(),
        }
    }
}

/// The name of a file on the other host, whose bytes need be no UTF-8.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FarName(#[serde(with = "serde_bytes")] Vec<u8>);

impl From<PathBuf> for FarName {
    fn from(path: PathBuf) -> Self {
        FarName(path.into_os_string().into_vec())
    }
}

impl From<&FarName> for PathBuf {
    fn from(name: &FarName) -> Self {
        OsString::from_vec(name.0.clone()).into()
    }
}

/// What the other end reads.
#[derive(Serialize, Deserialize)]
struct FarRequest {
    key: Key,
    role: FarRole,
    settings: CopySettings,
}

/// What the other end answers.
#[derive(Serialize, Deserialize)]
enum FarAnswer {
    /// It listens at this port of these addresses.
    Listening {
        port: u16,
        addresses: Vec<String>,
        /// The sources, at the end that sends.
        sources: Vec<FarSource>,
    },
    Failed(String),
}

/// The other end, and the path to it.
pub struct Far {
    /// The path.
    pub path: MessagePath,
    /// The sources, if the other end sends.
    pub sources: Vec<Source>,
    ssh: KilledAtEnd,
    tunnel: Option<KilledAtEnd>,
}

/// A process that is killed when it is dropped.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Far {
    /// Starts the other end on a host, and opens a path to it.
    ///
    /// # Errors
    /// [`CopyError::Far`] if the host cannot be reached or refuses.
    pub fn start(
        host: &str,
        role: FarRole,
        settings: &FarSettings,
    ) -> std::result::Result<Self, CopyError> {
        let key = Key::random();
        let mut ssh = ssh_command(settings)?;
        // The shell of the other host reads these words.
        let child = ssh
            .args(["--", host, &settings.titin, "copy-end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                CopyError::Far(format!("cannot start {}: {error}", settings.ssh.join(" ")))
            })?;
        let request = FarRequest {
            key: key.clone(),
            role,
            settings: settings.copy,
        };
        let mut ssh = KilledAtEnd(child);
        match ask(&mut ssh.0, &request)? {
            FarAnswer::Failed(why) => Err(CopyError::Place(format!("{host}: {why}"))),
            FarAnswer::Listening {
                port,
                addresses,
                sources,
            } => {
                let sources = check_sources(&request.role, &sources)?;
                let (path, tunnel) = open(host, port, &addresses, &key, settings)?;
                Ok(Far {
                    path,
                    sources,
                    ssh,
                    tunnel,
                })
            }
        }
    }

    /// Closes the path, and waits for the end of the other end. True if the other end says that it cannot do its part: what it
    /// has said itself is on the standard error.
    pub fn finish(mut self) -> bool {
        let _ = self.path.close(Some(ENDING_TIME));
        drop(self.tunnel);
        let until = Instant::now() + ENDING_TIME;
        while Instant::now() < until {
            match self.ssh.0.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(status)) => return status.code() == Some(FAR_FAILED.into()),
                Err(_) => break,
            }
        }
        false
    }
}

/// Checks the sources that the other end tells: it may send nothing but what it was asked for.
fn check_sources(role: &FarRole, told: &[FarSource]) -> Result<Vec<Source>> {
    let FarRole::Send(asked) = role else {
        return Ok(Vec::new());
    };
    let told: Vec<Source> = told.iter().map(Source::from).collect();
    let is_asked_for = |(asked, told): (&FarName, &Source)| {
        let name = Path::new(&told.name).file_name();
        let name = name.filter(|name| *name == told.name);
        let asked = PathBuf::from(asked);
        let may_be_contents = has_slash(&asked) || told.kind != SourceKind::Contents;
        // What `.` and `..` are called there, the other end knows. Their contents alone are copied.
        match (asked.file_name(), name) {
            (Some(asked), Some(name)) => asked == name && may_be_contents,
            (None, Some(_)) => told.kind == SourceKind::Contents,
            (_, None) => false,
        }
    };
    match told.len() == asked.len() && asked.iter().zip(&told).all(is_asked_for) {
        true => Ok(told),
        false => Err(malformed("sources other than those that were asked for")),
    }
}

fn ssh_command(settings: &FarSettings) -> Result<Command> {
    let (program, arguments) = settings
        .ssh
        .split_first()
        .ok_or_else(|| CopyError::Far("the command in place of ssh is empty".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Sends the request, and waits for the answer.
fn ask(child: &mut Child, request: &FarRequest) -> Result<FarAnswer> {
    let text = serde_json::to_string(request).expect("plain data");
    let (Some(stdin), Some(stdout)) = (&mut child.stdin, &mut child.stdout) else {
        return Err(CopyError::Far("ssh has no pipes".to_owned()));
    };
    // An end that has gone says why on the standard error, which is that of this process.
    let _ = writeln!(stdin, "{text}").and_then(|()| stdin.flush());
    let mut lines = BufReader::new(stdout.take(MOST_NOISE));
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = lines.read_until(b'\n', &mut line).unwrap_or_default();
        if count == 0 {
            return Err(CopyError::Far(unanswered(child)));
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(answer) = text.trim().strip_prefix(ANSWER) {
            return serde_json::from_str(answer).map_err(|error| {
                CopyError::Far(format!("the other end is of another release: {error}"))
            });
        }
    }
}

/// Why `ssh` has brought no answer. What it has said itself is above.
fn unanswered(child: &mut Child) -> String {
    const SSH_FAILED: i32 = 255;
    let code = child.wait().ok().and_then(|status| status.code());
    match code {
        Some(SSH_FAILED) => "ssh does not reach the other host: see what it says above".to_owned(),
        _ => "the other host has started no titin: see what it says above. If `ssh HOST titin --version` does not find \
              the command there, give its name with --titin"
            .to_owned(),
    }
}

/// Opens the path by relays: to the first of these names and addresses of the other host that the relay of its site reaches.
fn open_by_relays(
    site: &str,
    places: &[String],
    port: u16,
    key: &Key,
    settings: &FarSettings,
) -> Result<MessagePath> {
    let until = Instant::now() + OPENING_TIME;
    let mut failed = None;
    for place in places {
        let address = parse_addresses(&format!("relay:{site}/{place}:{port}"))?;
        let left = until.saturating_duration_since(Instant::now());
        let patient = PathSettings {
            patience: RELAYED_TIME.min(left),
            ..settings.path.clone()
        };
        match MessagePath::open(&address, ANSWER, key, &patient) {
            Err(why @ PathError::NotOpened(_)) => failed = failed.or(Some(why)),
            opened => return Ok(opened?),
        }
    }
    let no_place = || CopyError::Far("the other host has no address".to_owned());
    Err(failed.map_or_else(no_place, CopyError::Path))
}

/// Opens the path: by relays if a site is named, straight to the other host, or through a tunnel of `ssh`.
fn open(
    host: &str,
    port: u16,
    addresses: &[String],
    key: &Key,
    settings: &FarSettings,
) -> Result<(MessagePath, Option<KilledAtEnd>)> {
    let mut places = vec![host_name(host, settings)];
    places.extend(addresses.iter().cloned());
    places.dedup();
    if let Some(site) = &settings.site {
        let path = open_by_relays(site, &places, port, key, settings)?;
        return Ok((path, None));
    }
    let places: Vec<String> = places
        .iter()
        .map(|place| format!("session:{place}:{port}"))
        .collect();
    let straight = PathSettings {
        patience: STRAIGHT_TIME,
        ..settings.path.clone()
    };
    let opened = parse_addresses(&places.join(","))
        .and_then(|addresses| MessagePath::open(&addresses, ANSWER, key, &straight));
    match opened {
        Ok(path) => return Ok((path, None)),
        Err(why @ (PathError::OtherKey | PathError::Interrupted(_))) => return Err(why.into()),
        Err(_) => {}
    }
    let local = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let local = local
        .map_err(|error| CopyError::Far(error.to_string()))?
        .port();
    // `cat` ends with its input, and so does the tunnel when this process is killed.
    let tunnel = ssh_command(settings)?
        .args(["-o", "ExitOnForwardFailure=yes", "-L"])
        .arg(format!("127.0.0.1:{local}:127.0.0.1:{port}"))
        .args(["--", host, "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| CopyError::Far(format!("cannot start a tunnel of ssh: {error}")))?;
    let tunnel = KilledAtEnd(tunnel);
    let addresses = parse_addresses(&format!("session:127.0.0.1:{local}"))?;
    let patient = PathSettings {
        patience: OPENING_TIME,
        ..settings.path.clone()
    };
    Ok((
        MessagePath::open(&addresses, ANSWER, key, &patient)?,
        Some(tunnel),
    ))
}

/// The name or address by which `ssh` reaches a host.
fn host_name(host: &str, settings: &FarSettings) -> String {
    let asked = ssh_command(settings).and_then(|mut ssh| {
        let output = ssh.args(["-G", "--", host]).stderr(Stdio::null()).output();
        output.map_err(|error| CopyError::Far(error.to_string()))
    });
    let said = asked.map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let name = said.lines().find_map(|line| line.strip_prefix("hostname "));
    let name = name.unwrap_or_else(|| host.rsplit('@').next().unwrap_or(host));
    match name.contains(':') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    }
}

/// The other end: reads the request from `input`, answers by `output`, and does its part. The end that has asked says what
/// came of single files.
///
/// # Errors
/// [`CopyError`] if the copy fails as a whole.
pub fn serve_far(
    input: impl io::Read + Send + 'static,
    mut output: impl Write,
) -> std::result::Result<(), CopyError> {
    let mut line = String::new();
    let mut input = BufReader::new(input.take(MOST_REQUEST));
    input
        .read_line(&mut line)
        .map_err(|error| CopyError::Far(format!("cannot read what to copy: {error}")))?;
    let request: FarRequest = serde_json::from_str(&line)
        .map_err(|error| CopyError::Far(format!("this is no request of a copy: {error}")))?;
    let begun = FarTask::new(&request.role, &request.settings).and_then(|(task, sources)| {
        let (listener, answer) = listen(&request.key, sources)?;
        Ok((task, (listener, answer)))
    });
    let (answer, begun) = match begun {
        Ok((task, (listener, answer))) => (answer, Some((task, listener))),
        Err(why) => (FarAnswer::Failed(why.to_string()), None),
    };
    let answer = serde_json::to_string(&answer).expect("plain data");
    writeln!(output, "{ANSWER}{answer}")
        .and_then(|()| output.flush())
        .map_err(|error| CopyError::Far(format!("cannot answer: {error}")))?;
    // The end that has asked tells the user of what has failed until here.
    let Some((task, listener)) = begun else {
        return Ok(());
    };
    let path = accept(&listener, input)?;
    drop(listener);
    let (settings, silent) = (&request.settings, &mut Silent);
    let ended = match (task, settings.watching) {
        (FarTask::Send(sources), None) => send(&path, &sources, settings, silent).map(|_| ()),
        (FarTask::Receive(to), None) => receive(&path, &to, settings, silent).map(|_| ()),
        (FarTask::Send(sources), Some(_)) => {
            keep_sending(&path, &sources, settings, silent).map(|never| match never {})
        }
        (FarTask::Receive(to), Some(_)) => {
            keep_receiving(&path, &to, settings, silent).map(|never| match never {})
        }
    };
    ended?;
    Ok(path.close(Some(ENDING_TIME))?)
}

/// Waits for the path of the end that has asked, as long as that end keeps the input open.
fn accept(listener: &Listener, mut input: impl io::Read + Send + 'static) -> Result<MessagePath> {
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = is_over.clone();
    thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        ended.store(true, Ordering::Release);
    });
    let until = Instant::now() + OPENING_TIME;
    loop {
        match listener.accept(Some(ACCEPT_PAUSE)) {
            Err(PathError::Late { .. })
                if Instant::now() < until && !is_over.load(Ordering::Acquire) => {}
            accepted => return Ok(accepted?),
        }
    }
}

/// What the other end is to do, once that has been checked.
enum FarTask {
    Send(Sources),
    Receive(Destination),
}

impl FarTask {
    /// The task, and the sources if this end sends.
    fn new(role: &FarRole, settings: &CopySettings) -> Result<(Self, Vec<FarSource>)> {
        Ok(match role {
            FarRole::Send(names) => {
                let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
                let sources = Sources::find(&paths)?;
                let told = sources.told().into_iter().map(FarSource::from);
                let told = told.collect();
                (FarTask::Send(sources), told)
            }
            FarRole::Receive(name, sources) => {
                let sources = sources.iter().map(Source::from).collect();
                let destination = Destination::new(&PathBuf::from(name), sources)?;
                destination.check(settings.delete)?;
                (FarTask::Receive(destination), Vec::new())
            }
        })
    }
}

/// Listens at a port that the system chooses.
fn listen(key: &Key, sources: Vec<FarSource>) -> Result<(Listener, FarAnswer)> {
    let listener = Listener::start("0.0.0.0:0", key)?;
    let place = listener.place();
    let port = place.rsplit(':').next().and_then(|port| port.parse().ok());
    let answer = FarAnswer::Listening {
        port: port.unwrap_or_default(),
        addresses: host::addresses().iter().map(ToString::to_string).collect(),
        sources,
    };
    Ok((listener, answer))
}

/// The other end shows no progress.
struct Silent;

impl CopyProgress for Silent {
    fn known(&mut self, _: u64, _: u64) {}
    fn begun(&mut self, _: &str, _: u64) {}
    fn moved(&mut self, _: u64) {}
    fn round_over(&mut self, _: &CopyReport, _: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_may_send_what_it_was_asked_for_and_nothing_else() {
        let is_taken = |asked: &str, told: &str, kind| {
            let role = FarRole::Send(vec![PathBuf::from(asked).into()]);
            let told = FarSource {
                name: PathBuf::from(told).into(),
                kind,
                identity: FileIdentity::default(),
                above: Vec::new(),
            };
            check_sources(&role, &[told]).is_ok()
        };
        let kinds = [
            SourceKind::File,
            SourceKind::Directory,
            SourceKind::Contents,
        ];
        for (asked, told, taken) in [
            ("a/case", "case", [true, true, false]),
            ("a/case/", "case", [true, true, true]),
            ("a/case/.", "case", [true, true, true]),
            (".", "home", [false, false, true]),
            ("..", ".ssh", [false, false, true]),
            ("case", ".bashrc", [false; 3]),
            ("case/", ".ssh", [false; 3]),
            ("case", "case/..", [false; 3]),
            (".", "..", [false; 3]),
            (".", "a/b", [false; 3]),
            (".", "", [false; 3]),
        ] {
            assert_eq!(
                kinds.map(|kind| is_taken(asked, told, kind)),
                taken,
                "{asked} {told}"
            );
        }
        let none = FarRole::Send(vec![PathBuf::from("a").into()]);
        assert!(check_sources(&none, &[]).is_err());
    }
}
