//! The hosts of a run in the session: agents, placement, and the guard or agent of each program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use titin_transport::{Link, LinkError, LinkId};
use titin_wire::connection::Connection;

use super::end_wait::SILENCE;
use super::{LauncherEnd, RunView, Session, SessionEvent};
use crate::agent::{
    self, AgentGroup, AgentHello, AgentInput, AgentOrder, AgentReport, LeavingReason,
};
use crate::cores::{at_most, cores};
use crate::event::{Level, RunEvent, Signal};
use crate::guard::SWEEP_TIME;
use crate::host::{HostId, ProcessId};
use crate::placement::{LauncherReach, place, too_few_cores};
use crate::plan::{AgentStart, InstanceId, PerInstance};
use crate::report::last_line;
use crate::state::Failure;
use crate::{process_tree, process_watcher};

/// The time for the commands that have started agents to end after the agents.
const LAUNCHER_EXIT_TIME: Duration = Duration::from_secs(1);

/// The time for a batch job to end, or to be cancelled. PSI/J looks for its end every two seconds.
const JOB_EXIT_TIME: Duration = Duration::from_secs(15);

/// How many hosts without an agent are named.
const MOST_MISSING: usize = 12;

/// How many bytes of a launcher's output an error quotes, or characters of its error.
const MOST_OUTPUT: usize = 1000;

impl Session {
    /// Starts the agents of the further hosts, and tells the user which agents to start by hand.
    pub(super) fn start_agents(&mut self, view: &mut dyn RunView) {
        let by_hand: Vec<HostId> = agent::hosts_by_hand(&self.plan).collect();
        self.tell_commands(&by_hand, view);
        self.warn_of_missing_cores(HostId::MANAGER, self.plan.own_cores, cores().len(), view);
        if self.groups.is_empty() {
            return;
        }
        let folder = match self.directory.prepare_agents() {
            Ok(folder) => folder,
            Err(error) => {
                let event = RunEvent::ManagerFailed(error.to_string());
                let _ = self.sender.send(SessionEvent::Run(event));
                return;
            }
        };
        for at in 0..self.groups.len() {
            // The hosts of a group are at one site.
            let host = self.groups[at].hosts[0];
            let input = match self.plan.is_batch_job(host) {
                true => self.new_token(host).reveal(),
                false => self.agent_input(host).to_json(),
            };
            let launch = self.groups[at].launch(&folder, input);
            self.guard.launch(self.launcher_id(at), launch);
        }
        let commands = self.groups.iter().map(|group| group.command());
        let text = format!("starts agents: {}", commands.collect::<Vec<_>>().join("; "));
        self.say(Level::Debug, text, view);
    }

    /// How the agent and the programs of a further host find the manager. The agent is told of the network
    /// of its host later.
    pub(super) fn connection_for(&self, host: HostId) -> Connection {
        let way = Connection {
            network: None,
            ..self.way_to_manager.clone()
        };
        match &self.site {
            Some(site) => site.connection_for(&self.plan, host, &way),
            None => way,
        }
    }

    pub(super) fn agent_input(&self, host: HostId) -> AgentInput {
        AgentInput {
            connection: self.connection_for(host),
            run_directory: self.directory.path().to_owned(),
        }
    }

    /// Places the instances once the cores of all hosts are known.
    pub(super) fn place_if_known(&mut self, view: &mut dyn RunView) {
        let known: Option<Vec<Vec<u32>>> = self.host_cores.iter().cloned().collect();
        let Some(hosts) = known.filter(|_| self.placement.get().is_none()) else {
            return;
        };
        let mut placement = place(&self.plan, &hosts, LauncherReach::of(&self.plan));
        if self.is_reached && self.plan.hosts.is_empty() {
            // An unknown part of the programs may run on other hosts.
            placement.crowded = PerInstance::make(self.plan.instances.len(), |_| false);
        }
        let placed = RunEvent::Placed(placement.hosts.clone());
        let _ = self.placement.set(placement);
        let _ = self.sender.send(SessionEvent::Run(placed));
        if let Some(text) = self.crowded_text() {
            self.say(Level::Info, text, view);
        }
        self.prepare_manual_starts();
    }

