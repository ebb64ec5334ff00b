//! Asks the manager of a run for the state of the run, by a control link with the run's secret.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use titin_transport::{Handler, Link, LinkError, Reactor};
use titin_wire::LinkSettings;
use titin_wire::connection::Connection;
use titin_wire::control::{self, ToManager, ToProgram};
use titin_wire::handshake::{Agreement, Purpose};
use titin_wire::observation::ObservedRun;

use crate::logs::open_file;

/// The tag of the link.
const MANAGER: u128 = 0;

/// How long the manager may take to answer. A user looks at a page meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest connection file that is read.
const LONGEST_CONNECTION: u64 = 16 << 20;

/// A line to the manager, opened at the first question.
pub(crate) struct Observer {
    /// The connection file of the run.
    file: PathBuf,
    reactor: Mutex<Option<Arc<Reactor>>>,
    answers: Arc<Answers>,
}

/// What has come from the manager.
#[derive(Default)]
struct Answers {
    state: Mutex<AnswerState>,
    changed: Condvar,
}

#[derive(Default)]
struct AnswerState {
    link: Option<Arc<Link>>,
    answer: Option<ObservedRun>,
    trouble: Option<String>,
}

impl Observer {
    pub(crate) fn new(file: PathBuf) -> Self {
        Observer {
            file,
            reactor: Mutex::new(None),
            answers: Arc::default(),
        }
    }

    /// The present state of the run.
    ///
    /// # Errors
    /// In words, if the manager does not answer. The run may have ended.
    pub(crate) fn look(&self) -> Result<ObservedRun, String> {
        let mut reactor = self.reactor.lock().expect("never poisoned");
        let deadline = Instant::now() + PATIENCE;
        let link = match self.answers.forget() {
            Some(link) => link,
            None => {
                let connection = self.connection()?;
                let reactor = match &*reactor {
                    Some(reactor) => reactor,
                    None => {
                        let handler: Arc<dyn Handler> = self.answers.clone();
                        let started = Reactor::start(connection.secret.clone(), handler);
                        reactor.insert(started.map_err(|error| error.to_string())?)
                    }
                };
                let settings = LinkSettings::default();
                let dialled = reactor.dial(
                    &connection.addresses,
                    Purpose::Control,
                    MANAGER,
                    None,
                    settings,
                    PATIENCE,
                );
                dialled.map_err(|why| why.to_string())?;
                self.answers.wait(deadline, |state| state.link.clone())?
            }
        };
        link.tell(&control::encode(&ToManager::Observe {}));
        self.answers.wait(deadline, |state| state.answer.take())
    }

    fn connection(&self) -> Result<Connection, String> {
        let mut text = String::new();
        let read = open_file(&self.file)
            .and_then(|file| file.take(LONGEST_CONNECTION).read_to_string(&mut text));
        read.map_err(|error| format!("{}: {error}", self.file.display()))?;
        Connection::from_json(&text).map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(reactor) = self
            .reactor
            .lock()
            .ok()
            .and_then(|mut reactor| reactor.take())
        {
            reactor.stop();
        }
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().expect("never poisoned")
    }

    /// Forgets earlier answers, and returns the link if there is one.
    fn forget(&self) -> Option<Arc<Link>> {
        let mut state = self.lock();
        (state.answer, state.trouble) = (None, None);
        state.link.clone()
    }

    /// Waits until there is a value, or trouble, or the time is over.
    fn wait<T>(
        &self,
        deadline: Instant,
        mut value: impl FnMut(&mut AnswerState) -> Option<T>,
    ) -> Result<T, String> {
        let mut state = self.lock();
        loop {
            if let Some(value) = value(&mut state) {
                return Ok(value);
            }
            if let Some(trouble) = state.trouble.take() {
                return Err(trouble);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "the manager does not answer within {} s",
                    PATIENCE.as_secs()
                ));
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .expect("never poisoned")
                .0;
        }
    }

    fn change(&self, change: impl FnOnce(&mut AnswerState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

impl Handler for Answers {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        self.change(|state| state.link = Some(link.clone()));
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        match control::decode::<ToProgram>(body) {
            Ok(ToProgram::Observed(found)) => self.change(|state| state.answer = Some(*found)),
            Ok(_) => {}
            Err(error) => {
                link.close();
                self.change(|state| (state.link, state.trouble) = (None, Some(error.to_string())));
            }
        }
    }

    fn lost(&self, _: &Arc<Link>, why: LinkError) {
        self.change(|state| (state.link, state.trouble) = (None, Some(why.to_string())));
    }

    fn unreachable(&self, _: u128, why: LinkError) {
        self.change(|state| state.trouble = Some(why.to_string()));
    }

    fn broken(&self, text: String) {
        self.change(|state| (state.link, state.trouble) = (None, Some(text)));
    }
}
