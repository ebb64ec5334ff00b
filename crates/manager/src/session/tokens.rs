//! Tokens: how the agents that the user or a batch system starts get the secret of the run.
//!
//! Each token has a one-time key. The thread for sockets looks the key up when an agent dials with the
//! token. The session decides whether the agent gets the secret, and then forgets the key.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use titin_transport::TokenConnection;
use titin_wire::token::{Token, TokenAnswer, TokenRequest};
use titin_wire::{EndpointId, Secret};

use super::{RunView, Session};
use crate::agent;
use crate::event::Level;
use crate::host::HostId;

/// How many refused tokens of this run, and of others, are logged. Anyone who has seen the number of a token
/// can show it again, and anyone can make up a number.
const MOST_COMPLAINTS: usize = 100;

/// How long an agent that has got the secret may take to report, before another line is printed.
const REPORTING_TIME: Duration = Duration::from_secs(3);

/// The one-time keys that have not served, by their numbers.
#[derive(Default)]
pub(super) struct OneTimeKeys(Mutex<HashMap<u64, Secret>>);

impl OneTimeKeys {
    pub(super) fn find(&self, number: u64) -> Option<Secret> {
        self.lock().get(&number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Secret>> {
        self.0.lock().expect("never poisoned")
    }
}

/// The tokens that the user was given, or batch jobs.
pub(super) struct Tokens {
    keys: Arc<OneTimeKeys>,
    /// The host of each token, by the number of the key.
    hosts: BTreeMap<u64, HostId>,
    /// When a token of each host last served.
    served: BTreeMap<HostId, Instant>,
    /// When tokens no longer serve; `None` for never.
    until: Option<Instant>,
    /// How many tokens of other runs, and of this run, were refused.
    complaints: [usize; 2],
}

/// Why a token does not serve.
#[derive(Debug, PartialEq, Eq)]
enum TokenRefusal {
    /// The run has not given the token.
    OfAnotherRun,
    /// The token has served an agent of this host.
    Served(HostId),
    /// The time of the token of this host is over.
    Late(HostId),
}

impl Tokens {
    /// No tokens yet. Tokens serve for the time `patience` from `begun` on.
    pub(super) fn new(keys: Arc<OneTimeKeys>, begun: Instant, patience: Duration) -> Self {
        Tokens {
            keys,
            hosts: BTreeMap::new(),
            served: BTreeMap::new(),
            until: begun.checked_add(patience),
            complaints: [0; 2],
        }
    }

    /// This process was stopped for some time, which does not count.
    pub(super) fn postpone(&mut self, time: Duration) {
        self.until = self.until.and_then(|until| until.checked_add(time));
    }

    /// The number and the key for a new token of a host.
    fn issue(&mut self, host: HostId) -> (u64, Secret) {
        let (number, key) = (EndpointId::random().0 as u64, Secret::random());
        self.keys.lock().insert(number, key.clone());
        self.hosts.insert(number, host);
        (number, key)
    }

    /// Whether a host that has not reported needs another token: none is left, and the agent with the last
    /// one has had its time to report.
    fn needs_another(&self, host: HostId, now: Instant) -> bool {
        let mut tokens = self.hosts.iter();
        let is_unused =
            |(number, of): (&u64, &HostId)| *of == host && self.keys.find(*number).is_some();
        let served = self.served.get(&host);
        let is_starting = served.is_some_and(|served| now < *served + REPORTING_TIME);
        !tokens.any(is_unused) && !is_starting
    }

    /// The host of the token with this number, if the token serves.
    fn host_of(&self, number: u64, now: Instant) -> Result<HostId, TokenRefusal> {
        match (self.hosts.get(&number), self.keys.find(number)) {
            (None, _) => Err(TokenRefusal::OfAnotherRun),
            (Some(host), None) => Err(TokenRefusal::Served(*host)),
            (Some(host), Some(_)) if self.until.is_some_and(|until| now >= until) => {
                Err(TokenRefusal::Late(*host))
            }
            (Some(host), Some(_)) => Ok(*host),
        }
    }

    /// The token has served an agent of its host, and serves no more.
    fn note_served(&mut self, number: u64, host: HostId, now: Instant) {
        self.keys.lock().remove(&number);
        self.served.insert(host, now);
    }
}

impl Session {
    /// Gives each of the hosts a new token, and tells the user the commands that start the agents.
    pub(super) fn tell_commands(&mut self, hosts: &[HostId], view: &mut dyn RunView) {
        let tokens = hosts.iter().map(|&host| (host, self.new_token(host)));
        let tokens: Vec<(HostId, Token)> = tokens.collect();
        if let Some(text) = agent::by_hand(&self.plan, &tokens) {
            view.manual_starts(&text);
        }
    }

    /// A new token of a host.
    pub(super) fn new_token(&mut self, host: HostId) -> Token {
        let key = self.tokens.issue(host);
        let name = self.host_name(host).to_owned();
        Token::new(key, name, &self.connection_for(host))
    }

    /// An agent has dialled with a token whose key is not known, or no longer. If the token has served in
    /// vain, so that the run still waits for the agent, the user gets another.
    pub(super) fn unknown_token(&mut self, number: u64, view: &mut dyn RunView) {
        let now = Instant::now();
        let Err(refusal) = self.tokens.host_of(number, now) else {
            return;
        };
        let text = self.refusal_text(&refusal);
        let is_ours = refusal != TokenRefusal::OfAnotherRun;
        self.complain(is_ours, format!("an agent is not let in: {text}"), view);
        if let TokenRefusal::Served(host) = refusal
            && self.plan.is_by_hand(host)
            && self.host_cores[host.index()].is_none()
            && !self.is_ending
            && self.tokens.needs_another(host, now)
        {
            let name = self.host_name(host);
            let text = format!(
                "the token of host {name} has served, and no agent has reported yet: if the agent could not begin, use the new line"
            );
            self.say(Level::Info, text, view);
            self.tell_commands(&[host], view);
        }
    }

    /// An agent that has proved a one-time key asks for the secret of the run.
    pub(super) fn answer_agent(
        &mut self,
        request: &TokenRequest,
        connection: TokenConnection,
        view: &mut dyn RunView,
    ) {
        let (number, system_name) = (connection.number(), &request.system_name);
        let now = Instant::now();
        let answer = match self.check_request(number, request, now) {
            Err(why) => {
                let text = format!("an agent on {system_name} is not let in: {why}");
                self.complain(true, text, view);
                TokenAnswer::Refused { why }
            }
            Ok(host) => {
                self.tokens.note_served(number, host, now);
                let name = self.host_name(host);
                let text = format!("the token of host {name} has served an agent on {system_name}");
                let mut hosts = (0..self.plan.hosts.len()).map(HostId::further);
                let is_of_another = |id| id != host && self.host_name(id) == *system_name;
                let level = match hosts.any(is_of_another) {
                    true => Level::Warning,
                    false => Level::Info,
                };
                self.say(level, text, view);
                let input = self.agent_input(host);
                TokenAnswer::Granted {
                    connection: Box::new(input.connection),
                    run_directory: input.run_directory,
                }
            }
        };
        if let Err(why) = connection.answer(&answer) {
            let text =
                format!("an agent on {system_name} has not got the answer to its token: {why}");
            self.say(Level::Warning, text, view);
        }
    }

    /// The host of an agent with a token, or why the agent is not let in.
    fn check_request(
        &self,
        number: u64,
        request: &TokenRequest,
        now: Instant,
    ) -> Result<HostId, String> {
        let host = self.tokens.host_of(number, now);
        let host = host.map_err(|refusal| self.refusal_text(&refusal))?;
        let name = self.host_name(host);
        if request.host != name {
            return Err(format!(
                "its token is of host {name}, and it was started with --host {}: leave --host out, or use the line that the \
                 run has printed for that host",
                request.host
            ));
        }
        self.check_newcomer(name, &request.release)
    }

    fn refusal_text(&self, refusal: &TokenRefusal) -> String {
        match refusal {
            TokenRefusal::OfAnotherRun => {
                "its token is of no host of this run: use the line that this run has printed"
                    .to_owned()
            }
            TokenRefusal::Served(host) => {
                format!(
                    "the token of host {} has served already",
                    self.host_name(*host)
                )
            }
            TokenRefusal::Late(host) => format!(
                "the token of host {} has expired after {:.1} s: start the run again, with a longer `titin: register_timeout` if \
                 need be",
                self.host_name(*host),
                self.plan.options.patience.as_secs_f64()
            ),
        }
    }

    /// Logs a refused token of this run, or of another.
    fn complain(&mut self, is_ours: bool, text: String, view: &mut dyn RunView) {
        let count = &mut self.tokens.complaints[usize::from(is_ours)];
        *count += 1;
        let text = match (*count).cmp(&MOST_COMPLAINTS) {
            Ordering::Less => text,
            Ordering::Equal => text + "; further refusals of this kind are not logged",
            Ordering::Greater => return,
        };
        self.say(Level::Warning, text, view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_serves_once_and_in_its_time() {
        let (keys, begun) = (Arc::new(OneTimeKeys::default()), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut tokens = Tokens::new(keys.clone(), begun, Duration::from_secs(60));
        let (number, key) = tokens.issue(HostId(2));
        let (other, _) = tokens.issue(HostId(1));
        assert_ne!(number, other);
        assert_eq!(keys.find(number), Some(key));
        assert_eq!(tokens.host_of(number, after(59)), Ok(HostId(2)));
        let late = TokenRefusal::Late(HostId(2));
        assert_eq!(tokens.host_of(number, after(60)), Err(late));
        tokens.postpone(Duration::from_secs(30));
        assert_eq!(tokens.host_of(number, after(89)), Ok(HostId(2)));
        tokens.note_served(number, HostId(2), after(10));
        assert_eq!(keys.find(number), None);
        for seconds in [0, 100] {
            let served = Err(TokenRefusal::Served(HostId(2)));
            assert_eq!(tokens.host_of(number, after(seconds)), served);
        }
        let unknown = Err(TokenRefusal::OfAnotherRun);
        assert_eq!(tokens.host_of(number ^ 1, begun), unknown);
        assert_eq!(tokens.host_of(other, begun), Ok(HostId(1)));
        // The agent that was served at 10 s has 3 s to report.
        let needing = |tokens: &Tokens, seconds| {
            [1, 2].map(|host| tokens.needs_another(HostId(host), after(seconds)))
        };
        assert_eq!(needing(&tokens, 12), [false, false]);
        assert_eq!(needing(&tokens, 13), [false, true]);
        tokens.issue(HostId(2));
        assert_eq!(needing(&tokens, 13), [false, false]);
    }

    #[test]
    fn a_time_without_an_end_is_never_over() {
        let (keys, begun) = (Arc::default(), Instant::now());
        let mut tokens = Tokens::new(keys, begun, Duration::MAX);
        let (number, _) = tokens.issue(HostId(1));
        tokens.postpone(Duration::from_secs(30));
        let later = begun + Duration::from_secs(1 << 30);
        assert_eq!(tokens.host_of(number, later), Ok(HostId(1)));
    }
}