    /// The text about instances on shared cores.
    fn crowded_text(&self) -> Option<String> {
        let (placement, instances) = (self.placement.get()?, &self.plan.instances);
        let crowded = instances.ids().filter(|&id| placement.crowded[id]);
        let wanted = crowded.map(|id| (instances[id].name.as_str(), instances[id].cores));
        let wanted: Vec<(&str, u32)> = wanted.collect();
        let cores: usize = self.host_cores.iter().flatten().map(Vec::len).sum();
        let place = match self.host_cores.len() {
            1 => "here".to_owned(),
            hosts => format!("on {hosts} hosts"),
        };
        too_few_cores(&wanted, &format!(", with {cores} {place}"))
    }

    fn is_placed_on(&self, id: InstanceId, host: HostId) -> bool {
        let is_known = id.index() < self.plan.instances.len();
        let placement = self.placement.get().filter(|_| is_known);
        placement.is_some_and(|placement| placement.hosts[id] == host)
    }

    /// Reports that a lost host starts no more programs. The report changes nothing for programs that
    /// have started.
    pub(super) fn skip_starts(&self, host: HostId) {
        let Some(placement) = self.placement.get() else {
            return;
        };
        let ids = self.plan.instances.ids();
        for id in ids.filter(|&id| placement.hosts[id] == host) {
            let event = RunEvent::StartSkipped(id);
            let _ = self.sender.send(SessionEvent::Run(event));
        }
    }

    /// Sends a signal to the processes of an instance.
    pub(super) fn signal(&self, id: InstanceId, signal: Signal) {
        match self.placement.get().map(|placement| placement.hosts[id]) {
            None | Some(HostId::MANAGER) => self.guard.signal(id, signal),
            Some(host) => {
                let order = AgentOrder::Signal { id: id.0, signal };
                self.agents.order(host, &order);
            }
        }
    }

    /// Sends a signal to a process that no guard has started.
    pub(super) fn signal_process(&self, ProcessId { host, pid }: ProcessId, signal: Signal) {
        match host {
            HostId::MANAGER => process_tree::signal(pid, signal.number()),
            host => {
                let order = AgentOrder::SignalProcess { pid, signal };
                self.agents.order(host, &order);
            }
        }
    }

    /// Watches a process of this run.
    pub(super) fn watch(&self, process: ProcessId) {
        let ProcessId { host, pid } = process;
        if host != HostId::MANAGER {
            return self.agents.order(host, &AgentOrder::Watch { pid });
        }
        let is_ours = self.hosting == Some(pid)
            || process_watcher::is_ours(pid, &self.directory.connection());
        if is_ours && self.watcher.watch(pid) {
            let event = RunEvent::ProcessWatched(process);
            let _ = self.sender.send(SessionEvent::Run(event));
        }
    }

    /// Takes in a report of an agent. Returns an event for the state machine, if there is one.
    pub(super) fn take_in_report(
        &mut self,
        link: &Arc<Link>,
        report: AgentReport,
        view: &mut dyn RunView,
    ) -> Option<RunEvent> {
        if let AgentReport::Ready(hello) = report {
            return self.agent_ready(link, hello, view);
        }
        let (host, silence) = self.agents.heard(link.id())?;
        if self.is_ending && silence >= SILENCE {
            let name = self.host_name(host);
            let text = format!("host {name} is back after {} s", silence.as_secs());
            self.say(Level::Warning, text, view);
        }
        let process = |pid| ProcessId { host, pid };
        if let AgentReport::Guard(report) = &report
            && let Some(id) = report.program()
            && !self.is_placed_on(InstanceId(id), host)
        {
            self.close_agent(host);
            let how = format!("told of a program with number {id}, which it was not to start");
            return Some(RunEvent::HostLost(host, how));
        }
        Some(match report {
            AgentReport::Ready(_) => unreachable!("handled before"),
            AgentReport::Heartbeat => RunEvent::HostHeard(host),
            AgentReport::Guard(report) => {
                return self.take_in(SessionEvent::of_report(host, report), view);
            }
            AgentReport::Watched { pid } => RunEvent::ProcessWatched(process(pid)),
            AgentReport::Gone { pid } => RunEvent::ProcessGone(process(pid)),
            AgentReport::File(piece) => {
                self.take_in_piece(host, piece, view);
                RunEvent::HostHeard(host)
            }
            AgentReport::FileTaken { size } => {
                self.agents.acknowledged(host, size);
                RunEvent::HostHeard(host)
            }
            AgentReport::FilesAt { folder } => {
                self.host_files.note_folder(host, folder);
                return None;
            }
            AgentReport::Complete => {
                self.host_files.note_complete(host);
                return None;
            }
            AgentReport::FileLost { text } => {
                self.file_unread(host, &text, view);
                RunEvent::HostHeard(host)
            }
            AgentReport::Leaving(reason) => {
                self.leaving.insert(host);
                self.skip_starts(host);
                self.leaving(host, &reason)
            }
        })
    }

