//! Waiting at the end of a run: for agents and their files, for the guard, and for the commands that have
//! started agents.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::{RunView, Session, SessionEvent};
use crate::agent::AgentOrder;
use crate::event::{Level, RunEvent};
use crate::host::HostId;
use crate::state::REPEATED_INTERRUPT;

/// When the user is told first what the run waits for at its end, and how often after that.
const FIRST_NOTICE: Duration = Duration::from_secs(5);
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// When the view first shows what the run waits for at its end.
const FIRST_SHOW: Duration = Duration::from_secs(1);

/// How often the agents are asked for a sign of life.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// After this time without a sign of an agent, the user is told so.
pub(super) const SILENCE: Duration = Duration::from_secs(4);

/// How many awaited hosts are named.
const MOST_AWAITED: usize = 12;

impl Session {
    /// Waits at the end of the run as long as something is left. False if the time is over, or if the
    /// user ends the wait for agents.
    pub(super) fn await_end(
        &mut self,
        limit: Duration,
        is_left: impl Fn(&Session) -> bool,
        view: &mut dyn RunView,
    ) -> bool {
        let begun = Instant::now();
        let mut until = begun + limit;
        let mut next_notice = begun + FIRST_NOTICE;
        let mut next_show = begun + FIRST_SHOW;
        let mut next_heartbeat = begun + HEARTBEAT_INTERVAL;
        while is_left(self) {
            let now = Instant::now();
            if now >= next_notice {
                self.tell_wait(view);
                next_notice = now + NOTICE_INTERVAL;
            }
            if let Some(interval) = view.interval()
                && now >= next_show
            {
                view.show_wait(&self.awaited_at_end());
                next_show = now + interval;
            }
            if now >= next_heartbeat {
                self.agents.order_all(&AgentOrder::Heartbeat);
                next_heartbeat = now + HEARTBEAT_INTERVAL;
            }
            let wake = until.min(next_notice).min(next_heartbeat);
            let wake = view.interval().map_or(wake, |_| wake.min(next_show));
            match self
                .receiver
                .recv_timeout(wake.saturating_duration_since(now))
            {
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(_) => return false,
                Ok(SessionEvent::Run(RunEvent::Interrupted(_)))
                    if !self.agents.hosts().is_empty() && self.is_new_interrupt(begun) =>
                {
                    self.is_ended_by_user = true;
                    return false;
                }
                Ok(event) => {
                    if matches!(event, SessionEvent::Agent(..) | SessionEvent::Paused(_)) {
                        // An agent that hands over files may take long.
                        until = Instant::now() + limit;
                    }
                    let event = self.take_in(event, view);
                    if let Some(RunEvent::HostLost(HostId::MANAGER, _)) = event {
                        self.end_orphans(view);
                    }
                }
            }
        }
        true
    }

    /// Whether an interrupt of a wait that has begun at this time is another one than that which has ended the
    /// run.
    pub(super) fn is_new_interrupt(&self, begun: Instant) -> bool {
        !self.is_interrupted || begun.elapsed() > REPEATED_INTERRUPT
    }

    /// Tells the user what the run waits for at its end.
    fn tell_wait(&mut self, view: &mut dyn RunView) {
        let is_silent = |host: &HostId| self.agents.silence(*host) >= SILENCE;
        // On a terminal the view shows the lines.
        let level = match self.agents.hosts().iter().any(is_silent) {
            true => Level::Warning,
            false => Level::Info,
        };
        for line in self.awaited_at_end() {
            self.say(level, format!("{line}; Ctrl-C ends the wait"), view);
        }
    }

    /// What the run waits for at its end, a line for each host. Those that are silent for the longest time
    /// come first.
    fn awaited_at_end(&self) -> Vec<String> {
        let mut hosts = self.agents.hosts();
        hosts.sort_by_key(|host| std::cmp::Reverse(self.agents.silence(*host).as_secs()));
        let more = hosts.len().saturating_sub(MOST_AWAITED);
        let shown = hosts.into_iter().take(MOST_AWAITED);
        let mut lines: Vec<String> = shown.map(|host| self.awaited_text(host)).collect();
        if more > 0 {
            lines.push(format!("waits for {more} more hosts"));
        }
        lines
    }

    fn awaited_text(&self, host: HostId) -> String {
        let place = format!("host {}{}", self.host_name(host), self.plan.site_text(host));
        let silence = self.agents.silence(host);
        if silence >= SILENCE {
            let seconds = silence.as_secs();
            return format!("waits for {place}: nothing has come from there for {seconds} s");
        }
        match self.host_files.arriving(host) {
            Some(bytes) => {
                let megabytes = bytes as f64 / 1e6;
                format!("waits for the files of {place}: {megabytes:.1} MB have come")
            }
            None => format!("waits for the agent of {place} to end what is left of its programs"),
        }
    }

    /// The hosts that do not answer at the end of the run, a line for each: programs may go on there.
    pub(super) fn silent_hosts(&self) -> Vec<String> {
        let hosts = self.agents.hosts().into_iter();
        let silent = hosts.filter(|host| self.agents.silence(*host) >= SILENCE);
        silent.map(|host| self.silence_text(host)).collect()
    }

    /// That a host does not answer, and what this means for the programs there.
    pub(super) fn silence_text(&self, host: HostId) -> String {
        format!(
            "nothing has come from host {}{} for {} s: programs may go on there {}",
            self.host_name(host),
            self.plan.site_text(host),
            self.agents.silence(host).as_secs(),
            self.end_of_silence(host)
        )
    }

    /// Until when programs go on at a host that is cut off.
    pub(super) fn end_of_silence(&self, host: HostId) -> String {
        let seconds = self.plan.longest_silence(host).as_secs_f64();
        format!("until nothing has come there from this run for {seconds} s")
    }
}