    /// The event of an agent that ends early. A batch system that ends a job, or a user who ends the
    /// command that starts the agent, sends a signal. So a signal to an agent that the run has started
    /// counts as a signal to the run.
    fn leaving(&self, host: HostId, reason: &LeavingReason) -> RunEvent {
        let planned = self.plan.further_host(host);
        let is_ours = planned.is_some_and(|host| host.start != AgentStart::ByHand);
        match reason {
            LeavingReason::Signal(signal) if is_ours => {
                let text = format!("{signal} to the agent of host {}", self.host_name(host));
                RunEvent::Interrupted(text)
            }
            LeavingReason::Trouble(how) => {
                RunEvent::HostUnfit(host, format!("{how}, so it ended the programs there"))
            }
            reason => RunEvent::HostLost(host, format!("{reason}, so it ended the programs there")),
        }
    }

    /// The name of a further host.
    pub(super) fn host_name(&self, host: HostId) -> &str {
        self.plan
            .further_host(host)
            .map_or(self.system_name.as_str(), |host| &host.name)
    }

    /// The first report of an agent.
    fn agent_ready(
        &mut self,
        link: &Arc<Link>,
        hello: AgentHello,
        view: &mut dyn RunView,
    ) -> Option<RunEvent> {
        let host = match self.check_agent(link, &hello) {
            Ok(host) => host,
            Err(text) => {
                let line = format!("an agent on {} is not let in: {text}", hello.system_name);
                self.say(Level::Warning, line, view);
                agent::tell(link, &AgentOrder::Refused { text });
                link.close();
                return None;
            }
        };
        let planned = self.plan.further_host(host).cloned().unwrap_or_default();
        self.warn_of_missing_cores(host, planned.cores, hello.cores.len(), view);
        let cores = at_most(hello.cores, planned.cores);
        self.host_cores[host.index()] = Some(cores);
        self.agents.attach(host, link.clone(), hello.shares_files);
        let heartbeat = self.plan.longest_silence(host).as_secs_f64();
        let welcome = AgentOrder::Welcome {
            heartbeat,
            folder: planned.folder,
            network: planned.network,
        };
        agent::tell(link, &welcome);
        self.place_if_known(view);
        Some(RunEvent::HostReady(host, hello.system_name))
    }

    /// Warns if a host has fewer cores than the description says.
    fn warn_of_missing_cores(
        &mut self,
        host: HostId,
        wanted: Option<u32>,
        available: usize,
        view: &mut dyn RunView,
    ) {
        let Some(wanted) = wanted.filter(|&wanted| wanted as usize > available) else {
            return;
        };
        let name = self.host_name(host);
        let text = format!(
            "host {name} has {available} of the {wanted} cores of its entry under `titin: hosts`"
        );
        self.say(Level::Warning, text, view);
    }

    /// The host of a new agent, or why the agent is not let in.
    fn check_agent(&self, link: &Link, hello: &AgentHello) -> Result<HostId, String> {
        match self.agents.host_of(link.id()) {
            Some(_) => Err("it has reported as another host".to_owned()),
            None => self.check_newcomer(&hello.host, &hello.release),
        }
    }

    /// The host of a new agent by the name that the agent gives, or why the agent is not let in.
    pub(super) fn check_newcomer(&self, given: &str, release: &str) -> Result<HostId, String> {
        if self.is_ending {
            return Err("the run is over".to_owned());
        }
        let names = || self.plan.hosts.iter().map(|host| host.name.as_str());
        let hosts = &self.plan.hosts;
        let by_name = names().position(|name| name == given);
        // `srun` starts all agents by one command, so such an agent knows only the address.
        let by_address = || hosts.iter().position(|host| host.address == given);
        let Some(at) = by_name.or_else(by_address) else {
            return Err(format!(
                "the run has no host {given}; it has {}",
                titin_model::listing(names())
            ));
        };
        let host = HostId::further(at);
        let own = env!("CARGO_PKG_VERSION");
        if release != own {
            return Err(format!(
                "it is of titin {release}, and the manager of titin {own}: install the same release on both hosts, or \
                 give its path as `titin`"
            ));
        }
        match self.host_cores[host.index()] {
            Some(_) => Err(format!("host {given} has had an agent already")),
            None => Ok(host),
        }
    }

    /// The link of an agent is lost.
    pub(super) fn agent_lost(&mut self, link: LinkId, why: &LinkError) -> Option<RunEvent> {
        let host = self.agents.host_of(link)?;
        self.note_lost_agent(host, why);
        self.agents.detach(host);
        self.skip_starts(host);
        let how = format!("has ended or is cut off ({why}), so the programs there are lost");
        Some(RunEvent::HostLost(host, how))
    }

    /// Lets go of a host that has been silent for too long.
    pub(super) fn close_silent_agent(&mut self, host: HostId) {
        let text = self.silence_text(host);
        self.unreached.push(text);
        self.close_agent(host);
    }

    /// Notes that the link of an agent is lost, if the host may be cut off. At another site the end of an agent looks
    /// like that of the way to its host.
    fn note_lost_agent(&mut self, host: HostId, why: &LinkError) {
        let may_be_cut_off = match why {
            _ if self.leaving.contains(&host) => false,
            // The manager has closed the link of an agent that it does not understand. The agent ends its programs.
            LinkError::Malformed(_) => false,
            LinkError::Closed => !self.is_ending && self.plan.other_site(host).is_some(),
            // An agent that has handed over all files has ended its programs.
            _ => !self.is_ending || self.host_files.arriving(host).is_some(),
        };
        if !may_be_cut_off {
            return;
        }
        let text = format!(
            "host {}{} may be cut off: programs may then go on there {}",
            self.host_name(host),
            self.plan.site_text(host),
            self.end_of_silence(host)
        );
        self.unreached.push(text);
    }

    fn close_agents(&self) {
        for host in self.agents.hosts() {
            self.close_agent(host);
        }
    }

    pub(super) fn close_agent(&self, host: HostId) {
        self.skip_starts(host);
        if let Some(link) = self.agents.detach(host) {
            link.close();
        }
    }

    /// The command that starts the agents of a group has ended. That is a failure if an agent has not
    /// reported yet, unless the command ended well: the agent may come later, but not when its job is over.
    pub(super) fn launcher_ended(
        &mut self,
        group: usize,
        end: &LauncherEnd,
        view: &mut dyn RunView,
    ) -> Option<RunEvent> {
        self.launchers.remove(&group);
        let group = self.groups.get(group)?.clone();
        let mut hosts = group.hosts.iter();
        let missing = hosts.find(|host| self.host_cores[host.index()].is_none())?;
        let command = group.command();
        let how = match end {
            LauncherEnd::Ended(exit) if exit.is_success() && !self.plan.is_batch_job(*missing) => {
                let text = format!("{command} has ended, and no agent has come yet");
                self.say(Level::Info, text, view);
                return None;
            }
            LauncherEnd::Ended(exit) => format!("{command} {exit}"),
            LauncherEnd::NotStarted(why) => format!("{command} cannot be run: {why}"),
        };
        let output = std::fs::read(self.output_of(&group)).unwrap_or_default();
        let how = match quoted_output(&output) {
            Some(words) => format!("could not be started: {words}\n{how}"),
            None => format!("could not be started: {how}"),
        };
        Some(RunEvent::AgentFailed(*missing, how))
    }

    /// The file with the output of the command that starts the agents of a group.
    fn output_of(&self, group: &AgentGroup) -> PathBuf {
        self.directory.agents().join(format!("{}.txt", group.name))
    }

    /// Tells the user for which agents the run waits, each with the last line of the command that starts
    /// it.
    pub(super) fn tell_missing_hosts(&mut self, hosts: &[HostId], view: &mut dyn RunView) {
        let waited = self.begun.elapsed().as_secs();
        for host in hosts.iter().take(MOST_MISSING) {
            let name = self.host_name(*host);
            let place = self.plan.site_text(*host);
            let state = self.state_of_missing_agent(*host);
            let text =
                format!("has waited for the agent of host {name}{place} for {waited} s{state}");
            // A job may wait for long.
            let is_submitted = || self.printed_by_launcher(*host).is_some();
            let level = match self.plan.is_batch_job(*host) && is_submitted() {
                true => Level::Info,
                false => Level::Warning,
            };
            self.say(level, text, view);
        }
        if let Some(more @ 1..) = hosts.len().checked_sub(MOST_MISSING) {
            let text = format!("has waited for the agents of {more} more hosts");
            self.say(Level::Warning, text, view);
        }
    }

    /// The command that starts the agent of a host, with its place in `groups`.
    fn launcher_of(&self, host: HostId) -> Option<(usize, &AgentGroup)> {
        let mut groups = self.groups.iter().enumerate();
        groups.find(|(_, group)| group.hosts.contains(&host))
    }

    /// The last line of the command that starts the agent of a host.
    fn printed_by_launcher(&self, host: HostId) -> Option<String> {
        let (_, group) = self.launcher_of(host)?;
        last_line(&self.output_of(group))
    }

    /// What is known of an agent that has not come, behind a semicolon; nothing for an agent that the
    /// user starts.
    fn state_of_missing_agent(&self, host: HostId) -> String {
        let Some((at, group)) = self.launcher_of(host) else {
            return String::new();
        };
        match self.printed_by_launcher(host) {
            Some(line) => format!("; its last words: {line}"),
            None if self.plan.is_batch_job(host) => {
                "; the submission of its job has not answered".to_owned()
            }
            None if self.launchers.contains(&at) => {
                format!("; {} goes on, and has printed nothing", group.command())
            }
            None => format!("; {} has ended, and has printed nothing", group.command()),
        }
    }

    /// For which agents the run waited when the user ended it, or when their time was over: a line for
    /// each.
    pub(super) fn waits_for_agents(&self, failure: &Failure) -> Vec<String> {
        let hosts = failure.awaited_hosts().iter();
        hosts
            .take(MOST_MISSING)
            .map(|&host| {
                format!(
                    "titin waited for the agent of host {}{}{}",
                    self.host_name(host),
                    self.plan.site_text(host),
                    self.state_of_missing_agent(host)
                )
            })
            .collect()
    }

    /// Orders the agents to end the remaining processes, and waits until the agents have ended, and the
    /// commands that have started the agents.
    pub(super) fn dismiss_agents(&mut self, view: &mut dyn RunView) {
        self.is_ending = true;
        self.cancel_unused_jobs();
        self.agents.order_all(&AgentOrder::Finish);
        let is_left = |session: &Session| !session.agents.hosts().is_empty();
        // The files of a host at another site wait for the line.
        let limit = SWEEP_TIME.saturating_add(self.plan.longest_cut());
        if !self.await_end(limit, is_left, view) {
            if !self.is_ended_by_user {
                let hosts = self.agents.hosts().into_iter();
                let names = titin_model::listing(hosts.map(|host| self.host_name(host)));
                let text = format!("the agents of {names} do not answer at the end of the run");
                self.say(Level::Error, text, view);
            }
            self.unreached.extend(self.silent_hosts());
            self.close_agents();
        }
        self.name_incomplete_hosts(view);
        self.end_launchers(view);
    }

    /// Has the batch jobs cancelled whose agents have not come.
    fn cancel_unused_jobs(&self) {
        for (at, group) in self.groups.iter().enumerate() {
            let host = group.hosts[0];
            if self.plan.is_batch_job(host) && self.host_cores[host.index()].is_none() {
                self.guard.signal(self.launcher_id(at), Signal::Terminate);
            }
        }
    }

    /// Waits for the end of the commands that have started the agents, and ends those that go on.
    fn end_launchers(&mut self, view: &mut dyn RunView) {
        let others_are_left = |session: &Session| !session.launchers_left(false).is_empty();
        if !self.await_end(LAUNCHER_EXIT_TIME, others_are_left, view) {
            // These commands wait for a host that is lost.
            for at in self.launchers_left(false) {
                self.guard.signal(self.launcher_id(at), Signal::Kill);
            }
            self.await_end(LAUNCHER_EXIT_TIME, others_are_left, view);
        }
        let jobs_are_left = |session: &Session| !session.launchers_left(true).is_empty();
        if self.await_end(JOB_EXIT_TIME, jobs_are_left, view) {
            return;
        }
        for at in self.launchers_left(true) {
            self.guard.signal(self.launcher_id(at), Signal::Terminate);
        }
        self.await_end(JOB_EXIT_TIME, jobs_are_left, view);
        for at in self.launchers_left(true) {
            let host = self.groups[at].name.clone();
            let text = format!(
                "the job of host {host} has not ended, and may still be there; agents/{host}.txt has its number"
            );
            self.say(Level::Warning, text, view);
        }
    }

    /// The commands that go on: those that have submitted batch jobs, or the others.
    fn launchers_left(&self, of_batch_jobs: bool) -> Vec<usize> {
        let left = self.launchers.iter().copied();
        left.filter(|&at| self.plan.is_batch_job(self.groups[at].hosts[0]) == of_batch_jobs)
            .collect()
    }

    /// The number of a launcher for the guard, behind the numbers of the instances.
    fn launcher_id(&self, group: usize) -> InstanceId {
        InstanceId((self.plan.instances.len() + group) as u32)
    }
}

/// The last words in a launcher's output: the last error of a `titin` and what follows, or else the last
/// lines. `None` if nothing was printed.
fn quoted_output(output: &[u8]) -> Option<String> {
    const ERROR: &str = "error: ";
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    let begins_line = |at: &usize| *at == 0 || text[..*at].ends_with('\n');
    let mut errors = text.rmatch_indices(ERROR).map(|(at, _)| at);
    if let Some(at) = errors.find(begins_line) {
        let words = &text[at + ERROR.len()..];
        return Some(words.chars().take(MOST_OUTPUT).collect());
    }
    let from = text.ceil_char_boundary(text.len().saturating_sub(MOST_OUTPUT));
    let end = &text[from..];
    // The quotation of a longer text begins with a line, if it can.
    let words = match end.split_once('\n') {
        Some((_, lines)) if from > 0 => lines,
        _ => end,
    };
    (!words.is_empty()).then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_launcher_are_its_error_or_its_last_lines() {
        let quoted = |output: &str| quoted_output(output.as_bytes());
        assert_eq!(quoted(" \n"), None);
        assert_eq!(quoted("ssh: no route\n").unwrap(), "ssh: no route");
        let output = "waits for relay a\nerror: cannot reach relay a\n";
        assert_eq!(quoted(output).unwrap(), "cannot reach relay a");
        let output = "error: cannot read the key: error: no such file\n";
        let expected = "cannot read the key: error: no such file";
        assert_eq!(quoted(output).unwrap(), expected);
        // The word in the middle of a line begins no error of titin's.
        let shell = "sh: some error: what?";
        assert_eq!(quoted(shell).unwrap(), shell);
        let long = format!("{}\nthe last line", "é".repeat(MOST_OUTPUT));
        assert_eq!(quoted(&long).unwrap(), "the last line");
        let long = quoted(&"é".repeat(MOST_OUTPUT)).unwrap();
        assert_eq!(long.chars().count(), MOST_OUTPUT / 2);
    }
}
